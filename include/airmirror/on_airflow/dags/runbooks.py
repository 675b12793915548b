"""A runbook as tasks of a DAG: its plan, its questions, its steps and its undo, made from what it declares."""

from __future__ import annotations

import time
from dataclasses import fields
from datetime import timedelta
from typing import Any

from airflow.sdk import Context, Param, TriggerRule
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.config import Flow
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.common import Reports
from airmirror.on_airflow.dags.operators import skip, window_id
from airmirror.on_airflow.dags.people import ApprovedStep, AsksPeople, RunbookOperator, respondents
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.question import Question
from airmirror.runbooks.runbook import Order, OrderOption, Runbook, Verb

AnyRunbook = Runbook[Any, Any]
PLAN, UNDO, LEAVE = "plan", "undo", "Leave it"
WAIT_SECONDS = 900.0  # for applications to stop and to start, of one attempt
LONGEST = timedelta(seconds=3 * WAIT_SECONDS) + timedelta(hours=1)
VERBS: tuple[Verb, ...] = ("plan", "run", "undo")


class ShowPlan(Reports, RunbookOperator):
    """Shows what the runbook would do, as a page: of a run for its plan, or of a dry run."""

    def __init__(self, *, runbook: AnyRunbook, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.runbook = runbook

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.runbooks import RunbookRequest, plan

        given = context["params"]
        request = RunbookRequest(deployment(), self.flow, self.runbook, order_of(self.runbook, context))
        plan(request, given["verb"], given["steps"] or (), window_id(context), self.show)


class AskBeforeStep(AsksPeople):
    """Asks whether to take a step, and those after it up to the next question, as things are now."""

    def __init__(self, *, runbook: AnyRunbook, before: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.runbook, self.before = runbook, before

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.runbooks import NothingLeft, RunbookRequest, ask, ask_undo

        request = RunbookRequest(deployment(), self.flow, self.runbook, order_of(self.runbook, context))
        try:
            return ask_undo(request) if self.before == UNDO else ask(request, self.before)
        except NothingLeft as over:
            if self.before != UNDO:  # steps run after a question that was skipped, since a run leaves some out
                self.log.info("%s", over)
                self.leave()
            raise AirflowSkipException(str(over)) from None

    def scope(self, context: Context) -> str:
        return self.runbook.part(order_of(self.runbook, context))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        given = super().execute_complete(context, event)
        if given["chosen_options"] == [LEAVE]:
            self.leave()
        return given

    def leave(self) -> None:
        """Skip what is asked about, without a process for each step."""
        skip(self.get_flat_relative_ids(upstream=False))


class TakeStep(Reports, ApprovedStep):
    """The step that its task is called after. ``asked``: the task whose question is to be answered first, if any; the last step
    writes the report."""

    def __init__(self, *, runbook: AnyRunbook, asked: str, yes: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.runbook, self.asked, self.yes = runbook, asked, yes

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.runbooks import RunbookRequest, take

        if self.asked:
            given = self.approved(context, self.asked, self.yes)
            by, begun = given.by, given.at.timestamp()
        elif context["params"]["verb"] != "run" or context["params"]["dry_run"]:  # it was cleared
            raise AirflowSkipException("the run is not to take steps")
        else:
            by, begun = str(context["dag_run"].triggering_user_name or "a user of Airflow"), time.time()
        request = RunbookRequest(deployment(), self.flow, self.runbook, order_of(self.runbook, context, by))
        named = tuple(context["params"]["steps"] or ())
        take(request, self.step, named, begun, window_id(context), self.show)


class UndoRunbook(Reports, ApprovedStep):
    """Undoes what was done, when a person has approved; a report."""

    def __init__(self, *, runbook: AnyRunbook, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.runbook = runbook

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.runbooks import RunbookRequest, take_back

        assert self.runbook.undo is not None
        by = self.approved(context, asking(UNDO), self.runbook.undo.yes).by
        request = RunbookRequest(deployment(), self.flow, self.runbook, order_of(self.runbook, context, by))
        take_back(request, window_id(context), self.show)


def asking(step: str) -> str:
    """The task that asks whether to take a step."""
    return f"approve_{step}"


def order_of(runbook: AnyRunbook, context: Context, by: str = "") -> Order:
    given = context["params"]
    options = {each.name: each for verb in VERBS for each in runbook.options(verb) if each.is_asked}
    values: dict[str, Any] = {}
    for name, each in options.items():
        value = given.get(name)
        values[name] = each.default if value is None else tuple(value) if each.type is tuple else value
    if "wait" in {each.name for each in fields(runbook.order)}:
        values["wait"] = WAIT_SECONDS
    order: Order = runbook.order(reason=given["reason"], by=by, **values)
    return order


def tasks_of(runbook: AnyRunbook, flow: Flow) -> dict[str, tuple[str, ...]]:
    """Make a runbook's tasks in the group that is open; those of each verb."""
    always: dict[str, Any] = {"flow": flow.name, "runbook": runbook, "execution_timeout": LONGEST}
    ShowPlan(task_id=PLAN, **always)
    if _moves(runbook) and not flow.moves:
        return {"plan": (PLAN,)}
    found, asked, yes = dict[str, tuple[str, ...]](plan=(PLAN,)), "", ""
    before = list[AskBeforeStep | TakeStep]()
    for step in runbook.steps:
        made = list[AskBeforeStep | TakeStep]()
        if step.asks is not None and step.asks.of(flow):
            asked, yes = asking(step.name), step.asks.yes
            made.append(_question(runbook, flow, step.name, yes, step.asks.title))
        rule = TriggerRule.NONE_FAILED  # a run leaves steps out
        covered = "" if step.is_free else asked
        made.append(TakeStep(task_id=step.name, asked=covered, yes=yes, trigger_rule=rule, **always))
        for each in made:  # after all of them: one that is left out is done at once
            if before:
                before >> each
            before.append(each)
    found["run"] = tuple(each.task_id.rpartition(".")[2] for each in before)
    if runbook.undo is not None:
        _question(runbook, flow, UNDO, runbook.undo.yes) >> UndoRunbook(task_id=UNDO, **always)
        found["undo"] = (asking(UNDO), UNDO)
    return found


def _question(runbook: AnyRunbook, flow: Flow, before: str, yes: str, title: str = "") -> AskBeforeStep:
    return AskBeforeStep(
        task_id=asking(before),
        flow=flow.name,
        runbook=runbook,
        before=before,
        subject=f"{flow.name}: {title or runbook.title}?",
        options=[yes, LEAVE],
        assigned_users=respondents(flow),
        trigger_rule=TriggerRule.NONE_FAILED,
    )


def fields_of(runbook: AnyRunbook, flow: Flow) -> dict[str, Param]:
    verbs = VERBS[:1] if _moves(runbook) and not flow.moves else VERBS
    return {each.name: _field(each, flow) for verb in verbs for each in runbook.options(verb) if each.is_asked}


def _moves(runbook: AnyRunbook) -> bool:
    """Return whether an order is for one of the flow's move groups."""
    return any(each.name == "move" for each in runbook.options("run"))


def _field(option: OrderOption, flow: Flow) -> Param:
    about: dict[str, Any] = {"title": option.title, "description_md": option.help}
    if option.name == "move":
        names = [each.name for each in flow.moves]
        return Param(names[0], type="string", enum=names, **about)
    if option.choices:
        return Param(option.default, type="string", enum=[*option.choices], **about)
    if option.type is tuple:
        return Param(None, type=["null", "array"], items={"type": "string"}, **about)
    if option.type is str:  # one that may not be null has to be filled in, whatever the runbook
        return Param(None, type=["null", "string"], **about)
    about |= {name: most for name, most in zip(("minimum", "maximum"), option.within, strict=True) if most is not None}
    kind = {bool: "boolean", float: "number", int: "integer"}[option.type]
    default = getattr(flow.settings, option.setting) if option.setting else option.default
    return Param(default, type=kind, **about)


def told(runbook: AnyRunbook) -> str:
    """A runbook's summary and steps, as Markdown."""
    lines = [runbook.summary, ""]
    for step in runbook.steps:
        lines.append(f"- `{step.name}`{', after a question' if step.asks else ''}: {step.does}")
    if runbook.undo is not None:
        lines += ["", f"*undo*: {runbook.undo.help}"]
    return "\n".join(lines)
