"""Who has approved what: only what the task that asked has written into the ledger counts, and only from those who may."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException, DownstreamTasksSkipped

from airmirror.airflow import dags
from airmirror.config import parse
from airmirror.ledger import Ledger, LedgerUnavailable
from airmirror.on_airflow.dags.operate import NoSuchVerb, RunbookNotAllowed, operate_dag
from airmirror.on_airflow.dags.people import ApprovedStep
from airmirror.on_airflow.dags.runbooks import LEAVE, UNDO, asking
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks import approvals as approvals_work
from airmirror.on_airflow.tasks import runbooks
from airmirror.on_airflow.tasks.approvals import COUNTS_SECONDS, NotApproved
from support.approvals import answer, answered, approvals, asked, run_of, tasks_of

__all__ = ["approvals"]

CONFIGURATION = """
clusters = a, b
a.bootstrap.servers = one:9092
b.bootstrap.servers = two:9092
a->b.enabled = true
b->a.enabled = true
a->b.move.shop.topics = orders
a->b.move.stock.topics = stock
"""
FREEZE, FAIL_OVER, TAKE_BACK, PLAN = "freeze", "Fail over", "Take it back", "approve_drain"
NAMED = "a->b.decide.users = ada, bob\n"
FORM = {"runbook": "failover", "verb": "run", "way": "disaster", "reason": "INC-7", "dry_run": False, "inexact": False}
FORM |= {"anyway": True, "steps": None}
MOVED = {
    "runbook": "migration",
    "verb": "run",
    "reason": "moving day",
    "dry_run": False,
    "reverse": True,
    "move": "shop",
}
MOVED |= {"unblock": False, "takes": 7, "steps": None}
BACK = {"topics": None, "leave": False, "accept": False}
GO, REVERSE = "Do it", "reverse"


def flow_of(more: str = "") -> Any:
    return parse(CONFIGURATION + more, "mirror.properties").flow("a->b")


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The steps of failovers that were done, and by whom."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(runbooks, "take", lambda asked, step, *_: found.append((step, asked.order.by)))
    monkeypatch.setattr(runbooks, "take_back", lambda asked: found.append((UNDO, asked.order.by)))
    return found


def test_whoever_may_trigger_can_not_approve(approvals: str, frozen: list[tuple[str, str]]) -> None:
    """Three calls of Airflow's API once failed a flow over: XCom had the answer, and the question was marked as done."""
    tasks: dict[str, Any] = tasks_of(flow_of(NAMED), "failover")
    forged = answer(FAIL_OVER, "ada") | {"responded_at": "2026-11-23T12:00:00+00:00"}
    context = run_of(FORM, **{PLAN: forged})
    for task, question, option in ((FREEZE, PLAN, FAIL_OVER), (UNDO, "approve_undo", TAKE_BACK)):
        with pytest.raises(NotApproved, match="there is no answer"):
            tasks[task].execute(run_of(FORM, **{question: forged | {"chosen_options": [option]}}))
    for user, why in (("mallory", "none of decide.users"), (None, "none of decide.users")):
        with pytest.raises(NotApproved, match=why):
            answered(tasks, context, PLAN, FAIL_OVER, user=user)
        with pytest.raises(NotApproved, match="there is no answer"):
            tasks[FREEZE].execute(context)
    assert frozen == []
    with pytest.raises(AirflowSkipException):
        tasks[FREEZE].execute(answered(tasks, context, PLAN, LEAVE, user="ada"))
    tasks[FREEZE].execute(answered(tasks, context, PLAN, FAIL_OVER, user="bob"))
    assert frozen == [(FREEZE, "bob")]
    with pytest.raises(NotApproved, match="there is no answer"):
        tasks[UNDO].execute(context)
    # As the configuration has it when the step is done.
    with pytest.raises(NotApproved, match=r"bob has answered, who is none .* start another run of dag$"):
        tasks_of(flow_of("a->b.decide.users = ada\n"), "failover")[FREEZE].execute(context)
    anybody: dict[str, Any] = tasks_of(flow_of(), "failover")
    with pytest.raises(
        NotApproved, match=r"no user has answered.* clear 'failover\.approve_drain' with its downstream"
    ):
        answered(anybody, run_of(FORM), PLAN, FAIL_OVER, user=None)
    anybody[FREEZE].execute(answered(anybody, run_of(FORM), PLAN, FAIL_OVER, user="zoe"))
    assert frozen == [(FREEZE, "bob"), (FREEZE, "zoe")]


