"""A flow's records as the ledger has them, by what is asked of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger.database import is_of, rows_of, same
from airmirror.ledger.loading import other_connector
from airmirror.ledger.tables import control, mappings, newest, progress, verified
from airmirror.wire.mappings import (
    Decision,
    FlowIdentity,
    Hold,
    MappingRecord,
    Record,
    ResetRecord,
    decode,
    held_by_decision,
)
from airmirror.wire.moves import GroupMove, ProducerBlock, Rescue
from airmirror.wire.owners import Ownership

READ_AT_ONCE = 1_000  # rows

Kind = TypeVar("Kind", Decision, ProducerBlock, FlowIdentity, GroupMove, Hold, Ownership, Rescue, ResetRecord)
_CONTROL = rows_of(control, "kind").order_by(control.c.log_offset)


@dataclass(frozen=True)
class WindowRow:
    """A window as its mappings tell it; times in epoch milliseconds."""

    window: str
    first_ms: int
    last_ms: int
    partitions: int
    copied: int
    bytes: int


def mappings_of(
    connection: Connection,
    flow: str,
    topic: str,
    partition: int,
    source_topic_id: UUID | None = None,
    start: int = 0,
    end: int | None = None,
) -> Iterator[MappingRecord]:
    """Mapping records that overlap source offsets ``[start, end)``, by source offset; of all topic ids, if none is given."""
    query = sql.select(mappings).where(is_of(mappings, flow, (topic, partition)), mappings.c.source_end > start)
    if source_topic_id is not None:
        query = query.where(mappings.c.source_topic_id == str(source_topic_id))
    if end is not None:
        query = query.where(mappings.c.source_start < end)
    # Each is decoded when it is asked for: who looks for one stops there.
    return map(mapping_of, connection.execute(query.order_by(mappings.c.source_start)).all())


def unverified(connection: Connection, flow: str) -> list[MappingRecord]:
    rows = [row for row in connection.execute(past_verified(flow, mappings)) if row.key is not None]
    # Not sorted by the database, whose collation may differ.
    return [mapping_of(row) for row in sorted(rows, key=lambda row: (row.topic, row.partition, row.source_start))]


def past_verified(flow: str, *columns: Any) -> Any:
    """Return a query of the mappings past their partition's verified offset; of a partition without one a row of nulls."""
    # What was never verified is past -1, so that a first range without records is among it.
    boundary = sql.func.coalesce(verified.c.source_offset + 1, -1)
    log = ("flow", "topic", "partition", "source_topic_id")
    past = sql.and_(same(newest, mappings, log), mappings.c.source_end > boundary)
    # An outer join, or SQLite begins with all mappings of the flow.
    joined = newest.outerjoin(verified, same(newest, verified, log)).outerjoin(mappings, past)
    query = sql.select(*columns).select_from(joined)
    return query.where(newest.c.flow == flow, newest.c.source_end > boundary)


def of_window(connection: Connection, flow: str, window: str, after: int = -1) -> Iterator[MappingRecord]:
    query = sql.select(mappings).where(mappings.c.flow == flow, mappings.c.window == window)
    query = query.where(mappings.c.log_offset > after)
    query = query.order_by(by_bytes(connection, mappings.c.topic), mappings.c.partition, mappings.c.source_start)
    return map(mapping_of, connection.execute(query, execution_options={"yield_per": READ_AT_ONCE}))


def by_bytes(connection: Connection, column: sql.ColumnElement[str]) -> sql.ColumnElement[str]:
    """Return a column to order by, in Python's order of texts: SQLite has it by itself."""
    return column.collate("C") if connection.dialect.name == "postgresql" else column


def latest_windows(connection: Connection, flow: str, limit: int) -> Sequence[str]:
    """Return the names of the latest windows that committed anything, the newest first."""
    of_flow = mappings.c.flow == flow
    # From name to name through the index: the cost is that of the windows, not of all their mappings.
    names = sql.select(sql.func.min(mappings.c.window).label("window")).where(of_flow).cte(recursive=True)
    after = sql.select(sql.func.min(mappings.c.window)).where(of_flow, mappings.c.window > names.c.window)
    names = names.union_all(sql.select(after.scalar_subquery()).where(names.c.window.is_not(None)))
    last = sql.select(sql.func.max(mappings.c.time_ms)).where(of_flow, mappings.c.window == names.c.window)
    latest = sql.select(names.c.window).where(names.c.window.is_not(None)).order_by(last.scalar_subquery().desc())
    return connection.scalars(latest.limit(limit)).all()


