"""Records that compaction may take: those that a later record of their key supersedes, and tombstones that delete nothing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xxhash

from airmirror.evidence.logs import Log
from airmirror.wire.headers import parts_of
from airmirror.wire.records import Array

AT_ONCE = 200_000  # records that are looked after while the log is read: some 40 MB


def superseded(log: Log, offsets: Array, other: Log) -> Array:
    """Return which of these records (offsets in order) the cleaner of the ``other`` log, which lacks them, may have taken, as a
    mask; ``log``, which has them, is read from them on.

    The newest record of a key stays, so a copy that lacks it lacks a record. A tombstone goes after ``delete.retention.ms``, and
    never before what it deletes (Kafka documentation, "Log Compaction"): where a record of its key lies on the other side, the
    tombstone never came there.
    """
    blocks = [_of_block(log, offsets[at : at + AT_ONCE], other) for at in range(0, len(offsets), AT_ONCE)]
    return np.concatenate([np.empty(0, bool), *blocks])


def _of_block(log: Log, asked: Array, other: Log) -> Array:
    """The same of some records; the log is read until all of them are superseded."""
    found = np.zeros(len(asked), bool)
    numbers = {offset: number for number, offset in enumerate(asked.tolist())}
    waiting: dict[int, int] = {}  # by a key's mark, the number of its newest record that was asked for
    deletions: set[int] = set()  # the marks of those that are tombstones
    for offset, mark, is_tombstone in _keyed(log, int(asked[0]), log.until):
        before = waiting.pop(mark, -1)
        if before >= 0:
            found[before] = True
            deletions.discard(mark)
        if (number := numbers.get(offset)) is not None:
            waiting[mark] = number
            if is_tombstone:
                deletions.add(mark)
        if not waiting and offset >= asked[-1]:
            break
    for mark in _absent(deletions, other):
        found[waiting[mark]] = True
    return found


def _absent(marks: set[int], log: Log) -> set[int]:
    """Return the marks of which no key is in the log."""
    left = set(marks)
    for _, mark, _ in _keyed(log, log.log_start, log.until) if left else ():
        left.discard(mark)
        if not left:
            break
    return left


def _keyed(log: Log, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Yield the offset, the key's 128-bit mark and whether it is a tombstone, of each record that has a key."""
    for records in log.records(start, end):
        for offset, body in zip(records.offsets.tolist(), records.bodies(), strict=True):
            key, value, _ = parts_of(body)
            if key is not None:
                yield offset, xxhash.xxh3_128_intdigest(key), value is None
