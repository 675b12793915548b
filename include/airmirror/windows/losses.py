"""What of unverified segment records is not on both sides as it was copied: found by comparing, and declared lost.

Somebody has accepted the loss. What is equal stays mapped, so that a reader of the target gets it; every other source offset
is counted as lost (invariants E and G). The records on the target stay where they are: only the mapping tells of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from airmirror.clusters.routes import Routes
from airmirror.windows.compare import Cursor, compare, look_at_target
from airmirror.windows.resets import keeping
from airmirror.windows.slot.account import MOST_SEGMENTS, Digest
from airmirror.wire.records import Records, first_difference
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import Segment, SegmentRecord


def without_losses(
    source: Routes, target: Routes, record: SegmentRecord, *, read_committed: bool, aggregate: bool, times: bool,
    holes: bool,
) -> SegmentRecord:  # fmt: skip
    """The segment record as both logs bear it out; the very same where nothing is wrong with it.

    Without ``holes`` (invariant E) what it counts as holes is lost too. More than MOST_SEGMENTS runs are not kept: what
    follows them is lost. Raises FetchFailed or LastStableOffsetStuck where a log can't be read.
    """
    accounted = record.copied + record.control + record.aborted + record.holes + record.lost
    whole = accounted == record.source_end - record.source_start and (holes or not record.holes)
    if whole and look_at_target(target, record).equal:
        return record
    compared = compare(source, target, record, read_committed=read_committed, aggregate=aggregate, times=times)
    if whole and compared.error is None:
        return record
    kept: list[Segment] = []
    for segment in record.segments:
        kept += _equal_runs(source, target, record, segment, read_committed, times)
    remaining = keeping(record, kept[:MOST_SEGMENTS], record.source_end, holes=holes)
    return replace(remaining, digest=Digest().value())  # of nothing: from now on it is compared record by record


def _equal_runs(
    source: Routes, target: Routes, record: SegmentRecord, segment: Segment, read_committed: bool, times: bool
) -> Iterator[Segment]:
    """The runs of a segment's records that are equal on both sides, at the offsets where they should be."""
    moved = segment.target_first - segment.source_first
    here = Cursor(
        source, TopicPartition(record.topic, record.partition), segment.source_first, segment.source_end, read_committed
    )
    remote = TopicPartition(record.remote_topic, record.partition)
    there = Cursor(target, remote, segment.target_first, segment.target_end, True)
    first = end = -1
    for offset in _equal_offsets(here, there, moved, times):
        if offset != end:
            if end > first:
                yield Segment(first, first + moved, end - first)
            first = offset
        end = offset + 1
    if end > first:
        yield Segment(first, first + moved, end - first)


def _equal_offsets(here: Cursor, there: Cursor, moved: int, times: bool) -> Iterator[int]:
    """Source offsets whose records are equal to those at the target offsets ``moved`` further on."""
    while True:
        one, other = here.next(_ALL), there.next(_ALL)
        if not len(one) or not len(other):
            return
        end = min(int(one.offsets[-1]), int(other.offsets[-1]) - moved) + 1  # both sides are known up to here
        one = here.keep(int(np.searchsorted(one.offsets, end)))
        other = there.keep(int(np.searchsorted(other.offsets, end + moved)))
        both = np.intersect1d(one.offsets, other.offsets - moved, assume_unique=True)
        _, one = one.split(both.tolist())
        _, other = other.split((both + moved).tolist())
        if not times:
            other = replace(other, timestamps=one.timestamps)
        yield from both[_equal(one, other)].tolist()


def _equal(one: Records, other: Records) -> np.ndarray:
    """For each record whether it is equal to the other side's of the same number."""
    equal = np.ones(len(one), bool)
    at = 0
    while (found := first_difference(one.slice(at, len(one)), other.slice(at, len(other)))) >= 0:
        equal[at + found] = False
        at += found + 1
    return equal


_ALL = 1 << 30
