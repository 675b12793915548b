"""A comparison of two clusters as a report."""

from __future__ import annotations

from collections.abc import Sequence

from airmirror import __version__
from airmirror.config import Cluster
from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.found import Kind
from airmirror.evidence.positions import ComparedPosition
from airmirror.evidence.rows import ComparedLogs, totals
from airmirror.report.document import Document, titled
from airmirror.rows import row_of


def compared_report(
    source: Cluster,
    target: Cluster,
    asked: ComparisonRequest,
    rows: Sequence[ComparedLogs],
    moved: Sequence[ComparedPosition],
) -> Document:
    """The report of a comparison."""
    found, is_good = totals(rows), all(row.passes for row in rows)
    notes = [f"{row.topic}-{row.partition}: {note}" for row in rows for note in row.notes]
    errors = [f"{row.topic}: {row.error}" for row in rows if row.error]
    unread = sum(row.of_offsets - row.offsets for row in rows)
    if unread:
        notes.insert(
            0, f"{unread:,} offsets of the source were not read, nor what the target has of them: it is a sample."
        )
    return Document(
        kind="compare",
        about="Comparison of two clusters, record by record",
        headline=verdict(rows),
        is_good=is_good,
        asked={
            "topics": list(asked.topics),
            "without": list(asked.exclude),
            "on_the_target": asked.rename,
            "from_ms": asked.first_ms,
            "to_ms": asked.end_ms,
            "timestamps_compared": asked.times,
            "committed_records_only": asked.is_committed,
            "sample": str(asked.sample) if asked.sample else "none: all of it",
            "seed_of_the_sample": asked.sample.seed if asked.sample else None,
        },
        numbers={"logs": len(rows), "logs equal": sum(row.is_equal for row in rows)}
        | {f"records {kind}": found[kind] for kind in Kind}
        | {"offsets of the source not read": unread},
        not_known=(*errors, *notes, "Records that arrived after a topic's turn were not looked at."),
        sections=titled(_sections(source, target, rows, moved)),
    )


def verdict(rows: Sequence[ComparedLogs]) -> str:
    """One sentence: of a sample it says so first."""
    equal, differ = totals(rows)[Kind.EQUAL], sum(row.differs for row in rows)
    read, extent = sum(row.offsets for row in rows), sum(row.of_offsets for row in rows)
    said = f"{equal:,} records are equal on both clusters"
    withheld = sum(row.withheld for row in rows)
    if withheld:
        differing = f"{differ} of {len(rows)} logs differ; " if differ else ""
        return f"{said}; {differing}{withheld:,} offsets that open transactions keep back are not known to be."
    if read < extent:
        of = f"In a sample of {read:,} of {extent:,} source offsets"
        rest = "what was not read is not known"
        return (
            f"{of} {said}, {f'but {differ} of {len(rows)} logs differ' if differ else 'and nothing differs'}; {rest}."
        )
    return f"{said}, but {differ} of {len(rows)} logs differ." if differ else f"{said}, and nothing differs."


def _sections(
    source: Cluster, target: Cluster, rows: Sequence[ComparedLogs], moved: Sequence[ComparedPosition]
) -> dict[str, list[dict[str, object]]]:
    return {
        "clusters": [
            {"side": side, "addresses": list(cluster.bootstrap_servers)}
            for side, cluster in (("source", source), ("target", target))
        ],
        "partitions": [
            row_of(
                row,
                "topic partition remote_topic result offsets=of_offsets offsets_compared=offsets",
                partition=lambda each: each.partition if each.partition >= 0 else None,
            )
            | {str(kind): row.counts.get(kind, 0) for kind in Kind}
            for row in rows
        ],
        "differences": [
            {"topic": row.topic, "partition": row.partition} | _flat(each.as_dict())
            for row in rows
            for each in row.differences
        ],
        "ranges": [
            {"topic": row.topic, "partition": row.partition, "source": [[start, end]], "target": [[its_start, its_end]]}
            for row in rows
            for start, end, its_start, its_end in row.ranges
        ],
        "groups": [move.as_dict() for move in moved],
        "versions": [{"name": "Airmirror", "value": __version__}],
    }


def _flat(difference: dict[str, object]) -> dict[str, object]:
    """With the same columns for each."""
    return difference | {name: difference.get(name) for name in ("differ", "target_partition")}
