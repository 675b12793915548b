"""The records inside batches, without an object for each: where they lie, written again densely, compared.

This is the slow path's inner loop: batches that cannot be copied whole (sparse ones, those that begin before a window,
LogAppendTime, oversized ones, messages of formats 0 and 1), and small ones that are merged, are indexed and written again
here. Nothing is per record in Python: the loops are machine code (airmirror.native).

A *body* is what does not depend on the batch: the bytes of a record from its key's length on (key, value, headers).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airmirror.native.code import address, loops
from airmirror.native.layout import (
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_TIME,
    COLUMNS,
    COUNT,
    LAST_DELTA,
    MAX_TIME,
    POSITION,
    SIZE,
)
from airmirror.wire.batch import CODEC_MASK, LARGEST, LOG_APPEND_TIME, MESSAGE_SET, Batch, CorruptBatch
from airmirror.wire.batches import HEADER_SIZE, LEAST_RECORD
from airmirror.wire.plain import unpack

PACKED = CODEC_MASK | MESSAGE_SET  # the attributes of batches whose records do not lie there as format 2 has them
_INDEX_BYTES = 4 * 8  # of each record
_PIECE_BYTES = 8 << 20
Array = np.ndarray[Any, Any]  # one dimension, contiguous


@dataclass(frozen=True)
class Records:
    """Records in the order of their offsets: ``data[starts[i]:ends[i]]`` is the body of record ``i``."""

    data: Array  # uint8
    offsets: Array  # int64
    timestamps: Array  # int64, milliseconds: for LogAppendTime the batch's own
    starts: Array  # int64
    ends: Array  # int64

    def __len__(self) -> int:
        return len(self.offsets)

    def bodies(self) -> Iterator[bytes]:
        """The bodies one by one, for what machine code can't do."""
        data = self.data.tobytes() if len(self) else b""
        return map(data.__getitem__, map(slice, self.starts.tolist(), self.ends.tolist()))

    def slice(self, first: int, end: int) -> Records:
        """Records ``first`` to ``end - 1`` (numbers of records, not offsets), without a copy."""
        return self.where(np.s_[first:end])

    def split(self, offsets: Sequence[int]) -> tuple[Records, Records]:
        """Those without ``offsets``, and those with them."""
        chosen = np.isin(self.offsets, np.array(offsets, np.int64))
        return self.where(~chosen), self.where(chosen)

    def where(self, chosen: Any) -> Records:
        """Those for which ``chosen``, an array, is true, or that it, a slice, has."""
        return Records(self.data, self.offsets[chosen], self.timestamps[chosen], self.starts[chosen], self.ends[chosen])


class Unpacked:
    """Batches without their compression, one after the other in one buffer."""

    def __init__(self, buffer: memoryview) -> None:
        self.size = 0  # bytes, those of an index included
        self.batches: list[Batch] = []
        self._buffer = buffer
        self._data = bytearray()
        self._ends: list[int] = []

    def add(self, batch: Batch, largest: int = LARGEST) -> None:
        """Take in one more. Raises CorruptBatch, UnknownCodec; BatchTooLarge where it is over ``largest`` bytes."""
        data = self._data
        begin = len(data)
        unpack(data, self._buffer, batch, largest)
        size = len(data) - begin
        if batch.count * LEAST_RECORD > size:  # so that a count that was never true allocates nothing large
            raise CorruptBatch(batch.base_offset, "it has room for fewer records than it counts")
        self.batches.append(batch)
        self._ends.append(begin + size)
        self.size += size + _INDEX_BYTES * batch.count

    def records(self, first: int, end: int) -> Records:
        """The records with offsets in ``[first, end)``; nothing can be added after that. Raises CorruptBatch."""
        ends = np.array(self._ends, np.int64)
        starts = np.concatenate((np.zeros(1, np.int64), ends))[: len(ends)]
        return _indexed(memory=self._data, table=_table(self.batches), starts=starts, ends=ends, first=first, end=end)


