"""The records inside batches, without an object for each: where they lie, written again densely, compared.

This is the slow path's inner loop: batches that cannot be copied whole (sparse ones, those that begin before a window,
LogAppendTime, oversized ones, messages of formats 0 and 1), and small ones that are merged, are indexed and written anew
here. Nothing is per record in Python: the loops are machine code (airmirror.native).

A *body* is what does not depend on the batch: the bytes of a record from its key's length on (key, value, headers).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airmirror.native.code import address, loops
from airmirror.wire.batches import CODEC_MASK, HEADER_SIZE, LOG_APPEND_TIME, MESSAGE_SET, Batch, CorruptBatch
from airmirror.wire.codecs import DecompressionFailed, decompress
from airmirror.wire.upgrade import records_of

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
    append_times = np.array(
        [batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else -1 for batch in batches], np.int64
    )
    counts = np.array([batch.count for batch in batches], np.int64)
    # A record takes at least seven bytes, so a count that was never true allocates nothing large.
    too_many = np.flatnonzero(counts * 7 > ends - starts)
    if len(too_many):
        raise CorruptBatch(batches[int(too_many[0])].base_offset, "it has room for fewer records than it counts")
    total = int(counts.sum())
    offsets, times = np.empty(total, np.int64), np.empty(total, np.int64)
    body_starts, body_ends = np.empty(total, np.int64), np.empty(total, np.int64)
    bases = np.array([batch.base_offset for batch in batches], np.int64)
    base_times = np.array([batch.base_timestamp for batch in batches], np.int64)
    last_deltas = np.array([batch.last_offset_delta for batch in batches], np.int64)
    found = loops().index(
        address(data), count, address(starts), address(ends),
        address(bases), address(base_times), address(append_times), address(last_deltas), address(counts),
        first, end, address(offsets), address(times), address(body_starts), address(body_ends),
    )  # fmt: skip
    if found < 0:
        raise CorruptBatch(
            batches[-1 - found].base_offset, "its records do not end where their lengths say, or are not in order"
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
    size = np.empty(1, np.int64)
    count = loops().write(*_all(records), first, len(records), address(out), len(out), address(size))
    return out[: size[0]].data, count


def without_times(records: Records) -> Records:
    """The same records, all of one time: to compare what else they hold."""
    return replace(records, timestamps=np.zeros_like(records.timestamps))


def first_difference(one: Records, other: Records) -> int:
    """The number of the first record whose timestamp or body differs, or -1 when all of the shorter one are equal."""
    count = min(len(one), len(other))
    return loops().first_difference(count, *_all(one), *_all(other))


def _decompressed(buffer: memoryview, batch: Batch) -> bytes | memoryview:
    if batch.is_message_set:
        return records_of(buffer, batch)
    payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
    try:
        return decompress(batch.codec, payload)
    except DecompressionFailed as error:
        raise CorruptBatch(batch.base_offset, f"its records can't be decompressed ({error.reason})") from error


def _all(records: Records) -> tuple[int, int, int, int]:
    return address(records.data), address(records.timestamps), address(records.starts), address(records.ends)
