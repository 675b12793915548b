"""Records in the remote topics that the flow did not write: looked for as every slot does before it writes (invariant B)."""

from __future__ import annotations

from collections.abc import Sequence

from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.adjacent import explained, look
from airmirror.slot.contract import SlotPartition
from airmirror.windows.plan import Planned

LEADER_SECONDS = 3.0


def foreign_records(source: str, target: Routes, planned: Sequence[Planned]) -> list[AirmirrorError]:
    """The errors of partitions whose remote partition holds records of others after what the flow wrote last.

    Partitions that are in error already, or not there yet, are not looked at.
    """
    asked = [item for item in planned if item.error is None]
    missing = target.refresh_existing({item.remote_topic for item in asked})
    there = [item for item in asked if item.remote_topic not in missing and target.has(_remote(item))]
    led = set(target.with_leader([_remote(item) for item in there], LEADER_SECONDS))
    partitions = [_partition(item, target) for item in there if _remote(item) in led]
    _, errors = look(source, target, partitions)
    return [error for _, error in sorted(errors.items())]


def _remote(item: Planned) -> TopicPartition:
    return TopicPartition(item.remote_topic, item.partition)


def _partition(item: Planned, target: Routes) -> SlotPartition:
    """The partition as a slot has it, of which only what concerns its end on the target counts here."""
    before, target_id = item.last, target.topic_ids[item.remote_topic]
    return SlotPartition(
        topic=item.topic,
        partition=item.partition,
        remote_topic=item.remote_topic,
        start=item.start,
        end=item.end,
        source_topic_id=before.source_topic_id if before else target_id,
        target_topic_id=target_id,
        target_end=before.target_end if before else -1,
        known_end=explained(before),
        leader_epoch=-1,
        compacted=False,
        max_message_bytes=0,
    )
