"""Places of equal records on both sides: runs of offsets, 24 bytes each, as many as there is room for."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from airmirror.evidence.open_records import MOST_OPEN
from airmirror.wire.mappings import MappedRange
from airmirror.wire.records import Array


@dataclass
class Mapped:
    """Runs of equal records in their order. ``is_cut``: there were more than ``most``, and later ones are left out."""

    most: int = field(default=MOST_OPEN, compare=False)
    is_cut: bool = False
    source: array[int] = field(default_factory=lambda: array("q"))
    target: array[int] = field(default_factory=lambda: array("q"))
    counts: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[MappedRange]:
        return map(MappedRange, self.source, self.target, self.counts)

    def add(self, source: Array, target: Array, counts: Array) -> None:
        """Add runs by the offsets of their first records; the first of them may continue where the last one ends."""
        if not len(counts) or self.is_cut:
            return
        if self.counts:
            ends = self.source[-1] + self.counts[-1], self.target[-1] + self.counts[-1]
            if ends == (int(source[0]), int(target[0])):
                self.counts[-1] += int(counts[0])
                source, target, counts = source[1:], target[1:], counts[1:]
        self.is_cut = len(self) + len(counts) > self.most
        room = self.most - len(self)
        for mine, more in ((self.source, source), (self.target, target), (self.counts, counts)):
            mine.frombytes(np.ascontiguousarray(more[:room], np.int64).tobytes())

    def join(self, following: Mapped) -> None:
        """Add all runs of another one, which come after those of this one."""
        self.add(*(np.frombuffer(its, np.int64) for its in (following.source, following.target, following.counts)))
        self.is_cut = self.is_cut or following.is_cut
