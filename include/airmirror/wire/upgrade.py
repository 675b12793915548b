"""Messages of formats 0 and 1 as records of format 2: the same key, value and time, without headers; numba compiles it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from airmirror.wire.batches import Batch, CorruptBatch
from airmirror.wire.message_sets import append_time, at, inner
from airmirror.wire.varints import Array, put_varint, varint_size

_MOST_ADDED = 16  # bytes that a record of format 2 can be longer than its message of format 0


def records_of(buffer: memoryview, batch: Batch) -> memoryview:
    """The records of a batch that ``message_sets.read`` gave, not compressed.

    Offsets are relative to the batch's base offset, times to its base timestamp, 0; without a time it is -1. Raises
    CorruptBatch.
    """
    first = at(buffer, batch)
    messages = inner(buffer, first) if first.codec else buffer[batch.position : batch.position + batch.size]
    time = append_time(buffer, first)
    out = np.empty(len(messages) + _MOST_ADDED * batch.count, np.uint8)
    size = _upgrade(
        np.frombuffer(messages, np.uint8), first.magic, time is not None, -1 if time is None else time, batch.count, out
    )
    if size < 0:
        raise CorruptBatch(batch.base_offset, "a message does not end where its size says")
    return out[:size].data


@njit(cache=True)
def _integer(data: Array, position: int, size: int) -> Any:
    """A big-endian signed integer of ``size`` bytes."""
    value = np.int64(np.int8(data[position]))
    for byte in range(position + 1, position + size):
        value = (value << np.int64(8)) | np.int64(data[byte])
    return value


@njit(cache=True)
def _upgrade(data: Array, magic: int, has_append_time: bool, append_time: int, count: int, out: Array) -> int:
    """How many bytes were written to ``out``; -1 where the messages are not ``count`` whole ones."""
    before_key = 18 if magic == 0 else 26
    position = 0
    written = 0
    first: Any = np.int64(0)
    for number in range(count):
        if position + before_key + 8 > len(data):
            return -1
        offset = _integer(data, position, 8)
        end = position + 12 + _integer(data, position + 8, 4)
        if number == 0:
            first = offset
        time: Any = np.int64(-1)
        if has_append_time:
            time = np.int64(append_time)
        elif magic == 1:
            time = _integer(data, position + 18, 8)
        key = position + before_key + 4
        key_length = _integer(data, key - 4, 4)
        value = key + max(key_length, 0) + 4
        if end > len(data) or key_length < -1 or value > end:
            return -1
        value_length = _integer(data, value - 4, 4)
        if value_length < -1 or value + max(value_length, 0) != end:
            return -1
        length = 2 + varint_size(time) + varint_size(offset - first)  # attributes and no headers, a byte each
        length += varint_size(key_length) + max(key_length, 0) + varint_size(value_length) + max(value_length, 0)
        written = put_varint(out, written, length)
        out[written] = 0
        written = put_varint(out, written + 1, time)
        written = put_varint(out, written, offset - first)
        written = put_varint(out, written, key_length)
        for byte in range(key, value - 4):
            out[written] = data[byte]
            written += 1
        written = put_varint(out, written, value_length)
        for byte in range(value, end):
            out[written] = data[byte]
            written += 1
        out[written] = 0
        written += 1
        position = end
    return written if position == len(data) else -1
