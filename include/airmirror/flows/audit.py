"""Auditing a range of the source: what was replicated of it is compared again with the target, record by record.

A range is of source offsets; an interval of time is, in each partition, from the first record with a timestamp at or after
its beginning to the first one at or after its end, so that intervals that follow one another leave nothing out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from airmirror.clusters.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.routes import Routes
from airmirror.errors import AirmirrorError, command
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.flows.verification import still_held
from airmirror.windows.compare import compare
from airmirror.windows.declared import times_replaced
from airmirror.windows.errors import PartitionError, PartitionUnavailable, of_flow
from airmirror.wire.records import Records
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import SegmentRecord

BUCKET_MS = 600_000
LEADER_SECONDS = 5.0


@dataclass(frozen=True)
class Range:
    """Source offsets ``[start, end)`` of a partition."""

    topic: str
    partition: int
    start: int
    end: int

    @property
    def key(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass
class Bucket:
    """Records with timestamps in ten minutes, on both sides; latencies (ms) from the timestamp to the commit on the target."""

    source: int = 0
    target: int = 0
    latency_sum: int = 0
    latency_max: int = 0

    @property
    def latency_ms(self) -> float:
        return self.latency_sum / self.source if self.source else 0.0


@dataclass(frozen=True)
class Audited:
    """One partition's range. Counts are of records, but ``before`` and ``missing``, which are of source offsets.

    ``equal``: on both sides, and equal; ``expired``: no longer on both; ``before``: below the first replicated offset;
    ``missing``: beyond what is replicated.
    """

    range: Range
    equal: int
    expired: int
    before: int
    missing: int
    error: AirmirrorError | None
    remote_topic: str = ""


@dataclass(frozen=True)
class Audit:
    """What an audit found. ``buckets`` by the beginning of their ten minutes, in epoch milliseconds."""

    partitions: tuple[Audited, ...]
    buckets: Mapping[int, Bucket]

    @property
    def errors(self) -> list[AirmirrorError]:
        return [audited.error for audited in self.partitions if audited.error is not None]


@dataclass(eq=False)
class BeforeFirstReplicated(PartitionError):
    """Records that are older than all that was replicated: putting them behind it would break the order (invariant C)."""

    first: int
    last: int
    replicated: int

    def __str__(self) -> str:
        return (
            f"{self.where}: offsets {self.first} to {self.last} lie before offset {self.replicated}, the first that was "
            "replicated; they are refused, because behind it they would be out of order: choose a later interval, have them "
            "replicated into a topic of their own (backfill.into.suffix), or begin anew: "
            f"{command('reset', '--topic', self.topic, '--partition', self.partition, '--start-again', flow=self.flow)}"
        )


@dataclass(eq=False)
class NotReplicated(PartitionError):
    """Records of the range that are not on the target."""

    first: int
    last: int

    def __str__(self) -> str:
        return (
            f"{self.where}: offsets {self.first} to {self.last} are not replicated; see replicate_window of this run, "
            f"and {command('hold', 'list', flow=self.flow)}"
        )


def ranges_of(
    opened: Opened, topics: Sequence[str], begin_ms: int, end_ms: int
) -> tuple[list[Range], list[PartitionUnavailable]]:
    """The ranges of the source's partitions with records in the interval, and partitions that nobody leads now."""
    flow = opened.flow
    with Routes(flow.source, f"airmirror|{flow.name}|audit") as source:
        source.refresh(topics)
        everything = [TopicPartition(topic, number) for topic in topics for number in range(source.partitions(topic))]
        partitions = source.with_leader(everything, LEADER_SECONDS)
        read_committed = flow.isolation_level == "read_committed"
        ends = offsets_with_patience(source, partitions, LATEST, read_committed=read_committed)
        first = offsets_with_patience(source, partitions, begin_ms)
        last = offsets_with_patience(source, partitions, end_ms)

    def place(found: int, key: TopicPartition) -> int:
        return ends[key] if found < 0 else min(found, ends[key])  # -1: no record is that young

    ranges = [Range(*key, place(first[key], key), place(last[key], key)) for key in partitions]
    lost = [
        PartitionUnavailable(flow.source.alias, *key, "it has no leader")
        for key in sorted(set(everything) - set(partitions))
    ]
    return [item for item in ranges if item.start < item.end], lost


