"""Carrying out resets: both sides are looked at, and what was decided is one transaction under the lease (A and B)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import TopicNotDescribed
from airmirror.errors import AirmirrorError
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.adjacent import data_batches
from airmirror.slot.internal_records import KeyValue
from airmirror.windows import driver
from airmirror.windows.declared import compacted_topics
from airmirror.windows.diverged import diverged_at, kept_on_target, look_at_epochs
from airmirror.windows.fence import GrantedLease
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import Planned
from airmirror.windows.resets import Choice, Facts, Reset, ResetNotPossible, mapping_records, verified_record
from airmirror.windows.takeover import TakenOver, take_over

NO_TOPIC = UUID(int=0)


def look(mirror: Mirror, topics: Mapping[str, str], choice: Choice, state: State | None = None) -> list[Facts]:
    """The facts of every partition of ``topics`` (with their remote topics). The index has been brought up to date; ``state``:
    in the place of its own.

    A remote topic that is not there counts as empty. Raises TopicNotFound for a topic that the source does not have,
    unless it is to be forgotten; ResetNotPossible where one that is to be forgotten is there.
    """
    flow, source, target, index = mirror.flow, mirror.source, mirror.target, mirror.index
    state = state or index.state()
    if choice is Choice.FORGET:
        missing = source.refresh_existing(topics)
        for topic in sorted(topics):
            if topic not in missing or isinstance(missing[topic], TopicNotDescribed):
                reason = "the source has it; exclude it from the flow's topics, or use --start-again"
                raise ResetNotPossible(topic, choice, reason)
        known = [TopicPartition(*key) for key in state.known if key[0] in topics]
        return [_facts_of_gone(key, topics[key.topic], state.positions[key]) for key in known]
    source.refresh(topics)
    keys = source.keys(topics)
    missing = target.refresh_existing(topics.values())
    remote = {key: TopicPartition(topics[key.topic], key.partition) for key in keys if topics[key.topic] not in missing}
    epochs = look_at_epochs(mirror, dict.fromkeys(keys, 0), {key: (each, 0) for key, each in remote.items()})
    ends = offsets_with_patience(target, remote.values(), LATEST, read_committed=True)
    earliest, watermarks = offsets_with_patience(source, keys, EARLIEST), offsets_with_patience(source, keys, LATEST)
    found = []
    for key in keys:
        newest = state.mappings.get(key)
        target_id = target.topic_ids[topics[key.topic]] if key in remote else NO_TOPIC
        end = ends[remote[key]] if key in remote else 0
        position = state.positions.get(key, -1)
        records = sorted(index.mappings(*key), key=lambda record: record.source_start)
        of_topic = [record for record in records if record.source_topic_id == source.topic_ids[key.topic]]
        readable, foreign = newest is not None and newest.target_topic_id == target_id, False
        is_first = newest is None and key not in state.progress  # what MirrorMaker 2 has left is not foreign
        if key in remote and not flow.is_aggregate and (readable or is_first):
            foreign = any(data_batches(target, remote[key], newest.target_end if newest else 0, end))
        facts = Facts(
            *key,
            remote_topic=topics[key.topic],
            source_topic_id=source.topic_ids[key.topic],
            target_topic_id=target_id,
            earliest=earliest[key],
            high_watermark=watermarks[key],
            diverged_at=diverged_at(mirror, of_topic, readable=readable),
            target_end=end,
            foreign=foreign,
            position=position,
            records=tuple(records),
            last=newest,
            verified=state.verified.get(key),
            recorded=state.progress.get(key, -2) + 1,
            target_kept=kept_on_target(target, of_topic) if readable else -1,
            epochs=epochs[key],
        )
        found.append(replace(facts, tail=_tail(mirror, facts) if key in remote else None))
    return found


def _tail(mirror: Mirror, facts: Facts) -> TakenOver | AirmirrorError | None:
    """Return MirrorMaker 2's copy where its progress is further than mappings, or there are none; None elsewhere.

    From the newest mapping on, if both sides bear that out, so that nothing is lost; else from its progress on.
    """
    further = facts.recorded > facts.position or (facts.last is None and facts.recorded >= 0)
    if not further or facts.source_recreated or facts.target_recreated or facts.source_cut is not None:
        return None
    end = offsets_with_patience(mirror.source, [facts.key], LATEST, read_committed=mirror.flow.reads_committed)
    compacted = compacted_topics(mirror, [facts.topic])[facts.topic]
    found: TakenOver | AirmirrorError | None = None
    for start in sorted({max(facts.earliest, facts.position), max(facts.earliest, facts.recorded)}):
        item = Planned(*facts.key, facts.remote_topic, start, max(start, end[facts.key]), facts.high_watermark)
        found = take_over(mirror, item, compacted=compacted)
        if isinstance(found, TakenOver) and found.end >= facts.recorded:
            return found
    return found


def commit(granted: GrantedLease, resets: Sequence[Reset], *, by: str, reason: str) -> None:
    """Commit what was decided, in one transaction under the lease. Raises SlotFenced where the lease is another's by now.

    What was held is released; but where something differs it is the gate's to judge what is left, and to release it.
    """
    topics, state = granted.journal.topics, granted.journal.index.state()
    granted.journal.target.refresh([topics.mappings, topics.progress])
    now = int(time.time() * 1000)
    log = TopicPartition(topics.mappings, 0)
    records: dict[TopicPartition, list[KeyValue]] = {log: []}
    for reset in resets:
        key = reset.facts.key
        if not reset.rewritten:
            if hold := state.holds.get(key):
                records[log].append((hold.encode_key(), None))
            partition, progress = driver.progress_of(granted, key, reset.start)
            records.setdefault(partition, []).append(progress)
        records[log] += _mapping_topic(reset, granted, now, by, reason)
    driver.commit(granted, records)


def _mapping_topic(reset: Reset, granted: GrantedLease, now: int, by: str, reason: str) -> Iterator[KeyValue]:
    facts, window = reset.facts, granted.lease.window
    yield from ((record.encode_key(), None) for record in reset.forgotten)
    if reset.shortened is not None:
        yield reset.shortened.encode_key(), reset.shortened.encode_value()
    yield from ((record.encode_key(), record.encode_value()) for record in reset.rewritten)
    if reset.start >= 0 and not reset.rewritten:
        if facts.verified is not None:
            remains = verified_record(reset, granted.offset)
            yield facts.verified.encode_key(), None if remains is None else remains.encode_value()
        yield from ((record.encode_key(), record.encode_value()) for record in mapping_records(reset, window, now))
    places = {"start": reset.start, "lost_first": reset.lost_first, "lost_end": reset.lost_end}
    yield driver.decision(granted, facts.key, reset.choice, reset.problem, by=by, reason=reason, **places)


def _facts_of_gone(key: TopicPartition, remote_topic: str, position: int) -> Facts:
    return Facts(*key, remote_topic, NO_TOPIC, NO_TOPIC, 0, position, -1, 0, False, position, (), None, None)
