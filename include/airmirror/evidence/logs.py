"""One log of a comparison: the records of a partition that its consumers see, read ahead as far as an alignment needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xxhash

from airmirror.clusters.protocol.log import offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.evidence.alignment import Marks
from airmirror.partitions import TopicPartition
from airmirror.windows.cursor import decoded
from airmirror.wire.batch import Batch
from airmirror.wire.headers import parts_of
from airmirror.wire.records import Array, Records, without_times


@dataclass(frozen=True)
class Log:
    """The offsets ``[start, end)`` of a partition, of which ``[since, until)`` is compared; the log begins at ``log_start``.

    Without ``times`` all records have one timestamp. With ``is_committed`` aborted records are left out, as a consumer with
    ``isolation.level=read_committed`` leaves them out.
    """

    routes: Routes
    partition: TopicPartition
    start: int
    end: int
    log_start: int = 0
    is_committed: bool = True
    is_compacted: bool = False
    times: bool = True
    since: int = 0
    until: int = 0

    def records(self, start: int | None = None, end: int | None = None) -> Iterator[Records]:
        """The records from ``start`` on, some at a time. Raises FetchFailed, LastStableOffsetStuck."""
        for data, _ in self._read(start, end):
            yield from data

    def records_and_aborted(self, start: int, end: int) -> Iterator[tuple[Records, Records]]:
        """Records, and those of aborted transactions that lie between them: each time some of one kind and none of the other."""
        for data, gone in self._read(start, end):
            for records in data:
                yield records, records.slice(0, 0)
            for records in gone:
                yield records.slice(0, 0), records

    def first_from(self, time_ms: int) -> int:
        """The offset of the first record that is not earlier (aborted ones count too); -1: there is none."""
        return offsets_with_patience(self.routes, [self.partition], time_ms)[self.partition]

    def _read(self, start: int | None, end: int | None) -> Iterator[tuple[Iterator[Records], Iterator[Records]]]:
        """A response's records that count, and those of aborted transactions; what is not taken is not decoded."""
        first, last = self.start if start is None else start, self.end if end is None else end
        if first >= last:
            return
        for buffer, batches in read_batches(self.routes, self.partition, first, last, read_committed=self.is_committed):
            inside = [(batch, aborted) for batch, aborted in batches if batch.count and not batch.is_control]
            data = [batch for batch, aborted in inside if not aborted]
            gone = [batch for batch, aborted in inside if aborted]
            yield self._decoded(buffer, data, first, last), self._decoded(buffer, gone, first, last)

    def _decoded(self, buffer: memoryview, batches: list[Batch], first: int, last: int) -> Iterator[Records]:
        for records in decoded(
            routes=self.routes, partition=self.partition, buffer=buffer, batches=batches, start=first, end=last
        ):
            yield records if self.times else without_times(records)


def marks_of(records: Records) -> Marks:
    """A mark of 64 bits for each record: xxh3 of key, value and headers, seeded with the timestamp."""
    found = [
        xxhash.xxh3_64_intdigest(body, seed=time & 0xFFFF_FFFF_FFFF_FFFF)
        for body, time in zip(records.bodies(), records.timestamps.tolist(), strict=True)
    ]
    return np.array(found, np.uint64)


@dataclass(frozen=True)
class Region:
    """Consecutive records of one log that are aligned at once. ``is_last``: the log ends with them."""

    offsets: Array
    marks: Marks
    is_last: bool
    _chunks: tuple[Records, ...]

    def __len__(self) -> int:
        return len(self.offsets)

    def parts(self, number: int) -> tuple[bytes | None, bytes | None, bytes, int]:
        """Key, value, headers and timestamp of a record. Raises MalformedRecord."""
        chunk, at = self._find(number)
        body = bytes(chunk.data[int(chunk.starts[at]) : int(chunk.ends[at])])
        return *parts_of(body), int(chunk.timestamps[at])

    def _find(self, number: int) -> tuple[Records, int]:
        for chunk in self._chunks:
            if number < len(chunk):
                return chunk, number
            number -= len(chunk)
        raise IndexError(number)


@dataclass
class _Chunk:
    records: Records
    marks: Marks | None = None
    taken: int = 0

    def marked(self) -> Marks:
        if self.marks is None:
            self.marks = marks_of(self.records)
        return self.marks[self.taken :]

    def rest(self) -> Records:
        return self.records.slice(self.taken, len(self.records))


@dataclass
class LogReader:
    """Records of a log in their order: the next ones, and as many more as a caller wants to look at."""

    log: Log
    _chunks: deque[_Chunk] = field(default_factory=deque)
    _source: Iterator[Records] | None = None
    _ended: bool = False

    def head(self) -> Records | None:
        """The next records that are in memory, at least one; None at the log's end."""
        return self._chunks[0].rest() if self._chunks or self._read() else None

    def advance(self, count: int) -> None:
        """Go past ``count`` records that were looked at."""
        while count:
            taken = min(count, len(self._chunks[0].rest()))
            self._chunks[0].taken += taken
            count -= taken
            if not len(self._chunks[0].rest()):
                self._chunks.popleft()

    def ahead(self, count: int, size: int) -> Region:
        """The next ``count`` records: fewer at the log's end, or where they take more than ``size`` bytes."""
        while not self._ended and self._held(size) < count:
            self._read()
        chunks, wanted = [], count
        marks: list[Any] = []
        for chunk in self._chunks:
            rest = chunk.rest().slice(0, wanted)
            chunks.append(rest)
            marks.append(chunk.marked()[: len(rest)])
            wanted -= len(rest)
            if not wanted:
                break
        total = sum(len(chunk.rest()) for chunk in self._chunks)
        offsets = np.concatenate([chunk.offsets for chunk in chunks]) if chunks else np.empty(0, np.int64)
        joined = np.concatenate(marks) if marks else np.empty(0, np.uint64)
        return Region(offsets, joined, self._ended and len(offsets) == total, tuple(chunks))

    def _held(self, size: int) -> int:
        """Return the number of records in memory, or one beyond any need if they take more than ``size`` bytes."""
        taken = sum(chunk.records.data.nbytes for chunk in self._chunks)
        return 1 << 62 if taken > size else sum(len(chunk.rest()) for chunk in self._chunks)

    def _read(self) -> bool:
        """Read on; whether there was anything."""
        if self._source is None:
            self._source = self.log.records()
        for records in self._source:
            if len(records):
                self._chunks.append(_Chunk(records))
                return True
        self._ended = True
        return False
