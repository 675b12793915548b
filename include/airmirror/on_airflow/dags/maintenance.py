"""The DAG ``maintenance``: once a day each flow forgets what is older than its ``retention.days``."""

from __future__ import annotations

from collections.abc import Sequence

from airflow.sdk import DAG, Context

from airmirror.config import Flow
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.common import id_of, new_dag
from airmirror.on_airflow.dags.operators import FlowOperator
from airmirror.on_airflow.dags.schedules import timetable
from airmirror.on_airflow.deployment import deployment

DAG_ID = "maintenance"
DOC = """
Forgets, once a day and flow by flow, verified mapping records (in the mapping topic and the ledger), and pages that are older
than `retention.days`: Data Docs, plans, audits, reports of runbooks. Reports of flows and of comparisons are evidence and stay.
Positions of consumer groups that are older than what is kept can't be translated any more, and such intervals can't be audited.
Flows without `retention.days` keep everything, and have no task here.

Airflow's own database is not touched: see docs/operations.md for `airflow db clean`.
"""


class Prune(FlowOperator):
    """One flow forgets what is old."""

    def __init__(self, *, days: int, **arguments: object) -> None:
        super().__init__(**arguments)  # type: ignore[arg-type]
        self.days = days

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.flows.maintenance import prune
        from airmirror.on_airflow.tasks.window import opened_flow, when_free

        with opened_flow(deployment(), self.flow, selection) as opened:
            pruned = when_free(opened.flow, lambda: prune(opened, self.days, tell=self.log.info))
        self.log.info("Forgotten: %d mapping records, %d pages.", pruned.mappings, pruned.pages)


def maintenance_dag(flows: Sequence[Flow]) -> DAG:
    """The DAG, with a task for each flow that has ``retention.days``."""
    with new_dag(
        DAG_ID,
        timetable(DAG_ID, "@daily"),
        description="Switch this on to forget, once a day, what is older than retention.days.",
        doc_md=DOC,
        tags=[DAG_ID],
    ) as dag:
        for flow in flows:
            if days := flow.settings.retention_days:
                Prune(task_id=id_of("prune", flow), flow=flow.name, days=days, max_active_tis_per_dag=1)
    return dag
