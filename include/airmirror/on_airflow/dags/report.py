"""The DAG ``report.<source>.<target>``: a flow's report, written when it is triggered."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG

from airmirror.config import Flow
from airmirror.on_airflow.dags.common import new_dag, tags
from airmirror.on_airflow.dags.forms import interval_fields, interval_ms
from airmirror.on_airflow.dags.links import ReportLink
from airmirror.on_airflow.dags.operators import FlowOperator, window_id
from airmirror.on_airflow.deployment import deployment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection

DOC = """
Writes the report of **{flow}**: what was copied from {source} to {target}, verified, held, decided and lost, as one page and
one JSON (docs/evidence.md). *Trigger* asks for a range of time; the button *Report* of the task leads to the page. It is signed
with the key that the connection of `AIRMIRROR_REPORT_CONNECTION` holds. The task fails where not all of it is proven; the report
is written all the same.
"""


class WriteReport(FlowOperator):
    """A flow's report, of what was committed within the form's time."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.flows.report_rows import Span
        from airmirror.on_airflow.tasks.report import report

        span = Span(*interval_ms(context))
        report(deployment(), self.flow, span, window_id(context), show=partial(setattr, self, "page"))


def report_id(flow: Flow) -> str:
    return f"report.{flow.source.alias}.{flow.target.alias}"


def report_dag(flow: Flow) -> DAG:
    """The reports of a flow."""
    source, target = flow.source.alias, flow.target.alias
    with new_dag(
        report_id(flow),
        None,
        description=f"Leave it on, it runs only when triggered: the report of {flow.name} for an auditor.",
        doc_md=DOC.format(flow=flow.name, source=source, target=target),
        tags=tags(flow),
        params=interval_fields("Of the commits of windows. Empty: without this limit."),
        is_paused_upon_creation=False,
    ) as dag:
        WriteReport(task_id="report", flow=flow.name)
    return dag
