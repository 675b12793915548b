"""Queries of the console: a few, each of bounded cost and size. Nothing is decided from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger.database import is_of, rows_of, same
from airmirror.ledger.queries import by_bytes, latest_windows, past_verified, record_of
from airmirror.ledger.tables import mappings, newest, partition_metrics, verified
from airmirror.partitions import CopyFacts
from airmirror.wire.mappings import MappingRecord, Verified

AT_ONCE = 200  # rows
# The last mapping record of a partition that begins before an offset, of its topic as it is now. To make it takes longer than to
# ask it.
_BEFORE = (
    rows_of(mappings, "topic", "partition")
    .with_only_columns(mappings.c.window, mappings.c.source_end)
    .where(same(newest, mappings), mappings.c.source_topic_id == newest.c.source_topic_id)
    .where(mappings.c.source_start < sql.bindparam("end"))
    .where(mappings.c.time_ms <= sql.bindparam("decided_ms"))  # else it is of a topic that was created again since
    .order_by(mappings.c.source_start.desc())
    .limit(1)
)


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


@dataclass(frozen=True)
class TopicSums:
    """The sums of a topic's partitions as the last window left them; times in epoch milliseconds, latencies in milliseconds.

    ``oldest_ms``, ``unknown``: as of ``Totals``. Latencies are of partitions of which anything was copied; ``verified_ms`` is -1
    where no gate has let anything pass.
    """

    topic: str
    remote_topic: str
    partitions: int
    lag_records: int
    oldest_ms: int | None
    unknown: int
    latency_least_ms: int | None
    latency_mean_ms: int | None
    latency_most_ms: int | None
    records: int
    bytes: int
    verified_ms: int


@dataclass(frozen=True)
class PartitionRow(CopyFacts):
    """A partition as it is shown: its numbers, its position (-1: nothing was replicated) and verified offset (-1: none)."""

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
class PartitionColumns:
    """All partitions of a flow, a column a number. ``newest_ms``: of the newest record copied where there is a lag, else -1;
    ``unverified``: source offsets that are replicated and that no gate has let pass yet.
    """

    topic: list[str]
    partition: list[int]
    lag_records: list[int]
    newest_ms: list[int]
    unverified: list[int]


@dataclass(frozen=True)
class WindowMark:
    """The mark by which a window's row is known again: its mapping records, and the latest one's time in epoch milliseconds."""

    window: str
    mappings: int
    last_ms: int


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


def partition_row(connection: Connection, flow: str, key: tuple[str, int]) -> PartitionRow | None:
    """Return what is shown of one partition; None: no window has had it in its plan."""
    own = partition_metrics.c
    names = [name for name in PartitionRow.__dataclass_fields__ if name not in ("position", "verified_offset")]
    query: Any = (
        sql.select(
            *(own[name] for name in names),
            sql.func.coalesce(newest.c.source_end, -1),
            sql.func.coalesce(verified.c.source_offset, -1),
        )
        .select_from(_with_positions())
        .where(is_of(partition_metrics, flow, key))
    )
    row = connection.execute(query).first()
    return None if row is None else PartitionRow(*row)


def topics(connection: Connection, flow: str) -> list[TopicSums]:
    """Return the sums of a flow's topics, by name."""
    own = partition_metrics.c
    lagging, copied = own.lag_records > 0, own.newest_ms >= 0
    latency = sql.case((copied, own.latency_ms))
    query = (
        sql.select(
            own.topic,
            sql.func.max(own.remote_topic),
            sql.func.count(),
            sql.func.sum(own.lag_records),
            sql.func.min(sql.case((sql.and_(lagging, copied), own.newest_ms))),
            sql.func.count(sql.case((sql.and_(lagging, sql.not_(copied)), 1))),
            sql.func.min(latency),
            sql.func.avg(latency),
            sql.func.max(sql.case((copied, sql.func.coalesce(own.latency_most_ms, own.latency_ms)))),
            sql.func.sum(own.records),
            sql.func.sum(own.bytes),
            sql.func.max(own.verified_ms),
        )
        .where(own.flow == flow)
        .group_by(own.topic)
    )
    found = (
        TopicSums(topic, remote_topic, *(None if value is None else round(value) for value in numbers))  # type: ignore[arg-type]
        for topic, remote_topic, *numbers in connection.execute(query)
    )
    return sorted(found, key=lambda sums: sums.topic)


