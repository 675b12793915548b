"""The DAG ``report.<source>.<target>``: a flow's report, written when it is triggered."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, Param

from airmirror.config import Flow
from airmirror.on_airflow.dags.links import ReportLink
from airmirror.on_airflow.dags.operators import FlowOperator, window_id
from airmirror.on_airflow.dags.replicate import OWNER, RETRIES, RETRY_DELAY, START, tags
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

        span = Span(*(time_ms(context, name) for name in ("from", "to")))
        report(deployment(), self.flow, span, window_id(context), show=partial(setattr, self, "page"))


def time_ms(context: Context, name: str) -> int | None:
    """Return a time of the form in epoch milliseconds; None: it is empty."""
    given = context["params"].get(name)
    return int(datetime.fromisoformat(given).timestamp() * 1000) if given else None


def time_param(title: str, of: str) -> Param:
    """A field of the form for a time, or nothing."""
    return Param(None, type=["null", "string"], format="date-time", title=title, description_md=of)


def report_dag(flow: Flow) -> DAG:
    """The reports of a flow."""
    of = "Of the commits of windows. Empty: without this limit."
    source, target = flow.source.alias, flow.target.alias
    with DAG(
        f"report.{source}.{target}",
        schedule=None,
        start_date=START,
        catchup=False,
        max_active_runs=1,
        default_args={"owner": OWNER, "retries": RETRIES, "retry_delay": RETRY_DELAY},
        description=f"Leave it on, it runs only when triggered: the report of {flow.name} for an auditor.",
        doc_md=DOC.format(flow=flow.name, source=source, target=target),
        tags=tags(flow),
        params={"from": time_param("From", of), "to": time_param("Until before", of)},
        is_paused_upon_creation=False,
    ) as dag:
        WriteReport(task_id="report", flow=flow.name)
    return dag
