"""The driver's own commits: every one initialises, then looks whether its lease still holds, then writes (invariant B).

What is written was decided before, under the lease. Who slept meanwhile for longer than his lease has fenced others by
initialising, finds their lease, and writes nothing; they write again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from airmirror.clusters.protocol.transactions import ProducerFenced, TransactionalId
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import transaction_timeout_ms, transactional_id
from airmirror.slot.internal_records import KeyValue, progress_record, put_records
from airmirror.slot.outbox import Outbox
from airmirror.windows.fence import GrantedLease
from airmirror.wire.mappings import ResetRecord

MOST_ATTEMPTS = 5  # whoever fences without a lease does so once or twice


def commit_written(granted: GrantedLease, number: int, write: Callable[[Outbox], None]) -> None:
    """Commit what ``write`` puts into an outbox in one transaction, under the id of slot ``number``, which was fenced.

    ``write`` is called again where a process without the lease has fenced the transaction: nothing of it is committed then.
    Raises SlotFenced where the lease is another's by now.
    """
    again = Retrying(
        retry=retry_if_exception_type(ProducerFenced), stop=stop_after_attempt(MOST_ATTEMPTS), reraise=True
    )
    again(_commit_once, granted, number, write)


def _commit_once(granted: GrantedLease, number: int, write: Callable[[Outbox], None]) -> None:
    flow, target = granted.journal.flow, granted.journal.target
    transaction = TransactionalId(target, transactional_id(flow, number), transaction_timeout_ms(flow))
    transaction.initialise()
    granted.check()
    outbox = Outbox(target, transaction)
    try:
        try:
            write(outbox)
            outbox.drain()
        except AirmirrorError:
            with suppress(AirmirrorError):  # the next InitProducerId aborts it too; this is sooner
                transaction.end(commit=False)
            raise
        transaction.end(commit=True)
    except ProducerFenced:
        granted.check()  # whoever takes the lease fences after it
        raise


def commit(granted: GrantedLease, records: Mapping[TopicPartition, Sequence[KeyValue]], number: int = 0) -> None:
    """Commit records of the internal topics, as ``commit_written`` does."""
    commit_written(granted, number, lambda outbox: put_records(outbox, records))


def decision(
    granted: GrantedLease,
    key: tuple[str, int],
    choice: str,
    problem: str,
    *,
    by: str,
    reason: str,
    start: int = -1,
    lost_first: int = -1,
    lost_end: int | None = None,
) -> KeyValue:
    """The record of a decision that is carried out under the lease, as ResetRecord has it; ``lost_end`` None: nothing is lost."""
    record = ResetRecord(
        *key,
        time_ms=int(time.time() * 1000),
        choice=choice,
        problem=problem[:10_000],
        lost_first=lost_first,
        lost_end=lost_first if lost_end is None else lost_end,
        start=start,
        window=granted.lease.window,
        by=by,
        reason=reason,
    )
    return record.encode_key(), record.encode_value()


def progress_of(granted: GrantedLease, key: TopicPartition, position: int) -> tuple[TopicPartition, KeyValue]:
    """MirrorMaker 2's progress of a partition that resumes at ``position``, and where it belongs; -1 deletes it."""
    journal, topic = granted.journal, granted.journal.topics.progress
    offset = position - 1 if position >= 0 else None
    return progress_record(journal.flow, key, offset, topic, journal.target.partitions(topic))
