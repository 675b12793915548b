"""A slot from its first attempt to its result: initialise, check the lease, read progress, copy; again where that helps.

Every attempt does, in this order (invariant B): InitProducerId; read the mapping topic to an end asked for after that
answer, and end as fenced where another window's lease holds; read progress; copy. It starts from the progress that is
committed, never from the plan (invariant C).
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from airmirror.clusters.protocol.errors import withheld
from airmirror.clusters.protocol.routes import KNOWN_SECONDS, Routes, TopicNotFound, patiently
from airmirror.clusters.protocol.transactions import TransactionalId, TransactionStuck
from airmirror.clusters.protocol.writable import unwritable
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.adjacent import explained, look
from airmirror.slot.compression import compression_of
from airmirror.slot.contract import Outcome, Slot, SlotPartition, SlotResult, transaction_timeout_ms
from airmirror.slot.copy import copy
from airmirror.slot.dead_letters import open_dead_letter_topic
from airmirror.slot.delivery import CopyContext
from airmirror.slot.errors import (
    PartitionError,
    PartitionFailed,
    PartitionUnavailable,
    SlotFenced,
    TargetTruncated,
    TargetUnavailable,
    TopicRecreated,
)
from airmirror.slot.follow import NO_END, Following, seconds_left
from airmirror.slot.intake import Intake
from airmirror.slot.lease import LeaseLog
from airmirror.slot.limit import Limit
from airmirror.slot.outbox import Outbox
from airmirror.slot.pace import Pace
from airmirror.slot.readback import ReadBack
from airmirror.slot.refusals import Refusals
from airmirror.slot.source import Source, lanes_for
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.merging import Merging, filling

LEADER_SECONDS = 3.0  # for an election
LEAST_PAUSE, MOST_PAUSE = 0.1, 5.0  # seconds between two attempts
GRACE_SECONDS = 15.0  # what a fault, or reading back, may take beyond the window's end
AGAIN_SECONDS = 60.0  # after so long a slot that follows takes in again what could not be read or written


@dataclass
class _Attempts:
    """The findings of the attempts so far."""

    positions: dict[TopicPartition, int]
    follow_until: float  # by time.monotonic; in the past: the slot does not follow
    pace: Pace
    limit: Limit
    lease: LeaseLog
    reached: set[str] = field(default_factory=set)  # aliases of clusters that have answered
    throttled: float = 0.0  # seconds for which brokers wanted to be left alone
    failed: dict[TopicPartition, AirmirrorError] = field(default_factory=dict)
    limits: dict[TopicPartition, int] = field(default_factory=dict)  # copied up to here only: what comes is bad
    refusals: dict[TopicPartition, Refusals] = field(default_factory=dict)

    @classmethod
    def of(cls, slot: Slot) -> _Attempts:
        """None so far, of a slot that begins now."""
        positions = {partition.key: partition.start for partition in slot.partitions}
        until = time.monotonic() + slot.follow_ms / 1000
        return cls(positions, until, Pace(transaction_timeout_ms(slot.flow)), Limit.of(slot), LeaseLog(slot))


def run_slot(slot: Slot) -> list[SlotResult]:
    """Copy a slot's partitions; one result each. Raises nothing: errors are in the results."""
    begun = time.monotonic()
    deadline = begun + slot.longest_ms / 1000
    attempts = _Attempts.of(slot)
    pace = attempts.pace
    outcome = Outcome.DONE
    error: AirmirrorError | None = None
    pause = LEAST_PAUSE
    while True:
        tried = time.monotonic()
        try:
            with _clusters(slot, attempts) as (source, target):
                done = _attempt(slot=slot, source=source, target=target, attempts=attempts, deadline=deadline)
            outcome = Outcome.DONE if done else Outcome.CUT
            if not (done and _taken_in_again(attempts)):
                break
            if time.monotonic() - tried < MOST_PAUSE:
                time.sleep(1.0)  # backoff: nothing tells when a partition is well
        except SlotFenced as fenced:
            outcome, error = Outcome.FENCED, fenced
            break
        except PartitionError as bad:
            late = time.monotonic() - deadline
            if not attempts.refusals.setdefault(bad.key, Refusals()).allow(bad, slot.flow):
                _leave_out(attempts, bad.key, bad, bad.first_bad)
            if late > GRACE_SECONDS:
                outcome = Outcome.CUT
                break
        except TopicNotFound as gone:
            if not _leave_out_topic(slot, attempts, gone):
                outcome = Outcome.FAILED
                break
        except TransactionStuck as stuck:  # the next window continues with another id, without what takes no marker
            outcome, error = _leave_out_stuck(slot, attempts, stuck)
            break
        except AirmirrorError as fault:
            if not fault.transient or time.monotonic() > deadline + GRACE_SECONDS:
                outcome, error = Outcome.FAILED, fault
                break
            pace.failed()
            if time.monotonic() - tried > AGAIN_SECONDS:
                pause = LEAST_PAUSE
            time.sleep(pause)  # backoff: the cluster is asked again, nothing tells when it is well
            pause = min(pause * 2, MOST_PAUSE)
    return list(_results(slot, attempts, outcome, error, time.monotonic() - begun))


