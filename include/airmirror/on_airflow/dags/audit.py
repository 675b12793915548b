"""The DAGs ``audit.<source>.<target>``, of past intervals, and ``replay.<source>.<target>``, of explicit offsets."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param, TriggerRule

from airmirror.config import Flow
from airmirror.on_airflow.dags.assets import alias_of
from airmirror.on_airflow.dags.common import new_dag, tags
from airmirror.on_airflow.dags.forms import form, interval_fields
from airmirror.on_airflow.dags.links import ReportLink
from airmirror.on_airflow.dags.notifications import callbacks
from airmirror.on_airflow.dags.operators import FlowOperator, ReplicateWindow, SyncTopics, VerifyWindow
from airmirror.on_airflow.dags.schedules import timetable
from airmirror.on_airflow.deployment import deployment

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airmirror.flows.selection import Selection
    from airmirror.on_airflow.tasks.audit import Places
    from airmirror.on_airflow.tasks.spark import Windows

LONGEST = timedelta(hours=6)

AUDIT_DOC = """
Audits **{flow}**: one run is one interval of the records' timestamps.

1. `replicate_window`: what {source} has of the interval beyond the progress is replicated, in order, by the same windows as
   ever; nothing else. The claim sees to it that `replicate.{source}.{target}` does not write meanwhile.
2. `verify_window`: the gate.
3. `compare`: everything of the interval that is on both clusters is compared, record by record. Its button *Report* shows
   records by ten minutes of event time on both sides, and the latency.

Past intervals: `airflow backfill create --dag-id audit.{source}.{target} --from-date … --to-date …`. The same backfill again
changes nothing. What is older than the first replicated offset is refused: after it, it would be out of order. With \
`backfill.into.suffix` it is replicated into a topic of its own.
"""
REPLAY_DOC = """
The same as `audit.{source}.{target}`, for **{flow}**, one partition and explicit offsets of {source}. A dry run, which is the
default, compares and replicates nothing.
"""


class ReplicateRange(ReplicateWindow):
    """Windows up to the end of the run's interval or offsets."""

    def windows(self, context: Context, window: str, selection: Selection) -> Windows:
        from airmirror.on_airflow.tasks.audit import ranges_in, replicate_ranges
        from airmirror.on_airflow.tasks.spark import windows_of
        from airmirror.on_airflow.tasks.submit import UpTo

        deployed, only_up_to = deployment(), UpTo(ranges_in(places(self.flow, context), selection), _is_strict(context))
        return windows_of(
            conn_id=self.spark_conn_id,
            deployment=deployed,
            flow=self.flow,
            window=window,
            selection=selection,
            over_connect=lambda url: replicate_ranges(
                deployment=deployed,
                name=self.flow,
                window=window,
                spark_url=url,
                selection=selection,
                only_up_to=only_up_to,
            ),
            only_up_to=only_up_to,
        )


class CompareRange(FlowOperator):
    """Both clusters' records of the run's interval or offsets, compared; a report."""

    operator_extra_links = (ReportLink(),)
    page: Path | None = None

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.audit import compare_ranges

        run_id, strict = str(context["run_id"]), _is_strict(context)
        compare_ranges(
            deployment(),
            self.flow,
            selection,
            places(self.flow, context),
            run_id,
            strict=strict,
            show=partial(setattr, self, "page"),
        )


def _is_strict(context: Context) -> bool:
    """A scheduled audit of the time before a flow's first window has nothing to complain of, and nothing to replicate."""
    return bool(context["dag_run"].run_type != "scheduled")


def places(flow: str, context: Context) -> Places:
    """Return the run's range: the form's offsets or interval, or the run's own interval. Raises NoInterval."""
    from airmirror.flows.audit import Range
    from airmirror.on_airflow.tasks.audit import Interval, NoInterval, OffsetRange

    given = context["params"]
    if "topic" in given:
        return OffsetRange(Range(given["topic"], given["partition"], given["start"], given["end"]))
    begin, end = (datetime.fromisoformat(given[name]) if given[name] else None for name in ("from", "to"))
    begin, end = begin or context.get("data_interval_start"), end or context.get("data_interval_end")
    if begin is None or end is None or not begin < end:
        raise NoInterval(flow)
    return Interval(begin, end)


def audit_id(flow: Flow) -> str:
    return f"audit.{flow.source.alias}.{flow.target.alias}"


def replay_id(flow: Flow) -> str:
    return f"replay.{flow.source.alias}.{flow.target.alias}"


def audit_dag(flow: Flow) -> DAG:
    """The audits of a flow. Raises BadSchedule."""
    schedule = timetable(flow.name, flow.settings.audit_schedule, "audit.schedule")
    params = form(flow) | interval_fields("Of the records' timestamps. Empty: the run's data interval.")
    what = f"Switch this on to compare past intervals of {flow.name} again, and for `airflow backfill`; optional."
    with _dag(audit_id(flow), flow, schedule, AUDIT_DOC, params, description=what, **callbacks(flow, "audit")) as dag:
        _tasks(flow)
    return dag


def replay_dag(flow: Flow) -> DAG:
    """The replays of a flow."""
    own = {name: param for name, param in form(flow).items() if name == "verify"}
    what = f"Leave it on, it runs only when triggered: offsets of {flow.name} that you name, compared or replicated."
    with _dag(
        replay_id(flow), flow, None, REPLAY_DOC, _offsets_form() | own, description=what, is_paused_upon_creation=False
    ) as dag:
        _tasks(flow)
    return dag


def _dag(dag_id: str, flow: Flow, schedule: Any, doc: str, params: dict[str, Param], **more: Any) -> DAG:
    return new_dag(
        dag_id,
        schedule,
        doc_md=doc.format(flow=flow.name, source=flow.source.alias, target=flow.target.alias),
        tags=tags(flow),
        params=params,
        **more,
    )


def _tasks(flow: Flow) -> None:
    """The tasks, one run at a time each: a backfill's runs are not bound by ``max_active_runs``."""
    always: dict[str, Any] = {"flow": flow.name, "max_active_tis_per_dag": 1, "trigger_rule": TriggerRule.ALL_DONE}
    sync_topics = SyncTopics(task_id="sync_topics", flow=flow.name)
    replicate_window = ReplicateRange(
        task_id="replicate_window",
        flow=flow.name,
        spark_conn_id=flow.settings.spark_conn_id,
        max_active_tis_per_dag=1,
        execution_timeout=LONGEST,
    )
    verify_window = VerifyWindow(task_id="verify_window", outlets=[alias_of(flow)], **always)
    compare = CompareRange(task_id="compare", **always)
    done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED)
    sync_topics >> replicate_window >> verify_window >> compare
    [sync_topics, replicate_window, verify_window, compare] >> done


def _offsets_form() -> dict[str, Param]:
    def number(title: str) -> Param:
        return Param(type="integer", minimum=0, title=title)

    return {
        "topic": Param(type="string", minLength=1, title="Topic", description_md="A topic of the source."),
        "partition": number("Partition"),
        "start": number("First offset"),
        "end": number("Until before offset"),
        "dry_run": Param(True, type="boolean", title="Dry run", description_md="Compare only; replicate nothing."),
    }
