"""The losses among unverified segment records: found by comparing both sides, and counted as lost.

An operator has accepted the loss. What is equal stays mapped, so that a reader of the target gets it, and so does what a cleaner
or retention may have taken; every other source offset is counted as lost (invariants E and G). The records on the target
stay where they are: only the mapping tells of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from airmirror.partitions import TopicPartition
from airmirror.slot.account import MOST_SEGMENTS, NO_DIGEST
from airmirror.windows.compare import Logs, check, read_pairs
from airmirror.windows.coverage import still_held
from airmirror.windows.cursor import Pair
from airmirror.windows.resets import keeping
from airmirror.wire.records import Array, Records, first_difference
from airmirror.wire.segments import Segment, SegmentRecord


def without_losses(logs: Logs, record: SegmentRecord, *, holes: bool) -> SegmentRecord:
    """The segment record as both logs bear it out; the very same where nothing is wrong with it.

    Without ``holes`` (invariant E) what it counts as holes is lost too. More than MOST_SEGMENTS runs are not kept: what
    follows them is lost. Raises FetchFailed or LastStableOffsetStuck where a log can't be read.
    """
    accounted = record.copied + record.control + record.aborted + record.holes + record.lost
    whole = accounted == record.source_end - record.source_start and (holes or not record.holes)
    if whole and check(logs, record).error is None:
        return record
    part = still_held(record, *logs.starts[TopicPartition(record.topic, record.partition)])
    may_lack = logs.compacted[record.topic]
    lost = _ranges(_lost(pair, may_lack) for pair in read_pairs(logs, part))
    kept = [run for segment in record.segments for run in _without(segment, lost)]
    remaining = keeping(record, kept[:MOST_SEGMENTS], record.source_end, holes=holes)
    return replace(remaining, digest=NO_DIGEST)  # from now on it is compared record by record


def _lost(pair: Pair, may_lack: bool) -> Array:
    """Mapped source offsets whose records are not equal, or that one side lacks for no reason."""
    differing = pair.at[~_equal(pair.here, pair.there)]
    parts = (differing,) if may_lack else (differing, pair.absent_there, pair.absent_here)
    return np.unique(np.concatenate(parts))


def _equal(one: Records, other: Records) -> Array:
    """For each record whether it is equal to the other side's of the same number."""
    equal = np.ones(len(one), bool)
    at = 0
    while (found := first_difference(one.slice(at, len(one)), other.slice(at, len(other)))) >= 0:
        equal[at + found] = False
        at += found + 1
    return equal


def _ranges(offsets: Iterable[Array]) -> list[tuple[int, int]]:
    """Offsets in order as ranges ``[first, end)``."""
    found: list[tuple[int, int]] = []
    for each in offsets:
        edges = np.flatnonzero(np.diff(each) != 1) + 1
        for part in np.split(each, edges) if len(each) else ():
            first, end = int(part[0]), int(part[-1]) + 1
            if found and found[-1][1] == first:
                first = found.pop()[0]
            found.append((first, end))
    return found


def _without(segment: Segment, ranges: Sequence[tuple[int, int]]) -> Iterator[Segment]:
    """The runs that are left of a run."""
    at = segment.source_first
    for first, end in (*ranges, (segment.source_end, segment.source_end)):
        if end < at or first > segment.source_end:
            continue
        if first > at:
            yield Segment(at, segment.target_first + at - segment.source_first, first - at)
        at = max(at, end)