def test_an_answer_counts_for_its_run_and_a_day(
    approvals: str, frozen: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks: dict[str, Any] = tasks_of(flow_of(), "failover")
    first = answered(tasks, run_of(FORM), PLAN, FAIL_OVER)
    tasks[FREEZE].execute(first)
    # Deleted, and made anew under the same name for something else.
    with pytest.raises(NotApproved, match="another configuration of the run"):
        tasks[FREEZE].execute(run_of(FORM | {"way": "planned"}, run_id=first["run_id"]))
    with pytest.raises(NotApproved, match="there is no answer"):
        tasks[FREEZE].execute(run_of(FORM, run_id=first["run_id"], dag_id="another"))
    now = time.time()
    monkeypatch.setattr("airmirror.on_airflow.tasks.approvals.time.time", lambda: now + COUNTS_SECONDS + 60)
    with pytest.raises(NotApproved, match="older than a day"):
        tasks[FREEZE].execute(first)
    monkeypatch.undo()
    monkeypatch.setenv("AIRMIRROR_LEDGER", approvals)
    # What was approved before does not come back when something else was.
    back = answered(tasks, run_of(FORM | {"verb": UNDO}), "approve_undo", TAKE_BACK)
    with pytest.raises(NotApproved, match="another run was answered since"):
        tasks[FREEZE].execute(first)
    monkeypatch.setattr(runbooks, "take_back", lambda *_: frozen.append((UNDO, "ada")))
    tasks[UNDO].execute(back)
    assert frozen[-1] == (UNDO, "ada")


def test_a_question_that_is_asked_again_has_no_answer_and_is_about_the_same(
    approvals: str, frozen: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Airflow shows the text of the first time, whatever is asked later."""
    from airmirror.on_airflow.tasks import decide

    tasks: dict[str, Any] = tasks_of(flow_of(), "failover")
    now = ["as things are"]
    monkeypatch.setattr(runbooks, "ask", lambda *_: Question("fail over?", now[-1]))
    context = run_of(FORM)
    assert asked(tasks[PLAN], context) == "as things are" and "asked it first" not in capsys.readouterr().out
    tasks[PLAN].execute_complete(context, answer(FAIL_OVER))
    tasks[FREEZE].execute(context)
    now.append("another lag")
    assert asked(tasks[PLAN], context) == "as things are" and "asked it first" in capsys.readouterr().out
    with pytest.raises(NotApproved, match="there is no answer"):
        tasks[FREEZE].execute(context)
    assert len(frozen) == 1
    every: dict[str, Any] = dags_of(CONFIGURATION, monkeypatch)["decide.a.b"].task_dict
    held, done = [["orders", 0, 49]], list[Any]()
    monkeypatch.setattr(decide, "ask", lambda *_, **__: Question("held", f"{held}", list(held)))
    monkeypatch.setattr(decide, "carry_out", lambda *given, name, **_: done.append((given[-1], name)) or ())
    context = run_of({}, dag_id="decide.a.b", ask=[["payments", 0, 10**12]])
    asked(every["ask"], context)
    held.append(["payments", 0, 7])
    asked(every["ask"], context)
    every["ask"].execute_complete(context, answer("Let it pass", "ann", "see OPS-7"))
    every["carry_out"].execute(context)
    ((given, name),) = done
    assert given.shown == [["orders", 0, 49]]
    assert (given.option, given.reason, given.by) == ("Let it pass", "see OPS-7", "ann")
    assert name.startswith(f"{context['run_id']} of 20")


def test_an_answer_is_for_what_airflow_shows_also_where_the_ledger_is_another_one(
    approvals: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from airmirror.on_airflow.tasks import decide

    every: dict[str, Any] = dags_of(CONFIGURATION, monkeypatch)["decide.a.b"].task_dict
    first, more, shown = [["orders", 0, 49]], [["orders", 0, 49], ["payments", 0, 7]], list[Any]()
    held = list(first)
    monkeypatch.setattr(decide, "ask", lambda *_, **__: Question("held", f"{held}", list(held)))
    monkeypatch.setattr(decide, "carry_out", lambda *given, **_: shown.append(given[-1].shown) or ())

    def answered_with(context: Any) -> None:
        every["ask"].execute_complete(context, answer("Accept the loss", reason="see OPS-7"))
        every["carry_out"].execute(context)

    context = run_of({}, dag_id="decide.a.b")
    assert asked(every["ask"], context) == f"{first}"
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path}/another.db")
    held[:] = more
    for _ in range(2):  # the task's next attempt knows no more
        with pytest.raises(NotApproved, match=r"start another run of decide\.a\.b"):
            asked(every["ask"], context)
    held[:] = first
    asked(every["ask"], context)
    answered_with(context)
    # The other way round: Airflow has forgotten the run, and this one has its name.
    held[:] = more
    again = run_of({}, run_id=context["run_id"], dag_id="decide.a.b")
    assert asked(every["ask"], again) == f"{more}"
    answered_with(again)
    assert shown == [first, more]


def test_an_answer_waits_for_a_ledger_that_is_away(
    approvals: str, frozen: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow gives it once, and the task's next attempt would ask again."""
    tasks: dict[str, Any] = tasks_of(flow_of(), "failover")
    monkeypatch.setattr(runbooks, "ask", lambda *_: Question("fail over?", "as things are"))
    context, away = run_of(FORM), [True, True]
    asked(tasks[PLAN], context)

    def fails_over(url: str) -> Ledger:
        if away and away.pop():
            raise LedgerUnavailable(url, "the database system is starting up")
        return Ledger(url)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(approvals_work, "Ledger", fails_over)
        meanwhile.setattr(approvals_work, "PAUSE_SECONDS", 0.0)
        tasks[PLAN].execute_complete(context, answer(FAIL_OVER))
        tasks[FREEZE].execute(context)
        away.append(True)
        meanwhile.setattr(approvals_work, "PATIENCE_SECONDS", 0.0)
        with pytest.raises(LedgerUnavailable):
            tasks[PLAN].execute_complete(context, answer(FAIL_OVER))
    assert frozen == [(FREEZE, "ada")]


def test_each_move_group_and_each_question_is_approved_by_itself(
    approvals: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, str]] = []
    monkeypatch.setattr(runbooks, "take", lambda asked, step, *_: done.append((step, asked.order.by)))
    tasks: dict[str, Any] = tasks_of(flow_of(), "migration")
    shop, stock = run_of(MOVED), run_of(MOVED | {"move": "stock"})
    answered(tasks, shop, asking("cut_over_consumers"), GO)
    answered(tasks, stock, asking("cut_over_producers"), GO, user="bob")
    for context, step in ((shop, "cut_over_consumers"), (stock, "cut_over_producers"), (shop, REVERSE)):
        tasks[step].execute(context)
    assert done == [("cut_over_consumers", "ada"), ("cut_over_producers", "bob"), (REVERSE, "ada")]
    for context, step in (
        (shop, "cut_over_producers"),
        (stock, "cut_over_consumers"),
        (stock, REVERSE),
        (shop, "finish"),
    ):
        with pytest.raises(NotApproved):
            tasks[step].execute(context)
    with pytest.raises(AirflowSkipException):
        tasks[UNDO].execute(answered(tasks, run_of(MOVED | {"verb": UNDO}), asking(UNDO), LEAVE))
    with pytest.raises(NotApproved):  # to lift the block is not to take it back
        tasks[UNDO].execute(
            answered(tasks, run_of(MOVED | {"verb": UNDO, "unblock": True}), asking(UNDO), GO)
            | {"run_id": shop["run_id"]}
        )


def test_the_answer_to_a_failback_s_plan_is_none_to_its_cut_over(approvals: str) -> None:
    tasks: dict[str, Any] = tasks_of(flow_of(), "failback")
    context = answered(tasks, run_of(FORM | BACK | {"runbook": "failback"}), asking("return"), "Let records return")
    for step in ("drain", "end_return", "move_groups", "unfreeze"):
        with pytest.raises(NotApproved, match=r"task 'failback\.approve_drain'"):
            tasks[step].execute(context)


def dags_of(text: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    path = Path(deployment().ledger.removeprefix("sqlite:///")).with_name("mirror.properties")
    path.write_text(text)
    monkeypatch.setenv("AIRMIRROR_CONFIG", str(path))
    return dags()


def test_no_step_of_any_dag_is_done_without_an_answer(approvals: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """But those that copy, as every window does, or only look."""
    free, approved = set(), set()
    for more in ("", "a->b.sync.topic.acls.mode = migrate\n"):
        for found in dags_of(CONFIGURATION + more, monkeypatch).values():
            for task in found.tasks:
                if not isinstance(task, ApprovedStep):
                    continue
                if getattr(task, "asked", None) == "":
                    free.add((task.task_id, bool(more)))
                    continue
                runbook, _, step = task.task_id.rpartition(".")
                form = FORM | MOVED | BACK | {"runbook": runbook, "verb": UNDO if step == UNDO else "run"}
                with pytest.raises(NotApproved):
                    task.execute(run_of({key: value for key, value in form.items() if key in found.params}))
                approved.add(task.task_id)
    assert free == {("migration.mirror", False), *(("migration.check_groups", more) for more in (False, True))}
    assert approved == {
        *(f"failover.{step}" for step in ("drain", "freeze", "judge", "move_groups", "undo")),
        *(
            f"failback.{step}"
            for step in ("rescue", "return", "drain", "end_return", "move_groups", "unfreeze", "undo")
        ),
        *(
            f"migration.{step}"
            for step in ("mirror", "cut_over_consumers", REVERSE, "cut_over_producers", "finish", "undo")
        ),
        "takeover.take_over",
        "takeover.history",
        "handback.write",
        "carry_out",
    }


def test_who_may_start_a_runbook_can_be_named(approvals: str, frozen: list[tuple[str, str]]) -> None:
    """By a key of the runbook, since Airflow gives rights by DAG. Marking the first task as done does not help."""
    dag = operate_dag(flow_of("a->b.failover.users = ada, bob\n"), has_reverse=True)
    tasks: dict[str, Any] = dag.task_dict
    for user in ("mallory", None):
        context = run_of(FORM, user=user)
        answered(tasks, context, "failover.approve_drain", FAIL_OVER)
        for task in ("choose", "failover.approve_drain", "failover.freeze"):
            with pytest.raises(RunbookNotAllowed, match=r"none of failover\.users"):
                tasks[task].execute(context)
    context = answered(tasks, run_of(FORM, user="bob"), "failover.approve_drain", FAIL_OVER)
    tasks["failover.freeze"].execute(context)
    assert frozen == [(FREEZE, "ada")]
    with pytest.raises(DownstreamTasksSkipped):
        tasks["choose"].execute(run_of(FORM | {"runbook": "takeover"}, user="mallory"))  # the key of another
    with pytest.raises(AirflowSkipException, match="the run is for takeover"):
        tasks["failover.freeze"].execute(run_of(FORM | {"runbook": "takeover"}))
    with pytest.raises(NoSuchVerb, match="takeover has no 'undo': start a run with plan or run"):
        tasks["choose"].execute(run_of(FORM | {"runbook": "takeover", "verb": UNDO}))


def test_a_run_has_the_tasks_of_its_runbook_alone() -> None:
    tasks: dict[str, Any] = operate_dag(flow_of(), has_reverse=False).task_dict
    assert tasks["failover.move_groups"].upstream_task_ids == {"failover.approve_drain"} | {
        f"failover.{step}" for step in ("drain", "freeze", "judge")
    }, "it waits for all of them: a step that the run leaves out is done at once"
    assert not any(name.startswith("failback") for name in tasks), "nothing returns without a reverse flow"
    left = {}
    for chosen in (("failover", "undo"), ("migration", "plan"), ("takeover", "run")):
        with pytest.raises(DownstreamTasksSkipped) as skipped:
            tasks["choose"].execute(run_of({**FORM, "runbook": chosen[0], "verb": chosen[1]}))
        left[chosen[0]] = set(tasks) - set(skipped.value.tasks) - {"choose"}  # type: ignore[arg-type]
    assert left == {
        "failover": {"failover.approve_undo", "failover.undo"},
        "migration": {"migration.plan"},
        "takeover": {"takeover.approve_take_over", "takeover.take_over"},
    }


def chosen_tasks(tasks: dict[str, Any], runbook: str, steps: list[str] | None, **more: Any) -> set[str]:
    """The tasks of a run, by their names in the runbook's group."""
    with pytest.raises(DownstreamTasksSkipped) as skipped:
        tasks["choose"].execute(run_of({**FORM, **MOVED, **BACK, "runbook": runbook, "steps": steps, **more}))
    left = set(tasks) - set(skipped.value.tasks) - {"choose"}  # type: ignore[arg-type]
    return {task.removeprefix(f"{runbook}.") for task in left}


def test_a_step_that_only_its_name_takes_has_a_question_of_its_own() -> None:
    """The question about stopping MirrorMaker 2 is none to a comparison, and a rescue writes to the target."""
    tasks: dict[str, Any] = operate_dag(flow_of(), has_reverse=True).task_dict
    for runbook, step, usual in (("takeover", "history", "take_over"), ("failback", "rescue", "unfreeze")):
        assert chosen_tasks(tasks, runbook, [step]) == {asking(step), step}
        left = chosen_tasks(tasks, runbook, None)
        assert usual in left and step not in left and asking(step) not in left
    copying: dict[str, Any] = operate_dag(flow_of("a->b.sync.topic.acls.mode = migrate\n"), has_reverse=True).task_dict
    assert chosen_tasks(copying, "migration", ["check_groups"]) == {"check_groups"}, "it only looks"
    assert chosen_tasks(copying, "migration", ["mirror"]) == {asking("mirror"), "mirror"}
    last = chosen_tasks(tasks, "migration", None)
    assert {asking("finish"), "finish"} <= last, "it is offered to whoever has moved"


def test_answers_for_one_move_group_leave_those_for_another(approvals: str) -> None:
    tasks: dict[str, Any] = tasks_of(flow_of(), "migration")
    asks = tasks[asking("cut_over_consumers")]
    assert [asks.scope(run_of(MOVED | {"move": move})) for move in ("shop", "stock")] == ["shop", "stock"]
    assert tasks_of(flow_of(), "failover")[PLAN].scope(run_of(FORM)) == ""


def test_the_form_has_the_setting_and_can_cut_over_it_off() -> None:
    for setting in (False, True):
        flow = flow_of(f"a->b.move.reverse = {str(setting).lower()}\n")
        dag = operate_dag(flow, has_reverse=True)
        assert dag.params.get_param("reverse").value is setting
        for reverse, wanted in ((None, setting), (True, True), (False, False)):
            assert (REVERSE in chosen_tasks(dag.task_dict, "migration", None, reverse=reverse)) is wanted


def test_a_step_without_a_question_is_left_by_runs_that_take_none(
    approvals: str, frozen: list[tuple[str, str]]
) -> None:
    """Whoever may trigger may clear any task: of a dry run, of an undo."""
    step: Any = tasks_of(flow_of(), "migration")["mirror"]
    for other in ({"dry_run": True}, {"verb": UNDO}, {"verb": "plan"}):
        with pytest.raises(AirflowSkipException, match="not to take steps"):
            step.execute(run_of(MOVED | other))
    step.execute(run_of(MOVED))
    assert frozen == [("mirror", "mallory")]


def test_an_undo_that_has_nothing_to_do_is_skipped_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(asked: runbooks.RunbookRequest) -> Question:
        raise runbooks.NothingLeft(asked.flow, asked.runbook.name, "there is nothing to undo")

    monkeypatch.setattr(runbooks, "ask_undo", nothing)
    tasks: dict[str, Any] = tasks_of(flow_of(), "failover")
    with pytest.raises(
        AirflowSkipException, match=r"there is nothing to undo; `airmirror failover plan --flow 'a->b'`"
    ):
        tasks["approve_undo"].ask(run_of(FORM | {"verb": UNDO}))
    assert tasks[UNDO].trigger_rule == "all_success", "it is skipped with its question"