@contextlib.contextmanager
def _clusters(slot: Slot, attempts: _Attempts) -> Iterator[tuple[Routes, Routes]]:
    """Connections to source and target for one attempt; whether they answer, and what their brokers' quotas say, is kept."""
    client = f"airmirror|{slot.flow.name}|{slot.number}"
    ends = (slot.flow.source, slot.flow.target)
    source, target = (Routes(end, client, was_reached=end.alias in attempts.reached) for end in ends)
    with source, target:
        try:
            yield source, target
        finally:
            attempts.throttled += source.throttled + target.throttled
            attempts.reached |= {each.alias for each in (source, target) if each.was_reached}


def _results(
    slot: Slot, attempts: _Attempts, outcome: Outcome, error: AirmirrorError | None, seconds: float
) -> Iterator[SlotResult]:
    for partition in slot.partitions:
        key = partition.key
        position = attempts.positions[key]
        problem = attempts.failed.get(key) or error
        if key in attempts.failed:
            how = Outcome.FAILED
        elif outcome in (Outcome.FAILED, Outcome.FENCED):
            how = outcome
        else:
            how = Outcome.DONE if position >= partition.end else Outcome.CUT
        if how is Outcome.FAILED and problem is not None and not isinstance(problem, PartitionError):
            wrapped = PartitionUnavailable if problem.transient else PartitionFailed
            problem = wrapped(slot.flow.source.alias, *key, str(problem))
        yield SlotResult(
            *key,
            outcome=how,
            position=position,
            seconds=seconds,
            error=problem,
            limited=attempts.limit.waited,
            throttled=attempts.throttled,
        )


