"""The result of comparing one partition: counts of every kind of record, and the first differences by offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np

from airmirror.wire.records import Array
from airmirror.wire.segments import Segment

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


FINE = frozenset({Kind.EQUAL, Kind.COMPACTED, Kind.EXPIRED})


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
        alike = (self.kind, self.parts, self.target_partition)
        if [following.source_offset, following.target_offset] != ends or alike != (
            following.kind,
            following.parts,
            following.target_partition,
        ):
            return None
        return replace(self, count=self.count + following.count)

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
    """Counts and differences of a partition, as they are found. ``segments`` map equal records, source offset first.

    ``keeps_offsets``: every equal record has one offset on both sides. ``missing`` and ``extra`` are the offsets, by mark, of
    records that only one side has so far: another place, or another partition, of the other side may have them.
    ``first_pair`` and ``last_pair`` are the offsets of the first and the last equal record (-1: there is none).
    """

    counts: Counter[Kind] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    keeps_offsets: bool = True
    missing: dict[int, list[int]] = field(default_factory=dict)
    extra: dict[int, list[int]] = field(default_factory=dict)
    first_pair: tuple[int, int] | None = None
    last_pair: tuple[int, int] = (-1, -1)

    @property
    def is_equal(self) -> bool:
        """Return whether no record differs."""
        return all(kind in FINE for kind, count in self.counts.items() if count)

    def equal(self, source: Array, target: Array) -> None:
        """Note records that are equal and in order, by their offsets on both sides."""
        if not len(source):
            return
        self.first_pair = self.first_pair or (int(source[0]), int(target[0]))
        self.last_pair = int(source[-1]), int(target[-1])
        self.counts[Kind.EQUAL] += len(source)
        self.keeps_offsets = self.keeps_offsets and bool(np.array_equal(source, target))
        breaks = np.flatnonzero((np.diff(source) != 1) | (np.diff(target) != 1)) + 1
        edges = [0, *breaks.tolist(), len(source)]
        for first, end in pairwise(edges):
            if end > first:
                self.segment(Segment(int(source[first]), int(target[first]), end - first))

    def differs(self, kind: Kind, source: int, target: int, parts: tuple[str, ...] = ()) -> None:
        """Note one record of a kind."""
        self.counts[kind] += 1
        self.name(Difference(kind, source, target, parts=parts))

    def name(self, difference: Difference) -> None:
        """Name records that are counted already, as far as there is room."""
        joined = self.differences[-1].joined(difference) if self.differences else None
        if joined is not None:
            self.differences[-1] = joined
        elif len(self.differences) < MOST_NAMED:
            self.differences.append(difference)

    def change_partition(self, pairs: Sequence[tuple[int, int]], partition: int) -> None:
        """Records that were noted as missing are in another partition of the target: offsets on both sides."""
        for source, target in pairs:
            self._leave_out(source, by_source=True)
            self.counts[Kind.ALTERED] += 1
            self.differences.append(
                Difference(
                    kind=Kind.ALTERED,
                    source_offset=source,
                    target_offset=target,
                    count=1,
                    parts=("partition",),
                    target_partition=partition,
                )
            )

    def forget_extra(self, extra: Sequence[int]) -> None:
        """Records that were noted as extra are another partition's."""
        for target in extra:
            self._leave_out(target, by_source=False)

    def _leave_out(self, offset: int, *, by_source: bool) -> None:
        """Take one record out of the difference that names it."""
        for number, each in enumerate(self.differences):
            first, other = each.source_offset, each.target_offset
            if not by_source:
                first, other = other, first
            if other >= 0 or first < 0 or not first <= offset < first + each.count:
                continue
            self.counts[each.kind] -= 1
            parts = [(first, offset - first), (offset + 1, first + each.count - offset - 1)]
            self.differences[number : number + 1] = [
                replace(each, count=count, **{"source_offset" if by_source else "target_offset": at})  # type: ignore[arg-type]
                for at, count in parts
                if count
            ]
            return

    def segment(self, run: Segment) -> None:
        """Note where equal records in a row lie."""
        last = self.segments[-1] if self.segments else None
        if last and (last.source_end, last.target_end) == (run.source_first, run.target_first):
            self.segments[-1] = Segment(last.source_first, last.target_first, last.count + run.count)
        else:
            self.segments.append(run)


def take(waiting: dict[int, list[int]], mark: int) -> int:
    """Take the offset of one record with this mark out of those that are open. Raises KeyError."""
    offsets = waiting[mark]
    offset = offsets.pop()
    if not offsets:
        del waiting[mark]
    return offset
