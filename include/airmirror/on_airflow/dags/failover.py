"""A failover as tasks of ``operate.<source>.<target>``: a person approves what it would mean; then it is carried out."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param

from airmirror.config import Flow
from airmirror.on_airflow.dags.links import ReportLink
from airmirror.on_airflow.dags.operators import window_id
from airmirror.on_airflow.dags.people import ApprovedStep, AsksPeople, respondents
from airmirror.on_airflow.deployment import deployment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection
    from airmirror.on_airflow.question import Question
    from airmirror.on_airflow.tasks.approvals import Approval
    from airmirror.runbooks.failover.steps import FailoverOrder

PLAN, DRAIN, CLOSE, MOVE, UNDO = "plan", "drain", "close", "move_groups", "undo"
FAIL_OVER, TAKE_BACK, LEAVE = "Fail over", "Take it back", "Leave it"
WAIT_SECONDS = 900.0  # for the source to become quiet, of one attempt


class PlanFailover(AsksPeople):
    """Asks whether to fail over, as things are now."""

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.failover import ask, ask_undo

        self.options = options_of(context)
        if context["params"]["verb"] == UNDO:
            return ask_undo(deployment(), self.flow, context["params"]["reason"])
        return ask(deployment(), self.flow, order_of(context, by="nobody yet"))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        self.options = options_of(context)  # this is another process, after the answer
        return super().execute_complete(context, event)


class FailoverStep(ApprovedStep):
    """The step that its task is called after, when a person has approved; skipped without that."""

    def work(self, context: Context, selection: Selection) -> None:
        given = self.approved(context, PLAN, FAIL_OVER)
        self.take(context, order_of(context, by=given.by), given)

    def take(self, context: Context, order: FailoverOrder, given: Approval) -> None:
        """Do the step. Raises AirmirrorError."""
        from airmirror.on_airflow.tasks.failover import do_step

        do_step(deployment(), self.flow, self.step, order)


class MoveGroups(FailoverStep):
    """Groups are moved, and the report is written."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def take(self, context: Context, order: FailoverOrder, given: Approval) -> None:
        from airmirror.on_airflow.tasks.failover import finish

        finish(deployment(), self.flow, order, given.at, window_id(context), partial(setattr, self, "page"))


class UndoFailover(ApprovedStep):
    """A failover is taken back, when a person has approved; skipped without that."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.failover import take_back

        given = self.approved(context, PLAN, TAKE_BACK)
        take_back(deployment(), self.flow, context["params"]["reason"], given.by)


def options_of(context: Context) -> list[str]:
    """The answers that the trigger form's verb has."""
    return [TAKE_BACK if context["params"]["verb"] == UNDO else FAIL_OVER, LEAVE]


def order_of(context: Context, by: str) -> FailoverOrder:
    """The order of the trigger form."""
    from airmirror.runbooks.failover.steps import FailoverOrder

    given = context["params"]
    return FailoverOrder(
        given["way"], given["reason"], by, WAIT_SECONDS, inexact=bool(given["inexact"]), anyway=bool(given["anyway"])
    )


def failover_tasks(flow: Flow) -> dict[str, tuple[str, ...]]:
    """Make the tasks; those of each verb."""
    plan = PlanFailover(
        task_id=PLAN,
        flow=flow.name,
        subject=f"{flow.name}: fail over?",
        options=[FAIL_OVER, LEAVE],
        assigned_users=respondents(flow),
    )
    limit = timedelta(seconds=WAIT_SECONDS) + timedelta(hours=1)
    drain, close = (FailoverStep(task_id=name, flow=flow.name, execution_timeout=limit) for name in (DRAIN, CLOSE))
    plan >> drain >> close >> MoveGroups(task_id=MOVE, flow=flow.name, execution_timeout=limit)
    plan >> UndoFailover(task_id=UNDO, flow=flow.name, execution_timeout=limit)
    return {"run": (PLAN, DRAIN, CLOSE, MOVE), "undo": (PLAN, UNDO)}


def failover_fields(flow: Flow) -> dict[str, Param]:
    """What its form asks for."""
    source, target = flow.source.alias, flow.target.alias
    return {
        "way": Param(
            "planned",
            type="string",
            enum=["planned", "disaster"],
            title="Way",
            description_md=f"*planned*: {source} answers, nothing is lost. *disaster*: what {target} alone can prove.",
        ),
        "inexact": Param(
            False,
            type="boolean",
            title="Inexact groups too",
            description_md="Also where groups do not go on at the very next record.",
        ),
        "anyway": Param(
            False, type="boolean", title="Anyway", description_md=f"Of a *disaster*: although {source} answers."
        ),
    }
