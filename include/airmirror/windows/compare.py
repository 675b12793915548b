"""Comparing what the target holds with what was copied: by digest from the target alone, or record by record from both logs.

Used by the gate, ``airmirror verify`` and audits (invariants D and F).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airmirror.clusters.log import FetchFailed, read_batches
from airmirror.clusters.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.windows.errors import TargetDiffers, Unaccounted
from airmirror.windows.slot.account import Digest, payload_digest
from airmirror.wire.batches import HEADER_SIZE, CorruptBatch
from airmirror.wire.codecs import UnknownCodec
from airmirror.wire.records import Records, first_difference, pieces
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import SegmentRecord


@dataclass(frozen=True)
class Compared:
    """The outcome for one segment record: how many records were compared, and what is wrong, if anything."""

    segment: SegmentRecord
    records: int
    error: AirmirrorError | None


@dataclass(frozen=True)
class Held:
    """What a target holds of a segment record: its records, and whether they are the very batches that were written."""

    records: int
    equal: bool


def account_error(
    source: str, segments: Sequence[SegmentRecord], compacted: bool, start: int | None
) -> AirmirrorError | None:
    """What does not add up in consecutive segment records of one partition, from ``start`` on (invariants C, E, G)."""
    expected = start
    for record in segments:
        where = (source, record.topic, record.partition, record.source_start, record.source_end - 1)
        if expected is not None and record.source_start != expected:
            return Unaccounted(*where, f"the segment before ends at {expected}")
        total = record.copied + record.control + record.aborted + record.holes + record.lost
        if total != record.source_end - record.source_start:
            return Unaccounted(*where, f"{total} of {record.source_end - record.source_start} offsets are counted")
        if record.copied != sum(segment.count for segment in record.segments):
            return Unaccounted(*where, f"{record.copied} records copied, but its segments hold another number")
        if record.holes and not compacted:
            return Unaccounted(*where, f"{record.holes} holes in a topic that is not compacted")
        expected = record.source_end
    return None


def look_at_target(target: Routes, record: SegmentRecord) -> Held:
    """What the target holds in the range of a segment record, and whether its digest says so; from the target alone."""
    digest = Digest()
    records = 0
    if record.copied:
        partition = TopicPartition(record.remote_topic, record.partition)
        for buffer, batches in read_batches(
            target, partition, record.target_start, record.target_end, read_committed=True
        ):
            for batch, aborted in batches:
                if aborted or batch.is_control or not _is_own(record, batch.base_offset):
                    continue
                records += batch.count
                payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
                digest.add(
                    batch.attributes, batch.count, batch.base_timestamp, batch.max_timestamp, len(payload),
                    payload_digest(payload),
                )  # fmt: skip
    return Held(records, digest.value() == record.digest)


def _is_own(record: SegmentRecord, offset: int) -> bool:
    """Whether a target offset is of the record's own segments: in an aggregate, others write between them."""
    number = bisect_right(record.segments, offset, key=lambda segment: segment.target_first) - 1
    return number >= 0 and offset < record.segments[number].target_end


def compare(
    source: Routes,
    target: Routes,
    record: SegmentRecord,
    *,
    read_committed: bool,
    aggregate: bool = False,
    times: bool = True,
    seen: Callable[[Records, Records], None] = lambda one, other: None,
) -> Compared:
    """Every record of a segment record in both logs: key, value, headers, timestamp, order and the offset mapping.

    In an ``aggregate`` the target may hold records of others between the segments; without ``times`` timestamps may differ.
    Where somebody has accepted a loss (windows/losses) the target may hold so many records that are not mapped.
    ``seen`` gets all records of both sides, some of the source and of the target at a time, also past a difference.
    Raises FetchFailed or LastStableOffsetStuck where a log can't be read; a difference is in the answer.
    """
    from_source = Cursor(
        source, TopicPartition(record.topic, record.partition), record.source_start, record.source_end, read_committed
    )
    remote = TopicPartition(record.remote_topic, record.partition)
    from_target = Cursor(target, remote, record.target_start, record.target_end, True)
    declared = bool(record.lost) and record.digest == Digest().value() and not aggregate
    compared = skipped = surplus = 0
    for segment in record.segments:
        done = 0
        if record.lost:
            skipped += from_source.skip(segment.source_first)
        if declared:
            surplus += from_target.skip(segment.target_first)
        if aggregate:
            from_target = Cursor(target, remote, segment.target_first, segment.target_end, True)
        while done < segment.count:
            one = from_source.next(segment.count - done)
            other = from_target.next(min(segment.count - done, len(one)))
            one = from_source.keep(len(other))
            if not times and len(one) == len(other):
                other = replace(other, timestamps=one.timestamps)
            seen(one, other)
            error = _difference(
                source.alias, target.alias, record, one, other, segment.source_first + done, segment.target_first + done
            )
            if error is not None:
                _see_the_rest(from_source, from_target, seen)
                return Compared(record, compared, error)
            done += len(other)
            compared += len(other)
    if record.lost:
        skipped += from_source.skip(record.source_end)
        surplus += from_target.skip(record.target_end) if declared else 0
        if max(skipped, surplus) > record.lost:
            reason = f"{record.lost} records were declared lost, but {max(skipped, surplus)} are not on both sides"
            where = (source.alias, record.topic, record.partition, record.source_start, record.source_end - 1)
            return Compared(record, compared, Unaccounted(*where, reason))
    for cursor, log in ((from_source, "the source"), (from_target, "the target")):
        if len(cursor.next(1)):
            _see_the_rest(from_source, from_target, seen, again=cursor)
            reason = f"{log} holds more records in it than were copied"
            where = (source.alias, record.topic, record.partition, record.source_start, record.source_end - 1)
            return Compared(record, compared, Unaccounted(*where, reason))
    return Compared(record, compared, None)


