"""The DAG ``compare.<name>``: two clusters are compared record by record, whoever copied one to the other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, Context, Param

from airmirror.config import Comparison
from airmirror.errors import AirmirrorError
from airmirror.on_airflow.dags.common import Reports, new_dag
from airmirror.on_airflow.dags.forms import check_conf, interval_fields, interval_ms, texts_field
from airmirror.on_airflow.dags.operators import window_id
from airmirror.on_airflow.dags.schedules import timetable
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.retries import BY_ERROR

DOC = """
Compares topics of **{source}** with their copies on **{target}**, record by record, whoever made them (docs/evidence.md).
Nothing is written to Kafka. The button *Report* of the task leads to what was found; a task that has found a difference fails.

The keys `compare.{name}.…` of the configuration say what is compared; *Trigger* asks for topics, a time and a sample of one run.
"""


class CompareClusters(Reports, BaseOperator):
    """One comparison, and its report."""

    ui_color = "#e8f1fa"

    def __init__(self, *, comparison: str, **arguments: Any) -> None:
        super().__init__(**BY_ERROR, **arguments)
        self.comparison = comparison

    def execute(self, context: Context) -> None:
        from airmirror.on_airflow.tasks.report import ComparisonChoice, compare

        given = context["params"]
        try:
            check_conf(self, context)
            narrowed = ComparisonChoice(tuple(given["topics"] or ()), *interval_ms(context), given["sample"])
            compare(deployment(), self.comparison, narrowed, window_id(context), show=self.show)
        except AirmirrorError as error:
            raise error.with_traceback(None) from None  # raised on purpose: what it says is what counts


def compare_id(comparison: Comparison) -> str:
    return f"compare.{comparison.name}"


def compare_dag(comparison: Comparison) -> DAG:
    """The DAG of a comparison. Raises BadSchedule."""
    source, target = comparison.source.alias, comparison.target.alias
    name, value = compare_id(comparison), comparison.schedule
    begins = "Switch this on to compare" if value else "Leave it on, it runs only when triggered: compares"
    with new_dag(
        name,
        timetable(name, value, f"{name}.schedule") if value else None,
        description=f"{begins} {source} with {target}, record by record.",
        doc_md=DOC.format(source=source, target=target, name=comparison.name),
        tags=["compare", f"source:{source}", f"target:{target}"],
        params=_form(),
    ) as dag:
        limit = timedelta(days=1)
        CompareClusters(
            task_id="compare", comparison=comparison.name, max_active_tis_per_dag=1, execution_timeout=limit
        )
    return dag


def _form() -> dict[str, Param]:
    return {
        "topics": texts_field("Topics", "Only these topics of the source, names or patterns. Empty: as configured."),
        **interval_fields("Of the records' timestamps. Empty: without this limit."),
        "sample": Param(
            None,
            type=["null", "string"],
            title="Sample",
            description_md="A share of each partition (`1%`) or a number of ranges of each (`20`). Empty: as configured.",
        ),
    }
