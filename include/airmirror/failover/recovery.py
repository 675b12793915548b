"""The recovery point: up to which time everything that the source had is proven on the target."""

from __future__ import annotations

from collections.abc import Iterable

from airmirror.ledger import FlowMetric, PartitionMetrics
from airmirror.ledger.metrics import SEEN


def seen_by_flow(rows: Iterable[FlowMetric]) -> dict[str, int]:
    """When each flow last read where its source's partitions end, in epoch milliseconds."""
    return {row.flow: round(row.value * 1000) for row in rows if row.name == SEEN}


def complete_ms(row: PartitionMetrics, seen_ms: int | None) -> int | None:
    """The time (epoch milliseconds) up to which all records of a partition are verified on the target; None: not known.

    Where nothing was left, it is when the source's end was read: what came later is not known. Else it is the timestamp of the
    newest verified record, as its producer has it. ``seen_ms``: when the flow's last window read the ends.
    """
    if row.lag_records == 0 and row.high_watermark >= 0 and row.newest_end in (-1, row.counted_end):
        return seen_ms if row.seen_ms is None else row.seen_ms
    return row.verified_record_ms
