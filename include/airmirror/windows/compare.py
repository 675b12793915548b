"""Comparing what the target holds with what was copied: by digest from the target alone, or record by record from both logs.

The gate, ``airmirror verify``, audits and accepted losses all use it (invariants D and F). Cleaner and retention work on the
two sides independently, so a record that one side lacks is a difference only above both logs' starts, and where neither
topic is compacted.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from airmirror.clusters.protocol.log import EARLIEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import compacted_now
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.account import Digest, payload_digest
from airmirror.slot.errors import ForeignRecords
from airmirror.windows.coverage import ALL, is_declared, still_held
from airmirror.windows.cursor import Cursor, RecordPair, pairs
from airmirror.windows.declared import compacted_topics, times_replaced
from airmirror.windows.errors import TargetDiffers, Unaccounted
from airmirror.windows.mirror import Mirror
from airmirror.wire.batches import HEADER_SIZE
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.records import Array, Records, first_difference

Hears = Callable[[Records, Records], None]  # hears of records of both sides


@dataclass(frozen=True)
class Logs:
    """Both clusters as comparisons read them.

    ``starts``: of each source partition where its log and that of its remote partition begin. ``compacted``: by source topic,
    whether a cleaner may take records of it, or of its remote topic.
    """

    flow: Flow
    source: Routes
    target: Routes
    starts: dict[TopicPartition, tuple[int, int]]
    compacted: Mapping[str, bool]


@dataclass(frozen=True)
class Compared:
    """The outcome for one mapping record. Counts are of its records.

    ``records``: equal on both sides; ``gone``: taken by retention or a cleaner on one side at least; ``on_target``: those that
    the target holds; ``error``: the first thing that is wrong, if anything.
    """

    records: int
    gone: int
    on_target: int
    error: AirmirrorError | None


@dataclass(frozen=True)
class _Surplus:
    """Records that are mapped nowhere: how many, and the offsets of the first and the last."""

    count: int = 0
    first: int = -1
    last: int = -1

    def and_(self, offsets: Array) -> _Surplus:
        if not len(offsets):
            return self
        return _Surplus(self.count + len(offsets), self.first if self.count else int(offsets[0]), int(offsets[-1]))


def look_at_logs(mirror: Mirror, records: Collection[MappingRecord]) -> Logs:
    """Return the facts about the logs of these records' partitions. Raises TopicNotFound, or a cluster's error."""
    remote_topics = {record.topic: record.remote_topic for record in records}
    mirror.source.refresh(remote_topics)
    mirror.target.refresh(remote_topics.values())
    here, there = compacted_topics(mirror, remote_topics), compacted_now(mirror.target, remote_topics.values())
    compacted = {topic: here[topic] or remote in there for topic, remote in remote_topics.items()}
    logs = Logs(mirror.flow, mirror.source, mirror.target, {}, compacted)
    _look_at_starts(logs, records)
    return logs


def _look_at_starts(logs: Logs, records: Collection[MappingRecord]) -> None:
    remote = {each.key: each.remote for each in records}
    here = offsets_with_patience(logs.source, remote, EARLIEST)
    there = offsets_with_patience(logs.target, remote.values(), EARLIEST)
    logs.starts.update({key: (here[key], there[remote[key]]) for key in remote})


def is_on_target(target: Routes, record: MappingRecord) -> bool:
    """Return whether the target holds the very batches that were written for a mapping record: by the digest of its range."""
    digest = Digest()
    if record.copied:
        for buffer, batches in read_batches(
            target, record.remote, record.target_start, record.target_end, read_committed=True
        ):
            for batch, aborted in batches:
                if aborted or batch.is_control or not _is_own(record, batch.base_offset):
                    continue
                payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
                times = (batch.base_timestamp, batch.max_timestamp)
                digest.add(batch.attributes, batch.count, *times, len(payload), payload_digest(payload))
    return digest.value() == record.digest


def _is_own(record: MappingRecord, offset: int) -> bool:
    """Return whether a target offset is of the record's own ranges: in an aggregate, others write between them."""
    number = bisect_right(record.ranges, offset, key=lambda run: run.target_first) - 1
    return number >= 0 and offset < record.ranges[number].target_end


