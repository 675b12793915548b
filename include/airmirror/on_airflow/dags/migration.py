"""The DAG ``migration_plan.<source>.<target>``: what a migration of a flow's topics would meet, as a page."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, Param

from airmirror.config import Flow
from airmirror.on_airflow.dags.common import new_dag, tags
from airmirror.on_airflow.dags.links import ReportLink
from airmirror.on_airflow.dags.operators import FlowOperator, window_id
from airmirror.on_airflow.deployment import deployment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection

TAKES, DAYS = "takes", 7
DOC = """
Plans the migration of what **{flow}** replicates, as `airmirror migration plan` does (docs/migration.md): inventories of both
clusters, what must move together, and rules that each say *ok*, *warn* or *stop* with the way out. The button *Report* of the
task leads to the page; a JSON lies next to it. Nothing is written to any cluster. The log has every rule that is not ok; the
task fails only where no plan can be made.
"""


class PlanMigration(FlowOperator):
    """The plan of a migration, as both clusters are now."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.migration import plan

        days = float(context["params"][TAKES])
        plan(deployment(), self.flow, days, window_id(context), show=partial(setattr, self, "page"))


def migration_plan_id(flow: Flow) -> str:
    return f"migration_plan.{flow.source.alias}.{flow.target.alias}"


def migration_plan_dag(flow: Flow) -> DAG:
    """The plans of a flow's migration."""
    source, target = flow.source.alias, flow.target.alias
    days = Param(
        DAYS,
        type="number",
        minimum=0,
        maximum=3650,
        title="Days",
        description_md="That the migration takes, with the time to undo it: records must be kept for so long.",
    )
    with new_dag(
        migration_plan_id(flow),
        None,
        description=f"Leave it on, it runs only when triggered: what a migration from {source} to {target} would meet.",
        doc_md=DOC.format(flow=flow.name),
        tags=tags(flow),
        params={TAKES: days},
        is_paused_upon_creation=False,
    ) as dag:
        PlanMigration(task_id="plan", flow=flow.name)
    return dag
