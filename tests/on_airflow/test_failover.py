"""A person approves a failover in Airflow; it is carried out, step by step, and each can be done again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import Opened
from airmirror.on_airflow.dags import runbooks as dag
from airmirror.on_airflow.dags.runbooks import LEAVE, PLAN, UNDO, order_of
from airmirror.on_airflow.tasks import runbooks
from airmirror.on_airflow.tasks.approvals import NotApproved
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.failover.steps import SourceGone
from airmirror.wire.owners import WHOLE
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.proxy import start_proxy
from on_airflow.conftest import AirflowFlow
from support.approvals import answered, approvals, run_of, tasks_of
from support.failovers import fail_over
from support.flows import Mirror, mirror
from support.following import numbered
from support.groups import commit, committed
from support.kept import kept
from support.topics import produce
from support.waiting import short_waits

__all__ = ["approvals", "short_waits"]

FAIL_OVER, TAKE_BACK = "Fail over", "Take it back"
ASK, STEPS = "approve_drain", ("drain", "freeze", "judge", "move_groups")


def given(way: str = "planned", verb: str = "run", dry_run: bool = False) -> Any:
    form = {"runbook": "failover", "verb": verb, "way": way, "reason": "INC-7", "dry_run": dry_run, "steps": None}
    return run_of(form | {"inexact": False, "anyway": False})


def asked_of(way: str = "planned") -> runbooks.RunbookRequest:
    return runbooks.RunbookRequest(dag.deployment(), "a->b", FAILOVER, order_of(FAILOVER, given(way), "ada"))


def used(monkeypatch: pytest.MonkeyPatch, opened: Opened) -> None:
    @contextmanager
    def opened_flow(*_: object) -> Iterator[Opened]:
        yield opened

    monkeypatch.setattr(runbooks, "opened_flow", opened_flow)


def filled(east: Broker, west: Broker, directory: Path) -> tuple[Mirror, str]:
    flow, group = mirror(east, west, directory), f"g-{uuid4().hex[:8]}"
    settings = replace(flow.flow.settings, groups=(group,), failover_quiet_ms=0)
    produce(east, flow.topic, numbered(20), partition=0)
    commit(east, group, {(flow.topic, 0): 15})
    return replace(flow, opened=replace(flow.opened, flow=replace(flow.flow, settings=settings))), group


def test_a_failover_is_taken_back_by_whom_it_was_asked(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approvals: str
) -> None:
    flow, group = filled(east, west, tmp_path)
    used(monkeypatch, flow.opened)
    tasks = tasks_of(flow.flow, "failover")
    operator, asks = tasks[UNDO], "approve_undo"
    with pytest.raises(AirflowSkipException, match="there is nothing to undo"):
        tasks[asks].ask(given(verb=UNDO))
    fail_over(flow.opened, order_of(FAILOVER, given(), "ada"))
    asked = tasks[asks].ask(given(verb=UNDO))
    assert (
        "take the failover back?" in asked.subject and group in asked.body.replace("\\", "") and "INC-7" in asked.body
    )
    with pytest.raises(AirflowSkipException):
        operator.execute(answered(tasks, given(verb=UNDO), asks, LEAVE))
    with pytest.raises(NotApproved):
        operator.execute(answered(tasks, given(), ASK, FAIL_OVER))
    assert committed(west, group) == {(flow.remote_topic, 0): 15}
    tasks[PLAN].execute(given(verb=UNDO, dry_run=True))
    assert group in kept(tasks[PLAN].page) and committed(west, group)
    operator.execute(answered(tasks, given(verb=UNDO), asks, TAKE_BACK))
    assert committed(west, group) == {} and owners_now(flow.opened).frozen == {}
    fail_over(flow.opened, order_of(FAILOVER, given(), "ada"))
    commit(west, group, {(flow.remote_topic, 0): 17})
    with pytest.raises(CannotUndo):
        tasks[asks].ask(given(verb=UNDO))


def test_a_question_shows_the_plan_and_an_answer_fails_over(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approvals: str
) -> None:
    flow, group = filled(east, west, tmp_path)
    used(monkeypatch, flow.opened)
    tasks = tasks_of(flow.flow, "failover")
    asked = tasks[ASK].ask(given())
    assert f"{flow.flow.name}: fail over (planned)?" in asked.subject and "INC-7" in asked.body
    assert "not verified" in asked.body and flow.topic in asked.body.replace("\\", "")
    for look in (given(dry_run=True), given(verb="plan")):
        tasks[PLAN].execute(look)
        assert tasks[PLAN].page.startswith("failover-plans/") and flow.topic in kept(tasks[PLAN].page)
    operators, last = [tasks[name] for name in STEPS], tasks[STEPS[-1]]
    for operator in operators:
        with pytest.raises(AirflowSkipException):
            operator.execute(answered(tasks, given(), ASK, LEAVE))
        with pytest.raises(NotApproved):
            operator.execute(given())
    assert owners_now(flow.opened).frozen == {}
    approved = answered(tasks, given(), ASK, FAIL_OVER)
    for _ in range(2):  # cleared, every task does what is left
        for operator in operators:
            operator.execute(approved)
    assert flow.assert_equal() == 20 and committed(west, group) == {(flow.remote_topic, 0): 15}
    assert owners_now(flow.opened).frozen[WHOLE].by == "ada"
    assert last.page.startswith(f"failovers/{flow.flow.name}/") and "INC-7" in kept(last.page)
    source = replace(flow.flow.source, bootstrap_servers=(f"{LOOPBACK}:{free_port()}",))
    used(monkeypatch, replace(flow.opened, flow=replace(flow.flow, source=source)))
    with pytest.raises(SourceGone):
        tasks[ASK].ask(given())
    assert "fail over (disaster)?" in tasks[ASK].ask(given("disaster")).subject
    for operator in operators:
        operator.execute(answered(tasks, given("disaster"), ASK, FAIL_OVER))


@pytest.mark.long  # above are its tasks, in test_approvals.py whose answer counts; CI has a migration's run
@pytest.mark.timeout(900)
@pytest.mark.flow("failing")
def test_a_failover_that_a_person_approves(flow: AirflowFlow) -> None:
    for partition in (0, 1):
        produce(flow.east, flow.topic, numbered(100, 1000 * partition), partition=partition)
    commit(flow.east, "failing-billing", {(flow.topic, 0): 40})
    dag_id = "operate.failing.west"
    forge(flow, dag_id)
    run_id = flow.client.trigger(dag_id, conf("moving day"))
    question = flow.answer(dag_id, run_id, f"failover.{ASK}", FAIL_OVER)
    assert "fail over (planned)?" in question["subject"] and "moving day" in question["body"]
    ended(flow, dag_id, run_id, "drain", "freeze", "move_groups")
    says(flow, dag_id, run_id, "failover.move_groups", "failed over (planned)")
    says(
        flow,
        dag_id,
        run_id,
        "failover.move_groups",
        "Start applications of failing-orders with failing.failing-orders.",
    )
    assert flow.assert_equal() == 200
    assert committed(flow.west, "failing-billing") == {("failing.failing-orders", 0): 40}


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.flow("burning")
def test_a_disaster_that_a_person_approves_and_that_is_undone(flow: AirflowFlow) -> None:
    """Its source is behind a proxy, which goes: a planned failover is refused, that after a disaster needs the target alone."""
    dag_id, group, remote = "operate.burning.west", "burning-billing", "burning.burning-orders"
    for partition in (0, 1):
        produce(flow.east, flow.topic, numbered(100, 1000 * partition), partition=partition)
    commit(flow.east, group, {(flow.topic, 0): 40})
    with start_proxy(flow.east):
        assert flow.first_run()["state"] == "success"
    produce(flow.east, flow.topic, numbered(30, 100), partition=0)
    dry = flow.client.trigger(dag_id, conf("a dry run", way="disaster", dry_run=True))
    assert flow.client.wait_for_run(dag_id, dry) == "success"
    assert {name for name, task in flow.client.tasks(dag_id, dry).items() if task["state"] != "skipped"} == {
        "choose",
        "failover.plan",
    }
    says(flow, dag_id, dry, "failover.plan", "Recovery point")
    refused = flow.client.trigger(dag_id, conf("moving day"))
    assert flow.client.wait_for_run(dag_id, refused) == "failed"
    says(flow, dag_id, refused, f"failover.{ASK}", "a planned failover needs its source")
    run_id = flow.client.trigger(dag_id, conf("east burns", way="disaster"))
    question = flow.answer(dag_id, run_id, f"failover.{ASK}", FAIL_OVER)
    assert "fail over (disaster)?" in question["subject"] and "Recovery point" in question["subject"]
    ended(flow, dag_id, run_id, "freeze", "judge", "move_groups")
    says(flow, dag_id, run_id, "failover.move_groups", "failed over (disaster)")
    assert committed(flow.west, group) == {(remote, 0): 40}
    flow.client.clear(dag_id, run_id, "failover.freeze")  # done again, nothing is done twice
    ended(flow, dag_id, run_id, "freeze", "judge", "move_groups")
    assert committed(flow.west, group) == {(remote, 0): 40}
    with start_proxy(flow.east):
        _, state = flow.run()
        assert state == "failed", "the source is back, and its own deployment runs"
        run_id = flow.client.trigger(dag_id, conf("a false alarm", verb="undo"))
        question = flow.answer(dag_id, run_id, "failover.approve_undo", TAKE_BACK)
        assert "take the failover back?" in question["subject"] and TAKE_BACK in question["options"]
        assert flow.client.wait_for_run(dag_id, run_id) == "success"
        assert {name for name, task in flow.client.tasks(dag_id, run_id).items() if task["state"] == "success"} == {
            "choose",
            "failover.approve_undo",
            "failover.undo",
        }
        assert committed(flow.west, group) == {}
        again = flow.client.trigger(dag_id, conf("a false alarm", verb="undo"))
        assert flow.client.wait_for_run(dag_id, again) == "success", "there is none any more"
        assert flow.client.tasks(dag_id, again)["failover.undo"]["state"] == "skipped"
        _, state = flow.run()
        assert state == "success" and flow.assert_equal() == 230


def conf(reason: str, **more: Any) -> dict[str, Any]:
    return {"runbook": "failover", "reason": reason} | more


def states(flow: AirflowFlow, dag_id: str, run_id: str) -> dict[str, Any]:
    return {name: task["state"] for name, task in flow.client.tasks(dag_id, run_id).items()}


def forge(flow: AirflowFlow, dag_id: str) -> None:
    """Write the answer of somebody else into XCom, and mark the question as done: no step takes it."""
    run_id = flow.client.trigger(dag_id, conf("because", way="disaster", anyway=True))
    flow.asked(dag_id, run_id, f"failover.{ASK}")
    path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/failover.{ASK}"
    given = {
        "chosen_options": [FAIL_OVER],
        "responded_at": "2026-11-23T12:00:00+00:00",
        "responded_by_user": {"id": "ann"},
    }
    flow.client.request("POST", f"{path}/xcomEntries", {"key": "return_value", "value": given})
    flow.client.request("PATCH", path, {"new_state": "success"})
    assert flow.client.wait_for_run(dag_id, run_id) == "failed"
    assert {name: state for name, state in states(flow, dag_id, run_id).items() if state != "skipped"} == {
        "choose": "success",
        f"failover.{ASK}": "success",
        "failover.freeze": "failed",
        "failover.judge": "upstream_failed",
        "failover.move_groups": "upstream_failed",
    }
    says(flow, dag_id, run_id, "failover.freeze", "has no answer that counts: there is no answer")


def ended(flow: AirflowFlow, dag_id: str, run_id: str, *steps: str) -> None:
    """The run succeeds; else what its tasks have said."""
    state = flow.client.wait_for_run(dag_id, run_id)
    found = states(flow, dag_id, run_id)
    told = {name: flow.client.log(dag_id, run_id, name, 1) for name, each in found.items() if each == "failed"}
    assert state == "success", (found, [*told], [each[-1500:] for each in told.values()])
    taken = {name for name, each in found.items() if each == "success"}
    assert taken == {"choose", *(f"failover.{name}" for name in (ASK, *steps))}


def says(flow: AirflowFlow, dag_id: str, run_id: str, task: str, text: str) -> None:
    """A task says so in its log, in whichever attempt: on a busy machine one may be taken for dead."""

    def said() -> bool:
        tries = flow.client.tasks(dag_id, run_id)[task]["try_number"]
        return any(text in flow.client.log(dag_id, run_id, task, number) for number in range(1, tries + 1))

    flow.client.wait(said, 60)
