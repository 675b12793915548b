"""The knowledge of a flow from its two internal topics, read incrementally: only the tail is read again.

The index is a mirror, the flow's part of the ledger: it can be lost, which costs one scan. It is keyed by the ids of the
topics it was read from, so a topic that was made again starts an empty one; and one that was last read so long ago that
tombstones may have come and gone since is read from the start. A plan is made from what it says at one moment, when it has
read all that was in the topics: whoever forgets it or builds it again meanwhile does no harm.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from airmirror.clusters.protocol.epochs import epoch_ends
from airmirror.clusters.protocol.errors import LastStableOffsetStuck
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.ledger import FlowLedger, LedgerBegunAnew
from airmirror.ledger.state import State
from airmirror.naming import mapping_topic, progress_topic
from airmirror.partitions import Entry, TopicPartition
from airmirror.slot.lease import decoded_records
from airmirror.wire.leases import LeaseEntry, note
from airmirror.wire.mappings import Lease, LeaseEvent

log = logging.getLogger(__name__)

LOADED_AT_ONCE = 5_000
ATTEMPTS = 10  # at an index that others begin again meanwhile


@dataclass(frozen=True)
class InternalTopics:
    """The names of a flow's two internal topics on the target."""

    mappings: str
    progress: str

    @classmethod
    def of(cls, source: str) -> InternalTopics:
        """The topics of the flow from the cluster with this alias."""
        return cls(mapping_topic(source), progress_topic(source))


def catch_up(routes: Routes, index: FlowLedger, source: str, patience: float = 60.0) -> None:
    """Read the tails of both topics of the flow from ``source`` into the index. One that is ahead of a topic reads it again.

    Raises LastStableOffsetStuck where a transaction keeps a tail back; LedgerBegunAnew where others begin the index again
    again and again.
    """
    _caught_up(routes, index, source, patience, lambda: State(scanned=index.all_scanned()))


def current_state(routes: Routes, index: FlowLedger, source: str, patience: float = 60.0) -> State:
    """The same, and what the index knows then, as it was at one moment."""
    return _caught_up(routes, index, source, patience, index.state)


def _caught_up(routes: Routes, index: FlowLedger, source: str, patience: float, look: Callable[[], State]) -> State:
    """The first look at the index that has all that was in the topics before it."""
    for left in reversed(range(ATTEMPTS)):
        try:
            ends = _read_tails(routes, index, source, patience)
        except LedgerBegunAnew:
            if not left:
                raise
            continue
        state = look()
        if state.reaches(ends):
            return state
    raise LedgerBegunAnew(index.flow, mapping_topic(source))


def _read_tails(
    routes: Routes, index: FlowLedger, source: str, patience: float
) -> dict[str, tuple[UUID, dict[int, int]]]:
    """Up to where both topics were read: by topic its id and the offsets by partition."""
    names = mapping_topic(source), progress_topic(source)
    begun_ms = int(time.time() * 1000)
    routes.refresh(names)
    ends_now = offsets_with_patience(routes, routes.keys(names), LATEST)
    scanned = scanned_of(routes, index, ends_now)
    is_behind = any(scanned.get(key, 0) < end for key, end in ends_now.items())
    if is_behind and index.forget_slept(names, begun_ms):
        scanned = {}
    read: dict[str, tuple[UUID, dict[int, int]]] = {}
    for topic in names:
        topic_id = routes.topic_ids[topic]
        ends = {partition: end for partition, end in ends_now.items() if partition.topic == topic}
        for key, end in ends.items():
            load_tail(routes, key, scanned.get(key, 0), end, partial(index.load, topic, topic_id), patience=patience)
        read[topic] = (topic_id, {each.partition: end for each, end in ends.items()})
    index.note_read(begun_ms)
    return read


def scanned_of(routes: Routes, index: FlowLedger, ends: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
    """The next offset to read, by partition. A log that ends below what was read of it (a restored disk, an unclean leader
    election), or whose leader epochs say that it did and has grown again, is another one: what was loaded of its topic is
    forgotten."""
    known = index.read_of({key.topic: routes.topic_ids[key.topic] for key in ends})
    read = {TopicPartition(row.topic, row.partition): row for row in known}
    last = {key: read[key] for key in ends if key in read}
    cut = {key.topic: key for key, row in last.items() if ends[key] < row.next_offset}
    asked = {key: row.last_epoch for key, row in last.items() if row.last_epoch is not None and key.topic not in cut}
    for key, end in epoch_ends(routes, asked).items():
        if end.epoch != asked[key] or end.offset <= last[key].last_offset:
            cut[key.topic] = key
    for topic, key in cut.items():
        log.warning("%s is not the log that was read up to %s: it is read again", key, read[key].next_offset)
        index.forget_topic(topic)
    return {key: row.next_offset for key, row in read.items() if key.topic not in cut}


Load = Callable[[Sequence[Entry], Mapping[int, int], Mapping[int, int]], None]


def load_tail(
    routes: Routes, partition: TopicPartition, start: int, end: int, load: Load, patience: float = 60.0
) -> None:
    """Read the offsets ``[start, end)`` and hand them to ``load``, some thousand records at a time, with the next offset to
    read and the first that was read. Raises what ``read_records`` does."""
    if start >= end:
        return
    number, entries = partition.partition, list[Entry]()
    try:
        for record in read_records(routes, partition, start, end, patience=patience):
            entries.append(Entry(number, record.offset, record.timestamp, record.key, record.value, epoch=record.epoch))
            if len(entries) >= LOADED_AT_ONCE:
                load(entries, {number: record.offset + 1}, {number: start})
                entries, start = [], record.offset + 1
    except LastStableOffsetStuck:  # what lies before the open transaction is known
        if entries:
            load(entries, {number: entries[-1].offset + 1}, {number: start})
        raise
    load(entries, {number: end}, {number: start})


def read_leases(
    routes: Routes, mapping_topic: str, known: Iterable[tuple[int, int, Lease]], scanned: int, end: int
) -> list[LeaseEntry]:
    """All leases below ``end``: those known, and those in the tail from ``scanned`` on, which is read uncommitted.

    Leases are written outside transactions, and a transaction that a dead window left open must not hide them.
    """
    entries = {offset: LeaseEntry(offset, timestamp, lease) for offset, timestamp, lease in known}
    found = read_records(routes, TopicPartition(mapping_topic, 0), scanned, end, read_committed=False)
    for entry, record in decoded_records(found):
        if isinstance(record, Lease):
            entries[entry.offset] = LeaseEntry(entry.offset, entry.timestamp, record)
    return [entries[offset] for offset in sorted(entries)]


class LeasesSince:
    """The leases of a mapping topic from the one at ``offset`` on, read on and on. Not thread-safe."""

    def __init__(self, offset: int) -> None:
        self._offset = self._next = offset
        self._entries: list[LeaseEntry] = []

    @property
    def contenders(self) -> set[str]:
        """The windows whose leases were read, granted or refused."""
        return {entry.lease.window for entry in self._entries if entry.lease.event is LeaseEvent.TAKEN}

    def read(self, routes: Routes, mapping_topic: str) -> list[LeaseEntry]:
        """All up to the topic's end now; only what has come since the last time is read."""
        log = TopicPartition(mapping_topic, 0)
        end = offsets_with_patience(routes, [log], LATEST)[log]
        if end < self._next:  # another log: it is read again
            self._entries, self._next = [], self._offset
        for entry in read_leases(routes, mapping_topic, (), self._next, end):
            note(self._entries, entry)
        self._next = end
        return self._entries
