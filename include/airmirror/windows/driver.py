"""The driver's own commits: every one initialises, then looks whether its lease still holds, then writes (invariant B).

What is written was decided before, under the lease. Who slept meanwhile for longer than his lease has fenced others by
initialising, which they survive, and finds their lease: he writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from airmirror.clusters.protocol.transactions import ProducerFenced, TransactionalId
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot, transaction_timeout_ms
from airmirror.slot.copy import put_batches
from airmirror.slot.delivery import CopyContext
from airmirror.slot.internal_records import KeyValue, batches, progress_record
from airmirror.slot.outbox import Outbox
from airmirror.windows.fence import GrantedLease
from airmirror.wire.merging import Merging

Records = Mapping[TopicPartition, Sequence[KeyValue]]


def commit(granted: GrantedLease, records: Records, number: int = 0) -> None:
    """Commit records of the internal topics in one transaction, under the id of slot ``number``, which was fenced.

    Raises SlotFenced where the lease is another's by now.
    """
    slot, target = replace(_slot(granted), number=number), granted.journal.target
    transaction = TransactionalId(target, slot.transactional_id, transaction_timeout_ms(slot.flow))
    transaction.initialise()
    granted.check()
    context = CopyContext(
        slot=slot,
        target=target,
        transaction=transaction,
        outbox=Outbox(target, transaction),
        read_back=None,
        merging=Merging(),
    )
    try:
        try:
            put_batches(context, batches(records, int(time.time() * 1000)))
            context.outbox.drain()
        except AirmirrorError:
            with suppress(AirmirrorError):  # the next InitProducerId aborts it too; this is sooner
                transaction.end(commit=False)
            raise
        transaction.end(commit=True)
    except ProducerFenced:
        granted.check()  # whoever takes the lease fences after it
        raise


def progress_of(granted: GrantedLease, key: TopicPartition, position: int) -> tuple[TopicPartition, KeyValue]:
    """MirrorMaker 2's progress of a partition that resumes at ``position``, and where it belongs; -1 deletes it."""
    return progress_record(_slot(granted), *key, position - 1 if position >= 0 else None)


def _slot(granted: GrantedLease) -> Slot:
    """The driver as a slot without partitions."""
    journal = granted.journal
    return Slot(
        flow=journal.flow,
        window=granted.lease.window,
        number=0,
        lease_offset=granted.offset,
        max_ms=0,
        max_bytes=None,
        progress_topic=journal.topics.progress,
        progress_partitions=journal.target.partitions(journal.topics.progress),
        mapping_topic=journal.topics.mappings,
        partitions=(),
    )
