"""The judgement of what is committed and not verified yet: each partition's verified offset, or a hold (invariant F).

It comes at the end of a window, and meanwhile while one follows the log.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import LeaderNotAvailable, Routes, TopicNotFound
from airmirror.errors import AirmirrorError, counted
from airmirror.partitions import PartitionFacts, TopicPartition
from airmirror.slot.errors import PartitionError, of_flow
from airmirror.times import utc
from airmirror.windows.declared import compacted_topics
from airmirror.windows.errors import GateFailed, PartitionHeld
from airmirror.windows.fence import GrantedLease
from airmirror.windows.findings import GateRow, examine
from airmirror.windows.mirror import Mirror
from airmirror.wire.mappings import GATE, Hold, Verified

# What a gate objects to: a reason for each partition that must not pass. The engine's own checks count in any case.
Gate = Callable[[Sequence[GateRow]], Mapping[TopicPartition, str]]

MOST_REASON = 4_000  # characters that a hold keeps
ENGINE_ALONE = " (the engine's checks alone)"  # after the judging window's name, where no gate was asked


@dataclass(frozen=True)
class Verdict(PartitionFacts):
    """A partition's judgement: everything up to ``offset`` (a source offset) is verified, or what is wrong.

    ``held``: where the gate holds the same range since an earlier window.
    """

    offset: int
    records: int
    error: AirmirrorError | None
    held: Hold | None = None

    @property
    def is_known(self) -> bool:
        """Return whether an earlier run has reported it already."""
        return self.held is not None and self.error is not None and self.held.reason == _reason(self.error)

    def __str__(self) -> str:
        """Say the error; if it is not the first time, since when, and whether the cause is another one."""
        what = self.error.what if isinstance(self.error, GateFailed) else str(self.error)
        if self.held is None:
            return what
        since = f"since {utc(self.held.time_ms)}, first in {self.held.window.partition('#')[0]}"
        return f"{what} (still, {since})" if self.is_known else f"A NEW CAUSE: {what} (held {since})"


@dataclass(frozen=True)
class Verification:
    """The rows shown to a gate, and its verdict, partition by partition."""

    findings: tuple[GateRow, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def errors(self) -> list[AirmirrorError]:
        return [verdict.error for verdict in self.verdicts if verdict.error is not None]


def verify_committed(
    mirror: Mirror,
    granted: GrantedLease,
    gate: Gate | None,
    *,
    trusted: Container[str],
    left: Collection[TopicPartition] | None = None,
    tell: Callable[[str], None] = lambda phase: None,
) -> Verification:
    """Judge everything between verified offset and progress, as far as the index has read it, and write what comes of it.

    ``left``: partitions that are left to a later judgement, and stay as they are; None: none are, and what a gate holds
    without a reason any more is lifted. Raises a cluster's error.
    """
    index = mirror.index
    seen = granted.journal.seen()  # before the records: others may read further into the same index
    unverified = [record for record in index.unverified() if record.key not in (left or ())]
    keys = list(dict.fromkeys(record.key for record in unverified))
    topics = {key.topic for key in keys}
    topics -= mirror.source.refresh_existing(topics).keys()
    compacted, ends = compacted_topics(mirror, topics), watermarks(mirror.source, keys)
    findings = tuple(examine(mirror, unverified, trusted=trusted, compacted=compacted, watermarks=ends))
    tell(f"judging {counted(len(findings), 'partition')}")
    verdicts = write_verdicts(granted, findings, gate, seen=seen, everything=left is None, own=trusted)
    mirror.catch_up()
    return Verification(findings, tuple(verdicts))


def watermarks(source: Routes, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The high watermarks, for the lag that is left; none of a partition that is gone, or has no leader, by now."""
    for _ in range(2):
        led = [key for key in partitions if source.has(key) and source.is_led(key)]
        with suppress(TopicNotFound, LeaderNotAvailable):  # of one: by the metadata read meanwhile the others are asked
            return offsets_with_patience(source, led, LATEST)
    return {}


