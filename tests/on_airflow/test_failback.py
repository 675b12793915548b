"""A person lets records return in Airflow, and approves the cut-over; each step can be done again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped

from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import Opened
from airmirror.on_airflow.dags.runbooks import LEAVE, UNDO, asking, order_of
from airmirror.on_airflow.tasks import runbooks
from airmirror.on_airflow.tasks.approvals import NotApproved
from airmirror.runbooks.failback.pair import NothingReturns
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.failback.steps import is_done
from airmirror.wire.owners import WHOLE
from on_airflow.conftest import AirflowFlow
from support.approvals import answered, approvals, run_of, tasks_of
from support.failovers import PLANNED, fail_over
from support.following import numbered
from support.groups import commit, committed
from support.kept import kept
from support.returns import Both, forward_and_reverse, write
from support.sides import Sides
from support.topics import assert_mirrored, produce

__all__ = ["approvals"]

PLAN, CUT_OVER = asking("return"), asking("drain")
LET_RETURN, CUT_BACK, TAKE_BACK = "Let records return", "Cut over", "End the failback"
STEPS = ("return", "drain", "end_return", "move_groups", "unfreeze")


def given(tasks: dict[str, Any], plan: str, cut_over: str = "", dry_run: bool = False, **more: str) -> Any:
    """A task's context, with what people have answered to each of the two questions; to one without an option, nothing."""
    context = form(dry_run, **more)
    for asked, option in ((PLAN, plan), (CUT_OVER, cut_over)):
        if option and not dry_run:
            answered(tasks, context, asked, option)
    return context


def form(dry_run: bool = False, **more: str) -> Any:
    order = {"topics": None, "leave": False, "inexact": False, "accept": False, "steps": None}
    return run_of({"runbook": "failback", "verb": "run", "reason": "INC-7", "dry_run": dry_run} | order | more)


@pytest.fixture
def both(sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, approvals: str) -> Both:
    """Flows after a failover, as the tasks open them."""
    made = forward_and_reverse(sides.east, sides.west, tmp_path)
    write(made.east, made.topic, 0, 20)
    commit(made.east, made.group, {(made.topic, 0): 4})
    made.window(made.forward)
    fail_over(made.forward, PLANNED)
    write(made.west, made.remote, 100, 6)

    @contextmanager
    def opened_flow(_deployment: object, name: str, _selection: object) -> Iterator[Opened]:
        yield made.now(made.forward if name == made.forward.flow.name else made.reverse)

    monkeypatch.setattr(runbooks, "opened_flow", opened_flow)
    return made


@pytest.mark.long
def test_questions_show_what_diverged_and_answers_fail_back(both: Both) -> None:
    flow, tasks = both.forward.flow.name, tasks_of(both.forward.flow, "failback")
    asked = tasks[PLAN].ask(form())
    assert asked.subject.startswith(f"{flow}: fail back?") and "6 written on the target since" in asked.subject
    assert "INC-7" in asked.body and "applications keep running" in asked.body
    tasks["plan"].execute(form(dry_run=True))
    assert both.topic in kept(tasks["plan"].page)
    steps, last = [tasks[name] for name in STEPS], tasks[STEPS[-1]]
    for operator in steps:
        with pytest.raises(AirflowSkipException):
            operator.execute(given(tasks, LEAVE, LEAVE))
    assert both.now(both.reverse).flow.returns == {}
    steps[0].execute(given(tasks, LET_RETURN))
    for second, how in (("", NotApproved), (LEAVE, AirflowSkipException)):
        for operator in steps[1:]:  # the answer to the first question is none to the second one
            with pytest.raises(how):
                operator.execute(given(tasks, LET_RETURN, second))
    cut_over = tasks[CUT_OVER].ask(form())
    assert "2 partitions with more to return" in cut_over.subject and "stop the applications" in cut_over.body
    others: Any = {"topics": ["another"]}
    assert "0 partitions with more to return" in tasks[CUT_OVER].ask(form(**others)).subject
    approved = given(tasks, LET_RETURN, CUT_BACK)
    for _ in range(2):  # cleared, every task does what is left
        for operator in steps:
            operator.execute(approved)
    assert is_done(both.pair) and owners_now(both.forward).frozen == {}
    assert both.values(both.east) == both.values(both.west)
    assert committed(both.east, both.group)[both.topic, 0] == 4
    assert last.page.startswith("failbacks/") and "INC-7" in kept(last.page)
    with pytest.raises(DownstreamTasksSkipped):
        tasks[PLAN].ask(form())  # nothing is left to do, and nobody is asked


