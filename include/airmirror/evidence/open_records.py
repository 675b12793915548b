"""Records that only one side has so far: marks and offsets of a million; of those that were open longest only ranges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from airmirror.evidence.alignment import Marks
from airmirror.evidence.marked import Marked
from airmirror.wire.records import Array

MOST_OPEN = 1_000_000  # of a side, over all partitions of a topic
LEAST_OPEN = 10_000  # of a partition, however many there are
MOST_RANGES = 10_000
Range = tuple[int, int, int]


@dataclass
class Open:
    """Open records of one side, by their marks. ``most``: as many are looked for on the other side.

    ``passed`` are ranges of offsets (first, last, number of records) that were given up when there were more. No range lies on
    both sides of a place that decides on their fate.
    """

    most: int = field(default=MOST_OPEN, compare=False)
    marked: Marked = field(default_factory=Marked)
    passed: list[Range] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(len(self.marked) or self.passed)

    @property
    def given_up(self) -> int:
        """The number of records that are not looked for any more."""
        return sum(count for _, _, count in self.passed)

    def add(self, marks: Marks, offsets: Array) -> None:
        """Add records that come after all that are here."""
        self.marked.add(marks, offsets)

    def oldest(self) -> Array:
        """Take out the oldest of more than there may be, and some more, so that it is seldom: their offsets in order."""
        count = len(self.marked)
        return self.marked.take_oldest(count - self.most + self.most // 4 if count > self.most else 0)

    def give_up(self, offsets: Array, places: Iterable[int]) -> None:
        """Keep ranges of offsets, in order, that come after all others given up; none over any of the ``places``."""
        cuts = [place for place in places if place > 0]
        breaks = np.flatnonzero(np.diff(offsets) != 1) + 1
        edges = np.unique([0, *breaks.tolist(), *np.searchsorted(offsets, cuts).tolist(), len(offsets)])
        for start, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            self._pass((int(offsets[start]), int(offsets[end - 1]), end - start), cuts)

    def join(self, following: Open) -> None:
        """Add all of another one, whose records come after those of this one."""
        self.add(*following.marked.records())
        self.passed += following.passed

    def _pass(self, found: Range, cuts: Iterable[int]) -> None:
        first, last, count = self.passed[-1] if self.passed else (0, 0, 0)
        is_next = count and (last + 1 == found[0] or len(self.passed) >= MOST_RANGES)
        if is_next and not any(first < cut <= found[0] for cut in cuts):
            self.passed[-1] = first, found[1], count + found[2]
        else:
            self.passed.append(found)
