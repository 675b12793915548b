"""People who answer what a task of Airmirror's DAGs asks, as Airflow has it; the ledger keeps their answers for real."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import airflow.sdk.exceptions
import pytest
from airflow.sdk.exceptions import DownstreamTasksSkipped
from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CreateHITLDetailPayload, HITLDetailRequestResult

from airmirror.config import Flow
from airmirror.on_airflow.dags.operate import operate_dag
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks.approvals import note_asked


@pytest.fixture
def approvals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A ledger for answers: its URL, where tasks find it."""
    url = f"sqlite:///{tmp_path}/approvals.db"
    monkeypatch.setenv("AIRMIRROR_LEDGER", url)
    return url


# A question's task waits in a state of its own from Airflow 3.3 on; on 3.2 it is deferred.
WAITS = getattr(airflow.sdk.exceptions, "TaskAwaitingInput", airflow.sdk.exceptions.TaskDeferred)


def run_of(
    params: Mapping[str, Any], *, run_id: str = "", dag_id: str = "dag", user: str | None = "mallory", **xcoms: Any
) -> Any:
    """The context of a task of a run that was triggered with this; ``xcoms``: by task, as whoever may trigger may write them."""
    run_id = run_id or f"manual__{uuid4().hex[:8]}"
    ti = SimpleNamespace(id=uuid4(), try_number=1, xcom_pull=lambda task_ids, key="return_value": xcoms.get(task_ids))
    run = SimpleNamespace(conf=dict(params), dag_id=dag_id, triggering_user_name=user)
    return {"run_id": run_id, "params": dict(params), "ti": ti, "task_instance": ti, "dag_run": run}


def tasks_of(flow: Flow, runbook: str) -> dict[str, Any]:
    """The tasks of a runbook, by their names in its group."""
    tasks = operate_dag(flow, has_reverse=True).tasks
    return {task.task_id.removeprefix(f"{runbook}."): task for task in tasks if task.task_id.startswith(f"{runbook}.")}


def answer(option: str, user: str | None = "ada", reason: str = "") -> dict[str, Any]:
    """What Airflow gives to the task that asked, when somebody has answered; nobody: by a default."""
    return {
        "chosen_options": [option],
        "params_input": {"reason": reason} if reason else {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": user, "name": user} if user else None,
    }


def answered(tasks: Mapping[str, Any], context: Any, question: str, option: str, **who: Any) -> Any:
    """The context, in which a question was asked and somebody has answered; not what it would show."""
    asks = tasks[question]
    note_asked(deployment(), asks.flow, context, asks.task_id, asks.scope(context))
    with suppress(DownstreamTasksSkipped):  # nobody wants what comes after
        asks.execute_complete(context, answer(option, **who))
    return context


class Supervisor:
    """Airflow as far as it keeps questions: of each the first text that was given to it."""

    def __init__(self, kept: dict[str, Any], task_id: str) -> None:
        self.kept, self.task_id = kept, task_id

    def send(self, msg: CreateHITLDetailPayload) -> HITLDetailRequestResult:
        first = self.kept.setdefault(self.task_id, msg)
        return HITLDetailRequestResult(**first.model_dump(exclude={"type"}))


def asked(task: Any, context: Any) -> str:
    """The body that Airflow shows of what a task asks, and waits for an answer to."""
    supervisor = Supervisor(context.setdefault("kept", {}), task.task_id)
    with patch.object(task_runner, "SUPERVISOR_COMMS", supervisor, create=True), pytest.raises(WAITS):
        task.execute(context)
    return str(supervisor.kept[task.task_id].body)