@pytest.mark.long  # test_failover.py has the task of an undo, tests/failback/test_undo.py what it undoes
def test_a_failback_is_ended_by_its_undo(both: Both) -> None:
    """Groups that were moved go back; another failback can follow."""
    tasks = tasks_of(both.forward.flow, "failback")
    undo, asks, before = tasks[UNDO], tasks[asking(UNDO)], committed(both.east, both.group)
    commit(both.west, both.group, {(both.remote, 0): 12})
    approved = given(tasks, LET_RETURN, CUT_BACK)
    for name in STEPS[:-1]:
        tasks[name].execute(approved)
    assert committed(both.east, both.group) != before
    asked = asks.ask(form(verb=UNDO))
    assert "take the failback back?" in asked.subject and "1 topic" in asked.subject
    assert "INC-7" in asked.body and f"| {both.topic} | {both.remote} |" in asked.body
    assert f"| {both.group} | {both.topic} | 0 |" in asked.body and both.pair.returning() == {both.remote: both.topic}
    others: Any = {"topics": ["another"]}
    with pytest.raises(NothingReturns, match="another"):
        asks.ask(form(verb=UNDO, **others))
    with pytest.raises(NothingReturns, match="another"):
        undo.execute(taken_back(tasks, TAKE_BACK, **others))
    assert both.pair.returning() == {both.remote: both.topic}, "what is not named resumes"
    with pytest.raises(AirflowSkipException):
        undo.execute(taken_back(tasks, LEAVE))
    for _ in range(2):  # cleared, it does what is left
        undo.execute(taken_back(tasks, TAKE_BACK))
    assert committed(both.east, both.group) == before and both.now(both.reverse).flow.returns == {}
    assert WHOLE in owners_now(both.forward).frozen, "it stays frozen"
    with pytest.raises(AirflowSkipException, match="there is nothing to undo"):
        asks.ask(form(verb=UNDO))
    assert "fail back?" in tasks[PLAN].ask(form()).subject


def taken_back(tasks: dict[str, Any], option: str, **more: Any) -> Any:
    """A task's context, with what people have answered to the question of an undo."""
    return answered(tasks, form(verb=UNDO, **more), asking(UNDO), option)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.flow("returning")
def test_a_failback_that_a_person_approves(flow: AirflowFlow) -> None:
    """Failed over and back by their DAGs; the flow's own DAG, and that of the reverse flow, run the windows."""
    remote, group = f"returning.{flow.topic}", "returning-billing"
    for partition in (0, 1):
        produce(flow.east, flow.topic, numbered(50, 1000 * partition), partition=partition)
    commit(flow.east, group, {(flow.topic, 0): 20})
    over = flow.client.trigger("operate.returning.west", {"runbook": "failover", "reason": "moving day"})
    flow.answer("operate.returning.west", over, "failover.approve_drain", "Fail over")
    assert flow.client.wait_for_run("operate.returning.west", over) == "success"
    assert committed(flow.west, group) == {(remote, 0): 20}
    for partition in (0, 1):
        produce(flow.west, remote, numbered(30, 5000 + 1000 * partition), partition=partition)
    dag_id = "operate.returning.west"
    dry = flow.client.trigger(dag_id, {"runbook": "failback", "reason": "a dry run", "dry_run": True})
    assert flow.client.wait_for_run(dag_id, dry) == "success"
    run_id = flow.client.trigger(dag_id, {"runbook": "failback", "reason": "east is back"})
    question = flow.answer(dag_id, run_id, f"failback.{PLAN}", LET_RETURN)
    assert "60 written on the target since" in question["subject"]
    flow.asked(dag_id, run_id, f"failback.{CUT_OVER}")  # records return from now on, by the DAG of the reverse flow
    back = flow.client.trigger("replicate.west.returning")
    flow.client.unpause("replicate.west.returning")
    assert flow.client.wait_for_run("replicate.west.returning", back) == "success"
    flow.client.pause("replicate.west.returning")
    assert assert_mirrored(flow.west, remote, flow.east, flow.topic) == 160
    flow.answer(dag_id, run_id, f"failback.{CUT_OVER}", CUT_BACK)
    assert flow.client.wait_for_run(dag_id, run_id, 600) == "success"
    assert committed(flow.east, group)[flow.topic, 0] == 20
    produce(flow.east, flow.topic, numbered(10, 9000), partition=0)
    assert flow.first_run()["state"] == "success"
    assert assert_mirrored(flow.east, flow.topic, flow.west, remote) == 170


def test_a_move_group_goes_back_alone() -> None:
    """A migration freezes its own topics only: all others of the flow would refuse to return."""
    assert order_of(FAILBACK, form(), "ada").topics == ()  # type: ignore[attr-defined]
    named: Any = {"topics": ["orders", "stock"]}
    assert order_of(FAILBACK, form(**named), "ada").topics == ("orders", "stock")  # type: ignore[attr-defined]
