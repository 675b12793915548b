"""Telling the batches of aborted transactions in the answers to fetches, as a read_committed consumer does (KIP-98).

An answer's list is not believed alone: a node that has followed a partition may leave transactions out of it once it leads
(benchmarks/CHAOS.md, seed 212). What an abort marker in the answer ends is aborted too; where earlier answers had records of
it and did not name it, that is said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airmirror.native.layout import MOST_ABORTED, OPEN_PRODUCER, PENDING_OFFSET, PENDING_PRODUCER
from airmirror.wire.batch import Batch
from airmirror.wire.batches import HEADER_SIZE, control_type
from airmirror.wire.markers import ABORT, Ended, after_data, ended, sound
from airmirror.wire.requests import AbortedTransaction

MOST_BELIEVED = 10_000  # producers; a log has no more that have a transaction open, but for a hostile one


@dataclass
class AbortedFilter:
    """A fetch response names the aborted transactions of its range: a producer's batches from the first offset on are
    aborted up to its abort marker. Every response names all that reach into it, those that began before it too; compaction
    can leave a control batch empty, and an empty one ends nothing (as in CompletedFetch.java).

    Give it the responses of one partition in their order; they may overlap.
    """

    known: Sequence[Ended] = ()  # transactions that the lists leave out, found by an earlier look at the log
    left_out: list[Ended] = field(default_factory=list)  # these end here, and were not aborted in earlier responses
    lapsed: list[Ended] = field(default_factory=list)  # of those known: another log has no such marker any more
    _pending: list[AbortedTransaction] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)
    _believed: dict[int, int] = field(default_factory=dict)  # where what is not aborted, and has no marker yet, begins

    def begin(
        self, aborted: Sequence[AbortedTransaction], buffer: memoryview, start: int, end: int, position: int
    ) -> None:
        """Take over the list of a response, before its batches, which are ``buffer[start:end]``.

        ``position``: the offset from which on they are taken; those before it were taken, or left out, before.
        """
        every = set(aborted)
        if end - start >= HEADER_SIZE:
            every |= self._look(every, buffer, start, end, position)
        self._pending = sorted(every, key=lambda item: item.first_offset, reverse=True)
        self._open.clear()

    def _look(
        self, listed: set[AbortedTransaction], buffer: memoryview, start: int, end: int, position: int
    ) -> set[AbortedTransaction]:
        """The aborted transactions that the list leaves out. What earlier lists have left out comes into ``left_out``."""
        known = self._known(buffer, start, end)
        believed = {producer: first for producer, first in self._believed.items() if first < position}
        begun = {each[0]: each[1] for each in (*known, *listed) if each[1] < position} | believed
        found = ended(buffer, after_data(buffer, start, end, position), end, begun)
        late, unnamed, last = list[Ended](), list[Ended](), dict[int, float]()
        for each in found:
            producer, first, marker = each
            named = [at for at in _of(producer, listed) if last.get(producer, -math.inf) < at <= marker]
            last[producer] = marker
            if named and max(named) <= first:  # else compaction has taken the marker of what began before that
                late.append(each)
            if not named:
                unnamed.append(each)
        if unnamed:  # by markers that nobody has checked yet
            until = max((batch.next_offset for batch in sound(buffer, start, end)), default=-1)
            unnamed = [each for each in unnamed if each.marker < until]
        self.left_out = [each for each in (*late, *unnamed) if believed.get(each.producer_id) == each.first_offset]
        self._believed = {}
        for producer, first in begun.items():
            since = last.get(producer, -math.inf)
            named = [at for at in _of(producer, listed) if at > since]
            if believed.get(producer) == first:
                is_believed = not named or max(named) <= first
            else:
                first = max(first, position)
                is_believed = not named and not any(since < at <= first for at in _of(producer, known))
            if is_believed and len(self._believed) < MOST_BELIEVED:
                self._believed[producer] = first
        return {AbortedTransaction(*each[:2]) for each in (*known, *unnamed)}

    def _known(self, buffer: memoryview, start: int, end: int) -> list[Ended]:
        """Those of the known transactions that reach into a response, or lie after it. One without its marker there has lapsed:
        this is another log, or compaction has taken all of it."""
        if not self.known:
            return []
        batches = sound(buffer, start, end)
        markers = {(batch.producer_id, batch.base_offset) for batch in batches if batch.is_control}
        here, until = (batches[0].base_offset, batches[-1].next_offset) if batches else (0, 0)
        found = [each for each in self.known if each.marker >= here]
        self.lapsed = [each for each in found if each.marker < until and (each.producer_id, each.marker) not in markers]
        return found

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


def _of(producer: int, transactions: Iterable[tuple[int, ...]]) -> list[int]:
    """The first offsets of a producer's transactions."""
    return [each[1] for each in transactions if each[0] == producer]
