"""The losses among unverified mapping records: found by comparing both sides, and counted as lost.

An operator has accepted the loss. What is equal stays mapped, so that a reader of the target gets it, and so does what a cleaner
or retention may have taken; every other source offset is counted as lost (invariants E and G). The records on the target
stay where they are: only the mapping tells of them.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from airmirror.partitions import TopicPartition
from airmirror.slot.account import MOST_RANGES, NO_DIGEST
from airmirror.windows.compare import Logs, compare, is_on_target, look_at_logs, read_pairs
from airmirror.windows.coverage import still_held
from airmirror.windows.cursor import RecordPair
from airmirror.windows.declared import compacted_topics
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Choice, Facts, Reset, keeping
from airmirror.windows.resetting import look
from airmirror.wire.mappings import MappedRange, MappingRecord
from airmirror.wire.records import Array, Records, first_difference


def losses(mirror: Mirror, chosen: Sequence[MappingRecord], topics: Mapping[str, str]) -> list[Reset]:
    """The resets that declare lost what is not equal on both sides, a partition each; none where all is.

    ``chosen``: mapping records by partition and source offset; ``topics``: theirs, with their remote topics. Raises what reading
    a log does.
    """
    if not chosen:
        return []
    compacted = compacted_topics(mirror, {record.topic for record in chosen})
    logs = look_at_logs(mirror, chosen)
    changed: dict[TopicPartition, list[tuple[MappingRecord, MappingRecord]]] = {}
    for record in chosen:
        found = without_losses(logs, record, holes=compacted[record.topic])
        if found != record:
            changed.setdefault(record.key, []).append((record, found))
    if not changed:
        return []
    facts = look(mirror, {key.topic: topics[key.topic] for key in changed}, Choice.ACCEPT_LOSS)
    return [_declared(each, changed[each.key]) for each in facts if each.key in changed]


def _declared(facts: Facts, changed: Sequence[tuple[MappingRecord, MappingRecord]]) -> Reset:
    """The reset that puts mapping records in the place of those that begin at the same offsets."""
    runs = [run for before, after in changed for run in unmapped(before, after)]
    (first, _), (last, _) = changed[0], changed[-1]
    begins = next(unmapped(*changed[0]), None), list(unmapped(*changed[-1]))
    return Reset(
        facts,
        Choice.ACCEPT_LOSS,
        facts.position,
        begins[0].source_first if begins[0] else first.source_start,
        begins[1][-1].source_end if begins[1] else last.source_end,
        rewritten=tuple(after for _, after in changed),
        runs=tuple(runs),
    )


def unmapped(before: MappingRecord, after: MappingRecord) -> Iterator[MappedRange]:
    """Yield the runs that a mapping record maps, and the one in its place does not."""
    kept = [(run.source_first, run.source_end) for run in after.ranges]
    for run in before.ranges:
        first = bisect_right(kept, run.source_first, key=lambda each: each[1])
        yield from _without(run, kept[first : bisect_left(kept, run.source_end, key=lambda each: each[0])])


def without_losses(logs: Logs, record: MappingRecord, *, holes: bool) -> MappingRecord:
    """The mapping record as both logs bear it out; the very same where nothing is wrong with it.

    Without ``holes`` (invariant E) what it counts as holes is lost too. More than MOST_RANGES runs are not kept: what
    follows them is lost. Raises FetchFailed or LastStableOffsetStuck where a log can't be read.
    """
    accounted = record.copied + record.control + record.aborted + record.holes + record.lost
    whole = accounted == record.source_end - record.source_start and (holes or not record.holes)
    if whole and (is_on_target(logs.target, record) or compare(logs, record).error is None):
        return record
    part = still_held(record, *logs.starts[record.key])
    may_lack = logs.compacted[record.topic]
    lost = _ranges(_lost(pair, may_lack) for pair in read_pairs(logs, part))
    kept = [piece for run in record.ranges for piece in _without(run, lost)]
    remaining = keeping(record, kept[:MOST_RANGES], record.source_end, holes=holes)
    return replace(remaining, digest=NO_DIGEST)  # from now on it is compared record by record


def _lost(pair: RecordPair, may_lack: bool) -> Array:
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


def _without(run: MappedRange, ranges: Sequence[tuple[int, int]]) -> Iterator[MappedRange]:
    """The runs that are left of a run."""
    at = run.source_first
    for first, end in (*ranges, (run.source_end, run.source_end)):
        if end < at or first > run.source_end:
            continue
        if first > at:
            yield MappedRange(at, run.target_first + at - run.source_first, first - at)
        at = max(at, end)
