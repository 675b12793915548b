"""The DAG ``migrate.<source>.<target>``: a run moves a move group, consumers first; people approve what applications notice."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from airflow.sdk import DAG, Param
from airflow.sdk.exceptions import AirflowSkipException

from airmirror.config import Flow
from airmirror.on_airflow.dags.common import new_dag, tags
from airmirror.on_airflow.dags.people import ApprovedStep, AsksPeople, respondents
from airmirror.on_airflow.dags.rehearsal import LONGEST, RehearseMigration
from airmirror.on_airflow.deployment import deployment
from airmirror.runbooks.migration.order import STEPS, MoveOrder, Step

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection
    from airmirror.on_airflow.question import Question

GO, LEAVE = "Do it", "Leave it"
MIGRATE, UNDO, LIFT, REHEARSE = "migrate", "undo", "lift the fence", "rehearse"
APPROVED: tuple[Step, ...] = ("switch_consumers", "switch_producers", "finish")
MIRROR, CONSUMERS, REVERSE = "mirror", "switch_consumers", "reverse"
WAIT_SECONDS = 900.0  # for applications to stop and to start, and for windows to catch up, of one attempt
AT_ONCE = 16  # runs: other move groups, and an undo next to what it undoes
DOC = """
Moves a move group of **{flow}** to {target}, consumers first, as `airmirror migration run` does (docs/migration.md). **Leave this
DAG switched on**: it runs only when it is triggered. *Trigger* asks for the move group, the reason, and a dry run, which shows
what the steps would meet. Plan first: `migration_plan.{source}.{target}`.

1. `mirror`: topics, configs and ACLs are on {target}, and all that {source} has is verified there. Where it creates ACLs and
   quotas (`sync.topic.acls.mode = migrate`), it names them and asks before.
2. `check_groups`: every consumer group goes on at the very next record.
3. `switch_consumers`, when you have approved: **stop the consumers on {source}**. It names the members that are still there,
   writes the groups' positions on {target} and says with which settings consumers start; then it shows their lag there.
4. `reverse`, if the form wants it, looks whether the flow back can begin: from the switch of producers on, what is written on
   {target} is copied back to {source}.
5. `switch_producers`, when you have approved: **stop the producers on {source}**. It names those that still write, copies and
   verifies the last record, closes the topics for every window, and says with which settings producers start.
6. `finish`, when you have approved, after `move.soak.ms` with nothing written on {source}. Nothing is deleted.

With the way *rehearse* a run looks at what all this would meet, and only reads;
`rehearse.{source}.{target}` does so on a schedule.

Every task reads both clusters again: clear any of them; an answer counts for a day. To go back, trigger a run with *undo*:
possible until producers have written on {target}, and with the flow back also afterwards. Without it the way back is then
`failback.{source}.{target}`; where a fence stands, after a run with *lift the fence*. Both ask before they do it.
"""


class AskStep(AsksPeople):
    """Asks whether to take a step, as things are now."""

    def __init__(self, *, step: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.step = step

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.migrate import ask

        _only(context, MIGRATE)
        return ask(deployment(), self.flow, order_of(context, by="nobody yet"), cast(Step, self.step))

    def scope(self, context: Context) -> str:
        return str(context["params"]["move"])


class AskUndo(AskStep):
    """Asks whether to take the steps back, or the fence down."""

    def ask(self, context: Context) -> Question:
        from airmirror.on_airflow.tasks.migrate import ask_undo

        _only(context, UNDO, LIFT)
        return ask_undo(deployment(), self.flow, order_of(context, by="nobody yet"), fence_alone=_is_lift(context))


class MigrateStep(ApprovedStep):
    """The step that its task is called after. ``asked``: the task whose question is to be answered first, if any; the step is
    skipped where the answer is no."""

    def __init__(self, *, asked: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.asked = asked

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.migrate import do, tell_state

        _only(context, MIGRATE)
        if self.task_id == REVERSE and not context["params"]["reverse"]:
            self.log.info("Nobody wants the flow back.")
            return
        if context["params"]["dry_run"]:
            tell_state(deployment(), self.flow, order_of(context, by="nobody"))
            return
        triggered = str(context["dag_run"].triggering_user_name or "a user of Airflow")
        by = self.approved(context, self.asked, GO).by if self.asked else triggered
        do(deployment(), self.flow, order_of(context, by), self.task_id)


class UndoMigration(ApprovedStep):
    """Groups go back, topics are opened, the fence comes down; or the fence alone: of a run that was triggered for it."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.migrate import undo

        _only(context, UNDO, LIFT)
        given = self.approved(context, asking(UNDO), GO)
        undo(deployment(), self.flow, order_of(context, given.by), fence_alone=_is_lift(context))


class RehearseMove(RehearseMigration):
    """What the steps would meet: of a run that was triggered for it."""

    def work(self, context: Context, selection: Selection) -> None:
        _only(context, REHEARSE)
        self.move = str(context["params"]["move"])
        super().work(context, selection)


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


def _is_lift(context: Context) -> bool:
    return bool(context["params"]["way"] == LIFT)


def _only(context: Context, *ways: str) -> None:
    """Raise AirflowSkipException of a run that goes another way."""
    if context["params"]["way"] not in ways:
        raise AirflowSkipException(f"the run is not to {' or '.join(ways)}")


def migrate_id(flow: Flow) -> str:
    return f"migrate.{flow.source.alias}.{flow.target.alias}"


def migrate_dag(flow: Flow) -> DAG:
    """The migration of a flow's move groups."""
    source, target = flow.source.alias, flow.target.alias
    with new_dag(
        migrate_id(flow),
        None,
        max_active_runs=AT_ONCE,
        is_paused_upon_creation=False,
        description=f"Leave it on: moves a move group to {target}, consumers first, each step approved."[:110],
        doc_md=DOC.format(flow=flow.name, source=source, target=target),
        tags=tags(flow),
        params=_form(flow),
    ) as dag:
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
        RehearseMove(task_id=REHEARSE, flow=flow.name, move="", execution_timeout=LONGEST)
    return dag


def _asks(kind: type[AskStep], flow: Flow, step: str) -> AskStep:
    return kind(
        task_id=asking(step),
        flow=flow.name,
        step=step,
        subject=f"{flow.name}: {step}?",
        options=[GO, LEAVE],
        assigned_users=respondents(flow),
    )


def _form(flow: Flow) -> dict[str, Param]:
    names = [each.name for each in flow.moves]
    return {
        "move": Param(
            names[0],
            type="string",
            enum=names,
            title="Move group",
            description_md=f"As the configuration names it: `{flow.name}.move.<name>.…`.",
        ),
        "reason": Param("", type="string", minLength=1, title="Reason", description_md="Why; it is kept."),
        "way": Param(
            MIGRATE,
            type="string",
            enum=[MIGRATE, UNDO, LIFT, REHEARSE],
            title="Way",
            description_md=f"*{UNDO}*: consumer groups go back to {flow.source.alias}, topics are opened, the fence comes down. "
            f"*{LIFT}*: the fence alone, before a failback, which writes to these topics. "
            f"*{REHEARSE}*: what its steps would meet; both clusters are only read.",
        ),
        "reverse": Param(
            flow.settings.move_reverse,
            type="boolean",
            title="Flow back",
            description_md=f"From the switch of producers on, copy what is written on {flow.target.alias} back to "
            f"{flow.source.alias}, so that it stays usable, and undo goes on working. `{flow.opposite}` must be configured.",
        ),
        "dry_run": Param(
            False,
            type="boolean",
            title="Dry run",
            description_md="Tell in the logs what each step would meet; write nothing.",
        ),
    }
