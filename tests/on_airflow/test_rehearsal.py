"""A failover rehearsed by Airflow: its report is kept and shown, and a rehearsal that fails is a red task."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import TopicPartition

from airmirror.flows.prepare import Opened
from airmirror.on_airflow.dags.rehearsal import Rehearse
from airmirror.on_airflow.tasks import runbooks as task
from airmirror.on_airflow.tasks.runbooks import RehearsalFailed
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror_local.brokers import Broker
from on_airflow.conftest import AirflowFlow
from support.failovers import windowed, with_groups
from support.flows import mirror
from support.following import numbered
from support.groups import commit
from support.kept import kept, ledger_in
from support.migrations import moving, takes
from support.topics import SECONDS, admin, produce


def test_the_task_writes_its_report_and_fails_where_a_failover_would(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = f"g-{uuid4().hex[:8]}"
    flow = with_groups(mirror(east, west, tmp_path), group)
    produce(east, flow.topic, numbered(40), partition=0)
    windowed(flow)
    commit(east, group, {(flow.topic, 0): 25})

    @contextmanager
    def opened_flow(*_: object) -> Iterator[Opened]:
        yield flow.opened

    monkeypatch.setenv("AIRMIRROR_LEDGER", ledger_in(tmp_path))
    monkeypatch.setattr(task, "opened_flow", opened_flow)
    operator = Rehearse(task_id="rehearse", flow=flow.flow.name, runbook=FAILOVER, order=FailoverOrder())
    context: Any = {"run_id": "scheduled", "params": {}, "ti": SimpleNamespace(try_number=1)}
    operator.execute(context)
    assert "1 of 1 group exact" in kept(operator.page)
    asked = admin(west).delete_records([TopicPartition(flow.remote_topic, 0, 30)])
    next(iter(asked.values())).result(SECONDS)
    with pytest.raises(RehearsalFailed, match="a failover would go wrong now"):
        operator.execute(context)
    assert "The rehearsal has failed" in kept(operator.page)


def test_the_task_rehearses_a_migration_and_fails_where_it_would(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, _ = moving(east, west, tmp_path)
    produce(east, flow.topic, numbered(20), partition=0)
    commit(east, f"{flow.topic}-billing", {(flow.topic, 0): 15})
    takes(flow.opened, "mirror")

    @contextmanager
    def opened_flow(*_: object) -> Iterator[Opened]:
        yield flow.opened

    monkeypatch.setenv("AIRMIRROR_LEDGER", ledger_in(tmp_path))
    monkeypatch.setattr(task, "opened_flow", opened_flow)
    order = MoveOrder(move="shop")
    operator = Rehearse(task_id="rehearse_shop", flow=flow.flow.name, runbook=MIGRATION, order=order)
    context: Any = {"run_id": "scheduled", "params": {}, "ti": SimpleNamespace(try_number=1)}
    operator.execute(context)
    assert "1 of 1 group exact" in kept(operator.page)
    commit(west, f"{flow.topic}-billing", {(flow.remote_topic, 0): 18})
    with pytest.raises(RehearsalFailed, match="a migration of 'shop' would go wrong now"):
        operator.execute(context)
    assert "ahead on the target already" in kept(operator.page)


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.flow("rehearsed")
def test_a_rehearsal_is_a_green_run_with_a_report_or_a_red_one(flow: AirflowFlow) -> None:
    for partition in (0, 1):
        produce(flow.east, flow.topic, numbered(100, 1000 * partition), partition=partition)
    commit(flow.east, "rehearsed-billing", {(flow.topic, 0): 40})
    assert flow.first_run()["state"] == "success"
    dag_id = "rehearse.rehearsed.west"
    run_id = flow.client.trigger(dag_id)
    assert flow.client.wait_for_run(dag_id, run_id) == "success", flow.client.log(dag_id, run_id, "failover", 1)
    link = flow.client.xcom(dag_id, run_id, "failover", "audit_report")
    assert "failover-rehearsals/rehearsed-%3Ewest" in link
    assert "0 of 200 records missing, 1 of 1 group exact" in flow.client.log(dag_id, run_id, "failover", 1)
    remote = f"{flow.source}.{flow.topic}"
    asked = admin(flow.west).delete_records([TopicPartition(remote, 0, 60)])
    next(iter(asked.values())).result(SECONDS)
    run_id = flow.client.trigger(dag_id)
    assert flow.client.wait_for_run(dag_id, run_id) == "failed"
    assert flow.client.tasks(dag_id, run_id)["failover"]["try_number"] == 1, (
        "what would go wrong is no reason to try again"
    )
    assert "a failover would go wrong now" in flow.client.log(dag_id, run_id, "failover", 1)
