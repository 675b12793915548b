"""What Airflow's pages want filled in before a person can trigger a DAG, or answer what a task asks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict

from airmirror.airflow import dags
from airmirror.on_airflow.dags.choosing import Choose
from airmirror.on_airflow.dags.forms import UnknownFields, check_conf
from airmirror.on_airflow.dags.operate import RUNBOOKS
from airmirror.on_airflow.dags.operators import FlowOperator
from airmirror.on_airflow.dags.people import AsksPeople
from airmirror.on_airflow.dags.runbooks import order_of
from airmirror.web.alerts import Alert
from on_airflow.test_parsing import GOOD, KINDS
from support.approvals import run_of


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """DAGs of all kinds."""
    configuration = tmp_path / "mirror.properties"
    configuration.write_text(GOOD)
    monkeypatch.setenv("AIRMIRROR_CONFIG", str(configuration))
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path}/ledger.db")
    found = dags()
    assert {name.partition(".")[0] for name in found} == KINDS
    return found


def wanted(params: ParamsDict) -> list[str]:
    """The fields of a form without which its button stays disabled, as Airflow's pages decide it: null is none of its types, and
    nothing is in it. They ask so of all fields, also of those in a section that nobody opens."""
    return [name for name in params if not takes_nothing(params.get_param(name))]


def takes_nothing(field: Param) -> bool:
    kinds = field.schema["type"]
    return "null" in ([kinds] if isinstance(kinds, str) else kinds) or field.dump()["value"] not in (None, "")


def test_a_form_wants_what_nobody_can_know_before_and_no_more(made: dict[str, Any]) -> None:
    for name, dag in made.items():
        known = ["runbook", "reason"] if name.startswith("operate.") else []
        assert wanted(dag.params) == known, name
        for task in dag.tasks:
            if isinstance(task, AsksPeople):
                assert wanted(task.params) == [], f"{name}: {task.task_id}"


def test_a_misspelt_field_is_refused_by_every_dag_before_anything_is_done(made: dict[str, Any]) -> None:
    """Airflow takes any key: what was to be a dry run would write, what was to be narrow would be of everything."""
    for name, dag in made.items():
        if name.startswith("heartbeats."):  # whose runs read nothing, and do no more than write heartbeats
            continue
        for key, known in (("dryrun", "dry_run"), ("topic", "topics")):
            for root in dag.roots:
                with pytest.raises(UnknownFields, match=f"{name} does not know '{key}' ") as refused:
                    root.execute(run_of({key: True}))
                assert (f"the closest known one is '{known}'" in str(refused.value)) is (known in dag.params), name
        of_others = {"openlineage": {"parentRunId": "1"}, **({"held": []} if name.startswith("decide.") else {})}
        for task in dag.tasks:
            if isinstance(task, FlowOperator | AsksPeople | Choose):
                check_conf(task, run_of({**dict.fromkeys(dag.params), **of_others}), getattr(task, "reads", ()))
    alert = Alert.model_validate(
        {"status": "firing", "labels": {"topic": "t", "partition": "1"}, "startsAt": "2026-11-27"}
    )
    check_conf(made["replicate.a.b"].roots[0], run_of(alert.choice()))


@pytest.mark.parametrize("runbook", RUNBOOKS)
def test_a_runbook_and_a_reason_are_an_order(made: dict[str, Any], runbook: str) -> None:
    """The form sends every field, also those of other runbooks, as they are."""
    params = ParamsDict(made["operate.a.b"].params)
    params.update({"runbook": runbook, "reason": "why"})
    book = RUNBOOKS[runbook]
    order = order_of(book, run_of(params.validate()))
    named = {"wait": order.wait} if hasattr(order, "wait") else {}
    if runbook == "migration":
        named |= {"move": "shop", "reverse": False}  # as it is configured
    assert order == book.order(reason="why", by="", **named)
