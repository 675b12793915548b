"""Offsets of records by their marks, 16 bytes a record: which of very many records look like this one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airmirror.evidence.alignment import Marks
from airmirror.wire.records import Array

LARGEST_RUN = 1 << 18  # records: no more are sorted at once, which takes three times their room
Run = tuple[Marks, Array]


@dataclass(eq=False)
class Marked:
    """Records in runs, each in the order of its marks: a short run is merged with the one before."""

    _runs: list[Run] = field(default_factory=list)

    @staticmethod
    def of(marks: Marks, offsets: Array) -> Marked:
        """Records in the order of their offsets."""
        found = Marked()
        found.add(marks, offsets)
        return found

    def __len__(self) -> int:
        return sum(len(marks) for marks, _ in self._runs)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Marked):
            return NotImplemented
        return all(map(np.array_equal, self.records(), other.records()))

    def add(self, marks: Marks, offsets: Array) -> None:
        """Add records that come after all that are here."""
        for at in range(0, len(marks), LARGEST_RUN):
            end = at + LARGEST_RUN
            self._runs.append(_ordered(marks[at:end], offsets[at:end]))
            while len(self._runs) > 1 and _is_short(*self._runs[-2:]):
                runs = [self._runs.pop(), self._runs.pop()]
                self._runs.append(_ordered(*(np.concatenate(parts) for parts in zip(*runs, strict=True))))

    def find(self, marks: Marks) -> Array:
        """The offset of the last record with each mark; -1: there is none."""
        found = np.full(len(marks), -1, np.int64)
        for its, offsets in reversed(self._runs):
            at = np.searchsorted(its, marks, side="right") - 1
            hit = (found < 0) & (at >= 0) & (its[at] == marks)
            found[hit] = offsets[at[hit]]
        return found

    def take(self, marks: Marks) -> Array:
        """Take a record with each mark out, the last one first: its offset; -1: there is none left."""
        found = np.full(len(marks), -1, np.int64)
        left, before = np.arange(len(marks)), _repeats(marks)
        for number in reversed(range(len(self._runs))):
            its, offsets = self._runs[number]
            first, end = (np.searchsorted(its, marks[left], side=side) for side in ("left", "right"))
            at = end - 1 - before
            hit = at >= first
            if hit.any():
                found[left[hit]] = offsets[at[hit]]
                self._runs[number] = np.delete(its, at[hit]), np.delete(offsets, at[hit])
            left, before = left[~hit], (before - (end - first))[~hit]
        self._runs = [run for run in self._runs if len(run[0])]
        return found

    def records(self) -> Run:
        """Marks and offsets of all, in the order of their offsets."""
        marks = np.concatenate([np.empty(0, np.uint64), *(marks for marks, _ in self._runs)])
        offsets = np.concatenate([np.empty(0, np.int64), *(offsets for _, offsets in self._runs)])
        order = np.argsort(offsets, kind="stable")
        return marks[order], offsets[order]

    def forget(self, first: int) -> None:
        """Forget runs that end before offset ``first``."""
        self._runs = [(marks, offsets) for marks, offsets in self._runs if int(offsets.max()) >= first]

    def take_oldest(self, count: int) -> Array:
        """Take this many records out, those of the first offsets: their offsets, in order."""
        taken: list[Any] = [np.empty(0, np.int64)]
        while count > 0 and self._runs:
            marks, offsets = self._runs.pop(0)
            is_first = np.ones(len(offsets), bool)
            if count < len(offsets):
                is_first = offsets <= np.partition(offsets, count - 1)[count - 1]
                self._runs.insert(0, (marks[~is_first], offsets[~is_first]))
            taken.append(np.sort(offsets[is_first]))
            count -= len(taken[-1])
        return np.concatenate(taken)


def _is_short(before: Run, last: Run) -> bool:
    return 2 * len(last[0]) > len(before[0]) and len(last[0]) + len(before[0]) <= LARGEST_RUN


def _ordered(marks: Marks, offsets: Array) -> Run:
    order = np.lexsort((offsets, marks))
    return marks[order], offsets[order]


def _repeats(marks: Marks) -> Array:
    """Of each mark: how many before it are the same."""
    order = np.argsort(marks, kind="stable")
    its, numbers = marks[order], np.arange(len(marks))
    is_first = np.ones(len(marks), bool)
    is_first[1:] = its[1:] != its[:-1]
    found = np.empty(len(marks), np.int64)
    found[order] = numbers - np.maximum.accumulate(np.where(is_first, numbers, 0))
    return found
