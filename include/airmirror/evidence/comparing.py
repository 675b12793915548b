"""Comparing two logs of one partition, whoever copied one to the other: equal runs at once, what differs record by record.

Equal records are compared in machine code, a chunk at a time. At a difference both logs are read ahead until they run
together again; what lies between is aligned by marks (alignment). Nothing is kept but what is open: records that only one
side has so far, by their marks.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from airmirror.evidence.alignment import Alignment, Pair, align
from airmirror.evidence.compaction import superseded
from airmirror.evidence.found import Findings, Kind
from airmirror.evidence.history import History
from airmirror.evidence.logs import Log, Reader, Region, marks_of
from airmirror.wire.primitives import MalformedRecord
from airmirror.wire.records import Array, first_difference

FIRST_REGION, MOST_REGION = 512, 131_072  # records read ahead of a difference
REGION_BYTES = 64 << 20
TOGETHER = 48  # equal records in a row after which two logs run together again
FAR = 4_000_000  # records of one side that are searched for a record of the other
PARTS = ("key", "value", "headers", "timestamp")


@dataclass
class Open:
    """Records that one side has and the other does not have so far: offsets by mark, in their order."""

    offsets: dict[int, deque[int]] = field(default_factory=lambda: defaultdict(deque))

    def add(self, mark: int, offset: int) -> None:
        self.offsets[mark].append(offset)

    def take(self, mark: int) -> int | None:
        found = self.offsets.get(mark)
        if not found:
            return None
        offset = found.popleft()
        if not found:
            del self.offsets[mark]
        return offset

    def rest(self) -> list[int]:
        return sorted(offset for found in self.offsets.values() for offset in found)


def compare_logs(source: Log, target: Log) -> Findings:
    """Every record of two logs of one partition. Raises what reading them raises."""
    return _Comparison(source, target).run()


class _Comparison:
    """The state of one comparison: two readers, what was found, and what is open on either side."""

    def __init__(self, source: Log, target: Log) -> None:
        self._one, self._other = Reader(source), Reader(target)
        self._history = History(source)
        self._found = Findings()
        self._missing, self._extra = Open(), Open()
        self._first_pair: Pair | None = None  # the offsets of the first equal record
        self._last_pair: Pair = (-1, -1)

    def run(self) -> Findings:
        while (one := self._one.head()) is not None and (other := self._other.head()) is not None:
            count = min(len(one), len(other))
            number = first_difference(one, other)
            equal = count if number < 0 else number
            self._equal(one.offsets[:equal], other.offsets[:equal])
            self._one.advance(equal)
            self._other.advance(equal)
            if number >= 0:
                self._differ()
        while (one := self._one.head()) is not None:
            self._only(self._one, len(one), self._missing)
        while (other := self._other.head()) is not None:
            self._unknown(self._other.ahead(MOST_REGION, REGION_BYTES))
        self._settle()
        return self._found

    def _equal(self, source: Array, target: Array) -> None:
        if len(source):
            self._found.equal(source, target)
            self._first_pair = self._first_pair or (int(source[0]), int(target[0]))
            self._last_pair = int(source[-1]), int(target[-1])

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
        self._equal(one.offsets[pairs[:, 0]], other.offsets[pairs[:, 1]])
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
                self._missing.add(int(one.marks[i]), int(one.offsets[i]))
        until = int(one.offsets[-1]) + 1 if len(one) else self._last_pair[0] + 1
        self._strangers(other, [j for j in found.extra if j not in strange], until)

    def _strangers(self, other: Region, numbers: Sequence[int], until: int) -> None:
        """Records of the target without a partner ahead: copies of earlier ones, aborted ones, or open."""
        if numbers:
            self._history.extend(until)
        for j in numbers:
            mark, offset = int(other.marks[j]), int(other.offsets[j])
            if self._missing.offsets.get(mark):
                self._found.differs(Kind.REORDERED, self._missing.take(mark) or 0, offset)
            elif mark in self._history.marks:
                self._found.differs(Kind.TWICE, self._history.marks[mark], offset)
            elif mark in self._history.aborted:
                self._found.differs(Kind.ABORTED, self._history.aborted[mark], offset)
            else:
                self._extra.add(mark, offset)

    def _apart(self, one: Region, other: Region) -> None:
        """No record ahead is on both sides: one of them has a long run of its own, or both have."""
        if not len(one):
            self._unknown(other)
            return
        self._history.extend(int(one.offsets[0]))
        if len(other) and all(int(mark) in self._history.marks for mark in other.marks):
            self._unknown(other)
        elif (count := _distance(self._one.log, int(one.offsets[0]), other)) >= 0:
            self._skip(self._one, count, self._missing)
        elif (count := _distance(self._other.log, int(other.offsets[0]) if len(other) else 0, one)) >= 0:
            while count:
                other = self._other.ahead(min(count, MOST_REGION), REGION_BYTES)
                self._unknown(other)
                count -= len(other)
        else:
            self._skip(self._one, len(one), self._missing)
            self._unknown(other)

    def _unknown(self, other: Region) -> None:
        """Records of the target that nothing ahead on the source is equal to."""
        self._strangers(other, range(len(other)), self._last_pair[0] + 1)
        self._other.advance(len(other))

    def _skip(self, reader: Reader, count: int, into: Open) -> None:
        while count and (head := reader.head()) is not None:
            taken = min(count, len(head))
            self._only(reader, taken, into)
            count -= taken

    def _only(self, reader: Reader, count: int, into: Open) -> None:
        head = reader.head()
        assert head is not None
        taken = head.slice(0, count)
        for mark, offset in zip(marks_of(taken).tolist(), taken.offsets.tolist(), strict=True):
            into.add(mark, offset)
        reader.advance(count)

    def _settle(self) -> None:
        """Settle the records that are still open at the end of both logs."""
        for mark in [mark for mark in self._extra.offsets if mark in self._missing.offsets]:
            while self._missing.offsets.get(mark) and self._extra.offsets.get(mark):
                self._found.differs(Kind.REORDERED, self._missing.take(mark) or 0, self._extra.take(mark) or 0)
        source, target = self._one.log, self._other.log
        missing, extra = self._missing.rest(), self._extra.rest()
        self._found.missing = {mark: list(found) for mark, found in self._missing.offsets.items()}
        self._found.extra = {mark: list(found) for mark, found in self._extra.offsets.items()}
        taken = superseded(source, missing) if target.is_compacted else set()
        for offset in missing:
            self._found.differs(Kind.COMPACTED if offset in taken else self._why_missing(offset), offset, -1)
        taken = superseded(target, extra) if source.is_compacted else set()
        for offset in extra:
            self._found.differs(Kind.COMPACTED if offset in taken else self._why_extra(offset), -1, offset)
        self._found.differences.sort(key=lambda each: (each.source_offset < 0, each.source_offset, each.target_offset))

    def _why_missing(self, offset: int) -> Kind:
        log_start, first = self._other.log.log_start, self._first_pair
        if log_start > 0 and (offset < log_start if self._found.keeps_offsets else first is None or offset < first[0]):
            return Kind.EXPIRED
        return Kind.LAGGING if offset > self._last_pair[0] else Kind.MISSING

    def _why_extra(self, offset: int) -> Kind:
        first = self._first_pair
        is_before = first is None or offset < first[1]
        return Kind.EXPIRED if self._one.log.log_start > 0 and is_before else Kind.EXTRA


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
