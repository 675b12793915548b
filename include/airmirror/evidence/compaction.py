"""Records that compaction may take: those that a later record of their key supersedes, and tombstones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import numpy as np

from airmirror.evidence.logs import Log
from airmirror.wire.headers import parts_of


def superseded(log: Log, offsets: Collection[int]) -> set[int]:
    """Return the records of a log that its cleaner may take; the log is read from the first of ``offsets`` on.

    The newest record of a key stays, so a copy that lacks it lacks a record; a tombstone goes after
    ``delete.retention.ms`` (Kafka documentation, "Log Compaction").
    """
    if not offsets:
        return set()
    asked = np.array(sorted(offsets), np.int64)
    waiting: dict[bytes, list[int]] = defaultdict(list)
    found: set[int] = set()
    for records in log.records(int(asked[0])):
        is_asked = np.isin(records.offsets, asked)
        for number, offset in enumerate(records.offsets.tolist()):
            body = records.data[int(records.starts[number]) : int(records.ends[number])].tobytes()
            key, value, _ = parts_of(body)
            if key is None:
                continue
            if key in waiting:
                found.update(waiting.pop(key))
            if is_asked[number]:
                if value is None:
                    found.add(offset)
                else:
                    waiting[key].append(offset)
    return found
