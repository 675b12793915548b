"""Comparing two logs of one partition, whoever copied one to the other: equal runs at once, what differs record by record.

Equal records are compared in machine code, a chunk at a time. At a difference both logs are read ahead until they run
together again; what lies between is aligned by marks (alignment). Nothing is kept but what is open: records that only one
side has so far, by their marks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from airmirror.evidence.alignment import Alignment, Pair, align
from airmirror.evidence.found import Findings, Kind, take
from airmirror.evidence.history import History
from airmirror.evidence.logs import Log, Reader, Region, marks_of
from airmirror.evidence.settling import settled
from airmirror.wire.primitives import MalformedRecord
from airmirror.wire.records import first_difference

FIRST_REGION, MOST_REGION = 512, 131_072  # records read ahead of a difference
REGION_BYTES = 64 << 20
TOGETHER = 48  # equal records in a row after which two logs run together again
FAR = 4_000_000  # records of one side that are searched for a record of the other
PARTS = ("key", "value", "headers", "timestamp")


def compare_logs(source: Log, target: Log) -> Findings:
    """Every record of two logs of one partition. Raises what reading them raises."""
    return settled(compare_ranges(source, target), source, target)


def compare_ranges(source: Log, target: Log) -> Findings:
    """The same of a part of them: what only one side has stays open, since the rest of the other may have it."""
    return _Comparison(source, target).run()


class _Comparison:
    """The state of one comparison: two readers, what was found, and what is open on either side."""

    def __init__(self, source: Log, target: Log) -> None:
        self._one, self._other = Reader(source), Reader(target)
        self._history = History(source)
        self._found = Findings()

    def run(self) -> Findings:
        while (one := self._one.head()) is not None and (other := self._other.head()) is not None:
            count = min(len(one), len(other))
            number = first_difference(one, other)
            equal = count if number < 0 else number
            self._found.equal(one.offsets[:equal], other.offsets[:equal])
            self._one.advance(equal)
            self._other.advance(equal)
            if number >= 0:
                self._differ()
        while (one := self._one.head()) is not None:
            self._only(len(one))
        while (other := self._other.head()) is not None:
            self._unknown(self._other.ahead(MOST_REGION, REGION_BYTES))
        return self._found

    def _differ(self) -> None:
        """Go past a difference: align what is ahead up to where both logs run together again."""
        size = FIRST_REGION
        while True:
            one, other = self._one.ahead(size, REGION_BYTES), self._other.ahead(size, REGION_BYTES)
            found = align(one.marks, other.marks)
            both_end = one.is_last and other.is_last
            end = (len(one), len(other)) if both_end else _together(found.pairs)
            if end is not None or (size >= MOST_REGION or max(len(one), len(other)) < size):
                break
            size *= 4
        if end is None and found.pairs:
            end = found.pairs[-1]
        if end is None:
            self._apart(one, other)
            return
        part = found if both_end else align(one.marks[: end[0]], other.marks[: end[1]])
        self._note(one, other, part)
        self._one.advance(end[0])
        self._other.advance(end[1])

    def _note(self, one: Region, other: Region, found: Alignment) -> None:
        """Note the findings of an aligned part."""
        pairs = np.array(found.pairs, np.int64).reshape(-1, 2)
        self._found.equal(one.offsets[pairs[:, 0]], other.offsets[pairs[:, 1]])
        for i, j in found.moved:
            self._found.differs(Kind.REORDERED, int(one.offsets[i]), int(other.offsets[j]))
        for i, j in found.repeated:
            self._found.differs(Kind.TWICE, int(one.offsets[i]), int(other.offsets[j]))
        altered = _altered(one, other, found)
        for i, j, parts in altered:
            self._found.differs(Kind.ALTERED, int(one.offsets[i]), int(other.offsets[j]), parts)
        gone, strange = {i for i, _, _ in altered}, {j for _, j, _ in altered}
        for i in found.missing:
            if i not in gone:
                self._found.missing.setdefault(int(one.marks[i]), []).append(int(one.offsets[i]))
        until = int(one.offsets[-1]) + 1 if len(one) else self._found.last_pair[0] + 1
        self._strangers(other, [j for j in found.extra if j not in strange], until)

    def _strangers(self, other: Region, numbers: Sequence[int], until: int) -> None:
        """Records of the target without a partner ahead: copies of earlier ones, aborted ones, or open."""
        if numbers:
            self._history.extend(until)
        for j in numbers:
            mark, offset = int(other.marks[j]), int(other.offsets[j])
            if mark in self._found.missing:
                self._found.differs(Kind.REORDERED, take(self._found.missing, mark), offset)
            elif (first := self._history.written.find(mark)) is not None:
                self._found.differs(Kind.TWICE, first, offset)
            elif (first := self._history.aborted.find(mark)) is not None:
                self._found.differs(Kind.ABORTED, first, offset)
            else:
                self._found.extra.setdefault(mark, []).append(offset)

    def _apart(self, one: Region, other: Region) -> None:
        """No record ahead is on both sides: one of them has a long run of its own, or both have."""
        if not len(one):
            self._unknown(other)
            return
        self._history.extend(int(one.offsets[0]))
        if len(other) and self._history.written.has_all(other.marks):
            self._unknown(other)
        elif (count := _distance(self._one.log, int(one.offsets[0]), other)) >= 0:
            self._skip(count)
        elif (count := _distance(self._other.log, int(other.offsets[0]) if len(other) else 0, one)) >= 0:
            while count:
                other = self._other.ahead(min(count, MOST_REGION), REGION_BYTES)
                self._unknown(other)
                count -= len(other)
        else:
            self._skip(len(one))
            self._unknown(other)

    def _unknown(self, other: Region) -> None:
        """Records of the target that nothing ahead on the source is equal to."""
        self._strangers(other, range(len(other)), self._found.last_pair[0] + 1)
        self._other.advance(len(other))

    def _skip(self, count: int) -> None:
        while count and (head := self._one.head()) is not None:
            taken = min(count, len(head))
            self._only(taken)
            count -= taken

    def _only(self, count: int) -> None:
        """Records of the source that the target does not have so far."""
        head = self._one.head()
        assert head is not None
        taken = head.slice(0, count)
        for mark, offset in zip(marks_of(taken).tolist(), taken.offsets.tolist(), strict=True):
            self._found.missing.setdefault(mark, []).append(offset)
        self._one.advance(count)


def _together(pairs: Sequence[Pair]) -> Pair | None:
    """Return the first pair of the last long run of neighbours that are equal on both sides; None if there is none."""
    run = 0
    for number in range(len(pairs) - 1, 0, -1):
        (i, j), (before_i, before_j) = pairs[number], pairs[number - 1]
        run = run + 1 if (i - before_i, j - before_j) == (1, 1) else 0
        if run >= TOGETHER - 1:
            while number > 1 and _follow(pairs[number - 2], pairs[number - 1]):
                number -= 1
            return pairs[number - 1]
    return None


def _follow(one: Pair, other: Pair) -> bool:
    return (other[0] - one[0], other[1] - one[1]) == (1, 1)


def _distance(log: Log, start: int, wanted: Region) -> int:
    """The number of records from ``start`` on before the first that is at the head of ``wanted`` too; -1: there is none."""
    heads = wanted.marks[:TOGETHER]
    passed = 0
    for records in log.records(start):
        hits = np.flatnonzero(np.isin(marks_of(records), heads))
        if len(hits):
            return passed + int(hits[0])
        passed += len(records)
        if passed > FAR:
            return -1
    return -1


def _altered(one: Region, other: Region, found: Alignment) -> list[tuple[int, int, tuple[str, ...]]]:
    """Missing and extra records of one gap that are one record with parts that differ."""
    altered = []
    for missing, extra in _gaps(found):
        left = list(extra)
        for i in missing:
            best = max(((_likeness(one, i, other, j), -j) for j in left), default=None)
            if best is not None and best[0] > 0:
                j = -best[1]
                left.remove(j)
                altered.append((i, j, _parts_that_differ(one, i, other, j)))
    return altered


def _gaps(found: Alignment) -> Iterator[tuple[list[int], list[int]]]:
    """Missing and extra records between the same two pairs, where there are both; large gaps are left alone."""
    by_gap: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    ends = np.array(found.pairs, np.int64).reshape(-1, 2)
    for side, numbers in enumerate((found.missing, found.extra)):
        for number, gap in zip(numbers, np.searchsorted(ends[:, side], numbers).tolist(), strict=True):
            by_gap[gap][side].append(number)
    for missing, extra in by_gap.values():
        if missing and extra and len(missing) * len(extra) <= 1_000_000:
            yield missing, extra


def _likeness(one: Region, i: int, other: Region, j: int) -> int:
    """Return the number of telling parts two records share; 0: not one record. Empty keys and headers tell nothing."""
    try:
        ours, theirs = one.parts(i), other.parts(j)
    except MalformedRecord:
        return 0
    key, value, _, time = (a == b for a, b in zip(ours, theirs, strict=True))
    is_keyed = ours[0] is not None or theirs[0] is not None
    shared = (key and is_keyed) + value + time
    return shared if shared >= 1 + is_keyed else 0


def _parts_that_differ(one: Region, i: int, other: Region, j: int) -> tuple[str, ...]:
    pairs = zip(PARTS, one.parts(i), other.parts(j), strict=True)
    return tuple(name for name, ours, theirs in pairs if ours != theirs)
