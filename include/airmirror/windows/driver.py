"""The driver's own commits: every one initialises, then looks whether its claim still holds, then writes (invariant B).

What is written was decided before, under the claim. Who slept meanwhile for longer than his lease has fenced others by
initialising, which they survive, and finds their claim: he writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.config import Flow
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot, transaction_timeout_ms
from airmirror.slot.copy import put_batches
from airmirror.slot.delivery import Way
from airmirror.slot.internal_records import KeyValue, batches, progress_record
from airmirror.slot.outbox import Outbox
from airmirror.windows.fence import Granted, check_claim
from airmirror.windows.index import InternalTopics
from airmirror.wire.merging import Merging

Records = Mapping[TopicPartition, Sequence[KeyValue]]


def commit(
    flow: Flow, granted: Granted, target: Routes, topics: InternalTopics, records: Records, number: int = 0
) -> None:
    """Commit records of the internal topics in one transaction, under the id of slot ``number``, which was fenced.

    Raises SlotFenced where the claim is another's by now.
    """
    slot = replace(_slot(flow, granted, target, topics), number=number)
    transaction = TransactionalId(target, slot.transactional_id, transaction_timeout_ms(flow))
    transaction.initialise()
    check_claim(flow, granted, target, topics.segments)
    way = Way(
        slot=slot,
        target=target,
        transaction=transaction,
        outbox=Outbox(target, transaction),
        read_back=None,
        merging=Merging(),
    )
    put_batches(way, batches(records, int(time.time() * 1000)))
    way.outbox.drain()
    transaction.end(commit=True)


def progress_of(
    flow: Flow, granted: Granted, target: Routes, topics: InternalTopics, key: TopicPartition, position: int
) -> tuple[TopicPartition, KeyValue]:
    """MirrorMaker 2's progress of a partition that goes on at ``position``, and where it belongs; -1 deletes it."""
    return progress_record(_slot(flow, granted, target, topics), *key, position - 1 if position >= 0 else None)


def _slot(flow: Flow, granted: Granted, target: Routes, topics: InternalTopics) -> Slot:
    """The driver as a slot without partitions. ``target`` knows the internal topics."""
    return Slot(
        flow=flow,
        window=granted.claim.window,
        number=0,
        claim_offset=granted.offset,
        max_ms=0,
        max_bytes=None,
        progress_topic=topics.progress,
        progress_partitions=target.partitions(topics.progress),
        segment_topic=topics.segments,
        partitions=(),
    )
