"""What transaction markers in the answer to a fetch say, by the headers of its batches (KIP-98)."""

from __future__ import annotations

import contextlib
import struct
from typing import NamedTuple

import numpy as np

from airmirror.native.layout import (
    BEGUN_OFFSET,
    BEGUN_PRODUCER,
    ENDED_MARKER,
    ENDED_OFFSET,
    ENDED_PRODUCER,
    MOST_BEGUN,
)
from airmirror.wire.batch import CONTROL, TRANSACTIONAL, Batch, CorruptBatch, UnknownMessageFormat
from airmirror.wire.batches import HEADER_SIZE, LEAST_BATCH, marker_type, parse

FEW = 512  # batches whose headers Python reads in no time; more are small ones, which a compiled loop reads
ABORT = 0
_place, _attributes, _producer, _number = (struct.Struct(form) for form in (">qi", ">H", ">q", ">i"))


class Ended(NamedTuple):
    """A transaction that an abort marker ends: the first offset that came of it, and that of the marker."""

    producer_id: int
    first_offset: int
    marker: int


def sound(buffer: memoryview, start: int, end: int) -> list[Batch]:
    """The batches of ``buffer[start:end]`` before one that can't be read, checksums compared."""
    found = list[Batch]()
    with contextlib.suppress(CorruptBatch, UnknownMessageFormat):  # who takes it raises that
        for batch in parse(buffer, start, end):
            found.append(batch)
    return found


def after_data(buffer: memoryview, start: int, end: int, offset: int) -> int:
    """Where the first batch of ``buffer[start:end]`` ends, if it holds records and all lie before ``offset``; else ``start``."""
    base: int
    length: int
    base, length = _place.unpack_from(buffer, start)
    is_data = buffer[start + 16] == 2 and not _attributes.unpack_from(buffer, start + 21)[0] & CONTROL
    last = base + _number.unpack_from(buffer, start + 23)[0]
    is_whole = HEADER_SIZE <= length + 12 <= end - start
    return start + length + 12 if is_data and is_whole and last < offset else start


def ended(buffer: memoryview, start: int, end: int, begun: dict[int, int]) -> list[Ended]:
    """The transactions that abort markers in ``buffer[start:end]`` end, in the order of their markers, as far as headers tell:
    what is damaged ends it, and is for others to find.

    ``begun``: the first offset that came of a producer since its last marker, before ``start``; then before ``end``.
    """
    if end - start < HEADER_SIZE:
        return []
    are_small = (_place.unpack_from(buffer, start)[1] + 12) * FEW < end - start
    before = dict(begun)
    found = None if are_small else _ended(buffer, start, end, begun, FEW)
    if found is None:
        begun.clear()
        begun |= before
        found = _ended_of_many(buffer, start, end, begun)
    return found


def _ended(buffer: memoryview, start: int, end: int, begun: dict[int, int], most: int) -> list[Ended] | None:
    """The same; None where there are more than ``most`` batches. An empty control batch says nothing of what came before it, and
    an empty batch, which compaction leaves for a producer's sequence numbers, is of no transaction any more."""
    found = list[Ended]()
    while end - start >= HEADER_SIZE:
        base, length = _place.unpack_from(buffer, start)
        size, at = length + 12, start
        start += size
        if size < LEAST_BATCH or start > end:
            break
        if (most := most - 1) < 0:
            return None
        attributes = _attributes.unpack_from(buffer, at + 21)[0]
        if buffer[at + 16] != 2 or size < HEADER_SIZE or not attributes & TRANSACTIONAL:
            continue
        producer = _producer.unpack_from(buffer, at + 43)[0]
        is_empty = _number.unpack_from(buffer, at + 57)[0] <= 0
        if not attributes & CONTROL:
            if not is_empty:
                begun.setdefault(producer, base)
            continue
        first = begun.pop(producer, None)
        if first is not None and not is_empty and marker_type(buffer[at + HEADER_SIZE : start]) == ABORT:
            found.append(Ended(producer, first, base))
    return found


def _ended_of_many(buffer: memoryview, start: int, end: int, begun: dict[int, int]) -> list[Ended]:
    from airmirror.native.code import address, loops  # loads the compiled loops

    table, counts = np.zeros((5, MOST_BEGUN), np.int64), np.array([len(begun), 0], np.int64)
    if len(begun) <= MOST_BEGUN:
        table[BEGUN_PRODUCER, : len(begun)], table[BEGUN_OFFSET, : len(begun)] = list(begun), list(begun.values())
        places = address(table.reshape(-1)), MOST_BEGUN, address(counts)
        if loops().ended(address(np.frombuffer(buffer, np.uint8)), start, end, *places):
            left, rows = counts.tolist()
            begun.clear()
            begun |= zip(table[BEGUN_PRODUCER, :left].tolist(), table[BEGUN_OFFSET, :left].tolist(), strict=True)
            return list(
                map(Ended, *(table[row, :rows].tolist() for row in (ENDED_PRODUCER, ENDED_OFFSET, ENDED_MARKER)))
            )
    return _ended(buffer, start, end, begun, end - start) or []
