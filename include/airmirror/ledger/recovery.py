"""The recovery point: up to which time everything that the source had is proven on the target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger.metrics import SEEN, FlowMetric, PartitionMetrics
from airmirror.ledger.tables import flow_metrics, partition_metrics

_TOLD = ("flow", "lag_records", "high_watermark", "newest_end", "counted_end", "seen_ms", "verified_record_ms")


def seen_by_flow(rows: Iterable[FlowMetric]) -> dict[str, int]:
    """When each flow last read where its source's partitions end, in epoch milliseconds."""
    return {row.flow: round(row.value * 1000) for row in rows if row.name == SEEN}


def complete_ms(row: PartitionMetrics | sql.Row[Any], seen_ms: int | None) -> int | None:
    """The time (epoch milliseconds) up to which all records of a partition are verified on the target; None: not known.

    Where nothing was left, it is when the source's end was read: what came later is not known. Else it is the timestamp of the
    newest verified record, as its producer has it. ``seen_ms``: when the flow's last window read the ends.
    """
    if row.lag_records == 0 and row.high_watermark >= 0 and row.newest_end in (-1, row.counted_end):
        return seen_ms if row.seen_ms is None else row.seen_ms
    known: int | None = row.verified_record_ms
    return known


def complete_of(connection: Connection, flows: Sequence[str]) -> dict[str, int | None]:
    """The same of whole flows: of the partition that is furthest back; None where one is not known."""
    own, numbers = partition_metrics.c, flow_metrics.c
    is_seen = sql.and_(numbers.flow.in_(flows), numbers.name == SEEN, numbers.label == "")
    seen = connection.execute(sql.select(numbers.flow, numbers.value).where(is_seen))
    seen_ms = {flow: round(value * 1000) for flow, value in seen}
    times: dict[str, list[int | None]] = {flow: [] for flow in flows}
    for row in connection.execute(sql.select(*(own[name] for name in _TOLD)).where(own.flow.in_(flows))):
        times[row.flow].append(complete_ms(row, seen_ms.get(row.flow)))
    return {flow: earliest(found) for flow, found in times.items()}


def earliest(times: Sequence[int | None]) -> int | None:
    """None: there is none, or one is not known."""
    known = [each for each in times if each is not None]
    return min(known) if known and len(known) == len(times) else None
