"""The loop over small batches in a fetched buffer, which numba compiles: only ``compiler`` imports this module.

It finds and checks them, and decides by their headers what is to be copied. It stops before the first batch that is anything
but ordinary, and changes nothing for it: ``batches.parse`` and the intake continue there one by one, and raise the errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from airmirror.native.checksum import crc32c
from airmirror.native.layout import (
    ABORTED,
    AT,
    ATTRIBUTES,
    BASE_OFFSET,
    BASE_SEQUENCE,
    BASE_TIME,
    BEGUN_OFFSET,
    BEGUN_PRODUCER,
    CHECKSUM,
    CONTROLS,
    COUNT,
    ENDED_MARKER,
    ENDED_OFFSET,
    ENDED_PRODUCER,
    EPOCH,
    HOLES,
    LAST_DELTA,
    LEADER_EPOCH,
    MAX_TIME,
    MOST_ABORTED,
    OFFSET,
    OPEN,
    OPEN_PRODUCER,
    PENDING,
    PENDING_OFFSET,
    PENDING_PRODUCER,
    POSITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    SIZE,
)
from airmirror.native.loops import Bytes, Numbers, integer

# Of a batch, as in wire.batch and wire.batches, which build on this package.
HEADER_SIZE, CHECKSUM_FROM, LEAST_RECORD, MOST_RECORDS = 61, 21, 7, 10_000_000
LEAST_BATCH = 26  # a message of format 0 with neither key nor value
CODEC_MASK, TRANSACTIONAL, CONTROL = 0x07, 0x10, 0x20
FARTHEST = 1 << 62  # offsets above it are left to Python, whose integers have no end


@register_jitable
def sound(data: Bytes, at: int, end: int, below: Numbers, tables: Numbers) -> Any:
    """The size of the whole, right and small batch of format 2 at ``at``; 0 where there is something else."""
    if end - at < HEADER_SIZE or data[at + 16] != 2:
        return 0
    size = integer(data, at + 8, 4) + 12
    attributes = integer(data, at + CHECKSUM_FROM, 2)
    if size < HEADER_SIZE or size > end - at or size >= below[attributes & CODEC_MASK]:
        return 0
    if crc32c(data, at + CHECKSUM_FROM, at + size, tables) != integer(data, at + 17, 4) & 0xFFFFFFFF:
        return 0
    base, last, count = integer(data, at, 8), integer(data, at + 23, 4), integer(data, at + 57, 4)
    if base < 0 or base > FARTHEST or last < 0 or count < 0 or count > last + 1:
        return 0
    if count * LEAST_RECORD > size - HEADER_SIZE and (count > MOST_RECORDS or not attributes & CODEC_MASK):
        return 0
    return size


@register_jitable
def marker(data: Bytes, position: int, end: int) -> int:
    """The type of the marker in a control batch whose records lie there; -1 where it is cut off."""
    for skipped in range(4):
        while True:
            if position >= end:
                return -1
            byte = data[position]
            position += 1
            if skipped == 1 or byte < 0x80:
                break
    return integer(data, position + 3, 2) & 0xFFFF if position + 5 <= end else -1


@register_jitable
def put(data: Bytes, at: int, size: int, table: Numbers, row: int, room: int) -> None:
    """The header of a batch as a row of the table."""
    table[POSITION * room + row] = at
    table[SIZE * room + row] = size
    table[BASE_OFFSET * room + row] = integer(data, at, 8)
    table[LEADER_EPOCH * room + row] = integer(data, at + 12, 4)
    table[CHECKSUM * room + row] = integer(data, at + 17, 4) & 0xFFFFFFFF
    table[ATTRIBUTES * room + row] = integer(data, at + 21, 2) & 0xFFFF
    table[LAST_DELTA * room + row] = integer(data, at + 23, 4)
    table[BASE_TIME * room + row] = integer(data, at + 27, 8)
    table[MAX_TIME * room + row] = integer(data, at + 35, 8)
    table[PRODUCER_ID * room + row] = integer(data, at + 43, 8)
    table[PRODUCER_EPOCH * room + row] = integer(data, at + 51, 2)
    table[BASE_SEQUENCE * room + row] = integer(data, at + 53, 4)
    table[COUNT * room + row] = integer(data, at + 57, 4)


@register_jitable
def begin(aborted: Numbers, state: Numbers, before: int) -> None:
    """The aborted transactions that begin before this offset have begun."""
    while state[PENDING] > 0 and aborted[PENDING_OFFSET * MOST_ABORTED + state[PENDING] - 1] < before:
        state[PENDING] -= 1
        producer = aborted[PENDING_PRODUCER * MOST_ABORTED + state[PENDING]]
        aborted[OPEN_PRODUCER * MOST_ABORTED + state[OPEN]] = producer
        state[OPEN] += 1


@register_jitable
def has_begun(aborted: Numbers, state: Numbers, producer: int) -> bool:
    found = False
    for number in range(state[OPEN]):
        found = found or aborted[OPEN_PRODUCER * MOST_ABORTED + number] == producer
    return found


@register_jitable
def close(aborted: Numbers, state: Numbers, producer: int) -> None:
    """The producer's aborted transaction has ended."""
    left = 0
    for number in range(state[OPEN]):
        other = aborted[OPEN_PRODUCER * MOST_ABORTED + number]
        if other != producer:
            aborted[OPEN_PRODUCER * MOST_ABORTED + left] = other
            left += 1
    state[OPEN] = left


