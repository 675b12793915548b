"""The remote topics of a plan: still those that were written to, as long as they were left, and writable.

Found out in every window, also when nothing is new. What is wrong with a partition of the target is that partition's error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from airmirror.clusters.protocol.epochs import EpochEnd, epoch_ends
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.writable import unwritable
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import TargetTruncated, TargetUnavailable
from airmirror.windows.plan import Planned
from airmirror.wire.mappings import MappingRecord

LEADER_SECONDS = 3.0  # for an election


def with_targets(planned: Sequence[Planned], source: str, target: Routes) -> list[Planned]:
    """The plan, with an error for each partition whose remote topic is gone, another one, cut short or takes no records."""
    asked = [item for item in planned if item.error is None and (item.last is not None or item.has_work)]
    missing = target.refresh_existing({item.remote_topic for item in asked})
    there = [_target(item) for item in asked if item.remote_topic not in missing and target.has(_target(item))]
    refusing = unwritable(target, there, LEADER_SECONDS)
    ends = offsets_with_patience(target, [key for key in there if key not in refusing], LATEST)
    epochs = {
        _target(item): item.last.target_epoch
        for item in asked
        if item.last is not None and item.last.target_epoch >= 0 and _target(item) in ends
    }
    parted = epoch_ends(target, epochs)

    def error(item: Planned) -> AirmirrorError | None:
        before, remote = item.last, _target(item)
        if item.remote_topic in missing:
            return missing[item.remote_topic]
        if before is not None:
            is_other = target.topic_ids[item.remote_topic] != before.target_topic_id
            end = 0 if is_other else ends.get(remote, before.target_end)
            if remote in parted and not is_other:
                end = min(end, _kept(before, parted[remote]))
            if is_other or end < before.target_end:
                return TargetTruncated(source, *item.key, target.alias, item.remote_topic, before.target_end, end)
        return _unavailable(item, source, target, refusing)

    errors = {item.key: error(item) for item in asked}
    return [replace(item, error=item.error or errors.get(item.key)) for item in planned]


def _kept(before: MappingRecord, now: EpochEnd) -> int:
    """The offset up to which a log is the one that a mapping record was written to, at most the record's end."""
    same = before.target_end - int(now.epoch != before.target_epoch)  # cut, and grown again under a later epoch
    return max(0, min(same, now.offset))


def without_stuck(
    planned: Sequence[Planned], stuck: Mapping[TopicPartition, str], source: str, target: Routes
) -> list[Planned]:
    """The plan without the partitions of the target in which a transaction can't be ended."""
    return [replace(item, error=item.error or _unavailable(item, source, target, stuck)) for item in planned]


def _target(item: Planned) -> TopicPartition:
    return TopicPartition(item.remote_topic, item.partition)


def _unavailable(
    item: Planned, source: str, target: Routes, reasons: Mapping[TopicPartition, str]
) -> TargetUnavailable | None:
    reason = reasons.get(_target(item))
    return TargetUnavailable(source, *item.key, target.alias, item.remote_topic, reason) if reason else None
