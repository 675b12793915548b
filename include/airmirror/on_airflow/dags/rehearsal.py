"""The DAGs ``rehearse_failover.<source>.<target>`` and ``rehearse_migration.…``: rehearsed on a schedule; what would go wrong
fails."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG

from airmirror.config import Flow
from airmirror.on_airflow.dags.common import new_dag, tags
from airmirror.on_airflow.dags.links import ReportLink
from airmirror.on_airflow.dags.notifications import callbacks
from airmirror.on_airflow.dags.operators import FlowOperator, window_id
from airmirror.on_airflow.dags.schedules import timetable
from airmirror.on_airflow.deployment import deployment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection

KEY, KEY_OF_MOVES = "failover.rehearsal.schedule", "move.rehearsal.schedule"
LONGEST = timedelta(hours=6)
DOC = """
Rehearses a failover of **{flow}** to {target} while everything runs, as `airmirror failover rehearse` does
(docs/disaster-recovery.md). The next record of each group is read on both sides, and the newest records of {target} are
compared with those of {source}. Both clusters are only read.

The button *Report* of the task leads to the page. The task fails where a failover would go wrong, also where {source} does not
answer; `on.failure.notifier` tells of the first of several in a row. `failover.rehearsal.schedule` says when it runs.
"""
DOC_OF_MOVES = """
Rehearses the migration of each move group of **{flow}** to {target} while everything runs, as `airmirror migration rehearse` does
(docs/migration.md#rehearse), a task each. The next record of each group is read on both sides, and the newest records of
{target} are compared with those of {source}. Both clusters are only read.

The button *Report* of a task leads to its page. A task fails where the migration would go wrong; `on.failure.notifier` tells of
the first of several in a row. `move.rehearsal.schedule` says when it runs.
"""


class RehearseFailover(FlowOperator):
    """A failover rehearsed; its report."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.rehearsal import rehearse_failover

        rehearse_failover(deployment(), self.flow, window_id(context), show=partial(setattr, self, "page"))


class RehearseMigration(FlowOperator):
    """A move group's migration rehearsed; its report."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def __init__(self, *, move: str, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.move = move

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.rehearsal import rehearse_migration

        rehearse_migration(deployment(), self.flow, self.move, window_id(context), show=partial(setattr, self, "page"))


def rehearsal_id(flow: Flow) -> str:
    return f"rehearse_failover.{flow.source.alias}.{flow.target.alias}"


def rehearsal_dag(flow: Flow) -> DAG:
    """The rehearsals of a flow's failover. Raises BadSchedule, BadNotifier."""
    with _dag(flow, rehearsal_id(flow), "a failover", DOC, (KEY, flow.settings.failover_rehearsal_schedule)) as dag:
        RehearseFailover(task_id="rehearse", flow=flow.name, max_active_tis_per_dag=1, execution_timeout=LONGEST)
    return dag


def rehearsal_of_moves_id(flow: Flow) -> str:
    return f"rehearse_migration.{flow.source.alias}.{flow.target.alias}"


def rehearsal_of_moves_dag(flow: Flow) -> DAG:
    """The rehearsals of a flow's migration. Raises BadSchedule, BadNotifier."""
    schedule = KEY_OF_MOVES, flow.settings.move_rehearsal_schedule
    with _dag(flow, rehearsal_of_moves_id(flow), "the migration", DOC_OF_MOVES, schedule) as dag:
        for move in flow.moves:
            task = f"rehearse_{move.name}"
            RehearseMigration(
                task_id=task, flow=flow.name, move=move.name, max_active_tis_per_dag=1, execution_timeout=LONGEST
            )
    return dag


def _dag(flow: Flow, dag_id: str, what: str, doc: str, schedule: tuple[str, str | None]) -> DAG:
    """A DAG without tasks. ``schedule``: a key and its value; without one it runs when it is triggered."""
    key, value = schedule
    begins = "Switch this on to rehearse" if value else "Leave it on, it runs only when triggered: rehearses"
    return new_dag(
        dag_id,
        timetable(flow.name, value, key) if value else None,
        description=f"{begins} {what} of {flow.name}; nothing of production is touched.",
        doc_md=doc.format(flow=flow.name, source=flow.source.alias, target=flow.target.alias),
        tags=tags(flow),
        is_paused_upon_creation=None if value else False,
        **callbacks(flow, dag_id.partition(".")[0]),
    )
