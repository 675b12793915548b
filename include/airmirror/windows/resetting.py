"""Carrying out resets: both sides are looked at, and what was decided is one transaction under the claim (A and B)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from airmirror.clusters.log import (
    EARLIEST,
    LATEST,
    offsets_with_patience,
    read_batches,
    receive_fetch,
    send_fetch,
)
from airmirror.clusters.routes import Routes
from airmirror.clusters.transactions import TransactionalId
from airmirror.config import Flow
from airmirror.windows.index import Index, InternalTopics
from airmirror.windows.resets import Choice, Facts, Reset, segment_record, verified_record
from airmirror.windows.slot.copy import put_batches
from airmirror.windows.slot.intake import Way
from airmirror.windows.slot.internal_records import KeyValue, batches, progress_record
from airmirror.windows.slot.outbox import Outbox
from airmirror.windows.slots import Slot
from airmirror.wire.merging import Merging
from airmirror.wire.requests import FetchPosition, TopicPartition
from airmirror.wire.segments import ResetRecord, SegmentRecord

TIMEOUT_MS = 60_000
NO_TOPIC = UUID(int=0)


class SegmentIndex(Index, Protocol):
    """An index that knows all segments of a partition."""

    def segments(
        self, topic: str, partition: int, source_topic_id: UUID | None = None, start: int = 0, end: int | None = None
    ) -> Iterator[SegmentRecord]: ...


def look(
    flow: Flow, index: SegmentIndex, source: Routes, target: Routes, topics: Mapping[str, str], choice: Choice
) -> list[Facts]:
    """The facts of every partition of ``topics`` (with their remote topics). The index has been brought up to date.

    A remote topic that is not there counts as empty. Raises TopicNotFound for a topic that the source does not have,
    unless it is to be forgotten.
    """
    progress, last, verified = index.progress(), index.last_segments(), index.verified()
    if choice is Choice.FORGET:
        known = [TopicPartition(*key) for key in progress if key[0] in topics]
        return [_facts_of_gone(key, topics[key.topic], progress[key]) for key in known]
    source.refresh(topics)
    keys = [TopicPartition(topic, number) for topic in topics for number in range(source.partitions(topic))]
    missing = target.refresh_existing(topics.values())
    remote = {key: TopicPartition(topics[key.topic], key.partition) for key in keys if topics[key.topic] not in missing}
    ends = offsets_with_patience(target, remote.values(), LATEST, read_committed=True)
    earliest, watermarks = offsets_with_patience(source, keys, EARLIEST), offsets_with_patience(source, keys, LATEST)
    found = []
    for key in keys:
        newest = last.get(key)
        target_id = target.topic_ids[topics[key.topic]] if key in remote else NO_TOPIC
        end = ends[remote[key]] if key in remote else 0
        position = progress[key] + 1 if key in progress else -1
        same = newest is not None and newest.source_topic_id == source.topic_ids[key.topic]
        epoch = newest.leader_epoch if newest is not None and same else -1
        inside = earliest[key] <= position <= watermarks[key]
        found.append(
            Facts(
                topic=key.topic,
                partition=key.partition,
                remote_topic=topics[key.topic],
                source_topic_id=source.topic_ids[key.topic],
                target_topic_id=target_id,
                earliest=earliest[key],
                high_watermark=watermarks[key],
                diverged_at=_diverged_at(source, key, position, epoch) if inside and epoch >= 0 else -1,
                target_end=end,
                foreign=not flow.is_aggregate
                and _foreign(target, remote.get(key), newest, target_id, end, key in progress),
                position=position,
                records=tuple(sorted(index.segments(*key), key=lambda record: record.source_start)),
                last=newest,
                verified=verified.get(key),
            )
        )
    return found


def commit(
    flow: Flow, window: str, claim_offset: int, target: Routes, topics: InternalTopics, index: Index,
    resets: Sequence[Reset], by: str, reason: str,
) -> None:  # fmt: skip
    """Commit what was decided, in one transaction under the claim whose slots are fenced.

    What was held is released; but where something differs it is the gate's to judge what is left, and to release it.
    """
    target.refresh([topics.segments, topics.progress])
    now = int(time.time() * 1000)
    slot = Slot(
        flow, window, 0, claim_offset, now, None, topics.progress, target.partitions(topics.progress), topics.segments, ()
    )  # fmt: skip
    transaction = TransactionalId(target, slot.transactional_id, TIMEOUT_MS)
    transaction.initialise()
    way = Way(slot, target, transaction, Outbox(target, transaction), None, Merging())
    records: dict[TopicPartition, list[KeyValue]] = {}
    holds = index.holds()
    for reset in resets:
        facts = reset.facts
        if reset.rewritten:
            records.setdefault(TopicPartition(topics.segments, 0), []).extend(
                _segment_topic(reset, window, now, by, reason)
            )
            continue
        if hold := holds.get(facts.key):
            records.setdefault(TopicPartition(topics.segments, 0), []).append((hold.encode_key(), None))
        place, progress = progress_record(slot, *facts.key, reset.start - 1 if reset.start >= 0 else None)
        records.setdefault(place, []).append(progress)
        records.setdefault(TopicPartition(topics.segments, 0), []).extend(
            _segment_topic(reset, window, now, by, reason)
        )
    put_batches(way, batches(records, now))
    way.outbox.drain()
    transaction.end(commit=True)


def _segment_topic(reset: Reset, window: str, now: int, by: str, reason: str) -> Iterator[KeyValue]:
    facts = reset.facts
    yield from ((record.encode_key(), None) for record in reset.forgotten)
    if reset.shortened is not None:
        yield reset.shortened.encode_key(), reset.shortened.encode_value()
    yield from ((record.encode_key(), record.encode_value()) for record in reset.rewritten)
    if reset.rewritten and facts.last is not None and facts.last.source_start != reset.rewritten[-1].source_start:
        yield facts.last.encode_key(), facts.last.encode_value()  # the newest in log order is what counts as the last
    if reset.start >= 0 and not reset.rewritten:
        if facts.verified is not None:
            remains = verified_record(reset)
            yield facts.verified.encode_key(), None if remains is None else remains.encode_value()
        record = segment_record(reset, window, now)
        yield record.encode_key(), record.encode_value()
    decision = ResetRecord(
        *facts.key, now, reset.choice, reset.problem[:10_000], reset.lost_first, reset.lost_end, reset.start, window, by, reason
    )  # fmt: skip
    yield decision.encode_key(), decision.encode_value()


def _facts_of_gone(key: TopicPartition, remote_topic: str, progress: int) -> Facts:
    return Facts(
        *key, remote_topic, NO_TOPIC, NO_TOPIC, 0, progress + 1, -1, 0, False, progress + 1, (), None, None
    )  # fmt: skip


def _diverged_at(source: Routes, key: TopicPartition, position: int, epoch: int) -> int:
    """Where the log parts from the one that was copied up to ``position``, by its last epoch (KIP-595); -1: nowhere."""
    leader = source.leader(key)
    connection = source.connection(leader.node, "epoch")
    positions = {key: FetchPosition(position, leader.epoch, epoch, 1)}
    version = send_fetch(source, connection, positions, max_wait_ms=0, max_bytes=1, read_committed=False)
    _, answers = receive_fetch(source, connection, version)
    return answers[key].diverging_end_offset if answers[key].diverging_epoch >= 0 else -1


def _foreign(
    target: Routes, remote: TopicPartition | None, last: SegmentRecord | None, target_id: UUID, end: int, copied: bool
) -> bool:
    """Whether there are records behind the flow's last one. What MirrorMaker 2 has left is not foreign."""
    if remote is None or (last is None and copied) or (last is not None and last.target_topic_id != target_id):
        return False
    start = 0 if last is None else last.target_end
    if start >= end:
        return False
    return any(
        batch.count and not aborted and not batch.is_control
        for _, found in read_batches(target, remote, start, end, read_committed=True)
        for batch, aborted in found
    )
