"""The DAG ``audit.<source>.<target>``: past intervals, explicit offsets, and the flow's report, as its form chooses."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Context, Param, TriggerRule

from airmirror.config import Flow
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.assets import alias_of
from airmirror.on_airflow.dags.choosing import WHAT, Choose
from airmirror.on_airflow.dags.common import AT_ONCE, Reports, id_of, new_dag, tags
from airmirror.on_airflow.dags.forms import choice_field, form, interval_fields, interval_ms, is_partial
from airmirror.on_airflow.dags.notifications import callbacks
from airmirror.on_airflow.dags.operators import FlowOperator, ReplicateWindow, SyncTopics, VerifyWindow, window_id
from airmirror.on_airflow.dags.schedules import timetable
from airmirror.on_airflow.deployment import deployment

if TYPE_CHECKING:
    from airmirror.on_airflow.tasks.audit import Places
    from airmirror.on_airflow.tasks.spark import Windows

INTERVAL, OFFSETS, REPLAY, REPORT = "interval", "offsets", "replay", "report"
WRITING = ("sync_topics", "replicate_window", "verify_window")
CHOICES = {INTERVAL: (*WRITING, "compare"), OFFSETS: ("compare",), REPLAY: (*WRITING, "compare"), REPORT: ("report",)}
LONGEST = timedelta(hours=6)

DOC = """
Audits **{flow}**. The form of *Trigger* chooses what a run does; the schedule and backfills do the first:

- *interval*, of the records' timestamps: `replicate_window` replicates what {source} has of it beyond the progress, in order, by
  the same windows as ever; nothing else. The lease sees to it that `replicate.{source}.{target}` does not write meanwhile.
  `verify_window` is the gate. `compare` compares everything of the interval that is on both clusters, record by record. Its
  button *Report* shows records by ten minutes of event time on both sides, and the latency.
- *offsets* of one topic and partition of {source}: `compare` alone.
- *replay*: these offsets are replicated first, as those of an interval.
- *report*: what was copied, verified, held, decided and lost, as one page and one JSON (docs/evidence.md), signed with the key
  that the connection of `AIRMIRROR_REPORT_CONNECTION` holds. The task fails where not all of it is proven; the report is written
  all the same.

{past} What is older than the first replicated offset is refused: after it, it would be out of order. With \
`backfill.into.suffix` it is replicated into a topic of its own.
"""
BACKFILLS = """Past intervals: `airflow backfill create --dag-id {dag_id} --from-date … --to-date …`. The same backfill again
changes nothing."""
ONE_BY_ONE = "Past intervals: a run each, whose form names it. Airflow makes no backfills of a DAG without a schedule."


class ReplicateRange(ReplicateWindow):
    """Windows up to the end of the run's interval or offsets."""

    def windows(self, context: Context, window: str, selection: Selection) -> Windows:
        from airmirror.on_airflow.tasks.audit import ranges_in, replicate_ranges
        from airmirror.on_airflow.tasks.spark import windows_of
        from airmirror.on_airflow.tasks.submit import SubmissionBounds

        only_up_to = SubmissionBounds(partial(ranges_in, places(self.flow, context), selection), _is_strict(context))
        return windows_of(
            conn_id=self.spark_conn_id,
            deployment=deployment(),
            flow=self.flow,
            window=window,
            selection=selection,
            over_connect=partial(replicate_ranges, only_up_to=only_up_to),
            only_up_to=only_up_to,
        )


class CompareRange(Reports, FlowOperator):
    """Both clusters' records of the run's interval or offsets, compared; a report."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.on_airflow.tasks.audit import compare_ranges

        run_id, strict = str(context["run_id"]), _is_strict(context)
        if context["params"][WHAT] == OFFSETS:
            selection = replace(selection, dry_run=True)
        compare_ranges(
            deployment(), self.flow, selection, places(self.flow, context), run_id, strict=strict, show=self.show
        )


class WriteReport(Reports, FlowOperator):
    """A flow's report, of what was committed within the form's time."""

    def work(self, context: Context, selection: Selection) -> None:
        from airmirror.flows.report_rows import Span
        from airmirror.on_airflow.tasks.report import report

        span = Span(*interval_ms(context))
        report(deployment(), self.flow, span, window_id(context), show=self.show)


def _is_strict(context: Context) -> bool:
    """A scheduled audit of the time before a flow's first window has nothing to complain of, and nothing to replicate."""
    return bool(context["dag_run"].run_type != "scheduled")


