"""The ledger's part for consumer groups: mappings by position, checkpoints, and what became of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar
from uuid import UUID

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger.database import columns_of, objects_of, rows_of, upsert
from airmirror.ledger.queries import mapping_of
from airmirror.ledger.tables import checkpoints, group_lags, mappings, offset_syncs, post_window_tasks
from airmirror.partitions import GroupPartition, batches
from airmirror.wire.checkpoints import Checkpoint
from airmirror.wire.mappings import MappingRecord

AT_ONCE = 2_000  # rows of values in one query
LONGEST_GROUP = 512  # characters

Partition = tuple[str, int, UUID]  # topic, partition, source topic id
Position = tuple[str, int, UUID, int]  # and an offset in it
Side = Literal["source", "target"]


@dataclass(frozen=True)
class GroupOffset(GroupPartition):
    """A group's position in a source partition in one run, and the outcome; ``reason`` is empty if the group was moved.

    ``upstream`` is the position that was translated to ``downstream``, ``again`` how many offsets lie between it and
    ``position``, ``on_target`` the group's position on the target. Times in epoch milliseconds.
    """

    remote_topic: str
    position: int
    upstream: int | None
    downstream: int | None
    exact: bool | None
    again: int | None
    on_target: int | None
    reason: str
    time_ms: int


@dataclass(frozen=True)
class GroupLag(GroupPartition):
    """A group's position in a partition of ``cluster`` when it was read: the next offset, and its lag.

    ``lag`` in records (offsets) to the high watermark; ``lag_ms`` how old the next record to read was, None: not known.
    ``again``: the records (offsets) before the position that it would read again on the other cluster, where it resumes at
    what is verified; ``again_ms`` how old the first of them was, 0 where there are none, None: not known. ``kind``: the
    group's, as its cluster lists it, None: not known.
    """

    cluster: str
    position: int
    lag: int
    lag_ms: int | None
    time_ms: int
    again: int | None = None
    again_ms: int | None = None
    kind: str | None = None


_OfGroup = TypeVar("_OfGroup", GroupOffset, GroupLag)


def unfit_name(group: str) -> str:
    """Return why the ledger can't hold a consumer group of this name, or "". Kafka takes any name, of up to 32,767 bytes."""
    if "\0" in group:
        return "its name has a NUL character"
    return f"its name is longer than {LONGEST_GROUP} characters" if len(group) > LONGEST_GROUP else ""


def first_mappings(connection: Connection, flow: str, partitions: Sequence[Partition]) -> list[MappingRecord]:
    """The first mapping record of each partition (topic, partition, source topic id)."""

    def is_first(part: Any) -> sql.ColumnElement[bool]:
        other = mappings.alias()
        starts = sql.select(other.c.source_start).where(_is_asked(other, part, flow)).order_by(other.c.source_start)
        return mappings.c.source_start == starts.limit(1).scalar_subquery()

    return _found(connection, flow, [(*partition, 0) for partition in partitions], is_first)


def mappings_at(connection: Connection, flow: str, positions: Sequence[Position], side: Side) -> list[MappingRecord]:
    """For each position of a partition the first mapping record with a copied record at or after it, each record once."""
    return _found(connection, flow, positions, lambda part: mappings.c.source_start == _copied(part, flow, side))


def mappings_around(
    connection: Connection, flow: str, positions: Sequence[Position], side: Side
) -> list[MappingRecord]:
    """All mapping records from the last with a copied record before each position to the first with one at or after it.

    Each once, by topic, partition and source offset; from the first or to the last one where there is none.
    """

    def is_around(part: Any) -> sql.ColumnElement[bool]:
        start, coalesce = mappings.c.source_start, sql.func.coalesce
        last, following = _copied(part, flow, side, before=True), _copied(part, flow, side)
        return sql.and_(start >= coalesce(last, 0), start <= coalesce(following, 2**63 - 1))

    found = _found(connection, flow, positions, is_around)
    return sorted(found, key=lambda record: (record.topic, record.partition, record.source_start))


def all_checkpoints(connection: Connection, flow: str) -> dict[tuple[str, str, int], Checkpoint]:
    """The last checkpoint by group, the target's topic, and partition."""
    return {each.key: each for each in objects_of(connection, checkpoints, Checkpoint, flow)}


def checkpoint_times(connection: Connection, flow: str) -> dict[tuple[str, str, int], int]:
    """Return when these were written, in epoch milliseconds; -1: unknown."""
    own = checkpoints.c
    rows = connection.execute(sql.select(own.group, own.topic, own.partition, own.written_ms).where(own.flow == flow))
    return {(row.group, row.topic, row.partition): -1 if row.written_ms is None else row.written_ms for row in rows}