def no_objection(_findings: Sequence[GateRow]) -> Mapping[TopicPartition, str]:
    """The gate of a window that is judged by the engine's own checks alone."""
    return {}


def write_verdicts(
    granted: GrantedLease,
    findings: Sequence[GateRow],
    gate: Gate | None,
    *,
    seen: int,
    everything: bool = True,
    own: Container[str] = (),
) -> list[Verdict]:
    """Write the verified offset of every finding that passes, a hold for each that does not.

    A hold of the gate is lifted when its partition passes; an operator's decision holds until it is released. A transient
    error (a cluster that does not answer) holds nothing: the partition is judged again by the next gate. Without a gate
    the engine's own checks judge alone, the record says so, and what is held stays held. A partition that fails again is
    held since it failed first. ``seen``: the end of the mapping topic as it was read for the findings. ``everything``: these
    are of all that is not verified; then a gate's hold of anything else, as one that woke up late has written, is lifted.
    ``own``: windows that are judged here for the last time; what they have held themselves, while they followed the log, was
    not reported yet. Raises SlotFenced, AppendFailed.
    """
    flow, window, now = granted.journal.flow, granted.lease.window, int(time.time() * 1000)
    objections = gate(findings) if gate is not None and findings else {}
    judge_name = window if gate is not None else window + ENGINE_ALONE
    holds = granted.journal.index.holds()
    verdicts: list[Verdict] = []
    records: list[tuple[bytes, bytes | None]] = []
    for finding in findings:
        key, error, before, last = finding.key, finding.error, holds.get(finding.key), finding.source_end - 1
        if error is None and gate is None and before is not None:
            left = PartitionHeld(flow.source.alias, *key, before.offset, before.reason, before.by, before.time_ms)
            verdicts.append(Verdict(*key, last, finding.copied, of_flow(left, flow)))
            continue
        first = before if before and before.by == GATE and before.offset == finding.source_start else None
        if error is None and key in objections:
            reason = f"{_proof(finding)}; {objections[key]}"
            error = GateFailed(flow.source.alias, *key, finding.source_start, last, reason)
        error = of_flow(error, flow)
        judged_in = first.window.removesuffix(ENGINE_ALONE) if error and first else window
        earlier = None if judged_in == window or judged_in in own else first
        verdicts.append(Verdict(*key, last, finding.copied, error, earlier))
        if error is None:
            passed = Verified(*key, finding.source_topic_id, last, finding.target_end, judge_name, now, seen)
            records.append((passed.encode_key(), passed.encode_value()))
            if before is not None:
                records.append((before.encode_key(), None))
        elif not error.transient:
            since, at = (first.window, first.time_ms) if first else (judge_name, now)
            hold = Hold(*key, offset=finding.source_start, reason=_reason(error), window=since, by=GATE, time_ms=at)
            if hold != before:
                records.append((hold.encode_key(), hold.encode_value()))
    if gate is not None and everything:
        judged = {finding.key for finding in findings}
        records += [(hold.encode_key(), None) for key, hold in holds.items() if hold.by == GATE and key not in judged]
    if records:
        granted.check()  # reading and judging take minutes; whoever sleeps after this look is known by what it had seen
        granted.appender.append(records)
    return verdicts


def _proof(finding: GateRow) -> str:
    """Say what is known of the copy, whatever else is wrong with it: whoever decides must know whether records differ."""
    if finding.target_records is None or finding.digest_differences is None:
        return "not read back: whether the copy is equal is not known"
    is_equal = finding.target_records == finding.copied and not (
        finding.lost
        or finding.gaps
        or finding.order_violations
        or finding.unexpected_holes
        or finding.digest_differences
    )
    return "every record was read back and is equal" if is_equal else "the copy is not equal"


def _reason(error: AirmirrorError) -> str:
    """The message without its place, which a hold has anyway, and no longer than a hold keeps it."""
    if isinstance(error, GateFailed):
        return error.reason[:MOST_REASON]
    bare = str(error).removeprefix(f"{error.where}: ") if isinstance(error, PartitionError) else str(error)
    return bare[:MOST_REASON]
