"""Planning a window from both clusters and what is known of the flow: what there is to do, and the slots that do it.

The remote topics of a plan are looked at in every window, also when nothing is new: still those that were written to, as long as
they were left, and writable. What is wrong with a partition of the target is that partition's error.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from airmirror.clusters.protocol.epochs import EpochEnd, epoch_ends
from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.clusters.protocol.writable import unwritable
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.adjacent import explained
from airmirror.slot.contract import Slot, SlotPartition
from airmirror.slot.errors import TargetTruncated, TargetUnavailable, of_flow
from airmirror.windows.declared import compacted_topics, may_be_purged, times_replaced
from airmirror.windows.demand import Demand
from airmirror.windows.diverged import with_epochs
from airmirror.windows.errors import ReturnOver, TopicFrozen
from airmirror.windows.fence import GrantedLease
from airmirror.windows.hanging import name_hanging
from airmirror.windows.mirror import Mirror, caught_up_reverse
from airmirror.windows.plan import LogExtent, Planned, leaderless, left_out, pack, plan
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.owners import Owner, Ownership

LEADER_SECONDS = 5.0


def make_plan(mirror: Mirror, state: State, remote_topics: Mapping[str, str]) -> list[Planned]:
    """Every partition of the flow's topics, with what there is to do; one without a leader or access is in error, alone."""
    flow, source = mirror.flow, mirror.source
    missing = source.refresh_existing(remote_topics)
    everything = source.keys(remote_topics)
    partitions = source.with_leader(everything, LEADER_SECONDS)
    earliest = offsets_with_patience(source, partitions, EARLIEST)
    watermarks = offsets_with_patience(source, partitions, LATEST)
    ends = watermarks
    if flow.reads_committed:
        ends = offsets_with_patience(source, partitions, LATEST, read_committed=True)
    extents = {key: LogExtent(earliest[key], ends[key], watermarks[key]) for key in partitions}
    planned = plan(
        flow.source.alias,
        mirror.topics.progress,
        remote_topics,
        extents,
        topic_ids=source.topic_ids,
        state=state,
        purged={topic for topic in remote_topics if may_be_purged(flow, topic)},
    )
    planned = with_targets(with_epochs(planned, source), flow.source.alias, mirror.target)
    if flow.reads_committed:
        planned = name_hanging(source, planned)
    unled = [key for key in everything if key not in extents]
    planned += [left_out(key, remote_topics[key.topic], state, leaderless(flow.source.alias, key)) for key in unled]
    planned += [
        left_out(key, remote_topics[topic], state, error)
        for topic, error in missing.items()
        for key in [TopicPartition(*known) for known in state.known if known[0] == topic] or [TopicPartition(topic, 0)]
    ]
    return [replace(item, error=of_flow(item.error, flow)) for item in planned]


def frozen_now(mirror: Mirror, remote_topics: Collection[str]) -> dict[str, Ownership | None]:
    """The topics that no window may write for, with the records that say so: under a lease that has fenced, and caught up.

    Of a topic that returns the reverse flow says it, on the source: whoever ends a return holds this lease
    meanwhile. None: its return is over.
    """
    owners, flow = mirror.index.owners(), mirror.flow
    found: dict[str, Ownership | None] = {
        topic: record for topic in remote_topics if (record := owners.why_frozen(topic))
    }
    if back := flow.returns.keys() & set(remote_topics):
        reverse = caught_up_reverse(mirror.source, flow, mirror.index)
        still = reverse.owners().returning((Owner.RETURNING,)) if reverse else {}
        found |= dict.fromkeys(back - still.keys())
    return found


def frozen_since(
    flow: Flow, state: State, remote_topics: Mapping[str, str], shut: Mapping[str, Ownership | None]
) -> Iterator[Planned]:
    """Yield the partitions of topics that were frozen between the look at topics and the lease: nothing of them is written."""
    for topic in sorted(remote_topics.keys() & shut.keys()):
        freeze, remote = shut[topic], remote_topics[topic]
        for key in [TopicPartition(*known) for known in state.known if known[0] == topic] or [TopicPartition(topic, 0)]:
            error: AirmirrorError = (
                TopicFrozen(flow.source.alias, *key, freeze.by, freeze.time_ms, freeze.reason)
                if freeze
                else ReturnOver(flow.source.alias, *key, flow.reverse_name)
            )
            yield left_out(key, remote, state, of_flow(error, flow) or error)