@dataclass(frozen=True)
class CheckpointPlace(GroupPartition):
    """The place of a checkpoint: the group, and the target's topic and partition that its position is in."""

    flow: str


def all_offset_syncs(connection: Connection, flow: str) -> dict[tuple[str, int], int]:
    """The upstream offset of the last offset sync, by the source's topic and partition."""
    rows = connection.execute(sql.select(offset_syncs).where(offset_syncs.c.flow == flow))
    return {(row.topic, row.partition): row.upstream for row in rows}


def latest_group_lags(connection: Connection) -> list[GroupLag]:
    """Those of all flows; of a partition that several flows have read a group of, what was read last."""
    query = sql.select(*columns_of(group_lags, GroupLag)).order_by(group_lags.c.time_ms)
    found = [GroupLag(*row) for row in connection.execute(query)]
    return list({(row.cluster, row.group, row.topic, row.partition): row for row in found}.values())


@dataclass(frozen=True)
class ReadAgain:
    """Records a group would read again if it failed over: ``records`` in all partitions, the oldest ``ms`` old, if known."""

    flow: str
    group: str
    records: int
    ms: int | None


def read_again(connection: Connection) -> list[ReadAgain]:
    """Of the groups of all flows whose position on the other cluster is known."""
    table = group_lags.c
    again = sql.select(table.flow, table.group, sql.func.sum(table.again), sql.func.max(table.again_ms))
    rows = connection.execute(again.where(table.again.is_not(None)).group_by(table.flow, table.group))
    return [ReadAgain(flow, group, int(records), ms) for flow, group, records, ms in rows]


def note_begun(connection: Connection, flow: str, task: str, time_ms: int) -> None:
    upsert(connection, post_window_tasks, [{"flow": flow, "task": task, "time_ms": time_ms}])


def last_begun(connection: Connection, flow: str, task: str) -> int | None:
    """Return when a task with its own interval last began what it has done, in epoch milliseconds."""
    row = connection.execute(rows_of(post_window_tasks, "task"), {"flow": flow, "task": task}).first()
    return None if row is None else row.time_ms


def of_groups(connection: Connection, flow: str, table: sql.Table, kind: type[_OfGroup]) -> list[_OfGroup]:
    """Return the rows of a flow in a table that has one of each group and partition, by group, topic and partition."""
    return sorted(objects_of(connection, table, kind, flow), key=lambda row: (row.group, row.topic, row.partition))


def replace_rows(
    connection: Connection, flow: str, table: sql.Table, rows: Sequence[GroupOffset] | Sequence[GroupLag]
) -> None:
    """Put these rows in the place of all that a table has of a flow."""
    connection.execute(table.delete().where(table.c.flow == flow))
    if rows:
        connection.execute(sql.insert(table), [asdict(row) | {"flow": flow} for row in rows])


_PARTITION = ("topic", "partition", "source_topic_id")


def _found(
    connection: Connection, flow: str, positions: Sequence[Position], is_wanted: Callable[[Any], Any]
) -> list[MappingRecord]:
    """The mapping records that positions want, each once; one query for many positions."""
    found: dict[bytes, MappingRecord] = {}
    for part in _parts(positions):
        joined = part.join(mappings, sql.and_(_is_asked(mappings, part, flow), is_wanted(part)))
        for row in connection.execute(sql.select(mappings.c.key, mappings.c.value).select_from(joined)):
            if bytes(row.key) not in found:
                found[bytes(row.key)] = mapping_of(row)
    return list(found.values())


def _is_asked(table: Any, part: Any, flow: str) -> sql.ColumnElement[bool]:
    """Return whether a mapping is of the partition of a position."""
    return sql.and_(table.c.flow == flow, *(table.c[name] == part.c[name] for name in _PARTITION))


def _copied(part: Any, flow: str, side: Side, *, before: bool = False) -> Any:
    """Return the start of the mapping with the first copied record at or after a position, or the last one before it."""
    other = mappings.alias()
    end = other.c.copied_end if side == "source" else other.c.target_end  # an index has each
    query = sql.select(other.c.source_start).where(_is_asked(other, part, flow), other.c.copied_end.is_not(None))
    query = query.where(end <= part.c.at).order_by(end.desc()) if before else query.where(end > part.c.at).order_by(end)
    return query.limit(1).scalar_subquery()


def _parts(positions: Sequence[Position]) -> Iterator[Any]:
    """The positions as tables of a query, as many rows at a time as a database takes."""
    unique = sorted({(topic, partition, str(topic_id), at) for topic, partition, topic_id, at in positions})
    columns = [sql.column(name, sql.String if name != "partition" else sql.Integer) for name in _PARTITION]
    for rows in batches(unique, AT_ONCE):
        yield sql.values(*columns, sql.column("at", sql.BigInteger)).data(rows).cte("asked")
