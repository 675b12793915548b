"""Where partitions begin that Airmirror has not copied before: committed at once, before anything is copied.

At the latest offsets, where ``auto.offset.reset=latest`` and it is the flow's first window; after what MirrorMaker 2
has left on the target, where its progress is there and segments are not.
"""

from __future__ import annotations

from collections.abc import Sequence

from airmirror.clusters.routes import Routes
from airmirror.clusters.transactions import TransactionalId
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.windows.declared import times_replaced
from airmirror.windows.index import Index, InternalTopics
from airmirror.windows.plan import Planned
from airmirror.windows.slot.account import Account
from airmirror.windows.slot.copy import put_internal_records
from airmirror.windows.slot.intake import Intake, Way
from airmirror.windows.slot.outbox import Outbox
from airmirror.windows.slots import Slot, SlotPartition, transaction_timeout_ms
from airmirror.windows.takeover import TakenOver, candidates, take_over
from airmirror.wire.merging import Merging
from airmirror.wire.requests import TopicPartition


def at_latest(flow: Flow, index: Index, planned: Sequence[Planned]) -> list[TakenOver]:
    """The starts of a flow's first window under ``auto.offset.reset=latest``: the end of every partition with records."""
    if flow.auto_offset_reset != "latest" or index.progress() or index.last_segments():
        return []
    return [TakenOver(item, Account(item.end, -1), -1) for item in planned if item.end > 0]


def need_starts(flow: Flow, index: Index, planned: Sequence[Planned]) -> bool:
    """Whether ``commit_starts`` has something to do."""
    return bool(at_latest(flow, index, planned) or candidates(index, planned))


def commit_starts(
    flow: Flow,
    window: str,
    claim_offset: int,
    source: Routes,
    target: Routes,
    topics: InternalTopics,
    index: Index,
    planned: Sequence[Planned],
) -> dict[TopicPartition, AirmirrorError]:
    """Commit where partitions begin, in one transaction under the claim; what is wrong with single partitions."""
    target.refresh({item.remote_topic for item in planned} | {topics.segments, topics.progress})
    starts = at_latest(flow, index, planned)
    errors: dict[TopicPartition, AirmirrorError] = {}
    for item in candidates(index, planned):
        times = not times_replaced(flow).matches(item.topic)
        found = take_over(source, target, item, flow.isolation_level == "read_committed", times)
        if isinstance(found, TakenOver):
            starts.append(found)
        else:
            errors[item.key] = found
    if starts:
        _commit(flow, window, claim_offset, source, target, topics, starts)
    return errors


def _commit(
    flow: Flow,
    window: str,
    claim_offset: int,
    source: Routes,
    target: Routes,
    topics: InternalTopics,
    starts: Sequence[TakenOver],
) -> None:
    partitions = [_partition(start, source, target) for start in starts]
    slot = Slot(
        flow, window, 0, claim_offset, 0, None, topics.progress,
        target.partitions(topics.progress), topics.segments, tuple(partitions),
    )  # fmt: skip
    transaction = TransactionalId(target, slot.transactional_id, transaction_timeout_ms(flow))
    transaction.initialise()
    way = Way(slot, target, transaction, Outbox(target, transaction), None, Merging())
    intakes = []
    for partition, start in zip(partitions, starts, strict=True):
        intake = Intake(way, partition, partition.end)
        intake.account = start.account
        intakes.append(intake)
    put_internal_records(way, intakes)
    way.outbox.drain()
    transaction.end(commit=True)


def _partition(start: TakenOver, source: Routes, target: Routes) -> SlotPartition:
    item = start.planned
    return SlotPartition(
        item.topic, item.partition, item.remote_topic, start.account.start, start.account.end,
        source.topic_ids[item.topic], target.topic_ids[item.remote_topic], start.target_end, -1, False, 0,
    )  # fmt: skip
