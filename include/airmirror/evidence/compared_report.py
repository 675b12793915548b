"""A comparison of two clusters as a report."""

from __future__ import annotations

from collections.abc import Sequence

from airmirror import __version__
from airmirror.config import Cluster
from airmirror.evidence.found import Kind
from airmirror.evidence.mirrors import Asked, ComparedLogs, totals
from airmirror.evidence.positions import Move
from airmirror.evidence.reports import Report


def compared_report(
    source: Cluster, target: Cluster, asked: Asked, rows: Sequence[ComparedLogs], moved: Sequence[Move]
) -> Report:
    """The report of a comparison."""
    found, equal = totals(rows), sum(row.is_equal for row in rows)
    is_good = equal == len(rows)
    said = f"{found[Kind.EQUAL]:,} records are equal on both clusters"
    verdict = (
        f"{said}, and nothing differs." if is_good else f"{said}, but {len(rows) - equal} of {len(rows)} logs differ."
    )
    notes = [f"{row.topic}-{row.partition}: {note}" for row in rows for note in row.notes]
    errors = [f"{row.topic}: {row.error}" for row in rows if row.error]
    return Report(
        kind="compare",
        about="Comparison of two clusters, record by record",
        verdict=verdict,
        is_good=is_good,
        asked={
            "topics": list(asked.topics),
            "without": list(asked.exclude),
            "on_the_target": asked.rename,
            "from_ms": asked.first_ms,
            "to_ms": asked.end_ms,
            "timestamps_compared": asked.times,
            "committed_records_only": asked.is_committed,
        },
        numbers={"logs": len(rows), "logs equal": equal} | {f"records {kind}": found[kind] for kind in Kind},
        not_known=(*errors, *notes, "Records that arrived after a topic's turn were not looked at."),
        sections={
            "clusters": [
                {"side": side, "addresses": list(cluster.bootstrap_servers)}
                for side, cluster in (("source", source), ("target", target))
            ],
            "partitions": [
                {
                    "topic": row.topic,
                    "partition": row.partition if row.partition >= 0 else None,
                    "remote_topic": row.remote_topic,
                    "equal_logs": row.is_equal,
                    **{str(kind): row.counts.get(kind, 0) for kind in Kind},
                }
                for row in rows
            ],
            "differences": [
                {"topic": row.topic, "partition": row.partition} | _flat(each.as_dict())
                for row in rows
                for each in row.differences
            ],
            "groups": [move.as_dict() for move in moved],
            "versions": [{"name": "Airmirror", "value": __version__}],
        },
    )


def _flat(difference: dict[str, object]) -> dict[str, object]:
    """With the same columns for each."""
    return difference | {name: difference.get(name) for name in ("differ", "target_partition")}
