"""The copy of a slot's partitions inside transactions: fetch, restamp, produce, read back, commit.

One thread keeps the brokers busy: the next chunk is on its way while the last one is produced, and the one before is
read back. A transaction is committed after ``window.commit.bytes`` or ``window.commit.ms``, records, progress and
mappings together (invariant A).
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from airmirror.clusters.protocol.writable import unwritable
from airmirror.slot.delivery import CopyContext
from airmirror.slot.follow import Following
from airmirror.slot.intake import Intake
from airmirror.slot.internal_records import commit_records, put_records
from airmirror.slot.lease import LeaseLog
from airmirror.slot.source import Source


def copy(
    context: CopyContext,
    source: Source,
    intakes: Sequence[Intake],
    lease: LeaseLog,
    deadline: float,
    follow: Following | None = None,
) -> bool:
    """Copy until every partition is done, the slot's time or bytes are used up, or its driver ends it; whether all are done.

    ``lease``: looked at before each further transaction, and every second; ``deadline``: when nothing new is begun any more, by
    ``time.monotonic``; ``follow``: moves the ends, and ends the attempt, as one that is done, where others are to be taken in
    again. Raises a PartitionError (the transaction is to be aborted), SlotFenced, or a transient error of the clusters.
    """
    window = context.slot.flow.window
    budget = context.slot.max_bytes if context.slot.max_bytes is not None else float("inf")
    begun, again = time.monotonic(), False
    source.ask()
    while not all(intake.is_done for intake in intakes):
        buffer, answers = source.answer()
        lease.look()
        for intake, fetched in answers:
            intake.take(buffer, fetched)
        if follow:
            follow.step(intakes)
        in_transaction = sum(intake.account.bytes for intake in intakes)
        cut = time.monotonic() >= deadline or in_transaction >= budget or lease.is_ending
        again = not cut and follow is not None and follow.takes_in_again
        if not (cut or again):
            source.ask()
        sending = time.monotonic()
        context.outbox.send_all()
        if context.read_back:
            context.read_back.step(2 * source.most_bytes)
        source.took(answers, max(time.monotonic() - sending, context.target.rest("produce")))
        if cut or again:
            break
        elapsed_ms = (time.monotonic() - begun) * 1000
        if not all(intake.account.is_empty for intake in intakes) and (
            in_transaction >= window.commit_bytes
            or elapsed_ms >= min(window.commit_ms, source.pace.commit_ms, source.limit.commit_ms)
            or any(intake.account.is_full or intake.awaits_commit for intake in intakes)
            or (follow and follow.is_due(intakes, elapsed_ms))
        ):
            commit(context, source, intakes, lease)
            if all(intake.is_done for intake in intakes):
                return True
            begin_another(context, lease)
            source.limit.share_out(lease.commits)
            budget -= in_transaction
            begun = time.monotonic()
    commit(context, source, intakes, lease)
    return again or all(intake.is_done for intake in intakes)


def commit(context: CopyContext, source: Source, intakes: Sequence[Intake], lease: LeaseLog) -> None:
    """Read back what is outstanding, then commit records, progress and mappings together (invariant A).

    What this waits for ends with the window, and some seconds (``attempts.GRACE_SECONDS``).
    """
    changed = [intake for intake in intakes if not intake.account.is_empty]
    if not changed:
        return
    context.outbox.drain()
    if context.read_back:
        context.read_back.drain()
    source.check_topics()
    lease.check_follows({intake.partition.key: intake.account.start for intake in changed}, context.transaction.name)
    put_records(context.outbox, commit_records(context, changed))
    context.outbox.drain()
    check_targets(context, changed)
    context.transaction.end(commit=True)
    for intake in changed:
        intake.committed()


def begin_another(context: CopyContext, lease: LeaseLog) -> None:
    """Initialise, then look at the lease, before every further transaction too (invariant B).

    A transaction that was committed and can't be ended in a partition is never fenced: its producer must not continue.
    """
    context.transaction.initialise()
    context.outbox.start_sequences_anew()
    lease.check()


def check_targets(context: CopyContext, intakes: Sequence[Intake]) -> None:
    """Raise TargetUnavailable where a partition takes no records now: a commit that can't be ended there blocks its id."""
    context.target.refresh({intake.partition.remote_topic for intake in intakes})
    refusing = unwritable(context.target, [intake.partition.remote for intake in intakes])
    for intake in intakes:
        if reason := refusing.get(intake.partition.remote):
            raise intake.delivery.unavailable(reason)
