"""Records that compaction may take: those that a later record of their key supersedes, and tombstones."""

from __future__ import annotations

import numpy as np
import xxhash

from airmirror.evidence.logs import Log
from airmirror.wire.headers import parts_of
from airmirror.wire.records import Array

AT_ONCE = 200_000  # records that are looked after while the log is read: some 40 MB


def superseded(log: Log, offsets: Array) -> Array:
    """Return which of these records (offsets in order) a log's cleaner may take, as a mask; the log is read from them on.

    The newest record of a key stays, so a copy that lacks it lacks a record; a tombstone goes after
    ``delete.retention.ms`` (Kafka documentation, "Log Compaction").
    """
    blocks = [_of_block(log, offsets[at : at + AT_ONCE]) for at in range(0, len(offsets), AT_ONCE)]
    return np.concatenate([np.empty(0, bool), *blocks])


def _of_block(log: Log, asked: Array) -> Array:
    """The same of some records; the log is read until all of them are superseded."""
    found = np.zeros(len(asked), bool)
    waiting: dict[int, int] = {}  # by a key's 128-bit mark, the number of its newest record that was asked for
    for records in log.records(int(asked[0]), log.until):
        bodies = records.data.tobytes()
        numbers = np.searchsorted(asked, records.offsets)
        is_asked = asked[np.minimum(numbers, len(asked) - 1)] == records.offsets
        rows = zip(records.starts.tolist(), records.ends.tolist(), numbers.tolist(), is_asked.tolist(), strict=True)
        for start, end, number, is_one in rows:
            key, value, _ = parts_of(bodies[start:end])
            if key is None:
                continue
            mark = xxhash.xxh3_128_intdigest(key)
            before = waiting.pop(mark, -1)
            if before >= 0:
                found[before] = True
            if is_one and value is None:
                found[number] = True
            elif is_one:
                waiting[mark] = number
        if not waiting and len(records) and records.offsets[-1] >= asked[-1]:
            break
    return found