def places(flow: str, context: Context) -> Places:
    """Return the run's range: the form's offsets or interval, or the run's own interval. Raises NoInterval, NoOffsets."""
    from airmirror.flows.audit import Range
    from airmirror.on_airflow.tasks.audit import Interval, NoInterval, NoOffsets, OffsetRange

    given = context["params"]
    if given[WHAT] in (OFFSETS, REPLAY):
        topics, partitions, start, end = (given[name] for name in ("topics", "partitions", "start", "end"))
        if len(topics or ()) != 1 or len(partitions or ()) != 1 or start is None or end is None:
            raise NoOffsets(flow, given[WHAT])
        return OffsetRange(Range(topics[0], partitions[0], start, end))
    begin, end = (datetime.fromisoformat(given[name]) if given[name] else None for name in ("from", "to"))
    begin, end = begin or context.get("data_interval_start"), end or context.get("data_interval_end")
    if begin is None or end is None or not begin < end:
        raise NoInterval(flow)
    return Interval(begin, end)


def audit_dag(flow: Flow) -> DAG:
    """The audits of a flow. Without ``audit.schedule`` it runs when it is triggered only. Raises BadSchedule, BadNotifier."""
    value = flow.settings.audit_schedule
    begins = (
        "Switch this on: compares past intervals again" if value else "Leave it on, it runs only when triggered: audits"
    )
    with new_dag(
        id_of("audit", flow),
        timetable(flow.name, value, "audit.schedule") if value else None,
        max_active_runs=AT_ONCE,
        description=f"{begins}, backfills, replays and reports of {flow.name}."[:110],
        doc_md=DOC.format(
            flow=flow.name,
            source=flow.source.alias,
            target=flow.target.alias,
            past=BACKFILLS.format(dag_id=id_of("audit", flow)) if value else ONE_BY_ONE,
        ),
        tags=tags(flow),
        params=_form(flow),
        **callbacks(
            flow, "audit", lambda context: context["params"][WHAT] == INTERVAL and not is_partial(context["params"])
        ),
    ) as dag:
        _tasks(flow)
    return dag


def _tasks(flow: Flow) -> None:
    """The tasks. Those that write run one at a time, whatever the run: neither form nor backfill are bound otherwise."""
    always: dict[str, Any] = {"flow": flow.name, "max_active_tis_per_dag": 1, "trigger_rule": TriggerRule.ALL_DONE}
    choose = Choose(task_id="choose", choices=CHOICES)
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
    report = WriteReport(task_id="report", flow=flow.name)
    done = EmptyOperator(task_id="done", trigger_rule=TriggerRule.NONE_FAILED)
    choose >> sync_topics >> replicate_window >> verify_window >> compare
    choose >> report
    [choose, sync_topics, replicate_window, verify_window, compare, report] >> done


def _form(flow: Flow) -> dict[str, Param]:
    def offset(title: str) -> Param:
        what = "*offsets* and *replay*; name one topic and one partition."
        return Param(None, type=["null", "integer"], minimum=0, title=title, description_md=what)

    what = choice_field(
        INTERVAL,
        CHOICES,
        "What",
        "*interval*: replicate and compare it. *offsets*: compare them. *replay*: replicate and compare them. "
        "*report*: write the flow's report.",
    )
    times = interval_fields(
        "*interval*: of the records' timestamps; empty: the run's data interval. *report*: of the commits of windows; empty: "
        "without this limit."
    )
    ends = {"start": offset("First offset"), "end": offset("Until before offset")}
    return {WHAT: what, **form(flow), **times, **ends}
