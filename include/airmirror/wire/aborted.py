"""Telling the batches of aborted transactions in the answers to fetches, as a read_committed consumer does (KIP-98)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airmirror.native.layout import MOST_ABORTED, OPEN_PRODUCER, PENDING_OFFSET, PENDING_PRODUCER
from airmirror.wire.batch import Batch
from airmirror.wire.batches import control_type
from airmirror.wire.requests import AbortedTransaction


@dataclass
class AbortedFilter:
    """A fetch response names the aborted transactions of its range: a producer's batches from the first offset on are
    aborted up to its abort marker. Every response names all that reach into it, those that began before it too; compaction
    can leave a control batch empty, and an empty one ends nothing (as in CompletedFetch.java).
    """

    _pending: list[AbortedTransaction] = field(default_factory=list)
    _open: set[int] = field(default_factory=set)

    def begin(self, aborted: Sequence[AbortedTransaction]) -> None:
        """Take over the list of a response, before its batches."""
        self._pending = sorted(aborted, key=lambda item: item.first_offset, reverse=True)
        self._open.clear()

    def is_aborted(self, buffer: memoryview, batch: Batch) -> bool:
        """Return whether the batch's records are to be left out; call it for every batch in order, control ones too."""
        while self._pending and self._pending[-1].first_offset < batch.next_offset:
            self._open.add(self._pending.pop().producer_id)
        if not batch.is_transactional or batch.producer_id not in self._open:
            return False
        if batch.is_control:
            if batch.count and control_type(buffer, batch) == 0:
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