def _see_the_rest(
    from_source: Cursor, from_target: Cursor, seen: Callable[[Records, Records], None], again: Cursor | None = None
) -> None:
    if again is not None:
        again.keep(0)  # what it has just given was not seen
    while len(rest := from_source.next(_ALL)):
        seen(rest, _NOTHING)
    while len(rest := from_target.next(_ALL)):
        seen(_NOTHING, rest)


def _difference(
    source: str, target: str, record: SegmentRecord, one: Records, other: Records, offset: int, target_offset: int
) -> AirmirrorError | None:
    where = (source, record.topic, record.partition, target, record.remote_topic, offset, target_offset)
    if not len(one) or not len(other):
        return TargetDiffers(*where, "the target has fewer records" if len(one) else "the source has fewer records")
    number = first_difference(one, other)
    if number < 0:
        for records, first in ((one, offset), (other, target_offset)):
            moved = np.flatnonzero(records.offsets != np.arange(first, first + len(records)))[:1]
            if len(moved):
                return TargetDiffers(*where, f"the offsets are not consecutive from {first + int(moved[0])} on")
        return None
    return TargetDiffers(
        source, record.topic, record.partition, target, record.remote_topic, int(one.offsets[number]),
        int(other.offsets[number]), "key, value, headers or timestamp are not equal",
    )  # fmt: skip


class Cursor:
    """The records of a range, some at a time, whatever the batches."""

    def __init__(self, routes: Routes, partition: TopicPartition, start: int, end: int, read_committed: bool) -> None:
        self._chunks = self._read(routes, partition, start, end, read_committed)
        self._records: Records | None = None
        self._at = 0
        self._taken = 0

    @staticmethod
    def _read(
        routes: Routes, partition: TopicPartition, start: int, end: int, read_committed: bool
    ) -> Iterator[Records]:
        if start >= end:
            return
        for buffer, batches in read_batches(routes, partition, start, end, read_committed=read_committed):
            data = [batch for batch, aborted in batches if not aborted and not batch.is_control and batch.count]
            try:
                yield from pieces(buffer, data, start, end)
            except (CorruptBatch, UnknownCodec) as error:
                raise FetchFailed(routes.alias, partition, str(error)) from error

    def next(self, most: int) -> Records:
        """The next records, at most ``most``; none at the end. What was not kept comes again with ``keep``."""
        self._at += self._taken
        while self._records is None or self._at >= len(self._records):
            chunk = next(self._chunks, None)
            if chunk is None:
                self._taken = 0
                return (
                    _NOTHING if self._records is None else self._records.slice(len(self._records), len(self._records))
                )
            self._records, self._at = chunk, 0
        self._taken = min(most, len(self._records) - self._at)
        return self._records.slice(self._at, self._at + self._taken)

    def skip(self, offset: int) -> int:
        """Leave out the records before ``offset``; how many."""
        skipped = 0
        while True:
            ahead = self.next(1 << 30)
            count = int(np.searchsorted(ahead.offsets, offset))
            self.keep(count)
            skipped += count
            if count < len(ahead) or not len(ahead):
                return skipped

    def keep(self, count: int) -> Records:
        """Take back all but ``count`` of what ``next`` gave."""
        assert self._records is not None or count == 0
        self._taken = min(self._taken, count)
        return _NOTHING if self._records is None else self._records.slice(self._at, self._at + self._taken)


_ALL = 2**31
_NOTHING = Records(*(np.empty(0, kind) for kind in (np.uint8, np.int64, np.int64, np.int64, np.int64)))