def window_rows(connection: Connection, flow: str, names: Sequence[str]) -> list[WindowRow]:
    """Return what windows of these names have committed, the newest first."""
    key = mappings.c.topic + sql.literal("-") + sql.cast(mappings.c.partition, sql.String)
    counts = (
        sql.select(
            mappings.c.window,
            sql.func.min(mappings.c.time_ms),
            sql.func.max(mappings.c.time_ms),
            sql.func.count(sql.distinct(key)),
            sql.func.sum(mappings.c.copied),
            sql.func.sum(mappings.c.bytes),
        )
        .group_by(mappings.c.window)
        .order_by(sql.func.max(mappings.c.time_ms).desc())
    )
    rows = connection.execute(counts.where(mappings.c.flow == flow, mappings.c.window.in_(names))).all()
    return [WindowRow(row[0], *(int(number) for number in row[1:])) for row in rows]


def prunable(connection: Connection, flow: str, before_ms: int, kept: Collection[str] = ()) -> list[bytes]:
    """Keys of mapping records older than a time that are verified, or of an earlier topic; never a partition's newest.

    Of each source topic those before the first that is kept, whatever the clocks that made their times: no gap comes of it.
    ``kept``: topics of which all are.
    """
    of_this = newest.c.source_topic_id == mappings.c.source_topic_id
    is_newest = sql.and_(of_this, newest.c.source_start == mappings.c.source_start)
    is_unverified = sql.or_(
        verified.c.source_offset.is_(None),
        verified.c.source_topic_id != mappings.c.source_topic_id,
        mappings.c.source_end > verified.c.source_offset + 1,
    )
    is_unproven = sql.and_(of_this, is_unverified)
    is_kept = sql.or_(mappings.c.time_ms >= before_ms, is_newest, is_unproven, mappings.c.topic.in_(kept))
    log = (mappings.c.topic, mappings.c.partition, mappings.c.source_topic_id)
    in_order = (
        sql.select(
            mappings.c.key,
            *log,
            mappings.c.source_start,
            sql.func.max(sql.case((is_kept, 1), else_=0))
            .over(partition_by=log, order_by=mappings.c.source_start)
            .label("kept"),
        )
        .select_from(mappings.join(newest, same(mappings, newest)).outerjoin(verified, same(mappings, verified)))
        .where(mappings.c.flow == flow)
        .subquery()
    )
    # By offset: of a deletion that stops on its way what is left has no gap.
    by_offset = (*(in_order.c[column.name] for column in log), in_order.c.source_start)
    query = sql.select(in_order.c.key).where(in_order.c.kept == 0).order_by(*by_offset)
    return [bytes(row.key) for row in connection.execute(query)]


def record_of(row: Any) -> Record:
    return decode(bytes(row.key), bytes(row.value))


def mapping_of(row: Any) -> MappingRecord:
    record = record_of(row)
    assert isinstance(record, MappingRecord)
    return record


def progress_of(connection: Connection, flow: str) -> tuple[dict[tuple[str, int], int], dict[tuple[str, int], int]]:
    """The last source offset copied: under MirrorMaker 2's own name of the connector, and under others."""
    rows = connection.execute(rows_of(progress), {"flow": flow}).all()
    own = {(row.topic, row.partition): row.source_offset for row in rows if row.partition >= 0}
    others = {(row.topic, other_connector(row.partition)): row.source_offset for row in rows if row.partition < 0}
    return own, others


def records_of(connection: Connection, flow: str, kind: type[Kind], after: int = -1) -> list[Kind]:
    """Return the records of a kind that only the mapping topic has, after an offset of it, in log order."""
    found = control_of(connection, flow, kind.kind)
    return [record for row, record in found if isinstance(record, kind) and row.log_offset > after]


def holds_of(connection: Connection, flow: str) -> dict[tuple[str, int], Hold]:
    """Return the holds by topic and partition: the gate's, unless an operator's latest decision replaces it."""
    held = {(record.topic, record.partition): record for record in records_of(connection, flow, Hold)}
    return held | held_by_decision(records_of(connection, flow, Decision))


def control_of(connection: Connection, flow: str, kind: int) -> list[tuple[Any, Record]]:
    """The rows of such a kind with their records, in log order."""
    return [(row, record_of(row)) for row in connection.execute(_CONTROL, {"flow": flow, "kind": kind})]