def chosen(
    planned: Sequence[Planned], only: Callable[[TopicPartition], bool], until: Mapping[TopicPartition, int] | None
) -> list[Planned]:
    """The part of a plan that is wanted: only some partitions, and of these up to some offsets."""
    found = [item for item in planned if only(item.key)]
    if until is None:
        return found
    return [replace(item, end=max(item.start, min(item.end, until.get(item.key, item.start)))) for item in found]


def demand_of(wanted: Sequence[Planned], follows: bool) -> Demand:
    """Return the bytes of these partitions, and how long the oldest record has waited."""
    now_ms = int(time.time() * 1000)
    sizes = tuple(item.bytes_wanted(follows, now_ms) for item in wanted)
    return Demand(sizes, max((item.waited_ms(now_ms) for item in wanted), default=0))


def slots_of(
    mirror: Mirror, granted: GrantedLease, numbers: Sequence[int], planned: Sequence[Planned], follow_ms: int
) -> list[Slot]:
    """Slots of these numbers, or of fewer, for what there is to do, and with ``follow_ms`` for what comes."""
    flow, target, topics = mirror.flow, mirror.target, mirror.topics
    work = [item for item in planned if item.takes_part(follow_ms > 0)]
    if not work:
        return []
    remote = {item.remote_topic for item in work}
    target.refresh(remote | {topics.progress})
    # Partitions that the source was given since the topics were synchronised are the next window's.
    work = [item for item in work if item.partition < target.partitions(item.remote_topic) or item.last is not None]
    limits = topic_configs(target, remote, ["max.message.bytes"])
    compacted = compacted_topics(mirror, {item.topic for item in work})
    timeless = times_replaced(flow)
    partitions, now_ms = [], int(time.time() * 1000)
    for item in work:
        before = item.last
        partition = SlotPartition(
            *item.key,
            remote_topic=item.remote_topic,
            start=item.start,
            end=item.end,
            source_topic_id=mirror.source.topic_ids[item.topic],
            target_topic_id=before.target_topic_id if before else target.topic_ids[item.remote_topic],
            target_end=before.target_end if before else -1,
            known_end=explained(before),
            leader_epoch=before.leader_epoch if before else -1,
            target_epoch=before.target_epoch if before else -1,
            source_checksum=before.source_checksum if before else -1,
            compacted=compacted[item.topic],
            max_message_bytes=int(limits[item.remote_topic]["max.message.bytes"]),
            keeps_times=not timeless.matches(item.topic),
            purged=may_be_purged(flow, item.topic),
        )
        partitions.append((partition, item.bytes_wanted(follow_ms > 0, now_ms)))
    limit = flow.window.max_bytes
    packed = pack(partitions, len(numbers))
    return [
        Slot(
            flow=flow,
            window=granted.lease.window,
            number=number,
            lease_offset=granted.offset,
            max_ms=flow.window.max_ms,
            max_bytes=None if limit is None or follow_ms else max(1, int(limit * share)),
            progress_topic=topics.progress,
            progress_partitions=target.partitions(topics.progress),
            mapping_topic=topics.mappings,
            partitions=members,
            slots=len(packed),
            follow_ms=follow_ms,
        )
        for number, (members, share) in zip(numbers, packed, strict=False)
    ]


ELECTION_SECONDS = 3.0  # for a leader of a remote topic


def with_targets(planned: Sequence[Planned], source: str, target: Routes) -> list[Planned]:
    """The plan, with an error for each partition whose remote topic is gone, another one, cut short or takes no records."""
    asked = [item for item in planned if item.error is None and (item.last is not None or item.has_work)]
    missing = target.refresh_existing({item.remote_topic for item in asked})
    there = [item.remote for item in asked if item.remote_topic not in missing and target.has(item.remote)]
    refusing = unwritable(target, there, ELECTION_SECONDS)
    ends = offsets_with_patience(target, [key for key in there if key not in refusing], LATEST)
    epochs = {
        item.remote: item.last.target_epoch
        for item in asked
        if item.last is not None and item.last.target_epoch >= 0 and item.remote in ends
    }
    parted = epoch_ends(target, epochs)

    def error(item: Planned) -> AirmirrorError | None:
        before, remote = item.last, item.remote
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


def _unavailable(
    item: Planned, source: str, target: Routes, reasons: Mapping[TopicPartition, str]
) -> TargetUnavailable | None:
    reason = reasons.get(item.remote)
    return TargetUnavailable(source, *item.key, target.alias, item.remote_topic, reason) if reason else None
