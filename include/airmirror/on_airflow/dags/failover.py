"""The DAG ``failover.<source>.<target>``: a person approves what a failover would mean; then it is carried out, step by step."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Param

from airmirror.config import Flow
from airmirror.on_airflow.dags.common import new_dag, tags
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
DOC = """
Fails **{flow}** over to {target}, as `airmirror failover run` does (docs/disaster-recovery.md). **Leave this DAG switched on**:
it runs only when it is triggered. *Trigger* asks for the way, the reason, and a dry run, which shows the plan only.

1. `plan` looks at both clusters, or at {target} alone, and asks under *Required Actions*. Nothing is written.
2. `drain`, of a *planned* failover: waits until {source} is quiet and names who still writes; copies and verifies the rest.
3. `close` closes the flow by a record in its segment topic: no window of any deployment writes to the remote topics any more.
4. `move_groups` judges what is committed from {target} alone (of a *disaster*), moves consumer groups and writes the report, to
   which its button leads; its log has the names with which applications start.

Every task reads again what is so now: clear any of them. The way *undo* takes a failover back, as `airmirror failover undo` does,
while nobody has gone on on {target}: `plan` shows what it would do and asks, `undo` does it.
"""


class PlanFailover(AsksPeople):
    """Asks whether to fail over, as things are now."""

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.failover import ask, ask_undo

        self.options = options_of(context)
        if context["params"]["way"] == UNDO:
            return ask_undo(deployment(), self.flow, context["params"]["reason"])
        return ask(deployment(), self.flow, order_of(context, by="nobody yet"))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        self.options = options_of(context)  # this is another process, after the answer
        return super().execute_complete(context, event)


class FailoverStep(ApprovedStep):
    """The step that its task is called after, when a person has approved; skipped without that."""

    def work(self, context: Context, selection: Selection) -> None:
        given = self.approved(context, PLAN, FAIL_OVER)
        self.step(context, order_of(context, by=given.by), given)

    def step(self, context: Context, order: FailoverOrder, given: Approval) -> None:
        """Do the step. Raises AirmirrorError."""
        from airmirror.on_airflow.tasks.failover import do_step

        do_step(deployment(), self.flow, self.task_id, order)


class MoveGroups(FailoverStep):
    """Groups are moved, and the report is written."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def step(self, context: Context, order: FailoverOrder, given: Approval) -> None:
        from airmirror.on_airflow.tasks.failover import finish

        finish(deployment(), self.flow, order, given.at, window_id(context), partial(setattr, self, "page"))


class UndoFailover(ApprovedStep):
    """A failover is taken back, when a person has approved; skipped without that."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.failover import take_back

        given = self.approved(context, PLAN, TAKE_BACK)
        take_back(deployment(), self.flow, context["params"]["reason"], given.by)


def options_of(context: Context) -> list[str]:
    """The answers that the trigger form's way has."""
    return [TAKE_BACK if context["params"]["way"] == UNDO else FAIL_OVER, LEAVE]


def order_of(context: Context, by: str) -> FailoverOrder:
    """The order of the trigger form."""
    from airmirror.runbooks.failover.steps import FailoverOrder

    given = context["params"]
    return FailoverOrder(
        given["way"], given["reason"], by, WAIT_SECONDS, inexact=bool(given["inexact"]), anyway=bool(given["anyway"])
    )


def failover_id(flow: Flow) -> str:
    return f"failover.{flow.source.alias}.{flow.target.alias}"


def failover_dag(flow: Flow) -> DAG:
    """The failover of a flow."""
    source, target = flow.source.alias, flow.target.alias
    with new_dag(
        failover_id(flow),
        None,
        is_paused_upon_creation=False,
        description=f"Leave it on: asks an operator, then fails {flow.name} over to {target}, planned or after a disaster.",
        doc_md=DOC.format(flow=flow.name, source=source, target=target),
        tags=tags(flow),
        params=_form(source, target),
    ) as dag:
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
    return dag


def _form(source: str, target: str) -> dict[str, Param]:
    return {
        "way": Param(
            "planned",
            type="string",
            enum=["planned", "disaster", UNDO],
            title="Way",
            description_md=f"*planned*: {source} answers, nothing is lost. *disaster*: what {target} alone can prove. *undo*: "
            "take back the last one.",
        ),
        "reason": Param(
            "", type="string", minLength=1, title="Reason", description_md="Why; it is kept with the closure."
        ),
        "dry_run": Param(False, type="boolean", title="Dry run", description_md="Show the plan; write nothing."),
        "inexact": Param(
            False,
            type="boolean",
            title="Inexact groups too",
            description_md="*planned*: also where groups do not go on at the very next record.",
        ),
        "anyway": Param(
            False, type="boolean", title="Anyway", description_md=f"*disaster*: although {source} answers."
        ),
    }
