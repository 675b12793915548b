"""Comparing two logs of one partition, whoever copied one to the other: equal runs at once, what differs record by record.

Equal records are compared in machine code, a chunk at a time. At a difference both logs are read ahead until they run
together again; what lies between is aligned by marks (alignment). Nothing is kept but what is open: records that only one
side has so far, by their marks, and of these no more than a bound (open_records).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from airmirror.evidence.alignment import Alignment, Marks, Pair, align
from airmirror.evidence.found import Findings, Kind
from airmirror.evidence.logs import Log, LogReader, Region, marks_of
from airmirror.evidence.mapped import Mapped
from airmirror.evidence.marked import Marked
from airmirror.evidence.open_records import MOST_OPEN, Open
from airmirror.evidence.settling import bounded
from airmirror.wire.primitives import MalformedRecord
from airmirror.wire.records import Array, first_difference

REMEMBERED = 1_000_000  # offsets of the source


class RecordMarks:
    """Marks of the source's records, and of aborted ones, up to the offset that was asked for last; read when needed."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._end = log.since
        self.written, self.aborted = Marked(), Marked()

    def extend(self, end: int) -> None:
        """Read on to ``end``; what lies more than a million offsets before it is forgotten, a run at a time."""
        if end <= self._end:
            return
        first = end - REMEMBERED
        for records, gone in self._log.records_and_aborted(max(self._end, first), end):
            for marked, its in ((self.written, records), (self.aborted, gone)):
                marked.forget(first)
                marked.add(marks_of(its), its.offsets)
        self._end = end


FIRST_REGION, MOST_REGION = 512, 32_768  # records read ahead of a difference; aligning them takes 1 kB each
REGION_BYTES = 16 << 20
TOGETHER = 48  # equal records in a row after which two logs run together again
FAR = 4_000_000  # records of one side that are searched for a record of the other
PARTS = ("key", "value", "headers", "timestamp")


def compare_ranges(source: Log, target: Log, most_open: int = MOST_OPEN) -> Findings:
    """Records of two logs of one partition, or of parts of them: what only one side has stays open, since the rest of the other
    may have it. Raises what reading them raises.

    ``most_open`` records of either side are kept to look for them on the other.
    """
    return _Comparison(source, target, most_open).run()


class _Comparison:
    """The state of one comparison: two readers, what was found, and what is open on either side."""

    def __init__(self, source: Log, target: Log, most_open: int) -> None:
        self._one, self._other = LogReader(source), LogReader(target)
        self._history = RecordMarks(source)
        self._found = Findings(ranges=Mapped(most_open), missing=Open(most_open), extra=Open(most_open))

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
        for kind, both in ((Kind.REORDERED, found.moved), (Kind.TWICE, found.repeated)):
            pairs = np.array(both, np.int64).reshape(-1, 2)
            self._found.differ(kind, one.offsets[pairs[:, 0]], other.offsets[pairs[:, 1]])
        altered = list(_altered(one, other, found))
        for i, j, parts in altered:
            self._found.differ(Kind.ALTERED, one.offsets[i : i + 1], other.offsets[j : j + 1], parts)
        missing = np.setdiff1d(np.array(found.missing, np.int64), [i for i, _, _ in altered])
        self._found.missing.add(one.marks[missing], one.offsets[missing])
        until = int(one.offsets[-1]) + 1 if len(one) else self._found.last_pair[0] + 1
        strange = np.setdiff1d(np.array(found.extra, np.int64), [j for _, j, _ in altered])
        self._strangers(other.marks[strange], other.offsets[strange], until)

    def _strangers(self, marks: Marks, offsets: Array, until: int) -> None:
        """Records of the target without a partner ahead: copies of earlier ones, aborted ones, or open."""
        if len(marks):
            self._history.extend(until)
        takers = (
            (Kind.REORDERED, self._found.missing.marked.take),
            (Kind.TWICE, self._history.written.find),
            (Kind.ABORTED, self._history.aborted.find),
        )
        for kind, first_of in takers:
            first = first_of(marks)
            self._found.differ(kind, first[first >= 0], offsets[first >= 0])
            marks, offsets = marks[first < 0], offsets[first < 0]
        self._found.extra.add(marks, offsets)
        bounded(self._found, self._one.log, self._other.log)

    def _apart(self, one: Region, other: Region) -> None:
        """No record ahead is on both sides: one of them has a long run of its own, or both have."""
        if not len(one):
            self._unknown(other)
            return
        self._history.extend(int(one.offsets[0]))
        if len(other) and bool((self._history.written.find(other.marks) >= 0).all()):
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
        self._strangers(other.marks, other.offsets, self._found.last_pair[0] + 1)
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
        self._found.missing.add(marks_of(taken), taken.offsets)
        self._one.advance(count)
        bounded(self._found, self._one.log, self._other.log)


def _together(pairs: Sequence[Pair]) -> Pair | None:
    """Return the first pair of the last long run of neighbours that are equal on both sides; None if there is none."""
    run = 0
    for number in range(len(pairs) - 1, 0, -1):
        run = run + 1 if _follow(pairs[number - 1], pairs[number]) else 0
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


def _altered(one: Region, other: Region, found: Alignment) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield missing and extra records of one gap that are one record with parts that differ."""
    for missing, extra in _gaps(found):
        left = list(extra)
        for i in missing:
            best = max(((_likeness(one, i, other, j), -j) for j in left), default=None)
            if best is not None and best[0] > 0:
                j = -best[1]
                left.remove(j)
                yield i, j, _parts_that_differ(one, i, other, j)


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
