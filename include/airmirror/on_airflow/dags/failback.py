"""A failback as tasks of ``operate.<source>.<target>``: a person approves what it would mean; then it is carried out."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from airmirror.config import Flow
from airmirror.on_airflow.dags.forms import topics_field
from airmirror.on_airflow.dags.links import ReportLink
from airmirror.on_airflow.dags.operators import window_id
from airmirror.on_airflow.dags.people import ApprovedStep, AsksPeople, respondents
from airmirror.on_airflow.deployment import deployment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection
    from airmirror.on_airflow.question import Question
    from airmirror.on_airflow.tasks.approvals import Approval
    from airmirror.runbooks.failback.steps import FailbackOrder

PLAN, RETURN, SWITCH, DRAIN, CLOSE, MOVE, OPEN = "plan", "return", "switch", "drain", "close", "move_groups", "open"
UNDO = "undo"
LET_RETURN, SWITCH_BACK, TAKE_BACK, LEAVE = "Let records return", "Switch back", "End the failback", "Leave it"
WANTED = {PLAN: LET_RETURN, SWITCH: SWITCH_BACK}  # the answer to each question with which the steps after it go on
WAIT_SECONDS = 900.0  # for applications to stop, and for the rest to return, of one attempt


class PlanFailback(AsksPeople):
    """Asks whether records are to return, as things are now."""

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.failback import ask, ask_undo

        self.options = options_of(context)
        if context["params"]["verb"] == UNDO:
            return ask_undo(deployment(), self.flow, context["params"]["reason"], topics_of(context))
        return ask(deployment(), self.flow, order_of(context, by="nobody yet"))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        self.options = options_of(context)  # this is another process, after the answer
        return super().execute_complete(context, event)


class SwitchBack(AsksPeople):
    """Asks whether applications are to switch, as far as records have returned by now."""

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.failback import ask_switch

        return ask_switch(deployment(), self.flow, topics_of(context))


class FailbackStep(ApprovedStep):
    """The step that its task is called after, when a person has approved what ``asked`` asks; skipped without that."""

    def __init__(self, *, asked: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.asked = asked

    def work(self, context: Context, selection: Selection) -> None:
        given = self.approved(context, self.asked, WANTED[self.asked])
        self.take(context, order_of(context, by=given.by), given)

    def take(self, context: Context, order: FailbackOrder, given: Approval) -> None:
        """Do the step. Raises AirmirrorError."""
        from airmirror.on_airflow.tasks.failback import do_step

        do_step(deployment(), self.flow, self.step, order)


class OpenAgain(FailbackStep):
    """The flow is opened again, and the report is written."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def take(self, context: Context, order: FailbackOrder, given: Approval) -> None:
        from airmirror.on_airflow.tasks.failback import finish

        finish(deployment(), self.flow, order, given.at, window_id(context), partial(setattr, self, "page"))


class UndoFailback(ApprovedStep):
    """A failback is ended, when a person has approved; skipped without that."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.failback import take_back

        given = self.approved(context, PLAN, TAKE_BACK)
        take_back(deployment(), self.flow, context["params"]["reason"], given.by, topics_of(context))


def options_of(context: Context) -> list[str]:
    """The answers that the trigger form's verb has."""
    return [TAKE_BACK if context["params"]["verb"] == UNDO else LET_RETURN, LEAVE]


def topics_of(context: Context) -> tuple[str, ...]:
    """The topics that the trigger form names, whatever its verb; none: all of the flow."""
    return tuple(context["params"]["topics"] or ())


def order_of(context: Context, by: str) -> FailbackOrder:
    """The order of the trigger form."""
    from airmirror.runbooks.failback.steps import FailbackOrder

    given = context["params"]
    return FailbackOrder(
        given["reason"],
        by,
        bool(given["leave"]),
        WAIT_SECONDS,
        inexact=bool(given["inexact"]),
        topics=topics_of(context),
        accept=bool(given["accept_loss"]),
    )


def failback_tasks(flow: Flow) -> dict[str, tuple[str, ...]]:
    """Make the tasks, of a flow that has a flow in the opposite direction; those of each verb."""
    limit, people = timedelta(seconds=3 * WAIT_SECONDS) + timedelta(hours=1), respondents(flow)
    plan = PlanFailback(
        task_id=PLAN,
        flow=flow.name,
        subject=f"{flow.name}: fail back?",
        options=[LET_RETURN, LEAVE],
        assigned_users=people,
    )
    back = FailbackStep(task_id=RETURN, flow=flow.name, asked=PLAN, execution_timeout=limit)
    switch = SwitchBack(
        task_id=SWITCH,
        flow=flow.name,
        subject=f"{flow.name}: switch back?",
        options=[SWITCH_BACK, LEAVE],
        assigned_users=people,
    )
    drain, close, move = (
        FailbackStep(task_id=name, flow=flow.name, asked=SWITCH, execution_timeout=limit)
        for name in (DRAIN, CLOSE, MOVE)
    )
    last = OpenAgain(task_id=OPEN, flow=flow.name, asked=SWITCH, execution_timeout=limit)
    plan >> back >> switch >> drain >> close >> move >> last
    plan >> UndoFailback(task_id=UNDO, flow=flow.name, execution_timeout=limit)
    return {"run": (PLAN, RETURN, SWITCH, DRAIN, CLOSE, MOVE, OPEN), "undo": (PLAN, UNDO)}


def failback_fields(flow: Flow) -> dict[str, Param]:
    """What its form asks for."""
    source, target = flow.source.alias, flow.target.alias
    return {
        "topics": topics_field(
            f"Only these topics of {source}: after a migration its move group's. Empty: all of the flow."
        ),
        "leave": Param(
            False,
            type="boolean",
            title="Leave what never crossed",
            description_md=f"What never crossed, and was not rescued, stays on {source} and does not come to {target}.",
        ),
        "inexact": Param(
            False,
            type="boolean",
            title="Inexact groups too",
            description_md="Also where groups do not go on at the very next record.",
        ),
        "accept_loss": Param(
            False,
            type="boolean",
            title="Accept what differs",
            description_md="Records that differ on both sides stay as they are, in no account; the log of `plan` lists them.",
        ),
    }