def columns(connection: Connection, flow: str) -> PartitionColumns:
    """Return all partitions of a flow, by topic and number, as plain values: ten thousand objects cost more than their query."""
    own = partition_metrics.c
    end, passed = newest.c.source_end, sql.func.coalesce(verified.c.source_offset, -1)
    query = (
        sql.select(
            own.topic,
            own.partition,
            own.lag_records,
            sql.case((own.lag_records > 0, own.newest_ms), else_=-1),
            sql.case((end > passed + 1, end - passed - 1), else_=0),
        )
        .select_from(_with_positions())
        .where(own.flow == flow)
        .order_by(by_bytes(connection, own.topic), own.partition)
    )
    found: tuple[list[Any], ...] = ([], [], [], [], [])
    # Few rows at a time: ten thousand at once have Python look through all its objects, which takes longer than the query.
    for rows in connection.execute(query, execution_options={"yield_per": AT_ONCE}).partitions():
        for column, values in zip(found, zip(*rows, strict=True), strict=True):
            column.extend(values)
    return PartitionColumns(*found)


def marks(connection: Connection, flow: str, limit: int) -> list[WindowMark]:
    """Return the marks of the latest windows that committed anything, the newest first; of an index alone."""
    own, names = mappings.c, latest_windows(connection, flow, limit)
    query = sql.select(own.window, sql.func.count(), sql.func.max(own.time_ms))
    found = connection.execute(query.where(own.flow == flow, own.window.in_(names)).group_by(own.window))
    return sorted((WindowMark(*row) for row in found), key=lambda mark: mark.last_ms, reverse=True)


def unverified_partitions(connection: Connection, flow: str) -> dict[str, int]:
    """Return of how many partitions a window has committed something that no gate has let pass yet; without those of none."""
    columns = (mappings.c.window, mappings.c.topic, mappings.c.partition)
    places = connection.execute(past_verified(flow, *columns).distinct())
    return Counter(window for window, *_ in places if window is not None)


def windows_at(
    connection: Connection, flow: str, places: Mapping[tuple[str, int, int], int]
) -> dict[tuple[str, int, int], str]:
    """Return for topic, partition and the source offset after a range, each with the time in ms at which a person has decided
    about it, the window that had committed what lies before it, of the topic as it is now."""
    found = {}
    for (topic, partition, end), decided_ms in places.items():
        about = {"topic": topic, "partition": partition, "end": end, "decided_ms": decided_ms}
        row = connection.execute(_BEFORE, {"flow": flow, **about}).first()
        if row is not None and row.source_end >= end:
            found[topic, partition, end] = row.window
    return found


def story(
    connection: Connection, flow: str, key: tuple[str, int], limit: int, before: int | None
) -> list[MappingRecord]:
    """The last mapping records of a partition, of its topic as it is now, the newest first; ``before`` a source offset."""
    current = sql.select(newest.c.source_topic_id).where(is_of(newest, flow, key)).scalar_subquery()
    query = sql.select(mappings).where(is_of(mappings, flow, key), mappings.c.source_topic_id == current)
    if before is not None:
        query = query.where(mappings.c.source_start < before)
    found = connection.execute(query.order_by(mappings.c.source_start.desc()).limit(limit)).all()
    return [record for row in found if isinstance(record := record_of(row), MappingRecord)]


def covering(connection: Connection, flow: str, key: tuple[str, int], offset: int) -> MappingRecord | None:
    """The mapping record of a partition, of its topic as it is now, that accounts for a source offset."""
    found = story(connection, flow, key, 1, offset + 1)
    return found[0] if found and offset < found[0].source_end else None


def verified_of(connection: Connection, flow: str, key: tuple[str, int]) -> Verified | None:
    """Return the verified offset's record of a partition (invariant F)."""
    row = connection.execute(sql.select(verified).where(is_of(verified, flow, key))).first()
    record = None if row is None else record_of(row)
    return record if isinstance(record, Verified) else None


def _with_positions() -> sql.Join:
    """Join partitions with their newest mapping, and with the verified offset of the same source topic."""
    of_this = sql.and_(same(newest, verified), newest.c.source_topic_id == verified.c.source_topic_id)
    return partition_metrics.outerjoin(newest, same(partition_metrics, newest)).outerjoin(verified, of_this)
