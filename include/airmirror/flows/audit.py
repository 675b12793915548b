"""Auditing a range of the source: what was replicated of it is compared again with the target, record by record.

A range is of source offsets; an interval of time is, in each partition, from the first record with a timestamp at or after
its beginning to the first one at or after its end, so that intervals that follow one another leave nothing out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.partitions import PartitionFacts, TopicPartition
from airmirror.slot.errors import PartitionError, PartitionUnavailable, of_flow, ways_out
from airmirror.tell import Tell, silent
from airmirror.windows.compare import Logs, compare, look_at_logs
from airmirror.windows.coverage import NOT_COVERED, uncovered
from airmirror.windows.cursor import Cursor
from airmirror.windows.errors import Unaccounted
from airmirror.windows.mirror import Mirror
from airmirror.windows.resetting import NO_TOPIC
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.records import Records

BUCKET_MS = 600_000
LEADER_SECONDS = 5.0


@dataclass(frozen=True)
class Range(PartitionFacts):
    """Source offsets ``[start, end)`` of a partition."""

    start: int
    end: int


@dataclass
class Bucket:
    """Records with timestamps in ten minutes, on both sides; latencies (ms) from the timestamp to the commit on the target.

    ``replicated``: those of the source that have a latency.
    """

    source: int = 0
    target: int = 0
    replicated: int = 0
    latency_sum: int = 0
    latency_max: int = 0

    @property
    def latency_ms(self) -> float:
        return self.latency_sum / self.replicated if self.replicated else 0.0


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
    remote_topic: str


@dataclass(frozen=True)
class Audit:
    """The findings of an audit. ``buckets`` by the beginning of their ten minutes, in epoch milliseconds."""

    partitions: tuple[Audited, ...]
    buckets: Mapping[int, Bucket]

    @property
    def errors(self) -> list[AirmirrorError]:
        return [audited.error for audited in self.partitions if audited.error is not None]


class BeforeFirstReplicated(PartitionError):
    """Records that are older than all that was replicated: appending them would break the order (invariant C)."""

    first: int
    last: int
    replicated: int

    def __str__(self) -> str:
        return (
            f"{self.where}: offsets {self.first} to {self.last} lie before offset {self.replicated}, the first that was "
            "replicated; they are refused, because after it they would be out of order: choose a later interval, have them "
            "replicated into a topic of their own (backfill.into.suffix), or "
            f"{ways_out(self, ('start over', '--start-again'))}"
        )


class MappingsGone(PartitionError):
    """Records before the first mapping record that is left, which may be on the target: not compared, and not copied again."""

    first: int
    last: int
    known: int
    says = (
        "{0.where}: offsets {0.first} to {0.last} lie before offset {0.known}, the first that a mapping record is left of, "
        "and the target has had records before it: their mapping records were pruned (retention.days), or another flow or "
        "tool has copied them. These are neither compared nor copied again: choose a later interval"
    )


class NotReplicated(PartitionError):
    """Records of the range that are not on the target."""

    first: int
    last: int
    says = (
        "{0.where}: offsets {0.first} to {0.last} are not replicated; see replicate_window of this run, "
        "and {airmirror:hold list}"
    )


def ranges_of(
    opened: Opened, topics: Sequence[str], begin_ms: int, end_ms: int
) -> tuple[list[Range], list[PartitionUnavailable]]:
    """The ranges of the source's partitions with records in the interval, and partitions without a leader now."""
    flow = opened.flow
    with Routes(flow.source, f"airmirror|{flow.name}|audit") as source:
        source.refresh(topics)
        everything = source.keys(topics)
        partitions = source.with_leader(everything, LEADER_SECONDS)
        ends = offsets_with_patience(source, partitions, LATEST, read_committed=flow.reads_committed)
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
    opened: Opened, ranges: Sequence[Range], *, refuse_before: bool, refuse_missing: bool, tell: Tell = silent
) -> Audit:
    """Compare what is replicated of ``ranges`` with the target. A transient error of a cluster is raised.

    ``refuse_before``: what lies before the first replicated offset is an error of its partition, unless a backfill copies it
    (``before_the_first``); ``refuse_missing``: what lies after the last one is; with ``refuse_before`` it always is
    where a partition is held, or its topic frozen: no window copies that.
    """
    flow, ledger = opened.flow, opened.ledger
    catch_up_ledger(opened)
    state, owners = ledger.state(), ledger.owners()
    newest = {TopicPartition(*key): record for key, record in state.mappings.items()}
    buckets: dict[int, Bucket] = {}
    audited = []
    with Mirror.open(flow, ledger, "audit") as mirror:
        mirror.source.refresh({item.topic for item in ranges})
        here = offsets_with_patience(mirror.source, [item.key for item in ranges], EARLIEST)
        logs = look_at_logs(mirror, [newest[item.key] for item in ranges if item.key in newest])
        for number, item in enumerate(ranges):
            tell(f"comparing {item.key} ({number + 1} of {len(ranges)} partitions)")
            last = newest.get(item.key)
            known = (*item.key, last.source_topic_id if last is not None else NO_TOPIC)
            oldest = next(iter(ledger.first_mappings([known])), None)
            position = state.positions.get(item.key, 0)
            begun = position if oldest is None else oldest.source_start
            first = max(item.start, here[item.key])
            before = max(0, min(item.end, begun) - first)
            missing = max(0, item.end - max(first, position))
            mappings = list(ledger.mappings(*known, item.start, item.end)) if last is not None else []
            equal, expired, error = _compared(logs, item, mappings, (first + before, item.end - missing), buckets)
            _count_source(buckets, logs, item.key, (item.end - missing, item.end))
            if error is None and before and refuse_before:
                lost = (flow.source.alias, *item.key, first, first + before - 1, begun)
                if oldest is not None and had_records_before(mirror.target, oldest):
                    error = MappingsGone(*lost)
                elif not flow.settings.backfill_into_suffix:
                    error = BeforeFirstReplicated(*lost)
            is_left = refuse_before and (item.key in state.holds or bool(owners.why_frozen(item.topic)))
            if error is None and missing and (refuse_missing or is_left):
                error = NotReplicated(flow.source.alias, *item.key, item.end - missing, item.end - 1)
            remote = last.remote_topic if last is not None else ""
            counts = (equal, expired, before, missing)
            audited.append(Audited(item, *counts, of_flow(error, flow), remote))
    return Audit(tuple(audited), dict(sorted(buckets.items())))