def index(
    buffer: memoryview, batches: Sequence[Batch], first: int = 0, end: int = 2**63 - 1, largest: int = LARGEST
) -> Records:
    """The records of ``batches`` with offsets in ``[first, end)``; all that are compressed are unpacked at once, so give few.

    Raises CorruptBatch where the bytes make no sense, UnknownCodec; BatchTooLarge where one has over ``largest`` bytes then.
    """
    if not any(batch.attributes & PACKED for batch in batches):
        return records_of(buffer, _table(batches), first, end)
    unpacked = Unpacked(buffer)
    for batch in batches:
        unpacked.add(batch, largest)
    return unpacked.records(first, end)


def pieces(buffer: memoryview, batches: Sequence[Batch], first: int, end: int) -> Iterator[Records]:
    """Yield the records that ``index`` finds, some at a time: one decoded batch, or a few megabytes of small ones, in memory."""
    if not any(batch.attributes & PACKED for batch in batches):
        yield index(buffer, batches, first, end)
        return
    unpacked = Unpacked(buffer)
    for batch in batches:
        unpacked.add(batch)
        if unpacked.size > _PIECE_BYTES:
            yield unpacked.records(first, end)
            unpacked = Unpacked(buffer)
    yield unpacked.records(first, end)


def write(records: Records, first: int, max_bytes: int) -> tuple[memoryview, int]:
    """As many records from number ``first`` on as fit in ``max_bytes`` (at least one), as the payload of one dense batch.

    Returns the bytes, not compressed, and how many records they are. The first record's timestamp is the batch's base.
    """
    rest = len(records) - first
    span = int(records.ends[-1] - records.starts[first]) + 30 * rest  # generous only where bodies are not adjacent
    bodies = int((records.ends[first:] - records.starts[first:]).sum()) if span > max_bytes else span
    longest = int(records.ends[first] - records.starts[first]) + 30
    out = np.empty(min(bodies + 30 * rest, max(max_bytes, longest)), np.uint8)
    size = np.empty(1, np.int64)
    count = loops().write(*_all(records), first, len(records), address(out), len(out), address(size))
    if size[0] > max_bytes and count > 1:  # the room that a large first record needs has taken small ones after it
        count = loops().write(*_all(records), first, first + 1, address(out), len(out), address(size))
    return out[: size[0]].data, count


def without_times(records: Records) -> Records:
    """The same records, all of one time: to compare what else they hold."""
    return replace(records, timestamps=np.zeros_like(records.timestamps))


def first_difference(one: Records, other: Records) -> int:
    """The number of the first record whose timestamp or body differs, or -1 when all of the shorter one are equal."""
    count = min(len(one), len(other))
    return loops().first_difference(count, *_all(one), *_all(other))


def records_of(buffer: memoryview, table: Array, first: int, end: int) -> Records:
    """The records with offsets in ``[first, end)`` of batches without compression, given as a table (``small.Run``).

    Raises CorruptBatch.
    """
    starts = table[POSITION] + HEADER_SIZE
    return _indexed(memory=buffer, table=table, starts=starts, ends=table[POSITION] + table[SIZE], first=first, end=end)


def _table(batches: Sequence[Batch]) -> Array:
    return np.ascontiguousarray(np.array(batches, np.int64).reshape(-1, COLUMNS).T)


def _indexed(memory: memoryview | bytearray, table: Array, starts: Array, ends: Array, first: int, end: int) -> Records:
    data = np.frombuffer(memory, np.uint8)
    append_times = np.where(table[ATTRIBUTES] & LOG_APPEND_TIME, table[MAX_TIME], -1)
    total = int(table[COUNT].sum())
    offsets, times = np.empty(total, np.int64), np.empty(total, np.int64)
    body_starts, body_ends = np.empty(total, np.int64), np.empty(total, np.int64)
    of_batches = (starts, ends, table[BASE_OFFSET], table[BASE_TIME], append_times, table[LAST_DELTA], table[COUNT])
    into = (offsets, times, body_starts, body_ends)
    found = loops().index(address(data), table.shape[1], *map(address, of_batches), first, end, *map(address, into))
    if found < 0:
        reason = "its records do not end where their lengths say, or are not in order"
        raise CorruptBatch(int(table[BASE_OFFSET, -1 - found]), reason)
    return Records(data, offsets[:found], times[:found], body_starts[:found], body_ends[:found])


def _all(records: Records) -> tuple[int, int, int, int]:
    return address(records.data), address(records.timestamps), address(records.starts), address(records.ends)
