"""Messages of formats 0 and 1 as records of format 2: the same key, value and time, without headers."""

from __future__ import annotations

import numpy as np

from airmirror.native.code import address, loops
from airmirror.wire.batch import LARGEST, Batch, CorruptBatch
from airmirror.wire.message_sets import append_time, at, inner

_MOST_ADDED = 16  # bytes that a record of format 2 can be longer than its message of format 0


def records_of(buffer: memoryview, batch: Batch, largest: int = LARGEST) -> memoryview:
    """The records of a batch that ``message_sets.read`` gave, not compressed.

    Offsets are relative to the batch's base offset, times to its base timestamp, 0; without a time it is -1. Raises
    CorruptBatch, BatchTooLarge.
    """
    first = at(buffer, batch)
    messages = inner(buffer, first, largest) if first.codec else buffer[batch.position : batch.position + batch.size]
    time = append_time(buffer, first)
    out = np.empty(len(messages) + _MOST_ADDED * batch.count, np.uint8)
    data = np.frombuffer(messages, np.uint8)
    size = loops().upgrade(
        address(data), len(data), first.magic, time is not None, time or 0, batch.count, address(out)
    )
    if size < 0:
        raise CorruptBatch(batch.base_offset, "a message does not end where its size says")
    return out[:size].data
