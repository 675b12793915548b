"""The report of an audit: records by ten minutes of event time on both sides, and every partition."""

from __future__ import annotations

from airmirror.errors import counted
from airmirror.flows.audit import Audit
from airmirror.quality.rows import aligned
from airmirror.report.document import Document, Section
from airmirror.rows import row_of, rows_of

MOST_ROWS = 200


def shown_audit(audit: Audit, flow: str, run: str) -> Document:
    """The document of an audit, partitions with errors first. ``before`` and ``missing`` are source offsets that are not
    replicated."""
    ordered = sorted(audit.partitions, key=lambda each: (each.error is None, each.range.key, each.range.start))
    partitions = rows_of(
        ordered,
        "topic=range.topic partition=range.partition remote_topic from=range.start to=range.end equal expired before missing "
        "error",
        error=lambda each: str(each.error or ""),
    )
    times = [
        {"time_ms": begins}
        | row_of(
            bucket,
            "source target difference average_latency=latency_ms longest_latency=latency_max",
            difference=lambda each: each.target - each.source,
            average_latency=lambda each: round(each.latency_ms),
        )
        for begins, bucket in audit.buckets.items()
    ]
    equal, wrong = sum(each.equal for each in ordered), len(audit.errors)
    return Document(
        kind="audit",
        about=f"Audit of {flow}: {run}",
        headline=f"{flow}: {equal:,} records are equal on both sides, {counted(wrong, 'partition')} did not pass.",
        is_good=not wrong,
        asked={"flow": flow, "run": run},
        sections=[
            Section(
                "event_time",
                times,
                "Event time",
                "Of the records' timestamps, ten minutes each. Latencies, to the commit, are in milliseconds.",
            ),
            Section("partitions", partitions, "Partitions"),
        ],
    )


def as_text(made: Document) -> str:
    """Its partitions, for a log."""
    rows = made.rows("partitions")
    return aligned(list(rows[0]) if rows else [], [list(map(str, row.values())) for row in rows], MOST_ROWS)
