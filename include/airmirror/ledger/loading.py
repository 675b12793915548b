"""Records of the internal topics as rows: what a run of records changes in the ledger's tables.

The ledger is a function of what the topics hold after compaction, whatever the loads it was read in: the last record of
a key counts, a null value deletes, and the newest mapping of a partition is that of the largest source end, of the topic
id that the last one in the log has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger.database import Row, by_partition, delete, is_of, key_of, upsert
from airmirror.ledger.tables import checkpoints, control, mappings, newest, offset_syncs, progress, verified
from airmirror.naming.internal import progress_topic
from airmirror.partitions import Entry, TopicPartition, grouped
from airmirror.wire.checkpoints import Checkpoint, without_nul
from airmirror.wire.mappings import LaterRecord, MappingRecord, Record, ResetRecord, Tombstone, Verified, decode
from airmirror.wire.mirrormaker import SOURCE_CONNECTOR, OffsetSync, decode_source_offset
from airmirror.wire.primitives import MalformedRecord

log = logging.getLogger(__name__)

LONGEST_TOPIC, LONGEST_WINDOW, LONGEST_METADATA = 249, 512, 32_767  # Kafka's limit; ours; of its protocol
INT32, INT64 = 2**31, 2**63
ANEW = "anew"  # the part in which a flow is read again

Change = tuple[tuple[Any, ...], Row | None]  # a primary key without the flow, the other columns; None: deleted
Verdict = tuple[tuple[Any, ...], Row | None, int]  # the same, and the end of the mapping topic as its judge had read it


def load(connection: Connection, flow: str, topic: str, entries: Sequence[Entry], table: sql.Table) -> int:
    """Take in records of an internal topic, whose ``table`` it is, in log order; how many were malformed, which are logged and
    skipped. Raises LaterRecord.
    """
    if table is mappings:
        return _load_mappings(connection, flow, topic, entries)
    changes, malformed = dict[tuple[Any, ...], Row | None](), 0
    for entry in entries:
        try:
            found = _CHANGES[table](topic, entry)
        except MalformedRecord as error:
            malformed += 1
            _skip(topic, entry, error)
            continue
        if found is not None:
            identity, own = found
            changes[identity] = None if own is None else key_of(table, flow, identity) | own
    _apply(connection, table, flow, changes)
    return malformed


def _load_mappings(connection: Connection, flow: str, topic: str, entries: Sequence[Entry]) -> int:
    changes: dict[sql.Table, dict[tuple[Any, ...], Row | None]] = {mappings: {}, control: {}}
    malformed, verdicts = 0, list[Verdict]()
    for entry in entries:
        key, value = entry.key or b"", entry.value
        try:
            record = decode(key, value)
            _check_names(record)
        except LaterRecord as error:
            error.place = f"{topic} at offset {entry.offset}"
            raise
        except MalformedRecord as error:
            malformed += 1
            _skip(topic, entry, error)
            continue
        as_read = {"log_offset": entry.offset, "key": key, "value": value}
        table, identity = _place(record, key)
        if table is verified and isinstance(record, Tombstone):
            verdicts.append((identity, None, entry.offset))
        elif isinstance(record, Tombstone):
            changes[table][identity] = None
        elif isinstance(record, MappingRecord):
            changes[table][identity] = key_of(mappings, flow, identity) | as_read | _of_mapping(record)
        elif isinstance(record, Verified):
            own = {"source_topic_id": str(record.source_topic_id), "source_offset": record.offset}
            verdicts.append((identity, key_of(verified, flow, identity) | as_read | own, record.seen))
        else:
            changes[table][identity] = {"flow": flow, "kind": record.kind, "timestamp": entry.timestamp} | as_read
    for table, rows in changes.items():
        _apply(connection, table, flow, rows)
    _apply(connection, verified, flow, _newest_verdicts(connection, flow, verdicts))
    _find_newest(connection, flow, changes[mappings])
    return malformed


def _newest_verdicts(
    connection: Connection, flow: str, verdicts: Sequence[Verdict]
) -> dict[tuple[Any, ...], Row | None]:
    """The rows of what is verified, after verdicts in log order. One whose judge slept counts for nothing: below a verdict, or
    after a reset of the partition, that he has not seen (invariant F)."""
    if not verdicts:
        return {}
    before = by_partition(connection, verified, flow)
    resets = _resets_since(connection, flow, min(end for *_, end in verdicts))
    rows = dict[tuple[Any, ...], Row | None]()
    for identity, row, end in verdicts:
        if not _is_below(row, rows.get(identity, before.get(identity)), end):
            late = row is not None and any(end <= at < row["log_offset"] for at in resets.get(identity, ()))
            rows[identity] = None if late else row  # at once: what follows is compared with what counts only
    return rows


def _resets_since(connection: Connection, flow: str, offset: int) -> Mapping[Any, list[int]]:
    """The offsets of the resets of each partition, from one of the mapping topic on."""
    query = sql.select(control.c.log_offset, control.c.key, control.c.value)
    query = query.where(control.c.flow == flow, control.c.kind == ResetRecord.kind, control.c.log_offset >= offset)
    records = ((decode(bytes(row.key), bytes(row.value)), row.log_offset) for row in connection.execute(query))
    return grouped((record.key, offset) for record, offset in records if isinstance(record, ResetRecord))


def _is_below(row: Row | None, other: Row | None, seen: int) -> bool:
    """Return whether a verdict says less of a topic than an ``other`` one, which was written after ``seen``."""
    if row is None or other is None or row["source_topic_id"] != other["source_topic_id"]:
        return False
    return bool(row["source_offset"] < other["source_offset"] and seen <= other["log_offset"])


def _of_progress(topic: str, entry: Entry) -> Change | None:
    """Of ``mm2-offsets``. What Kafka Connect keeps under another name of the connector (Strimzi's) has a row of its own:
    ``other_connector``."""
    found = decode_source_offset(entry.key or b"", entry.value)
    if found is None or progress_topic(found.cluster) != topic:
        return None
    _check_text("topic", found.topic, LONGEST_TOPIC)
    if not 0 <= found.partition < INT32 or (found.offset or 0) >= INT64:
        raise MalformedRecord(f"partition {found.partition}, offset {found.offset}: out of range")
    own = found.connector == SOURCE_CONNECTOR
    identity = (found.topic, found.partition if own else other_connector(found.partition))
    return identity, None if found.offset is None else {"source_offset": found.offset}


def other_connector(partition: int) -> int:
    """The number under which the progress of another connector is kept, below 0; and back."""
    return -1 - partition


def _of_checkpoint(_topic: str, entry: Entry) -> Change:
    key = tuple(Checkpoint.decode_key(entry.key or b"").values())
    _check_text("group", key[0], LONGEST_WINDOW)
    _check_text("topic", key[1], LONGEST_TOPIC)
    if entry.value is None:
        return key, None
    found = Checkpoint.decode(entry.key or b"", entry.value)
    metadata = without_nul(found.metadata)
    _check_text("metadata", metadata, LONGEST_METADATA)
    own = {"upstream": found.upstream, "downstream": found.downstream, "metadata": metadata}
    return key, own | {"written_ms": entry.timestamp}


def _of_offset_sync(_topic: str, entry: Entry) -> Change | None:
    if entry.value is None:  # forgotten in MirrorMaker 2's topic, not in the memory of who has read it
        return None
    found = OffsetSync.decode(entry.key or b"", entry.value)
    _check_text("topic", found.topic, LONGEST_TOPIC)
    return (found.topic, found.partition), {"upstream": found.upstream}


# What a record changes in the table of its topic; None: nothing.
_CHANGES: Mapping[sql.Table, Callable[[str, Entry], Change | None]] = {
    progress: _of_progress,
    checkpoints: _of_checkpoint,
    offset_syncs: _of_offset_sync,
}


def _place(record: Record, key: bytes) -> tuple[sql.Table, tuple[Any, ...]]:
    """The table of a record or tombstone, and its primary key there without the flow."""
    if isinstance(record, MappingRecord):
        return mappings, (record.topic, record.partition, str(record.source_topic_id), record.source_start)
    if isinstance(record, Verified):
        return verified, (record.topic, record.partition)
    if isinstance(record, Tombstone) and record.kind == MappingRecord.kind:
        topic_id, topic, partition, start = record.key
        return mappings, (topic, partition, str(topic_id), start)
    if isinstance(record, Tombstone) and record.kind == Verified.kind:
        return verified, record.key
    return control, (key,)


def _of_mapping(record: MappingRecord) -> Row:
    return {
        "source_end": record.source_end,
        "window": record.window,
        "time_ms": record.time_ms,
        "copied": record.copied,
        "bytes": record.size,
        "copied_end": record.ranges[-1].source_end if record.ranges else None,
        "target_end": record.target_end,
    }


def _apply(connection: Connection, table: sql.Table, flow: str, rows: dict[tuple[Any, ...], Row | None]) -> None:
    delete(connection, table, [key_of(table, flow, identity) for identity, row in rows.items() if row is None])
    upsert(connection, table, [row for row in rows.values() if row is not None])


def _find_newest(connection: Connection, flow: str, changed: Mapping[tuple[Any, ...], Row | None]) -> None:
    """The newest mappings after ``changed`` ones; a partition is searched only where they don't tell by themselves."""
    of_partition = grouped((TopicPartition(*identity[:2]), row) for identity, row in changed.items())
    known = by_partition(connection, newest, flow) if of_partition else {}
    found: list[Row] = []
    for partition, rows in of_partition.items():
        before, written = known.get(partition), [row for row in rows if row is not None]
        rows_then = [*([before] if before else []), *written]
        shorter = any(before and _key_of(row) == _key_of(before) and _end(row) < _end(before) for row in written)
        if shorter or len(written) < len(rows) or len({row["source_topic_id"] for row in rows_then}) > 1:
            delete(connection, newest, [key_of(newest, flow, partition)])
            found += _search_newest(connection, flow, partition)
        else:
            found.append(max(reversed(rows_then), key=_end))
    upsert(connection, newest, [{column.name: row[column.name] for column in newest.columns} for row in found])


def _search_newest(connection: Connection, flow: str, partition: tuple[str, int]) -> list[Row]:
    query = sql.select(*(mappings.c[column.name] for column in newest.columns)).where(is_of(mappings, flow, partition))
    last = connection.execute(query.order_by(mappings.c.log_offset.desc()).limit(1)).mappings().first()
    if last is None:
        return []
    of_topic = query.where(mappings.c.source_topic_id == last["source_topic_id"])
    ends = of_topic.order_by(mappings.c.source_end.desc(), mappings.c.source_start.desc())
    return [dict(connection.execute(ends.limit(1)).mappings().one())]


def _key_of(row: Row) -> tuple[str, int]:
    return row["source_topic_id"], row["source_start"]


def _end(row: Row) -> tuple[int, int]:
    """Of two records that end at one offset, the empty one comes last."""
    return row["source_end"], row["source_start"]


def _check_names(record: Record) -> None:
    """Refuses what Kafka would not call a topic, and what no database has room for: it must not stop all that follows."""
    if isinstance(record, Tombstone):
        for field in record.key:
            if isinstance(field, str):
                _check_text("key", field, LONGEST_WINDOW)
        return
    _check_text("topic", getattr(record, "topic", ""), LONGEST_TOPIC)
    _check_text("window", getattr(record, "window", ""), LONGEST_WINDOW)


def _check_text(name: str, text: str, longest: int) -> None:
    is_whole = text.encode(errors="ignore").decode() == text  # JSON can escape half a character
    if len(text) > longest or "\0" in text or not is_whole:
        raise MalformedRecord(f"a {name} of {len(text)} characters that begins with {text[:40]!r}")


def _skip(topic: str, entry: Entry, error: MalformedRecord) -> None:
    log.warning("%s-%d offset %d is skipped: %s", topic, entry.partition, entry.offset, error)
