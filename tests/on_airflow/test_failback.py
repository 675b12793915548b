"""A person lets records return in Airflow, and approves the switch back; each step can be done again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.flows.closing import owners_now
from airmirror.flows.prepare import Opened
from airmirror.on_airflow.dags import failback as dag
from airmirror.on_airflow.dags.failback import (
    CLOSE,
    DRAIN,
    LEAVE,
    LET_RETURN,
    MOVE,
    OPEN,
    PLAN,
    RETURN,
    SWITCH,
    SWITCH_BACK,
    TAKE_BACK,
    UNDO,
)
from airmirror.on_airflow.tasks import failback
from airmirror.on_airflow.tasks.approvals import NotApproved
from airmirror.runbooks.failback.steps import is_done
from airmirror.wire.owners import WHOLE
from on_airflow.conftest import AirflowFlow
from support.approvals import answered, approvals, run_of, tasks_of
from support.failovers import PLANNED, fail_over
from support.following import numbered
from support.groups import commit, committed
from support.returns import Both, there_and_back, write
from support.sides import Sides
from support.topics import assert_mirrored, produce

__all__ = ["approvals"]


def given(tasks: dict[str, Any], plan: str, switch: str = "", dry_run: bool = False, **more: str) -> Any:
    """A task's context, with what people have answered to each of the two questions; to one without an option, nothing."""
    context = form(dry_run, **more)
    for asked, option in ((PLAN, plan), (SWITCH, switch)):
        if option and not dry_run:
            answered(tasks, context, asked, option)
    return context


def form(dry_run: bool = False, **more: str) -> Any:
    order = {"topics": None, "leave": False, "inexact": False, "accept_loss": False}
    return run_of({"runbook": "failback", "verb": "run", "reason": "INC-7", "dry_run": dry_run} | order | more)


@pytest.fixture
def both(sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approvals: str) -> Both:
    """Flows after a failover, as the tasks open them."""
    made = there_and_back(sides.east, sides.west, tmp_path)
    write(made.east, made.topic, 0, 20)
    commit(made.east, made.group, {(made.topic, 0): 4})
    made.window(made.there)
    fail_over(made.there, PLANNED)
    write(made.west, made.remote, 100, 6)

    @contextmanager
    def opened_flow(_deployment: object, name: str, _selection: object) -> Iterator[Opened]:
        yield made.now(made.there if name == made.there.flow.name else made.back)

    found = replace(dag.deployment(), data_docs=tmp_path / "docs")
    monkeypatch.setattr(dag, "deployment", lambda: found)
    monkeypatch.setattr(failback, "opened_flow", opened_flow)
    return made


def test_questions_show_what_diverged_and_answers_fail_back(both: Both, tmp_path: Path) -> None:
    flow = both.there.flow.name
    asked = failback.ask(dag.deployment(), flow, dag.order_of(form(), "ada"))
    assert asked.subject.startswith(f"{flow}: fail back?") and "6 were written on the target since" in asked.subject
    assert "INC-7" in asked.body and "applications go on" in asked.body
    tasks = tasks_of(both.there.flow, "failback")
    with pytest.raises(AirflowSkipException):
        tasks[PLAN].execute(given(tasks, LET_RETURN, dry_run=True))
    steps, last = [tasks[name] for name in (RETURN, DRAIN, CLOSE, MOVE, OPEN)], tasks[OPEN]
    for operator in steps:
        with pytest.raises(AirflowSkipException):
            operator.execute(given(tasks, LEAVE, LEAVE))
    assert both.now(both.back).flow.returns == {}
    steps[0].execute(given(tasks, LET_RETURN))
    for second, how in (("", NotApproved), (LEAVE, AirflowSkipException)):
        for operator in steps[1:]:  # the answer to the first question is none to the second one
            with pytest.raises(how):
                operator.execute(given(tasks, LET_RETURN, second))
    switch = tasks[SWITCH].ask(form())
    assert "2 partitions have more to return" in switch.subject and "stop the applications" in switch.body
    others: Any = {"topics": ["another"]}
    assert "0 partitions have more to return" in tasks[SWITCH].ask(form(**others)).subject
    for _ in range(2):  # cleared, every task does what is left
        for operator in steps:
            operator.execute(given(tasks, LET_RETURN, SWITCH_BACK))
    assert is_done(both.pair) and owners_now(both.there).closed == {}
    assert both.values(both.east) == both.values(both.west)
    assert committed(both.east, both.group)[both.topic, 0] == 4
    assert last.page is not None and last.page.is_relative_to(tmp_path / "docs") and "INC-7" in last.page.read_text()
    assert "nothing returns" in failback.ask(dag.deployment(), flow, dag.order_of(form(), "ada")).subject


