"""Places where two logs of a partition run together: there both can be cut, and each part is compared on its own.

A place is 48 equal records in a row: at one offset on both sides, or, where offsets are not kept, found on the target by
the first one's timestamp. It is looked for, never assumed; where there is none, the parts on both sides are one.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from airmirror.evidence.alignment import Marks, Pair
from airmirror.evidence.comparing import TOGETHER
from airmirror.evidence.logs import Log, marks_of
from airmirror.wire.records import Array

SEARCHED = 100_000  # records of the target after the first that is as late as the source's
# Offsets of a range of a sample: least, most; a hundredth of the partition in between.
SAMPLED_AT_ONCE = (1_000, 100_000)


@dataclass(frozen=True)
class SampleSize:
    """A share of the offsets, in thousandths of a percent, or a number of ranges of each partition (the other is 0).

    The same ``seed`` chooses the same ranges of the same logs.
    """

    share: int = 0
    ranges: int = 0
    seed: int = 1

    def __str__(self) -> str:
        return f"{self.ranges} ranges of each partition" if self.ranges else f"{self.share / 1000:g}% of each partition"

    def chosen(self, log: Log) -> list[tuple[int, int]]:
        """Ranges of a log's offsets, in order, none touching another."""
        extent, (least, most) = log.end - log.start, SAMPLED_AT_ONCE
        size = max(least, min(most, extent // 100))
        count = -(-extent // size)
        wanted = min(count, self.ranges or -(-count * self.share // 100_000))
        chance = random.Random(f"{self.seed} {log.partition.topic} {log.partition.partition}")
        found: list[tuple[int, int]] = []
        for number in sorted(chance.sample(range(count), wanted)):
            start, end = log.start + number * size, min(log.end, log.start + (number + 1) * size)
            if found and found[-1][1] == start:
                start = found.pop()[0]
            found.append((start, end))
        return found


def place(source: Log, target: Log, offset: int) -> Pair | None:
    """The first offset of the source from ``offset`` on, and the target's, from which both run together; None: they do not."""
    marks, offsets, time = _head(source, offset)
    if len(marks) < TOGETHER:
        return None
    first = int(offsets[0])
    if target.start <= first < target.end:
        its, places, _ = _head(target, first)
        if np.array_equal(its, marks):
            return first, int(places[0])
    # Without its time, or like another one, it could be found at more than one place.
    if not source.times or time < 0 or len(set(marks.tolist())) < TOGETHER:
        return None
    at = target.first_from(time)
    found = _find(target, max(at, target.start), marks) if 0 <= at < target.end else None
    return None if found is None else (first, found)


def _head(log: Log, offset: int) -> tuple[Marks, Array, int]:
    """Marks and offsets of the first records from an offset on, and the time of the first."""
    marks, offsets, time, count = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], -1, 0
    for records in log.records(offset):
        taken = records.slice(0, TOGETHER - count)
        time = int(taken.timestamps[0]) if not count and len(taken) else time
        marks.append(marks_of(taken))
        offsets.append(taken.offsets)
        count += len(taken)
        if count == TOGETHER:
            break
    return np.concatenate(marks), np.concatenate(offsets), time


def _find(log: Log, start: int, wanted: Marks) -> int | None:
    """The offset of the first run of records with these marks."""
    before, places = np.empty(0, np.uint64), np.empty(0, np.int64)
    searched = 0
    for records in log.records(start):
        marks = np.concatenate([before, marks_of(records)])
        offsets = np.concatenate([places, records.offsets])
        for at in np.flatnonzero(marks == wanted[0]).tolist():
            if np.array_equal(marks[at : at + TOGETHER], wanted):
                return int(offsets[at])
        before, places = marks[-TOGETHER + 1 :], offsets[-TOGETHER + 1 :]
        searched += len(records)
        if searched > SEARCHED:
            return None
    return None


def cut(source: Log, target: Log, size: int) -> list[tuple[Pair, Pair]]:
    """Both logs in parts of about ``size`` offsets of the source, each from its first place to its end."""
    places = [(source.start, target.start)]
    for offset in range(source.start + size, source.end - size // 2, size):
        found = place(source, target, offset)
        if found is not None and found[0] > places[-1][0] and found[1] > places[-1][1]:
            places.append(found)
    return list(pairwise([*places, (source.end, target.end)]))


def sampled(source: Log, target: Log, ranges: Iterable[tuple[int, int]]) -> list[tuple[Pair, Pair]]:
    """The parts with these ranges of the source. Each grows until both logs run together at its borders."""
    found: list[tuple[Pair, Pair]] = []
    for start, end in ranges:
        if found and end <= found[-1][1][0]:
            continue
        one = _nearest(source, target, start, -1) or (source.start, target.start)
        other = _nearest(source, target, end, 1) or (source.end, target.end)
        if found and not _is_past(found[-1][1], one):
            one = found.pop()[0]
        found.append((one, other if _is_past(one, other) else (source.end, target.end)))
    return found


def _nearest(source: Log, target: Log, offset: int, way: int) -> Pair | None:
    """The nearest place that is tried from an offset on, back (``way`` -1) or ahead (1); None: there is none in the log."""
    step = way * SAMPLED_AT_ONCE[0]
    while source.start < offset < source.end:
        found = place(source, target, offset)
        if found is not None:
            return found
        offset, step = offset + step, 2 * step
    return None


def _is_past(one: Sequence[int], other: Sequence[int]) -> bool:
    return other[0] >= one[0] and other[1] >= one[1]
