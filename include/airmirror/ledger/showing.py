"""Queries of the console: a few, each of bounded cost and size. Nothing is decided from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger import queries
from airmirror.ledger.queries import WindowRow, record_of
from airmirror.ledger.tables import newest, partition_metrics, segments, verified
from airmirror.wire.segments import SegmentRecord, Verified


@dataclass(frozen=True)
class Totals:
    """The sums of a flow's partitions as its last window left them; times in epoch milliseconds.

    ``oldest_ms``: of the partitions with a lag, the timestamp of the newest record copied of the one that is furthest back;
    ``unknown``: partitions with a lag of which none was copied yet. ``passed_ms``: when a gate last let something pass.
    """

    topics: int
    partitions: int
    behind: int
    lag_records: int
    oldest_ms: int | None
    unknown: int
    records: int
    bytes: int
    passed_ms: int


@dataclass(frozen=True, slots=True)  # ten thousand of them a page
class PartitionRow:
    """A partition as it is shown: its numbers, its position (-1: nothing was replicated) and verified offset (-1: none)."""

    topic: str
    partition: int
    remote_topic: str
    lag_records: int
    newest_ms: int
    latency_ms: int
    latency_most_ms: int | None
    verified_ms: int
    high_watermark: int
    records: int
    bytes: int
    position: int
    verified_offset: int


@dataclass(frozen=True)
class ShownWindow:
    """A window, and of how many partitions all that it has committed is verified now."""

    row: WindowRow
    verified: int


def totals(connection: Connection, flows: Sequence[str]) -> dict[str, Totals]:
    """Return the sums of the flows' partitions; without those of which there are none."""
    own = partition_metrics.c
    lagging = own.lag_records > 0
    query = (
        sql.select(
            own.flow,
            sql.func.count(sql.distinct(own.topic)),
            sql.func.count(),
            sql.func.count(sql.case((lagging, 1))),
            sql.func.sum(own.lag_records),
            sql.func.min(sql.case((sql.and_(lagging, own.newest_ms >= 0), own.newest_ms))),
            sql.func.count(sql.case((sql.and_(lagging, own.newest_ms < 0), 1))),
            sql.func.sum(own.records),
            sql.func.sum(own.bytes),
            sql.func.max(own.verified_ms),
        )
        .where(own.flow.in_(flows))
        .group_by(own.flow)
    )
    return {
        flow: Totals(*(None if value is None else int(value) for value in row))  # type: ignore[arg-type]
        for flow, *row in connection.execute(query)
    }


def partitions(connection: Connection, flow: str, only: tuple[str, int] | None = None) -> list[PartitionRow]:
    """Return a flow's partitions, by topic and number; ``only`` one of them."""
    own = partition_metrics.c
    names = [name for name in PartitionRow.__dataclass_fields__ if name not in ("position", "verified_offset")]
    query: Any = (
        sql.select(
            *(own[name] for name in names),
            sql.func.coalesce(newest.c.source_end, -1),
            sql.func.coalesce(verified.c.source_offset, -1),
        )
        .select_from(
            partition_metrics.outerjoin(newest, _same(partition_metrics, newest)).outerjoin(
                verified,
                sql.and_(_same(newest, verified), newest.c.source_topic_id == verified.c.source_topic_id),
            )
        )
        .where(own.flow == flow)
    )
    if only is not None:
        query = query.where(own.topic == only[0], own.partition == only[1])
    found = [PartitionRow(*row) for row in connection.execute(query).all()]
    return sorted(found, key=lambda row: (row.topic, row.partition))


def windows(connection: Connection, flow: str, limit: int) -> list[ShownWindow]:
    """The latest windows that committed anything, the newest first."""
    rows = queries.windows(connection, flow, limit)
    of_this = sql.and_(
        _same(segments, verified),
        segments.c.source_topic_id == verified.c.source_topic_id,
        verified.c.source_offset + 1 >= segments.c.source_end,
    )
    last = (  # the last commit of each partition: what comes before it in a partition is verified before it
        sql.select(
            segments.c.window, segments.c.topic, segments.c.partition, sql.func.max(segments.c.source_end).label("end")
        )
        .where(segments.c.flow == flow, segments.c.window.in_([row.window for row in rows]))
        .group_by(segments.c.window, segments.c.topic, segments.c.partition)
        .subquery()
    )
    same = sql.and_(
        segments.c.flow == flow,
        segments.c.window == last.c.window,
        segments.c.topic == last.c.topic,
        segments.c.partition == last.c.partition,
        segments.c.source_end == last.c.end,
    )
    query = (
        sql.select(segments.c.window, sql.func.count())
        .select_from(last.join(segments, same).join(verified, of_this))
        .group_by(segments.c.window)
    )
    passed = {window: int(count) for window, count in connection.execute(query)}
    return [ShownWindow(row, min(row.partitions, passed.get(row.window, 0))) for row in rows]


def story(
    connection: Connection, flow: str, key: tuple[str, int], limit: int, before: int | None
) -> list[SegmentRecord]:
    """The last segment records of a partition, of its topic as it is now, the newest first; ``before`` a source offset."""
    of_this = [column == value for column, value in zip(_keys(segments), (flow, *key), strict=True)]
    current = sql.select(newest.c.source_topic_id).where(
        *(column == value for column, value in zip(_keys(newest), (flow, *key), strict=True))
    )
    query = sql.select(segments).where(*of_this, segments.c.source_topic_id == current.scalar_subquery())
    if before is not None:
        query = query.where(segments.c.source_start < before)
    found = connection.execute(query.order_by(segments.c.source_start.desc()).limit(limit)).all()
    return [record for row in found if isinstance(record := record_of(row), SegmentRecord)]


def covering(connection: Connection, flow: str, key: tuple[str, int], offset: int) -> SegmentRecord | None:
    """The segment record of a partition, of its topic as it is now, that accounts for a source offset."""
    found = story(connection, flow, key, 1, offset + 1)
    return found[0] if found and offset < found[0].source_end else None


def verified_of(connection: Connection, flow: str, key: tuple[str, int]) -> Verified | None:
    """Return the verified offset's record of a partition (invariant F)."""
    of_this = [column == value for column, value in zip(_keys(verified), (flow, *key), strict=True)]
    row = connection.execute(sql.select(verified).where(*of_this)).first()
    record = None if row is None else record_of(row)
    return record if isinstance(record, Verified) else None


def _same(one: sql.Table, other: sql.Table) -> sql.ColumnElement[bool]:
    return sql.and_(*(mine == its for mine, its in zip(_keys(one), _keys(other), strict=True)))


def _keys(table: sql.Table) -> list[sql.Column[object]]:
    return [table.c[name] for name in ("flow", "topic", "partition")]
