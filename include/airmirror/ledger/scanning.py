"""The offsets up to which a flow's internal topics were read, and what was loaded from each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.ledger.database import rows_of, upsert
from airmirror.ledger.errors import LedgerBegunAnew
from airmirror.ledger.groups import last_begun, note_begun
from airmirror.ledger.queries import control_of
from airmirror.ledger.tables import LATER, OWN, metadata, newest, scanned, tables_of
from airmirror.naming.internal import is_mapping_topic, is_progress_topic
from airmirror.partitions import Entry
from airmirror.wire.mappings import ResetRecord

READ = "read"  # when the flow's own topics were last read to their ends
HOUR_MS = 3_600_000
# So long they stay, by min.compaction.lag.ms of the mapping topic and the brokers' delete.retention.ms.
TOMBSTONES_MS = 24 * HOUR_MS


def advance(
    connection: Connection,
    flow: str,
    topic: str,
    topic_id: UUID,
    entries: Sequence[Entry],
    *,
    at: Mapping[int, int],
    since: Mapping[int, int] | None,
) -> list[Entry]:
    """Note how far the topic is read now; the entries that were not loaded before."""
    rows = scanned_of(connection, flow, topic)
    known = {row.partition: row.next_offset for row in rows}
    anew = any(row.topic_id != str(topic_id) for row in rows)
    if anew or any(known.get(number, 0) < offset for number, offset in (since or {}).items()):
        raise LedgerBegunAnew(flow, topic)
    forward = {number: offset for number, offset in at.items() if offset > known.get(number, -1)}
    last = {row.partition: (row.last_offset, row.last_epoch) for row in rows}
    last |= {entry.partition: (entry.offset, entry.epoch) for entry in entries if entry.epoch >= 0}
    of_topic = {"flow": flow, "topic": topic, "topic_id": str(topic_id)}
    read = [
        of_topic
        | {"partition": number, "next_offset": end}
        | dict(zip(("last_offset", "last_epoch"), last.get(number, (None, None)), strict=True))
        for number, end in forward.items()
    ]
    upsert(connection, scanned, read)
    return [entry for entry in entries if entry.offset >= known.get(entry.partition, 0)]


def scanned_of(connection: Connection, flow: str, topic: str) -> Sequence[Any]:
    """The offsets up to which a topic was read, a row a partition."""
    return connection.execute(rows_of(scanned, "topic"), {"flow": flow, "topic": topic}).all()


def all_scanned(connection: Connection, flow: str) -> dict[str, tuple[UUID, dict[int, int]]]:
    """The id of each topic that was read, and the next offset to read by partition."""
    found: dict[str, tuple[UUID, dict[int, int]]] = {}
    for row in connection.execute(rows_of(scanned), {"flow": flow}):
        found.setdefault(row.topic, (UUID(row.topic_id), {}))[1][row.partition] = row.next_offset
    return found


def forget_topic(connection: Connection, flow: str, topic: str) -> None:
    """Delete what was loaded from a topic, which is then read again."""
    for table in tables_of(topic):
        connection.execute(table.delete().where(table.c.flow == flow))
    connection.execute(scanned.delete().where(scanned.c.flow == flow, scanned.c.topic == topic))


def forget_slept(connection: Connection, flow: str, topics: Sequence[str], now_ms: int) -> bool:
    """Delete what was loaded from the flow's own topics if tombstones may have come and gone since they were last read; whether
    it was deleted. They count as read now: no other process deletes what is read again."""
    last = last_begun(connection, flow, READ)
    has_slept = last is not None and now_ms - last >= TOMBSTONES_MS
    if has_slept:
        for topic in topics:
            forget_topic(connection, flow, topic)
    if has_slept or last is None:
        note_begun(connection, flow, READ, now_ms)
    return has_slept


def contents(connection: Connection, flow: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that was read from the flow's own topics, in order: what a rebuilt ledger must be equal to."""
    found = {}
    for table in (table for table in metadata.sorted_tables if table not in (*OWN, *LATER)):
        query = sql.select(table).where(table.c.flow == flow).order_by(*table.primary_key.columns)
        rows = connection.execute(query).all()
        found[table.name] = [tuple(row) for row in rows if table is not scanned or is_own(row.topic)]
    return found


def forgotten(connection: Connection, flow: str) -> frozenset[tuple[str, int]]:
    """The partitions of which the last that was decided is to forget them, and nothing was copied since: by the log, because
    slots and who decides have clocks of their own."""
    resets = control_of(connection, flow, ResetRecord.kind)
    decided = {(reset.topic, reset.partition): (row, reset) for row, reset in resets if isinstance(reset, ResetRecord)}
    found = {key: row.log_offset for key, (row, reset) in decided.items() if reset.choice == "forget"}
    of_these = newest.c.flow == flow, newest.c.topic.in_({topic for topic, _ in found})
    query = sql.select(newest.c.topic, newest.c.partition, newest.c.log_offset).where(*of_these)
    rows = connection.execute(query) if found else ()
    copied = {(row.topic, row.partition): row.log_offset for row in rows}
    return frozenset(key for key, offset in found.items() if copied.get(key, -1) < offset)


def renamed(resets: Sequence[ResetRecord]) -> frozenset[str]:
    """The topics of which the last that was decided of their names is that they go into another remote topic."""
    decided = {reset.topic: reset.choice for reset in resets if reset.choice in ("new-topic", "forget")}
    return frozenset(topic for topic, choice in decided.items() if choice == "new-topic")


def is_own(topic: str) -> bool:
    """Return whether a topic is one of the two that hold all that a flow must remember."""
    return is_mapping_topic(topic) or is_progress_topic(topic)
