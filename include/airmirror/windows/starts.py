"""Where a flow begins that starts at the latest offsets: committed at once, before anything is copied."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from uuid import UUID

from airmirror.clusters.routes import Routes
from airmirror.clusters.transactions import TransactionalId
from airmirror.config import Flow
from airmirror.windows.copy import put_internal_records
from airmirror.windows.index import Index, InternalTopics
from airmirror.windows.intake import Intake, Way
from airmirror.windows.outbox import Outbox
from airmirror.windows.plan import Planned
from airmirror.windows.slots import Slot, SlotPartition

_TIMEOUT_MS = 60_000


def commit_starts(
    flow: Flow,
    window: str,
    claim_offset: int,
    target: Routes,
    topics: InternalTopics,
    index: Index,
    planned: Sequence[Planned],
    topic_ids: Mapping[str, UUID],
) -> None:
    """Commit the end of every partition that has records as its progress, so that they are never copied.

    ``auto.offset.reset=latest`` applies to the flow's first window only; what is found later starts at the beginning.
    """
    target.refresh({item.remote_topic for item in planned} | {topics.segments, topics.progress})
    partitions = tuple(
        SlotPartition(
            item.topic, item.partition, item.remote_topic, item.end, item.end, topic_ids[item.topic],
            target.topic_ids[item.remote_topic], -1, -1, False, 0,
        )
        for item in planned
        if item.end > 0
    )  # fmt: skip
    slot = Slot(
        flow, window, 0, claim_offset, int(time.time() * 1000), None, topics.progress,
        target.partitions(topics.progress), topics.segments, partitions,
    )  # fmt: skip
    transaction = TransactionalId(target, slot.transactional_id, _TIMEOUT_MS)
    transaction.initialise()
    way = Way(slot, target, transaction, Outbox(target, transaction), None)
    put_internal_records(way, [Intake(way, partition, partition.end) for partition in partitions])
    way.outbox.drain()
    transaction.end(commit=True)
