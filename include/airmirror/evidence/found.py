"""The result of comparing one partition: counts of every kind of record, and the first differences by offset."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from airmirror.evidence.mapped import Mapped
from airmirror.evidence.open_records import Open
from airmirror.wire.records import Array

MOST_NAMED = 10_000  # runs of differences of a partition that are named; all records are counted


class Kind(StrEnum):
    """The fate of a record in the comparison. Only ``FINE`` kinds are no difference."""

    EQUAL = "equal"
    MISSING = "missing"  # on the source only
    LAGGING = "lagging"  # on the source only, after everything that the target has
    EXTRA = "extra"  # on the target only
    TWICE = "twice"  # a further copy
    REORDERED = "reordered"
    ALTERED = "altered"
    ABORTED = "aborted"  # on the target, of a transaction that the source aborted
    COMPACTED = "compacted"  # superseded on the side that has it by a later record of its key
    EXPIRED = "expired"  # before the start of the other side's log
    WITHHELD = "withheld"  # on the target only, where an open transaction keeps back the source's


FINE = frozenset({Kind.EQUAL, Kind.COMPACTED, Kind.EXPIRED, Kind.WITHHELD})


@dataclass(frozen=True)
class Difference:
    """``count`` records in a row that differ in one way, from these offsets on; -1 on a side that does not have them.

    ``parts`` names what was altered; ``target_partition`` is where a record is that changed its partition, else -1.
    """

    kind: Kind
    source_offset: int
    target_offset: int
    count: int = 1
    parts: tuple[str, ...] = ()
    target_partition: int = -1

    def joined(self, following: Difference) -> Difference | None:
        """Both as one, where the other one follows this one; else None."""
        ends = [first if first < 0 else first + self.count for first in (self.source_offset, self.target_offset)]
        is_next = replace(self, source_offset=ends[0], target_offset=ends[1], count=following.count) == following
        return replace(self, count=self.count + following.count) if is_next else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON: offsets that a side does not have are null."""
        shown: dict[str, Any] = {"kind": str(self.kind), "records": self.count}
        for name, first in (("source", self.source_offset), ("target", self.target_offset)):
            shown[f"{name}_first"], shown[f"{name}_last"] = (
                (first, first + self.count - 1) if first >= 0 else (None, None)
            )
        if self.parts:
            shown["differ"] = list(self.parts)
        return shown | ({"target_partition": self.target_partition} if self.target_partition >= 0 else {})


@dataclass
class Findings:
    """Counts and differences of a partition, as they are found. ``ranges`` map equal records, source offset first.

    ``keeps_offsets``: every equal record has one offset on both sides. ``missing`` and ``extra`` are records that only one side
    has so far: another place, or another partition, of the other side may have them.
    ``first_pair`` and ``last_pair`` are the offsets of the first and the last equal record (-1: there is none).
    """

    counts: Counter[Kind] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    ranges: Mapped = field(default_factory=Mapped)
    keeps_offsets: bool = True
    missing: Open = field(default_factory=Open)
    extra: Open = field(default_factory=Open)
    first_pair: tuple[int, int] | None = None
    last_pair: tuple[int, int] = (-1, -1)

    @property
    def is_equal(self) -> bool:
        """Return whether no record differs."""
        return all(kind in FINE for kind, count in self.counts.items() if count)

    @property
    def are_all_named(self) -> bool:
        """Return whether every record that is not equal is in a difference."""
        counted = sum(count for kind, count in self.counts.items() if kind is not Kind.EQUAL)
        return sum(each.count for each in self.differences) >= counted

    def equal(self, source: Array, target: Array) -> None:
        """Note records that are equal and in order, by their offsets on both sides."""
        if not len(source):
            return
        self.first_pair = self.first_pair or (int(source[0]), int(target[0]))
        self.last_pair = int(source[-1]), int(target[-1])
        self.counts[Kind.EQUAL] += len(source)
        self.keeps_offsets = self.keeps_offsets and bool(np.array_equal(source, target))
        breaks = np.flatnonzero((np.diff(source) != 1) | (np.diff(target) != 1)) + 1
        firsts = np.concatenate([[0], breaks])
        self.ranges.add(source[firsts], target[firsts], np.diff(firsts, append=len(source)))

    def differ(
        self, kind: Kind, source: Array, target: Array, parts: tuple[str, ...] = (), target_partition: int = -1
    ) -> None:
        """Note records of a kind by their offsets, in order; all of a side are -1 if it does not have them."""
        self.counts[kind] += len(source)
        is_break = np.zeros(max(len(source) - 1, 0), bool)
        for offsets in (source, target):
            if len(offsets) and offsets[0] >= 0:
                is_break |= np.diff(offsets) != 1
        edges = [0, *(np.flatnonzero(is_break) + 1).tolist(), len(source)]
        for first, end in pairwise(edges) if len(source) else ():
            self.name(
                Difference(
                    kind=kind,
                    source_offset=int(source[first]),
                    target_offset=int(target[first]),
                    count=end - first,
                    parts=parts,
                    target_partition=target_partition,
                )
            )

    def name(self, difference: Difference) -> None:
        """Name records that are counted already, as far as there is room."""
        joined = self.differences[-1].joined(difference) if self.differences else None
        if joined is not None:
            self.differences[-1] = joined
        elif len(self.differences) < MOST_NAMED:
            self.differences.append(difference)