def _attempt(slot: Slot, source: Routes, target: Routes, attempts: _Attempts, deadline: float) -> bool:
    """One attempt at everything that is left; whether it was finished."""
    target.refresh([slot.mapping_topic, slot.progress_topic])
    transaction = TransactionalId(target, slot.transactional_id, attempts.pace.timeout_ms, deadline + GRACE_SECONDS)
    transaction.initialise()
    lease = attempts.lease
    committed = lease.committed(target)
    transaction.look = lease.look
    attempts.follow_until = min(attempts.follow_until, time.monotonic() + seconds_left(slot.follow_ms, lease.age))
    follows = time.monotonic() < attempts.follow_until
    partitions = []
    for partition in slot.partitions:
        key = partition.key
        partition = _continued(partition, committed.get(key))
        attempts.positions[key] = partition.start
        end, follows_on = _end(attempts, partition, follows)
        is_held = slot.follow_ms > 0 and key in lease.held
        if (
            (partition.start < end or follows_on)
            and not is_held
            and (key not in attempts.failed or key in attempts.limits)
        ):
            partitions.append((partition, end))
    if not partitions:
        return True
    if lease.is_ending:
        return False
    _refresh(slot, attempts, source, {partition.topic for partition, _ in partitions}, 0.0)
    remote = {partition.remote_topic for partition, _ in partitions}
    _refresh(slot, attempts, target, remote | {slot.mapping_topic, slot.progress_topic}, KNOWN_SECONDS)
    partitions = _usable(slot, source, target, attempts, partitions)
    if not partitions:
        return True
    round_trip = max((target.round_trip(node) for node in target.nodes), default=0.0)
    read_back = None
    if slot.flow.window.verify == "readback":
        read_back = ReadBack(target, deadline + GRACE_SECONDS, lease.look, lanes_for(round_trip))
    dead_letters = open_dead_letter_topic(slot.flow, target)
    context = CopyContext(
        slot=slot,
        target=target,
        transaction=transaction,
        outbox=Outbox(target, transaction),
        read_back=read_back,
        merging=Merging(compression_of(slot.flow), filling(round_trip, len(partitions))),
        dead_letters=dead_letters,
    )
    intakes = [Intake(context, partition, end, attempts.refusals.get(partition.key)) for partition, end in partitions]
    follow = _following(slot, attempts, lease, intakes) if follows else None
    try:
        reading = Source(source, slot, intakes, attempts.pace, attempts.limit)
        done = copy(context, reading, intakes=intakes, lease=lease, deadline=deadline, follow=follow)
    except AirmirrorError:
        with contextlib.suppress(AirmirrorError):  # the next InitProducerId aborts it too; this is sooner
            transaction.end(commit=False)
        raise
    finally:
        for intake in intakes:
            attempts.positions[intake.partition.key] = intake.account.start
    for intake in intakes:
        if intake.withheld and not intake.is_done:
            key = intake.partition.key
            reason = withheld(key, intake.position, intake.end, intake.withheld)
            attempts.failed.setdefault(key, PartitionUnavailable(source.alias, *key, reason))
    return done


def _refresh(slot: Slot, attempts: _Attempts, routes: Routes, topics: Collection[str], seconds: float) -> None:
    """Read metadata, for ``seconds`` until all topics are known. Raises TopicNotFound of one: all that are gone are left out."""
    try:
        for attempt in patiently(seconds, TopicNotFound):
            with attempt:
                routes.refresh(topics)
    except TopicNotFound:
        for gone in routes.refresh_existing(topics).values():
            _leave_out_topic(slot, attempts, gone)
        raise


def _end(attempts: _Attempts, partition: SlotPartition, follows: bool) -> tuple[int, bool]:
    """The end of a partition's copy, the planned one or where it is bad, and whether it continues after that."""
    bad = attempts.limits.get(partition.key)
    if bad is None:
        return partition.end, follows
    return (bad if follows else min(partition.end, bad)), False


def _following(slot: Slot, attempts: _Attempts, lease: LeaseLog, intakes: Sequence[Intake]) -> Following:
    """Let the partitions continue after their planned ends; not for long where others are to be taken in again."""
    is_again = any(error.transient for error in attempts.failed.values())
    for intake in intakes:
        if intake.partition.key not in attempts.limits:
            intake.end_at(NO_END)
    again_at = time.monotonic() + AGAIN_SECONDS if is_again else math.inf
    return Following(attempts.follow_until, slot.flow.window.follow_commit_ms, lease, again_at)


def _taken_in_again(attempts: _Attempts) -> bool:
    """Whether partitions that were left out for what passes by itself are to be tried again, while the slot follows."""
    again = [key for key, error in attempts.failed.items() if error.transient and key not in attempts.limits]
    if not again or time.monotonic() >= attempts.follow_until:
        return False
    for key in again:
        del attempts.failed[key]
    return True


def _continued(partition: SlotPartition, committed: MappingRecord | None) -> SlotPartition:
    if committed is None or committed.source_end <= partition.start:
        return partition
    return replace(
        partition,
        start=committed.source_end,
        target_end=committed.target_end,
        known_end=max(explained(committed), partition.known_end),
        leader_epoch=committed.leader_epoch,
        target_epoch=committed.target_epoch,
        source_checksum=committed.source_checksum,
    )


