"""A move group that people migrate in Airflow, step by step, each approved; every task can be done again, all of it undone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException
from confluent_kafka import OFFSET_INVALID

from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import Opened
from airmirror.on_airflow.dags import runbooks as dag
from airmirror.on_airflow.dags.runbooks import LEAVE, asking
from airmirror.on_airflow.tasks import runbooks
from airmirror.runbooks.failback.pair import NoReverseFlow
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.wire.moves import ProducerBlock
from airmirror_local.brokers import Broker
from migration.conftest import guarded
from on_airflow.conftest import AirflowFlow
from on_airflow.test_failover import says
from support.acls import EVERYBODY
from support.approvals import answered, approvals, asked, run_of, tasks_of
from support.following import numbered
from support.groups import await_committed, commit, committed, member
from support.kept import kept
from support.migrations import moving
from support.topics import assert_mirrored, open_transaction, produce

__all__ = ["approvals", "guarded"]


def form(verb: str = "run", dry_run: bool = False, reverse: bool = False, unblock: bool = False) -> Any:
    order = {"move": "shop", "reverse": reverse, "unblock": unblock, "takes": 7, "steps": None}
    return run_of({"runbook": "migration", "verb": verb, "reason": "moving day", "dry_run": dry_run} | order)


def given(tasks: dict[str, Any], *approved: str, **how: Any) -> Any:
    """A task's context, in which people have approved these steps, and have said no to the others."""
    context = form(**how)
    for step in (*ASKED, dag.UNDO):
        answered(tasks, context, asking(step), GO if step in approved else LEAVE)
    return context


GO = "Do it"
GROUP, REMOTE = "moving-billing", "moving.moving-orders"
STEPS = [step.name for step in MIGRATION.steps]
TAKEN = tuple(step for step in STEPS if step != "reverse")
ASKED = ("cut_over_consumers", "cut_over_producers", "finish")


def used(monkeypatch: pytest.MonkeyPatch, opened: Opened) -> None:
    @contextmanager
    def opened_flow(*_: object) -> Iterator[Opened]:
        yield opened

    monkeypatch.setattr(runbooks, "opened_flow", opened_flow)
    monkeypatch.setattr(dag, "WAIT_SECONDS", 0.0)


