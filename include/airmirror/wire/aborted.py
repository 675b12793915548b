"""Telling the batches of aborted transactions in the answers to fetches, as a read_committed consumer does (KIP-98).

An answer's list is not believed alone: a node that has followed a partition may leave transactions out of it once it leads
(benchmarks/CHAOS.md, seed 212). What an abort marker in the answer ends is aborted too.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airmirror.native.layout import (
    ENDED_OFFSET,
    ENDED_PRODUCER,
    MOST_ABORTED,
    OPEN_PRODUCER,
    PENDING_OFFSET,
    PENDING_PRODUCER,
)
from airmirror.wire.batch import CONTROL, TRANSACTIONAL, Batch
from airmirror.wire.batches import HEADER_SIZE, LEAST_BATCH, control_type, marker_type
from airmirror.wire.requests import AbortedTransaction

FEW = (
    512  # batches whose headers Python reads in no time; where there are more, they are small, and a compiled loop does
)
ABORT = 0
_place, _attributes, _producer, _count = (struct.Struct(form) for form in (">qi", ">H", ">q", ">i"))


@dataclass
class AbortedFilter:
    """A fetch response names the aborted transactions of its range: a producer's batches from the first offset on are
    aborted up to its abort marker. Every response names all that reach into it, those that began before it too; compaction
    can leave a control batch empty, and an empty one ends nothing (as in CompletedFetch.java).
    """

    _pending: list[AbortedTransaction] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)

    def begin(self, aborted: Sequence[AbortedTransaction], buffer: memoryview, start: int, end: int) -> None:
        """Take over the list of a response, before its batches, which are ``buffer[start:end]``."""
        every = {*aborted, *ended(buffer, start, end)}
        self._pending = sorted(every, key=lambda item: item.first_offset, reverse=True)
        self._open.clear()

    def is_aborted(self, buffer: memoryview, batch: Batch) -> bool:
        """Return whether the batch's records are to be left out; call it for every batch in order, control ones too."""
        while self._pending and self._pending[-1].first_offset < batch.next_offset:
            self._open.add(self._pending.pop().producer_id)
        if not batch.is_transactional or batch.producer_id not in self._open:
            return False
        if batch.is_control:
            if batch.count and control_type(buffer, batch) == ABORT:
                self._open.discard(batch.producer_id)
            return False
        return True

    @property
    def is_long(self) -> bool:
        """Return whether it names more transactions than the compiled loop takes."""
        return len(self._pending) + len(self._open) > MOST_ABORTED

    def table(self) -> tuple[np.ndarray[Any, Any], int, int]:
        """The state as the compiled loop has it (native/layout), with how many are to begin and how many have begun."""
        table = np.zeros((3, MOST_ABORTED), np.int64)
        for number, item in enumerate(self._pending):
            table[PENDING_OFFSET, number], table[PENDING_PRODUCER, number] = item.first_offset, item.producer_id
        table[OPEN_PRODUCER, : len(self._open)] = list(self._open)
        return table, len(self._pending), len(self._open)

    def resume(self, table: np.ndarray[Any, Any], pending: int, opened: int) -> None:
        """Take the state back from the compiled loop."""
        del self._pending[pending:]
        self._open = set(table[OPEN_PRODUCER, :opened].tolist())


def ended(buffer: memoryview, start: int, end: int) -> list[AbortedTransaction]:
    """The transactions that abort markers in ``buffer[start:end]`` end, from the first of their batches there on, as far as
    headers tell: what is damaged ends it, and is for others to find."""
    if end - start < HEADER_SIZE:
        return []
    are_small = (_place.unpack_from(buffer, start)[1] + 12) * FEW < end - start
    found = None if are_small else _ended(buffer, start, end, FEW)
    return _ended_of_many(buffer, start, end) if found is None else found


def _ended(buffer: memoryview, start: int, end: int, most: int) -> list[AbortedTransaction] | None:
    """The same; None where there are more than ``most`` batches. An empty control batch says nothing of what came before it."""
    begun, found = dict[int, int](), list[AbortedTransaction]()
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
        if not attributes & CONTROL:
            begun.setdefault(producer, base)
            continue
        first = begun.pop(producer, None)
        is_abort = _count.unpack_from(buffer, at + 57)[0] > 0 and marker_type(buffer[at + HEADER_SIZE : start]) == ABORT
        if first is not None and is_abort:
            found.append(AbortedTransaction(producer, first))
    return found


def _ended_of_many(buffer: memoryview, start: int, end: int) -> list[AbortedTransaction]:
    from airmirror.native.code import address, loops  # loads the compiled loops

    table = np.zeros((4, MOST_ABORTED), np.int64)
    rows = loops().ended(address(np.frombuffer(buffer, np.uint8)), start, end, address(table.reshape(-1)), MOST_ABORTED)
    if rows < 0:
        return _ended(buffer, start, end, end - start) or []
    return list(map(AbortedTransaction, table[ENDED_PRODUCER, :rows].tolist(), table[ENDED_OFFSET, :rows].tolist()))
