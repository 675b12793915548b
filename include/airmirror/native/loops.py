"""The inner loops over records, which numba compiles: only ``compiler`` imports this module.

Arguments are addresses and numbers; the callers (wire/records, wire/upgrade) give the memory and its bounds. Record format:
Kafka documentation, "Record"; messages of formats 0 and 1: "Message sets". Loops copy byte for byte: LLVM makes copies of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, register_jitable

Bytes = Any  # uint8*
Numbers = Any  # int64*


def _word(_context: Any, data: Any, position: Any) -> Any:
    """Eight bytes as a number, in the processor's order."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        start = builder.gep(arguments[0], [arguments[1]])
        return builder.load(builder.bitcast(start, ir.IntType(64).as_pointer()), align=1)

    return types.uint64(data, position), code


word: Any = intrinsic(_word)


@register_jitable
def read_varint(data: Bytes, position: int, end: int) -> tuple[Any, int]:
    """A zigzag varint and the position after it; the position is -1 where it does not end in time."""
    value = np.uint64(0)
    shift = np.uint64(0)
    while position < end and shift < np.uint64(70):
        byte = data[position]
        position += 1
        value |= np.uint64(byte & 0x7F) << shift
        if byte < 0x80:
            return np.int64(value >> np.uint64(1)) ^ -np.int64(value & np.uint64(1)), position
        shift += np.uint64(7)
    return np.int64(0), -1


@register_jitable
def put_varint(out: Bytes, position: int, value: int) -> int:
    rest = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    while rest >= np.uint64(0x80):
        out[position] = np.uint8(rest & np.uint64(0x7F)) | np.uint8(0x80)
        rest >>= np.uint64(7)
        position += 1
    out[position] = np.uint8(rest)
    return position + 1


@register_jitable
def varint_size(value: int) -> int:
    rest = (np.uint64(value) << np.uint64(1)) ^ np.uint64(value >> np.int64(63))
    size = 1
    while rest >= np.uint64(0x80):
        rest >>= np.uint64(7)
        size += 1
    return size


@register_jitable
def integer(data: Bytes, position: int, size: int) -> Any:
    """A big-endian signed integer of ``size`` bytes."""
    value = np.int64(np.int8(data[position]))
    for byte in range(position + 1, position + size):
        value = (value << np.int64(8)) | np.int64(data[byte])
    return value


def index(
    data: Bytes,
    batches: int,
    starts: Numbers,
    ends: Numbers,
    bases: Numbers,
    base_times: Numbers,
    append_times: Numbers,
    last_deltas: Numbers,
    counts: Numbers,
    first: int,
    end: int,
    offsets: Numbers,
    times: Numbers,
    body_starts: Numbers,
    body_ends: Numbers,
) -> int:
    """Index the records of ``batches`` in ``[first, end)``; return their number, or -1 - the batch that makes no sense."""
    found = 0
    for batch in range(batches):
        position = starts[batch]
        stop = ends[batch]
        last = np.int64(-1)
        for _ in range(counts[batch]):
            length, position = read_varint(data, position, stop)
            if position < 0 or length < 1 or length > stop - position:
                return -1 - batch
            record_end = position + length
            delta_time, position = read_varint(data, position + 1, record_end)  # one byte of attributes, unused
            if position < 0:
                return -1 - batch
            delta, position = read_varint(data, position, record_end)
            if position < 0 or delta <= last or delta > last_deltas[batch]:
                return -1 - batch
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
            return -1 - batch
    return found


def write(
    data: Bytes,
    times: Numbers,
    starts: Numbers,
    ends: Numbers,
    first: int,
    end: int,
    out: Bytes,
    room: int,
    size: Numbers,
) -> int:
    """Records ``first`` to at most ``end - 1`` written densely into ``room`` bytes: how many, and in ``size`` their bytes."""
    position = 0
    count = 0
    base_time = times[first]
    for number in range(first, end):
        delta_time = times[number] - base_time
        body = ends[number] - starts[number]
        length = 1 + varint_size(delta_time) + varint_size(count) + body
        if position + varint_size(length) + length > room:
            break
        position = put_varint(out, position, length)
        out[position] = np.uint8(0)
        position = put_varint(out, position + 1, delta_time)
        position = put_varint(out, position, count)
        start = starts[number]
        for at in range(body):
            out[position + at] = data[start + at]
        position += body
        count += 1
    size[0] = position
    return count


def first_difference(
    count: int,
    data: Bytes,
    times: Numbers,
    starts: Numbers,
    ends: Numbers,
    other_data: Bytes,
    other_times: Numbers,
    other_starts: Numbers,
    other_ends: Numbers,
) -> int:
    """The number of the first of ``count`` records whose time or body differs, or -1."""
    for number in range(count):
        size = ends[number] - starts[number]
        if times[number] != other_times[number] or size != other_ends[number] - other_starts[number]:
            return number
        start = starts[number]
        other = other_starts[number]
        at = 0
        while at + 8 <= size:
            if word(data, start + at) != word(other_data, other + at):
                return number
            at += 8
        while at < size:
            if data[start + at] != other_data[other + at]:
                return number
            at += 1
    return -1


def upgrade(
    data: Bytes, length: int, magic: int, has_append_time: int, append_time: int, count: int, out: Bytes
) -> int:
    """Messages of format 0 or 1 written as records of format 2: how many bytes; -1 where they are not ``count`` whole ones."""
    before_key = 18 if magic == 0 else 26
    position = 0
    written = 0
    first: Any = np.int64(0)
    for number in range(count):
        if position + before_key + 8 > length:
            return -1
        offset = integer(data, position, 8)
        end = position + 12 + integer(data, position + 8, 4)
        if number == 0:
            first = offset
        time: Any = np.int64(-1)
        if has_append_time:
            time = np.int64(append_time)
        elif magic == 1:
            time = integer(data, position + 18, 8)
        key = position + before_key + 4
        key_length = integer(data, key - 4, 4)
        value = key + max(key_length, 0) + 4
        if end > length or key_length < -1 or value > end:
            return -1
        value_length = integer(data, value - 4, 4)
        if value_length < -1 or value + max(value_length, 0) != end:
            return -1
        size = 2 + varint_size(time) + varint_size(offset - first)  # attributes and no headers, a byte each
        size += varint_size(key_length) + max(key_length, 0) + varint_size(value_length) + max(value_length, 0)
        written = put_varint(out, written, size)
        out[written] = np.uint8(0)
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
        out[written] = np.uint8(0)
        written += 1
        position = end
    return written if position == length else -1