@pytest.mark.long
def test_questions_show_the_state_and_answers_move_it(
    guarded: list[Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approvals: str
) -> None:
    east, west = guarded
    flow, _ = moving(east, west, tmp_path, move_block_producers="acl", move_shop_principals=EVERYBODY)
    used(monkeypatch, flow.opened)
    produce(east, flow.topic, numbered(20), partition=0)
    commit(east, f"{flow.topic}-billing", {(flow.topic, 0): 15})
    steps = tasks_of(flow.flow, "migration")
    undo = steps[dag.UNDO]
    assert {asking(step) for step in (*ASKED, dag.UNDO)} == {name for name in steps if name.startswith(asking(""))}
    steps["plan"].execute(form(dry_run=True))
    assert flow.topic in kept(steps["plan"].page)
    assert not flow.opened.ledger.last_mappings() and committed(west, f"{flow.topic}-billing") == {}
    for step in ("mirror", "check_groups"):
        steps[step].execute(form())
    with pytest.raises(NoReverseFlow):
        steps["reverse"].execute(given(steps, "cut_over_consumers", reverse=True))
    with pytest.raises(AirflowSkipException):
        steps["reverse"].execute(given(steps, "cut_over_producers", reverse=True))
    with member(east, f"{flow.topic}-billing", flow.topic):
        found = steps[asking("cut_over_consumers")].ask(form())
    assert ": cut over consumers of shop? shop: 1 topic, 0 offsets not verified yet" in found.subject, found.subject
    assert "stop all consumers" in found.body and "rdkafka at 127.0.0.1" in found.body.replace("\\", "")
    for step in ASKED:  # those of the others are no approval of this one
        with pytest.raises(AirflowSkipException):
            steps[step].execute(given(steps, *(other for other in ASKED if other != step)))
    for _ in range(2):  # cleared, every task does what is left
        for step in TAKEN[:-1]:
            steps[step].execute(given(steps, *ASKED))
    assert owners_now(flow.opened).frozen[flow.topic].by == "ada"
    assert committed(west, f"{flow.topic}-billing") == {(flow.remote_topic, 0): 15} and flow.assert_equal() == 20
    for alone in (True, False):
        steps["plan"].execute(form("undo", dry_run=True, unblock=alone))
        body = asked(steps[asking(dag.UNDO)], form("undo", unblock=alone)).replace("\\", "")
        assert "take the migration back?" in steps[asking(dag.UNDO)].subject and "block" in body
        assert (f"{flow.topic} is unfrozen" in body) is not alone
        with pytest.raises(AirflowSkipException):
            undo.execute(given(steps, verb="undo", unblock=alone))
    assert len(flow.opened.ledger.of_kind(ProducerBlock)) == 1, "nobody has approved it"
    undo.execute(given(steps, dag.UNDO, verb="undo", unblock=True))  # the block alone
    assert not flow.opened.ledger.of_kind(ProducerBlock) and owners_now(flow.opened).frozen
    undo.execute(given(steps, dag.UNDO, verb="undo"))
    assert owners_now(flow.opened).frozen == {} and committed(west, f"{flow.topic}-billing") == {}
    approved = given(steps, *ASKED)
    for step in TAKEN:
        steps[step].execute(approved)


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.flow("moving")
def test_a_migration_that_people_approve(flow: AirflowFlow) -> None:
    """Two of its tasks are killed (SIGKILL) in the middle, while consumers are awaited and before topics are frozen."""
    for partition in (0, 1):
        produce(flow.east, flow.topic, numbered(100, 1000 * partition), partition=partition)
    commit(flow.east, GROUP, {(flow.topic, 0): 40})
    dag_id = "operate.moving.west"
    dry = flow.client.trigger(dag_id, conf(dry_run=True))
    assert flow.client.wait_for_run(dag_id, dry) == "success"
    states = {name: task["state"] for name, task in flow.client.tasks(dag_id, dry).items()}
    assert states["migration.plan"] == "success", "a dry run is the plan alone"
    assert {states[f"migration.{step}"] for step in ("mirror", "check_groups", "cut_over_consumers", "finish")} == {
        "skipped"
    }
    await_committed(flow.west, GROUP, {(REMOTE, 0): OFFSET_INVALID})
    run_id = flow.client.trigger(dag_id, conf())
    question = flow.asked(dag_id, run_id, task(asking("cut_over_consumers")))
    assert "cut over consumers of shop?" in question["subject"] and "moving day" in question["body"]
    flow.answer(dag_id, run_id, task(asking("cut_over_consumers")), GO)
    killed(flow, dag_id, run_id, "migration.cut_over_consumers", "waiting until consumers")
    consumers_come(flow, dag_id, run_id)
    assert "cut over producers of shop?" in flow.asked(dag_id, run_id, task(asking("cut_over_producers")))["subject"]
    with open_transaction(flow.east, flow.topic, numbered(5, 5000), partition=0) as producer:
        flow.answer(dag_id, run_id, task(asking("cut_over_producers")), GO)
        killed(flow, dag_id, run_id, "migration.cut_over_producers", "waiting:")
        producer.commit_transaction(60)
    flow.asked(dag_id, run_id, task(asking("finish")))
    says(flow, dag_id, run_id, "migration.cut_over_producers", "start your producers on west:")
    assert assert_mirrored(flow.east, flow.topic, flow.west, REMOTE) == 205
    undo = flow.client.trigger(dag_id, conf(verb="undo"))  # next to the run that waits
    flow.asked(dag_id, undo, task(asking(dag.UNDO)))
    flow.answer(dag_id, undo, task(asking(dag.UNDO)), GO)
    assert flow.client.wait_for_run(dag_id, undo) == "success"
    await_committed(flow.west, GROUP, {(REMOTE, 0): OFFSET_INVALID})
    flow.client.clear(dag_id, run_id, task(asking("cut_over_consumers")))  # what was undone is approved anew
    flow.answer(dag_id, run_id, task(asking("cut_over_consumers")), GO)
    consumers_come(flow, dag_id, run_id)
    for step in ("cut_over_producers", "finish"):
        flow.asked(dag_id, run_id, task(asking(step)))
        flow.answer(dag_id, run_id, task(asking(step)), GO)
    assert flow.client.wait_for_run(dag_id, run_id) == "success"
    says(flow, dag_id, run_id, "migration.finish", "move group shop has left the flow")
    assert assert_mirrored(flow.east, flow.topic, flow.west, REMOTE) == 205
    tries = {step: flow.client.tasks(dag_id, run_id)[task(step)]["try_number"] for step in STEPS}
    assert tries["cut_over_consumers"] > 1 and tries["cut_over_producers"] > 1, "nothing was killed"


def killed(flow: AirflowFlow, dag_id: str, run_id: str, step: str, text: str) -> None:
    """The task of a step dies when its log has the text; Airflow tries it again."""
    flow.wait_until_running(run_id, step, dag_id)
    says(flow, dag_id, run_id, step, text)
    os.kill(flow.wait_until_running(run_id, step, dag_id)["pid"], signal.SIGKILL)


def consumers_come(flow: AirflowFlow, dag_id: str, run_id: str) -> None:
    """A member joins on the target when the group was moved, so that the task need not wait for it."""
    await_committed(flow.west, GROUP, {(REMOTE, 0): 40}, 300)
    with member(flow.west, GROUP, REMOTE):
        flow.client.wait(
            lambda: flow.client.tasks(dag_id, run_id)["migration.cut_over_consumers"]["state"] == "success", 300
        )


def conf(**more: Any) -> dict[str, Any]:
    return {"runbook": "migration", "move": "shop", "reason": "moving day"} | more


def task(name: str) -> str:
    return f"migration.{name}"