def ended(data: Bytes, at: int, end: int, table: Numbers, room: int, counts: Numbers) -> int:
    """Put the transactions that abort markers of ``data[at:end]`` end into ``table`` (native/layout), which has those that have
    begun, and then has those of the end; return 0 where a row of ``room`` is too short. Only headers are read.

    ``counts``: how many have begun, given and given back, and how many have ended.
    """
    begun = counts[0]
    found = 0
    while end - at >= HEADER_SIZE:
        size = integer(data, at + 8, 4) + 12
        if size < LEAST_BATCH or size > end - at:
            break
        attributes = integer(data, at + CHECKSUM_FROM, 2)
        if data[at + 16] == 2 and size >= HEADER_SIZE and attributes & TRANSACTIONAL != 0:
            producer = integer(data, at + 43, 8)
            place = 0
            while place < begun and table[BEGUN_PRODUCER * room + place] != producer:
                place += 1
            count = integer(data, at + 57, 4)
            if attributes & CONTROL == 0:
                if place == begun and count > 0:
                    if begun == room:
                        return 0
                    table[BEGUN_PRODUCER * room + begun] = producer
                    table[BEGUN_OFFSET * room + begun] = integer(data, at, 8)
                    begun += 1
            elif place < begun:
                if count > 0 and marker(data, at + HEADER_SIZE, at + size) == 0:
                    if found == room:
                        return 0
                    table[ENDED_PRODUCER * room + found] = producer
                    table[ENDED_OFFSET * room + found] = table[BEGUN_OFFSET * room + place]
                    table[ENDED_MARKER * room + found] = integer(data, at, 8)
                    found += 1
                begun -= 1
                table[BEGUN_PRODUCER * room + place] = table[BEGUN_PRODUCER * room + begun]
                table[BEGUN_OFFSET * room + place] = table[BEGUN_OFFSET * room + begun]
        at += size
    counts[0] = begun
    counts[1] = found
    return 1


def find(
    data: Bytes,
    end: int,
    below: Numbers,
    tables: Numbers,
    last: int,
    may_lack: int,
    aborted: Numbers,
    table: Numbers,
    room: int,
    most_bytes: int,
    most_records: int,
    state: Numbers,
) -> int:
    """Put the batches to be copied of ``data[state[AT]:end]`` into ``table``; return how many; all are of one codec.

    ``below``: by codec, the size that no small batch has; ``last``: the offset of the log where to stop; ``may_lack``: whether
    it may have holes. Ends too where ``room`` is full, before a further batch that makes more than ``most_bytes`` of it, and
    after more than ``most_records``.
    """
    rows = 0
    codec: Any = np.int64(-1)
    while rows < room and most_records >= 0:
        at = state[AT]
        offset = state[OFFSET]
        size = sound(data, at, end, below, tables)
        if size == 0:
            break
        base = integer(data, at, 8)
        after = base + integer(data, at + 23, 4) + 1
        attributes = integer(data, at + CHECKSUM_FROM, 2)
        count = integer(data, at + 57, 4)
        producer = integer(data, at + 43, 8)
        begin(aborted, state, after)
        is_open = attributes & TRANSACTIONAL != 0 and has_begun(aborted, state, producer)
        is_control = attributes & CONTROL != 0
        is_data = not is_control and not is_open and count > 0
        if after > offset:
            hole = base > offset or (count == 0 and not is_control and not is_open)
            if base >= last or (hole and not may_lack) or (base < offset and rows > 0):
                break
            if is_data and rows > 0 and (size > most_bytes or codec != attributes & CODEC_MASK):
                break
        if is_control and is_open and count > 0:
            kind = marker(data, at + HEADER_SIZE, at + size)
            if kind < 0:
                break
            if kind == 0:
                close(aborted, state, producer)
        state[AT] = at + size
        if after <= offset:
            continue
        until = min(after, last)
        state[HOLES] += max(base - offset, 0)
        reason = CONTROLS if is_control else ABORTED if is_open else HOLES
        if is_data:
            put(data, at, size, table, rows, room)
            codec = attributes & CODEC_MASK
            rows += 1
            most_bytes -= size
            most_records -= count
        else:
            state[reason] += until - max(base, offset)
        state[OFFSET] = until
        state[EPOCH] = integer(data, at + 12, 4)
    return rows
