"""Records of two logs side by side: read some at a time, and brought together by the offsets that ranges map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from airmirror.clusters.protocol.errors import FetchFailed
from airmirror.clusters.protocol.log import read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition
from airmirror.wire.batch import Batch, CorruptBatch
from airmirror.wire.codecs import UnknownCodec
from airmirror.wire.mappings import MappedRange
from airmirror.wire.records import Array, Records, pieces

_NEVER = 2**63 - 1
_NO_OFFSETS = np.empty(0, np.int64)
_NO_RECORDS = Records(np.empty(0, np.uint8), *[_NO_OFFSETS] * 4)


def decoded(
    routes: Routes, partition: TopicPartition, buffer: memoryview, batches: Sequence[Batch], start: int, end: int
) -> Iterator[Records]:
    """The records of batches with offsets in ``[start, end)``, some at a time. Raises FetchFailed where they make no sense."""
    try:
        yield from pieces(buffer, batches, start, end)
    except (CorruptBatch, UnknownCodec) as error:
        raise FetchFailed(routes.alias, partition, str(error)) from error


class Cursor:
    """The records of a range, some at a time, whatever the batches. Raises what ``read_batches`` does."""

    def __init__(self, routes: Routes, partition: TopicPartition, start: int, end: int, read_committed: bool) -> None:
        self._chunks = self._read(routes, partition, start, end, read_committed)
        self._records = _NO_RECORDS

    @staticmethod
    def _read(
        routes: Routes, partition: TopicPartition, start: int, end: int, read_committed: bool
    ) -> Iterator[Records]:
        for buffer, batches in read_batches(routes, partition, start, end, read_committed=read_committed):
            data = [batch for batch, aborted in batches if not aborted and not batch.is_control and batch.count]
            yield from decoded(routes=routes, partition=partition, buffer=buffer, batches=data, start=start, end=end)

    def ahead(self) -> Records:
        """The next records; none at the end."""
        while not len(self._records):
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._records = chunk
        return self._records

    def take(self, count: int) -> Records:
        """The first ``count`` of those ahead; the next call continues after them."""
        taken, self._records = self._records.slice(0, count), self._records.slice(count, len(self._records))
        return taken


class OffsetMap:
    """The mapping of offsets by ranges, for many offsets at a time."""

    def __init__(self, ranges: Sequence[MappedRange]) -> None:
        self._source = np.array([run.source_first for run in ranges], np.int64)
        self._target = np.array([run.target_first for run in ranges], np.int64)
        self._count = np.array([run.count for run in ranges], np.int64)

    def has(self, source: Array) -> Array:
        """Return which source offsets are mapped, as a mask."""
        number = np.searchsorted(self._source, source, "right") - 1
        return (number >= 0) & (source < (self._source + self._count)[number]) if len(self._source) else number >= 0

    def back(self, target: Array) -> tuple[Array, Array]:
        """The source offsets of target offsets, and which are mapped; of the others the last mapped one before."""
        if not len(self._target):
            return np.full(len(target), -1, np.int64), np.zeros(len(target), bool)
        number = np.searchsorted(self._target, target, "right") - 1
        into = target - self._target[number]
        mapped = (number >= 0) & (into < self._count[number])
        source = self._source[number] + np.minimum(into, self._count[number] - 1)
        return np.where(number >= 0, source, -1), mapped


@dataclass(frozen=True)
class RecordPair:
    """Records of both logs up to one source offset, from where the pair before ended.

    ``here`` and ``there``: those that both have, in equal numbers; ``at`` their source offsets. ``absent_there``,
    ``absent_here``: mapped source offsets that one side alone has. ``surplus_here`` (source offsets) and ``surplus_there``
    (target offsets) are mapped nowhere. ``source`` and ``target``: all of each.
    """

    source: Records
    target: Records
    at: Array
    here: Records
    there: Records
    absent_there: Array
    absent_here: Array
    surplus_here: Array
    surplus_there: Array

    def with_times_of_source(self) -> RecordPair:
        """The same, as if the target had kept the times of the records that both have."""
        there = replace(self.there, timestamps=self.here.timestamps)
        times = self.target.timestamps.copy()
        times[np.isin(self.target.offsets, there.offsets)] = there.timestamps
        return replace(self, there=there, target=replace(self.target, timestamps=times))


def pairs(source: Cursor, target: Cursor, ranges: Sequence[MappedRange]) -> Iterator[RecordPair]:
    """Both logs, brought together."""
    mapping = OffsetMap(ranges)
    while True:
        one, other = source.ahead(), target.ahead()
        if not len(one) and not len(other):
            return
        back, _ = mapping.back(other.offsets)
        # Both sides are known up to here.
        last = min(int(one.offsets[-1]) if len(one) else _NEVER, int(back[-1]) if len(other) else _NEVER)
        one = source.take(int(np.searchsorted(one.offsets, last, "right")))
        other = target.take(int(np.searchsorted(back, last, "right")))
        is_here = mapping.has(one.offsets)
        back, is_there = mapping.back(other.offsets)
        here, there = one.offsets[is_here], back[is_there]
        if is_here.all() and is_there.all() and np.array_equal(here, there):  # as nearly always
            yield RecordPair(one, other, here, one, other, *[_NO_OFFSETS] * 4)
            continue
        both = np.intersect1d(here, there, assume_unique=True)
        yield RecordPair(
            source=one,
            target=other,
            at=both,
            here=one.where(np.isin(one.offsets, both)),
            there=other.where(is_there & np.isin(back, both)),
            absent_there=np.setdiff1d(here, both, assume_unique=True),
            absent_here=np.setdiff1d(there, both, assume_unique=True),
            surplus_here=one.offsets[~is_here],
            surplus_there=other.offsets[~is_there],
        )
