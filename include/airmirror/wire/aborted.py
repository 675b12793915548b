"""Telling the batches of aborted transactions in the answers to fetches, as a read_committed consumer does (KIP-98).

An answer's list is not believed alone: a node that has followed a partition may leave transactions out of it once it leads
(benchmarks/CHAOS.md, seed 212). What an abort marker in the answer ends is aborted too; where earlier answers had records of
it and did not name it, that is said.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from airmirror.native.layout import (
    BEGUN_OFFSET,
    BEGUN_PRODUCER,
    ENDED_MARKER,
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
_offset, _place, _attributes, _producer, _count = (struct.Struct(form) for form in (">q", ">qi", ">H", ">q", ">i"))


class Ended(NamedTuple):
    """A transaction that an abort marker ends: the first offset that came of it, and that of the marker."""

    producer_id: int
    first_offset: int
    marker: int


@dataclass
class AbortedFilter:
    """A fetch response names the aborted transactions of its range: a producer's batches from the first offset on are
    aborted up to its abort marker. Every response names all that reach into it, those that began before it too; compaction
    can leave a control batch empty, and an empty one ends nothing (as in CompletedFetch.java).

    Give it the responses of one partition in their order; where two overlap, the later one counts.
    """

    since: int = 0  # what lies before it was taken, or not, by others
    known: Sequence[Ended] = ()  # transactions that the lists leave out, found by an earlier look at the log
    left_out: list[Ended] = field(default_factory=list)  # these end here, and were not aborted in earlier responses
    _pending: list[AbortedTransaction] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _believed: dict[int, int] = field(default_factory=dict)  # where what is not aborted, and has no marker yet, begins

    def begin(self, aborted: Sequence[AbortedTransaction], buffer: memoryview, start: int, end: int) -> None:
        """Take over the list of a response, before its batches, which are ``buffer[start:end]``."""
        every = set(aborted)
        if end - start >= HEADER_SIZE:
            self._look(every, buffer, start, end)
        self._pending = sorted(every, key=lambda item: item.first_offset, reverse=True)
        self._open.clear()

    def _look(self, every: set[AbortedTransaction], buffer: memoryview, start: int, end: int) -> None:
        """Add to the listed transactions those that markers tell of, and see which of them earlier lists have left out."""
        (here,) = _offset.unpack_from(buffer, start)
        every.update(AbortedTransaction(*each[:2]) for each in self.known if each.marker >= here)
        believed = {producer: first for producer, first in self._believed.items() if first < here}
        begun = {producer: first for producer, first in every if first < here} | believed
        found = ended(buffer, start, end, begun)
        self.left_out = [each for each in found if believed.get(each.producer_id) == each.first_offset]
        every.update(AbortedTransaction(*each[:2]) for each in found)
        last = {each.producer_id: each.first_offset for each in found}
        begun = {producer: first if first < here else max(first, self.since) for producer, first in begun.items()}
        named = {producer for producer, first in every if last.get(producer, -1) < first <= begun.get(producer, -1)}
        self._believed = {
            each: first for each, first in begun.items() if each not in named or believed.get(each) == first
        }

    def jump(self) -> None:
        """Forget what came before: what lies between two responses is not seen."""
        self._believed = {}

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
        is_empty = _count.unpack_from(buffer, at + 57)[0] <= 0
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

    table, counts = np.zeros((5, MOST_ABORTED), np.int64), np.array([len(begun), 0], np.int64)
    if len(begun) <= MOST_ABORTED:
        table[BEGUN_PRODUCER, : len(begun)], table[BEGUN_OFFSET, : len(begun)] = list(begun), list(begun.values())
        places = address(table.reshape(-1)), MOST_ABORTED, address(counts)
        if loops().ended(address(np.frombuffer(buffer, np.uint8)), start, end, *places):
            left, rows = counts.tolist()
            begun.clear()
            begun |= zip(table[BEGUN_PRODUCER, :left].tolist(), table[BEGUN_OFFSET, :left].tolist(), strict=True)
            return list(
                map(Ended, *(table[row, :rows].tolist() for row in (ENDED_PRODUCER, ENDED_OFFSET, ENDED_MARKER)))
            )
    return _ended(buffer, start, end, begun, end - start) or []