def audit(
    opened: Opened,
    ranges: Sequence[Range],
    *,
    refuse_before: bool,
    refuse_missing: bool,
    tell: Callable[[str], None] = lambda phase: None,
) -> Audit:
    """Compare what is replicated of ``ranges`` with the target. A transient error of a cluster is raised.

    ``refuse_before``: what lies before the first replicated offset is an error of its partition; ``refuse_missing``: what
    lies behind the last one is.
    """
    flow, ledger = opened.flow, opened.ledger
    catch_up_ledger(opened)
    state = ledger.state()
    buckets: dict[int, Bucket] = {}
    audited = []
    client, timeless = f"airmirror|{flow.name}|audit", times_replaced(flow)
    with Routes(flow.source, client) as source, Routes(flow.target, client) as target:
        source.refresh({item.topic for item in ranges})
        replicated = {item.key: state.segments[item.key] for item in ranges if item.key in state.segments}
        target.refresh({record.remote_topic for record in replicated.values()})
        here = offsets_with_patience(source, [item.key for item in ranges], EARLIEST)
        remote = {key: TopicPartition(record.remote_topic, record.partition) for key, record in replicated.items()}
        there = offsets_with_patience(target, remote.values(), EARLIEST)
        for number, item in enumerate(ranges):
            tell(f"comparing {item.key} ({number + 1} of {len(ranges)} partitions)")
            last = replicated.get(item.key)
            segments: list[SegmentRecord] = []
            if last is not None:
                segments = list(ledger.segments(*item.key, last.source_topic_id, item.start, item.end))
            first = max(item.start, here[item.key])
            parts = [
                still_held(segment, first, there[remote[item.key]], item.end) for segment in segments
            ]  # fmt: skip
            expired = sum(_within(segment, item) - part.copied for segment, part in zip(segments, parts, strict=True))
            equal, error = 0, None
            for part in parts:
                if part.copied and error is None:
                    compared = compare(
                        source, target, part,
                        read_committed=flow.isolation_level == "read_committed", aggregate=flow.is_aggregate,
                        times=not timeless.matches(part.topic),
                        seen=partial(_count, buckets, part.time_ms),
                    )  # fmt: skip
                    equal, error = equal + compared.records, compared.error
            position = state.positions.get(item.key, 0)
            before, missing = _around(item, first, segments, position)
            if error is None and before and refuse_before:
                begun = segments or [*ledger.segments(*item.key, last.source_topic_id)] if last is not None else []
                replicated_from = begun[0].source_start if begun else position
                error = BeforeFirstReplicated(flow.source.alias, *item.key, first, first + before - 1, replicated_from)
            if error is None and missing and refuse_missing:
                error = NotReplicated(flow.source.alias, *item.key, item.end - missing, item.end - 1)
            remote_topic = last.remote_topic if last is not None else ""
            error = of_flow(error, flow.name)
            audited.append(Audited(item, equal, expired, before, missing, error, remote_topic))
    return Audit(tuple(audited), dict(sorted(buckets.items())))


def _around(item: Range, first: int, segments: Sequence[SegmentRecord], position: int) -> tuple[int, int]:
    """How many offsets of the range lie before the first and behind the last replicated one."""
    missing = max(0, item.end - max(first, position))
    if segments:
        return max(0, segments[0].source_start - first), missing
    return max(0, min(item.end, position) - first), missing


def _within(segment: SegmentRecord, item: Range) -> int:
    """How many records a segment record has in the range."""
    return sum(max(0, min(run.source_end, item.end) - max(run.source_first, item.start)) for run in segment.segments)


def _count(buckets: dict[int, Bucket], committed_ms: int, one: Records, other: Records) -> None:
    for begins, records in _by_bucket(one.timestamps):
        bucket = buckets.setdefault(begins, Bucket())
        bucket.source += len(records)
        bucket.latency_sum += int((committed_ms - records).sum())
        bucket.latency_max = max(bucket.latency_max, int(committed_ms - records.min()))
    for begins, records in _by_bucket(other.timestamps):
        buckets.setdefault(begins, Bucket()).target += len(records)


def _by_bucket(timestamps: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The timestamps of each ten minutes."""
    if not len(timestamps):
        return []
    numbers = timestamps // BUCKET_MS
    return [(int(number) * BUCKET_MS, timestamps[numbers == number]) for number in np.unique(numbers)]
