"""A migration as tasks of ``operate.<source>.<target>``: a move group moves, consumers first; people approve each step."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import Param

from airmirror.config import Flow
from airmirror.on_airflow.dags.links import ReportLink
from airmirror.on_airflow.dags.operators import window_id
from airmirror.on_airflow.dags.people import ApprovedStep, AsksPeople, RunbookOperator, respondents
from airmirror.on_airflow.deployment import deployment
from airmirror.runbooks.migration.order import STEPS, MoveOrder, Step

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection
    from airmirror.on_airflow.question import Question

GO, LEAVE = "Do it", "Leave it"
UNDO, PLAN = "undo", "plan"
TAKES, DAYS = "takes", 7
APPROVED: tuple[Step, ...] = ("switch_consumers", "switch_producers", "finish")
MIRROR, CONSUMERS, REVERSE = "mirror", "switch_consumers", "reverse"
WAIT_SECONDS = 900.0  # for applications to stop and to start, and for windows to catch up, of one attempt


class AskStep(AsksPeople):
    """Asks whether to take a step, as things are now."""

    def __init__(self, *, step: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.step = step

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.migrate import ask

        return ask(deployment(), self.flow, order_of(context, by="nobody yet"), cast(Step, self.step))

    def scope(self, context: Context) -> str:
        return str(context["params"]["move"])


class AskUndo(AskStep):
    """Asks whether to take the steps back, or the fence down."""

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.migrate import ask_undo

        return ask_undo(
            deployment(),
            self.flow,
            order_of(context, by="nobody yet"),
            fence_alone=bool(context["params"]["fence_alone"]),
        )


class MigrateStep(ApprovedStep):
    """The step that its task is called after. ``asked``: the task whose question is to be answered first, if any; the step is
    skipped where the answer is no."""

    def __init__(self, *, asked: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.asked = asked

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.migrate import do, tell_state

        if self.step == REVERSE and not context["params"]["reverse"]:
            self.log.info("Nobody wants the flow back.")
            return
        if context["params"]["dry_run"]:
            tell_state(deployment(), self.flow, order_of(context, by="nobody"))
            return
        triggered = str(context["dag_run"].triggering_user_name or "a user of Airflow")
        by = self.approved(context, self.asked, GO).by if self.asked else triggered
        do(deployment(), self.flow, order_of(context, by), self.step)


class UndoMigration(ApprovedStep):
    """Groups go back, topics are opened, the fence comes down; or the fence alone: of a run that was triggered for it."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.migrate import undo

        given = self.approved(context, asking(UNDO), GO)
        undo(deployment(), self.flow, order_of(context, given.by), fence_alone=bool(context["params"]["fence_alone"]))


class PlanMigration(RunbookOperator):
    """The plan of a migration, as both clusters are now."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.migration import plan

        days = float(context["params"][TAKES])
        plan(deployment(), self.flow, days, window_id(context), show=partial(setattr, self, "page"))


def order_of(context: Context, by: str) -> MoveOrder:
    """The order of the trigger form."""
    given = context["params"]
    return MoveOrder(given["move"], given["reason"], by, WAIT_SECONDS, bool(given["reverse"]))


def asking(step: str) -> str:
    """The task that asks whether to take a step."""
    return f"approve_{step}"


def asked_first(flow: Flow) -> dict[str, str]:
    """The task whose question each step waits for: its own, or for the flow back that of the consumers, who it is for."""
    copied = [MIRROR] if flow.settings.sync_topic_acls_mode == "migrate" else []
    return {step: asking(step) for step in (*copied, *APPROVED)} | {REVERSE: asking(CONSUMERS)}


def migration_tasks(flow: Flow) -> dict[str, tuple[str, ...]]:
    """Make the tasks; those of each verb. Without move groups there is only a plan."""
    PlanMigration(task_id=PLAN, flow=flow.name)
    if not flow.moves:
        return {"plan": (PLAN,)}
    limit, before = timedelta(seconds=3 * WAIT_SECONDS) + timedelta(hours=1), None
    questions = asked_first(flow)
    for step in STEPS:
        asked = questions.get(step, "")
        work = MigrateStep(task_id=step, flow=flow.name, asked=asked, execution_timeout=limit)
        first: AskStep | MigrateStep = work
        if asked == asking(step):
            first = _asks(AskStep, flow, step)
            first >> work
        if before is not None:
            before >> first
        before = work
    undo = UndoMigration(task_id=UNDO, flow=flow.name, execution_timeout=timedelta(hours=1))
    _asks(AskUndo, flow, UNDO) >> undo
    steps = dict.fromkeys(each for step in STEPS for each in (questions.get(step, step), step))
    return {"plan": (PLAN,), "run": tuple(steps), "undo": (asking(UNDO), UNDO)}


def _asks(kind: type[AskStep], flow: Flow, step: str) -> AskStep:
    return kind(
        task_id=asking(step),
        flow=flow.name,
        step=step,
        subject=f"{flow.name}: {step}?",
        options=[GO, LEAVE],
        assigned_users=respondents(flow),
    )


def migration_fields(flow: Flow) -> dict[str, Param]:
    """What its form asks for."""
    days = Param(
        DAYS,
        type="number",
        minimum=0,
        maximum=3650,
        title="Days",
        description_md="Of a *plan*: that the migration takes, with the time to undo it: records must be kept for so long.",
    )
    names = [each.name for each in flow.moves]
    if not names:
        return {TAKES: days}
    return {
        TAKES: days,
        "move": Param(
            names[0],
            type="string",
            enum=names,
            title="Move group",
            description_md=f"As the configuration names it: `{flow.name}.move.<name>.…`.",
        ),
        "reverse": Param(
            flow.settings.move_reverse,
            type="boolean",
            title="Flow back",
            description_md=f"From the switch of producers on, copy what is written on {flow.target.alias} back to "
            f"{flow.source.alias}, so that it stays usable, and undo goes on working. `{flow.opposite}` must be configured.",
        ),
        "fence_alone": Param(
            False,
            type="boolean",
            title="The fence alone",
            description_md="*undo* lifts the fence alone, before a failback, which writes to these topics.",
        ),
    }