def test_a_failback_is_ended_by_its_way_undo(both: Both) -> None:
    """Groups that were moved go back; another failback can follow."""
    flow = both.there.flow.name
    tasks = tasks_of(both.there.flow, "failback")
    undo, asks, before = tasks[UNDO], tasks[PLAN], committed(both.east, both.group)
    commit(both.west, both.group, {(both.remote, 0): 12})
    for name in (RETURN, DRAIN, CLOSE, MOVE):
        tasks[name].execute(given(tasks, LET_RETURN, SWITCH_BACK))
    assert committed(both.east, both.group) != before
    asked = asks.ask(form(verb=UNDO))
    assert asks.options == [TAKE_BACK, LEAVE] and asked.subject == f"{flow}: end the failback of 1 topic?"
    assert "INC-7" in asked.body and f"- {both.remote}, to {both.topic}" in asked.body
    assert f"| {both.group} | {both.topic}-0 |" in asked.body and both.pair.returning() == {both.remote: both.topic}
    others: Any = {"verb": UNDO, "topics": ["another"]}
    assert asks.ask(form(**others)).subject == f"{flow}: nothing returns"
    undo.execute(given(tasks, TAKE_BACK, **others))
    assert both.pair.returning() == {both.remote: both.topic}, "what is not named goes on"
    for skipped in (tasks[RETURN], undo):
        with pytest.raises(AirflowSkipException):
            skipped.execute(given(tasks, TAKE_BACK if skipped is not undo else LEAVE, verb=UNDO))
    for _ in range(2):  # cleared, it does what is left
        undo.execute(given(tasks, TAKE_BACK, verb=UNDO))
    assert committed(both.east, both.group) == before and both.now(both.back).flow.returns == {}
    assert WHOLE in owners_now(both.there).closed, "it stays closed"
    assert asks.ask(form(verb=UNDO)).subject == f"{flow}: nothing returns"
    with pytest.raises(AirflowSkipException):
        tasks[RETURN].execute(given(tasks, LEAVE))
    assert asks.ask(form()).subject.startswith(f"{flow}: fail back?") and asks.options == [LET_RETURN, LEAVE]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.flow("returning")
def test_a_failback_that_a_person_approves(flow: AirflowFlow) -> None:
    """Failed over and back by their DAGs; the flow's own DAG, and that of the flow back, run the windows."""
    remote, group = f"returning.{flow.topic}", "returning-billing"
    for partition in (0, 1):
        produce(flow.east, flow.topic, numbered(50, 1000 * partition), partition=partition)
    commit(flow.east, group, {(flow.topic, 0): 20})
    over = flow.client.trigger("operate.returning.west", {"runbook": "failover", "reason": "moving day"})
    flow.answer("operate.returning.west", over, "failover.plan", "Fail over")
    assert flow.client.wait_for_run("operate.returning.west", over) == "success"
    assert committed(flow.west, group) == {(remote, 0): 20}
    for partition in (0, 1):
        produce(flow.west, remote, numbered(30, 5000 + 1000 * partition), partition=partition)
    dag_id = "operate.returning.west"
    dry = flow.client.trigger(dag_id, {"runbook": "failback", "reason": "a dry run", "dry_run": True})
    assert flow.client.wait_for_run(dag_id, dry) == "success"
    run_id = flow.client.trigger(dag_id, {"runbook": "failback", "reason": "east is back"})
    question = flow.answer(dag_id, run_id, "failback.plan", LET_RETURN)
    assert "60 were written on the target since" in question["subject"]
    flow.asked(dag_id, run_id, "failback.switch")  # records return from now on, by the DAG of the flow back
    back = flow.client.trigger("replicate.west.returning")
    flow.client.unpause("replicate.west.returning")
    assert flow.client.wait_for_run("replicate.west.returning", back) == "success"
    flow.client.pause("replicate.west.returning")
    assert assert_mirrored(flow.west, remote, flow.east, flow.topic) == 160
    flow.answer(dag_id, run_id, "failback.switch", SWITCH_BACK)
    assert flow.client.wait_for_run(dag_id, run_id, 600) == "success"
    assert committed(flow.east, group)[flow.topic, 0] == 20
    produce(flow.east, flow.topic, numbered(10, 9000), partition=0)
    assert flow.first_run()["state"] == "success"
    assert assert_mirrored(flow.east, flow.topic, flow.west, remote) == 170


def test_a_move_group_goes_back_alone() -> None:
    """A migration closes its own topics only: all others of the flow would refuse to return."""
    assert dag.order_of(form(), "ada").topics == ()
    named: Any = {"topics": ["orders", "stock"]}
    assert dag.order_of(form(**named), "ada").topics == ("orders", "stock")
