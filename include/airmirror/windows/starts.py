"""The beginning of partitions that Airmirror has not copied before: committed at once, before anything is copied.

Committed with it is MirrorMaker 2's progress, where it was lost while mappings say how far this flow has come.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.account import Account
from airmirror.slot.errors import PartitionUnavailable, of_flow
from airmirror.slot.internal_records import KeyValue
from airmirror.windows.declared import compacted_topics
from airmirror.windows.diverged import look_at_epochs
from airmirror.windows.driver import commit, decision, progress_of
from airmirror.windows.fence import Fenced, GrantedLease
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import Planned
from airmirror.windows.takeover import TakenOver, candidates, take_over


def at_latest(flow: Flow, state: State, planned: Sequence[Planned]) -> list[TakenOver]:
    """The starts of a flow's first window under ``auto.offset.reset=latest``: the end of every partition with records.

    Where none has any, of all of them: without a start the next window would be the first one, and skip what is new by then.
    """
    if flow.auto_offset_reset != "latest" or state.positions:
        return []
    begun = [item for item in planned if item.end > 0] or [item for item in planned if item.error is None]
    return [TakenOver(item, (Account(item.end, -1),)) for item in begun]


def unexported(state: State, planned: Sequence[Planned]) -> list[Planned]:
    """The partitions with mappings and without progress: a topic that was deleted or cut."""
    return [
        item
        for item in planned
        if item.error is None and item.key in state.mappings and item.key not in state.progress and item.start > 0
    ]


def need_starts(flow: Flow, state: State, planned: Sequence[Planned]) -> bool:
    """Return whether ``commit_starts`` has something to do."""
    return bool(at_latest(flow, state, planned) or candidates(state, planned) or unexported(state, planned))


def not_begun(flow: Flow, state: State, planned: Sequence[Planned]) -> dict[TopicPartition, AirmirrorError | None]:
    """The partitions of a plan after the starts that MirrorMaker 2 has copied, and that were not taken over with the others.

    They could not be seen then; records of MirrorMaker 2 are no strangers', and the next window takes them over.
    """
    reason = "it could be seen only after the others were taken over"
    return {
        item.key: of_flow(PartitionUnavailable(flow.source.alias, *item.key, reason), flow)
        for item in candidates(state, planned)
    }


def commit_starts(
    mirror: Mirror, granted: GrantedLease, fenced: Fenced, state: State, planned: Sequence[Planned]
) -> dict[TopicPartition, AirmirrorError | None]:
    """Commit where partitions begin, in one transaction under the lease; what is wrong with single partitions."""
    flow, target, topics = mirror.flow, mirror.target, mirror.topics
    target.refresh({item.remote_topic for item in planned} | {topics.mappings, topics.progress})
    starts = at_latest(flow, state, planned)
    unseen = [item.key for item in planned if isinstance(item.error, PartitionUnavailable)]
    if starts and unseen:  # one that were seen later would begin at its earliest offset
        reason = f"auto.offset.reset=latest begins all partitions at once, and {unseen[0]} can't be seen now"
        return {item.key: of_flow(PartitionUnavailable(flow.source.alias, *item.key, reason), flow) for item in planned}
    if starts:
        epochs = look_at_epochs(mirror, {each.planned.key: each.end for each in starts}, {})
        for each in starts:
            epochs[each.planned.key].noted(each.accounts)
    errors: dict[TopicPartition, AirmirrorError | None] = {}
    copied_before = candidates(state, planned)
    compacted = compacted_topics(mirror, {item.topic for item in copied_before})
    for item in copied_before:
        found = take_over(mirror, item, compacted=compacted[item.topic])
        if isinstance(found, TakenOver):
            starts.append(found)
        else:
            errors[item.key] = of_flow(found, flow)
    records = records_of(mirror, granted, starts)
    for item in unexported(state, planned):
        partition, progress = progress_of(granted, item.key, item.start)
        records.setdefault(partition, []).append(progress)
    if records:
        commit(granted, records, fenced.numbers[0])
    return errors


def commit_copies(mirror: Mirror, granted: GrantedLease, number: int, copies: Sequence[TakenOver], by: str) -> None:
    """Commit what MirrorMaker 2 has copied in one transaction under the lease, and where partitions resume after it.

    Of those that this flow has copied before it is a decision too, one of its resets.
    """
    target, topics = mirror.target, mirror.topics
    target.refresh({each.planned.remote_topic for each in copies} | {topics.mappings, topics.progress})
    records = records_of(mirror, granted, copies)
    for each in copies:
        if each.planned.last is not None:
            key, first = each.planned.key, each.accounts[0].start
            problem = f"MirrorMaker 2 has copied {each.copied} records since, and {each.again} of them again"
            why = "airmirror takeover"
            decided = decision(granted, key, "take-over", problem, by=by, reason=why, start=each.end, lost_first=first)
            records[TopicPartition(topics.mappings, 0)].append(decided)
    if records:
        commit(granted, records, number)


def records_of(
    mirror: Mirror, granted: GrantedLease, starts: Sequence[TakenOver]
) -> dict[TopicPartition, list[KeyValue]]:
    """The mapping records of ``starts``, and the progress after them, by the partition in which they belong."""
    window, now = granted.lease.window, int(time.time() * 1000)
    records: dict[TopicPartition, list[KeyValue]] = {}
    for start in starts:
        item = start.planned
        ids = (mirror.source.topic_ids[item.topic], mirror.target.topic_ids[item.remote_topic])
        made = start.records(ids, window=window, time_ms=now)
        of_mappings = records.setdefault(TopicPartition(mirror.topics.mappings, 0), [])
        of_mappings += [(record.encode_key(), record.encode_value()) for record in made]
        partition, progress = progress_of(granted, item.key, start.end or -1)
        records.setdefault(partition, []).append(progress)
    return records