def _usable(
    slot: Slot, source: Routes, target: Routes, attempts: _Attempts, partitions: Sequence[tuple[SlotPartition, int]]
) -> list[tuple[SlotPartition, int]]:
    """Those of ``partitions`` that can continue now; the others are left out with their errors, before anything is written."""
    errors: dict[TopicPartition, AirmirrorError] = {}
    same = [partition.key for partition, _ in partitions if _changed(partition, source, target) is None]
    led = set(source.with_leader(same, LEADER_SECONDS))
    refusing = unwritable(target, [partition.remote for partition, _ in partitions], LEADER_SECONDS)
    for partition, _ in partitions:
        error = _changed(partition, source, target)
        if error is None and partition.key not in led:
            error = PartitionUnavailable(source.alias, *partition.key, "it has no leader")
        if error is None and partition.remote in refusing:
            error = _unavailable(slot, partition, refusing[partition.remote])
        if error is not None:
            errors[partition.key] = error
    known: dict[TopicPartition, int] = {}
    if not slot.flow.is_aggregate:
        known, found = look(source.alias, target, [part for part, _ in partitions if part.key not in errors])
        errors |= found
    for key, error in errors.items():
        _leave_out(attempts, key, error, None)
    return [
        (replace(partition, known_end=known.get(partition.key, partition.known_end)), end)
        for partition, end in partitions
        if partition.key not in errors
    ]


def _changed(partition: SlotPartition, source: Routes, target: Routes) -> AirmirrorError | None:
    """The error of a topic that is not the one of the plan any more."""
    where = (source.alias, *partition.key)
    now = source.topic_ids[partition.topic]
    if now != partition.source_topic_id:
        return TopicRecreated(*where, str(partition.source_topic_id), str(now))
    if target.topic_ids[partition.remote_topic] != partition.target_topic_id:
        return TargetTruncated(*where, target.alias, partition.remote_topic, max(partition.target_end, 0), 0)
    return None


def _unavailable(slot: Slot, partition: SlotPartition, reason: str) -> TargetUnavailable:
    where = (slot.flow.source.alias, *partition.key)
    return TargetUnavailable(*where, slot.flow.target.alias, partition.remote_topic, reason)


def _leave_out_stuck(slot: Slot, attempts: _Attempts, stuck: TransactionStuck) -> tuple[Outcome, AirmirrorError | None]:
    """The partitions that take no marker have failed; the others are cut."""
    lacking = [partition for partition in slot.partitions if partition.remote in stuck.reasons]
    for partition in lacking:
        _leave_out(attempts, partition.key, _unavailable(slot, partition, stuck.reasons[partition.remote]), None)
    return (Outcome.CUT, None) if lacking else (Outcome.FAILED, stuck)


def _leave_out(attempts: _Attempts, key: TopicPartition, error: AirmirrorError, first_bad: int | None) -> None:
    """Hold a partition from where it is bad; what comes before is still copied."""
    again = key in attempts.failed and attempts.limits.get(key) == first_bad
    attempts.failed[key] = error
    if first_bad is None or again:
        attempts.limits.pop(key, None)
    else:
        attempts.limits[key] = first_bad


def _leave_out_topic(slot: Slot, attempts: _Attempts, gone: TopicNotFound) -> bool:
    """Return whether the slot can continue without it: an internal topic is made again by the next window only."""
    found = False
    for partition in slot.partitions:
        name = partition.topic if gone.cluster == slot.flow.source.alias else partition.remote_topic
        if name == gone.topic and gone.partition in (-1, partition.partition):
            found = True
            _leave_out(attempts, partition.key, gone, None)
    if not found:
        for partition in slot.partitions:
            unavailable = PartitionUnavailable(slot.flow.source.alias, *partition.key, str(gone))
            _leave_out(attempts, partition.key, unavailable, None)
    return found