def had_records_before(target: Routes, first: MappingRecord) -> bool:
    """Return whether records came to the target before those of a partition's first mapping record that is left."""
    if first.target_start <= 0 or target.refresh_existing([first.remote_topic]):
        return first.target_start > 0
    if offsets_with_patience(target, [first.remote], EARLIEST)[first.remote] > 0:
        return True
    before = Cursor(target, first.remote, 0, first.target_start, True)  # which may be an aborted transaction alone
    return bool(len(before.ahead()))


def _compared(
    logs: Logs, item: Range, mappings: Sequence[MappingRecord], replicated: tuple[int, int], buckets: dict[int, Bucket]
) -> tuple[int, int, AirmirrorError | None]:
    """Compare the replicated part of a range, ``replicated`` of its source offsets; count what no mapping record covers. What was
    found: the numbers of records that are equal, and that expired; the first error."""
    equal, expired = 0, 0
    errors: list[AirmirrorError] = []
    for first, end in uncovered(mappings, *replicated):
        errors.append(Unaccounted(logs.source.alias, *item.key, first, end - 1, NOT_COVERED))
        _count_source(buckets, logs, item.key, (first, end))
    for mapping in mappings:
        compared = compare(logs, mapping, within=(item.start, item.end), seen=partial(_count, buckets, mapping.time_ms))
        equal, expired = equal + compared.records, expired + compared.gone
        errors += [compared.error] if compared.error is not None else []
    return equal, expired, errors[0] if errors else None


def _count(buckets: dict[int, Bucket], committed_ms: int, one: Records, other: Records) -> None:
    for begins, records in _by_bucket(one.timestamps):
        bucket = buckets.setdefault(begins, Bucket())
        bucket.source += len(records)
        bucket.replicated += len(records)
        bucket.latency_sum += int((committed_ms - records).sum())
        bucket.latency_max = max(bucket.latency_max, int(committed_ms - records.min()))
    for begins, records in _by_bucket(other.timestamps):
        buckets.setdefault(begins, Bucket()).target += len(records)


def _count_source(buckets: dict[int, Bucket], logs: Logs, key: TopicPartition, offsets: tuple[int, int]) -> None:
    """Records of the source that were not replicated."""
    cursor = Cursor(logs.source, key, *offsets, logs.flow.reads_committed)
    while len(ahead := cursor.ahead()):
        for begins, records in _by_bucket(cursor.take(len(ahead)).timestamps):
            buckets.setdefault(begins, Bucket()).source += len(records)


def _by_bucket(timestamps: np.ndarray) -> list[tuple[int, np.ndarray]]:
    """The timestamps of each ten minutes."""
    numbers = timestamps // BUCKET_MS
    return [(int(number) * BUCKET_MS, timestamps[numbers == number]) for number in np.unique(numbers)]
