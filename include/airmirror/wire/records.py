"""The records inside batches, without an object for each: where they lie, written again densely, compared.

This is the slow path's inner loop: batches that cannot be copied whole (sparse ones, those that begin before a window,
LogAppendTime, oversized ones, messages of formats 0 and 1), and small ones that are merged, are indexed and written anew
here. numba compiles it; nothing is per record in Python. Record format: Kafka documentation, "Record".

A *body* is what does not depend on the batch: the bytes of a record from its key's length on (key, value, headers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numba import njit

from airmirror.wire.batches import CODEC_MASK, HEADER_SIZE, LOG_APPEND_TIME, MESSAGE_SET, Batch, CorruptBatch
from airmirror.wire.codecs import DecompressionFailed, decompress
from airmirror.wire.upgrade import records_of
from airmirror.wire.varints import Array, put_varint, read_varint, varint_size


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

    def slice(self, first: int, end: int) -> Records:
        """Records ``first`` to ``end - 1`` (numbers of records, not offsets), without a copy."""
        return Records(
            self.data,
            self.offsets[first:end],
            self.timestamps[first:end],
            self.starts[first:end],
            self.ends[first:end],
        )

    def split(self, offsets: Sequence[int]) -> tuple[Records, Records]:
        """Those without ``offsets``, and those with them."""
        chosen = np.isin(self.offsets, np.array(offsets, np.int64))
        return self._where(~chosen), self._where(chosen)

    def _where(self, chosen: Array) -> Records:
        return Records(self.data, self.offsets[chosen], self.timestamps[chosen], self.starts[chosen], self.ends[chosen])


def index(buffer: memoryview, batches: Sequence[Batch], first: int = 0, end: int = 2**63 - 1) -> Records:
    """The records of ``batches`` with offsets in ``[first, end)``. Raises CorruptBatch where the bytes make no sense."""
    count = len(batches)
    starts, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    if any(batch.attributes & (CODEC_MASK | MESSAGE_SET) for batch in batches):
        parts: list[bytes | memoryview] = []
        position = 0
        for number, batch in enumerate(batches):
            part = _decompressed(buffer, batch)
            parts.append(part)
            starts[number], ends[number] = position, position + len(part)
            position += len(part)
        data = np.frombuffer(b"".join(parts), np.uint8)
    else:
        data = np.frombuffer(buffer, np.uint8)
        for number, batch in enumerate(batches):
            starts[number], ends[number] = batch.position + HEADER_SIZE, batch.position + batch.size
    append_times = [batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else -1 for batch in batches]
    counts = np.array([batch.count for batch in batches], np.int64)
    # A record takes at least seven bytes, so a count that was never true allocates nothing large.
    too_many = np.flatnonzero(counts * 7 > ends - starts)
    if len(too_many):
        raise CorruptBatch(batches[int(too_many[0])].base_offset, "it has room for fewer records than it counts")
    total = int(counts.sum())
    offsets, times = np.empty(total, np.int64), np.empty(total, np.int64)
    body_starts, body_ends = np.empty(total, np.int64), np.empty(total, np.int64)
    found, bad = _index(
        data, starts, ends,
        np.array([batch.base_offset for batch in batches], np.int64),
        np.array([batch.base_timestamp for batch in batches], np.int64),
        np.array(append_times, np.int64),
        np.array([batch.last_offset_delta for batch in batches], np.int64),
        counts, first, end, offsets, times, body_starts, body_ends,
    )  # fmt: skip
    if bad >= 0:
        raise CorruptBatch(
            batches[bad].base_offset, "its records do not end where their lengths say, or are not in order"
        )
    return Records(data, offsets[:found], times[:found], body_starts[:found], body_ends[:found])


def write(records: Records, first: int, max_bytes: int) -> tuple[memoryview, int]:
    """As many records from number ``first`` on as fit in ``max_bytes`` (at least one), as the payload of one dense batch.

    Returns the bytes, not compressed, and how many records they are. The first record's timestamp is the batch's base.
    """
    rest = len(records) - first
    span = int(records.ends[-1] - records.starts[first]) + 30 * rest  # generous only where bodies are not adjacent
    bodies = int((records.ends[first:] - records.starts[first:]).sum()) if span > max_bytes else span
    longest = int(records.ends[first] - records.starts[first]) + 30
    out = np.empty(min(bodies + 30 * rest, max(max_bytes, longest)), np.uint8)
    count, size = _write(records.data, records.timestamps, records.starts, records.ends, first, out)
    return out[:size].data, int(count)


def without_times(records: Records) -> Records:
    """The same records, all of one time: to compare what else they hold."""
    return replace(records, timestamps=np.zeros_like(records.timestamps))


def first_difference(one: Records, other: Records) -> int:
    """The number of the first record whose timestamp or body differs, or -1 when all of the shorter one are equal."""
    count = min(len(one), len(other))
    return int(
        _first_difference(
            count,
            one.data, one.timestamps, one.starts, one.ends,
            other.data, other.timestamps, other.starts, other.ends,
        )
    )  # fmt: skip


def _decompressed(buffer: memoryview, batch: Batch) -> bytes | memoryview:
    if batch.is_message_set:
        return records_of(buffer, batch)
    payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
    try:
        return decompress(batch.codec, payload)
    except DecompressionFailed as error:
        raise CorruptBatch(batch.base_offset, f"its records can't be decompressed ({error.reason})") from error


@njit(cache=True)
def _index(
    data: Array, starts: Array, ends: Array,
    bases: Array, base_times: Array, append_times: Array, last_deltas: Array, counts: Array,
    first: int, end: int, offsets: Array, times: Array, body_starts: Array, body_ends: Array,
) -> tuple[int, int]:  # fmt: skip
    found = 0
    for batch in range(len(starts)):
        position = starts[batch]
        stop = ends[batch]
        last = np.int64(-1)
        for _ in range(counts[batch]):
            length, position = read_varint(data, position, stop)
            if position < 0 or length < 1 or length > stop - position:
                return found, batch
            record_end = position + length
            delta_time, position = read_varint(data, position + 1, record_end)  # one byte of attributes, unused
            if position < 0:
                return found, batch
            delta, position = read_varint(data, position, record_end)
            if position < 0 or delta <= last or delta > last_deltas[batch]:
                return found, batch
            last = delta
            offset = bases[batch] + delta
            if first <= offset < end:
                offsets[found] = offset
                times[found] = append_times[batch] if append_times[batch] >= 0 else base_times[batch] + delta_time
                body_starts[found] = position
                body_ends[found] = record_end
                found += 1
            position = record_end
        if position != stop:
            return found, batch
    return found, -1


@njit(cache=True)
def _write(data: Array, times: Array, starts: Array, ends: Array, first: int, out: Array) -> tuple[int, int]:
    position = 0
    count = 0
    room = len(out)
    base_time = times[first]
    for number in range(first, len(times)):
        delta_time = times[number] - base_time
        body = ends[number] - starts[number]
        length = 1 + varint_size(delta_time) + varint_size(count) + body
        if position + varint_size(length) + length > room:
            break
        position = put_varint(out, position, length)
        out[position] = 0
        position = put_varint(out, position + 1, delta_time)
        position = put_varint(out, position, count)
        for byte in range(starts[number], ends[number]):  # a slice would take numba 30 MB more to compile
            out[position] = data[byte]
            position += 1
        count += 1
    return count, position


@njit(cache=True)
def _first_difference(
    count: int,
    data: Array, times: Array, starts: Array, ends: Array,
    other_data: Array, other_times: Array, other_starts: Array, other_ends: Array,
) -> int:  # fmt: skip
    for number in range(count):
        size = ends[number] - starts[number]
        if times[number] != other_times[number] or size != other_ends[number] - other_starts[number]:
            return number
        start = starts[number]
        other = other_starts[number]
        for at in range(size):
            if data[start + at] != other_data[other + at]:
                return number
    return -1
