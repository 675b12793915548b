"""The report of an audit: a table as text, and a page with table and plot."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from datetime import UTC, datetime

from airmirror.flows.audit import Audit, Bucket
from airmirror.quality.rows import aligned
from airmirror.report.html import document, table
from airmirror.times import utc

MOST_ROWS = 200
PLOTTED = range(4_102_444_800_000)  # epoch milliseconds, up to the year 2100
_COLUMNS = ("event time", "source", "target", "difference", "latency avg s", "latency max s")
_OF_PARTITIONS = ("topic", "partition", "remote topic", "from", "to", "equal", "expired", "before", "missing", "error")


def buckets_table(audit: Audit) -> list[tuple[str, ...]]:
    """One row for ten minutes of event time: records on both sides, and their latencies from timestamp to commit."""
    return [
        (
            utc(begins, "%Y-%m-%d %H:%M"),
            f"{bucket.source:,}",
            f"{bucket.target:,}",
            f"{bucket.target - bucket.source:+,}",
            f"{bucket.latency_ms / 1000:,.1f}",
            f"{bucket.latency_max / 1000:,.1f}",
        )
        for begins, bucket in audit.buckets.items()
    ]


def partitions_table(audit: Audit) -> list[tuple[str, ...]]:
    """One row a partition, those with errors first. ``before`` and ``missing`` are source offsets that are not replicated."""
    ordered = sorted(audit.partitions, key=lambda item: (item.error is None, item.range.key, item.range.start))
    return [
        (
            item.range.topic,
            str(item.range.partition),
            item.remote_topic,
            f"{item.range.start:,}",
            f"{item.range.end:,}",
            f"{item.equal:,}",
            f"{item.expired:,}",
            f"{item.before:,}",
            f"{item.missing:,}",
            str(item.error or ""),
        )
        for item in ordered
    ]


def as_text(audit: Audit) -> str:
    """Both tables, for a log."""
    tables = {_OF_PARTITIONS: partitions_table(audit), _COLUMNS: buckets_table(audit)}
    return "\n\n".join(aligned(columns, rows, MOST_ROWS) for columns, rows in tables.items())


def audit_page(audit: Audit, title: str) -> str:
    """Both tables, and the plot of the first, as a page."""
    plot = f'<img alt="records and latency by event time" src="data:image/png;base64,{_plot(audit.buckets)}">'
    body = (
        f"{plot if audit.buckets else '<p>No record was compared.</p>'}"
        f"<h2>Event time</h2>{table(_COLUMNS, buckets_table(audit))}"
        f"<h2>Partitions</h2>{table(_OF_PARTITIONS, partitions_table(audit))}"
    )
    return document(title, body, "bad" if audit.errors else "good")


def _plot(buckets: Mapping[int, Bucket]) -> str:
    """Records a bucket on both sides, and latencies, as a PNG in base64; without those whose time no axis has."""
    from matplotlib.figure import Figure

    buckets = {begins: bucket for begins, bucket in buckets.items() if begins in PLOTTED}
    times = [datetime.fromtimestamp(begins / 1000, UTC) for begins in buckets]
    figure = Figure(figsize=(11, 5), layout="constrained")
    counts, latencies = figure.subplots(2, sharex=True)
    counts.step(times, [bucket.source for bucket in buckets.values()], where="post", label="source", linewidth=3)
    counts.step(times, [bucket.target for bucket in buckets.values()], where="post", label="target")
    counts.set_ylabel("records / 10 min")
    counts.legend()
    latencies.plot(times, [bucket.latency_ms / 1000 for bucket in buckets.values()], marker=".", label="average")
    latencies.plot(times, [bucket.latency_max / 1000 for bucket in buckets.values()], marker=".", label="maximum")
    latencies.set_ylabel("latency, s")
    latencies.legend()
    image = io.BytesIO()
    figure.savefig(image, format="png")
    return base64.b64encode(image.getvalue()).decode()