def compare(
    logs: Logs,
    record: MappingRecord,
    *,
    within: tuple[int, int] = ALL,
    after: int | None = None,
    seen: Hears = lambda one, other: None,
) -> Compared:
    """Every record of a mapping record in both logs: key, value, headers, timestamp, order and the offset mapping.

    ``within``: these source offsets of it. ``after``: where the record before ends on the target; what lies between and is
    not ours is a difference too. ``seen`` gets all records of both sides, some of the source and of the target at a time.
    In an aggregate the target may hold records of others anywhere, and where an operator has accepted a loss as many as were
    lost. Raises what reading a log does; a difference is in the answer.
    """
    found = _compare(logs, record, within, after, seen)
    if found.error is not None:
        starts = logs.starts[record.key]
        _look_at_starts(logs, [record])
        if logs.starts[record.key] != starts:  # retention came in between
            return compare(logs, record, within=within, after=after)
    return found


def _compare(logs: Logs, record: MappingRecord, within: tuple[int, int], after: int | None, seen: Hears) -> Compared:
    starts = logs.starts[record.key]
    part = still_held(record, *starts, within)
    may_lack = logs.compacted[record.topic]
    gone = _copied_within(record, within) - part.copied
    equal = on_target = 0
    error: AirmirrorError | None = None
    surplus_here, surplus_there = _Surplus(), _Surplus()
    for pair in read_pairs(logs, part, after if part == record else None):
        seen(pair.source, pair.target)
        on_target += len(pair.there) + len(pair.absent_here)
        surplus_here, surplus_there = surplus_here.and_(pair.surplus_here), surplus_there.and_(pair.surplus_there)
        gone += len(pair.absent_there) + len(pair.absent_here) if may_lack else 0
        if error is None:
            error, count = _difference(logs, record, pair, may_lack)
            equal += count
    if error is None and surplus_here.count > record.lost:
        reason = "the source holds more records in it than were copied"
        if record.lost:
            reason = f"{record.lost} records were declared lost, but the source holds {surplus_here.count} that were not copied"
        error = Unaccounted(logs.source.alias, *record.key, surplus_here.first, surplus_here.last, reason)
    expected = record.lost if is_declared(record) else 0
    if error is None and surplus_there.count > expected and not logs.flow.is_aggregate:
        where = (logs.source.alias, *record.key, logs.target.alias, record.remote_topic)
        error = ForeignRecords(*where, surplus_there.first, surplus_there.last)
    if error is None:
        gone = _copied_within(record, within) - equal  # what neither side has any more, too
    return Compared(equal, gone, on_target, error)


def read_pairs(logs: Logs, part: MappingRecord, after: int | None = None) -> Iterator[RecordPair]:
    """Both logs of a mapping record, brought together. Where the target sets times of its own, it is given the source's."""
    flow = logs.flow
    here = Cursor(logs.source, part.key, part.source_start, part.source_end, flow.reads_committed)
    begin = part.target_start if after is None else min(after, part.target_start)
    there = Cursor(logs.target, part.remote, begin, part.target_end, True)
    keeps_times = not times_replaced(flow).matches(part.topic)
    for pair in pairs(here, there, part.ranges):
        yield pair if keeps_times else pair.with_times_of_source()


def _difference(
    logs: Logs, record: MappingRecord, pair: RecordPair, may_lack: bool
) -> tuple[AirmirrorError | None, int]:
    """The first difference of a pair, and how many records before it are equal."""
    number = first_difference(pair.here, pair.there)
    found = [] if number < 0 else [(int(pair.at[number]), "key, value, headers or timestamp are not equal")]
    if not may_lack:
        found += [(int(offset), "the target has fewer records") for offset in pair.absent_there[:1]]
        found += [(int(offset), "the source has fewer records") for offset in pair.absent_here[:1]]
    if not found:
        return None, len(pair.here)
    offset, what = min(found)
    run = record.ranges[bisect_right(record.ranges, offset, key=lambda each: each.source_first) - 1]
    there = run.target_first + offset - run.source_first
    error = TargetDiffers(logs.source.alias, *record.key, logs.target.alias, record.remote_topic, offset, there, what)
    return error, bisect_right(pair.at, offset - 1)


def _copied_within(record: MappingRecord, within: tuple[int, int]) -> int:
    first, end = within
    return sum(max(0, min(run.source_end, end) - max(run.source_first, first)) for run in record.ranges)
