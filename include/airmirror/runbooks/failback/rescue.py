"""Rescuing records that were never replicated: copied to the target, each once, with headers of their origin, before anything
else.

Into ``<remote topic>.rescued.<date>``, whose records nothing deletes. Each transaction writes one batch and the record that
accounts for it (invariant A), under the flow's lease and after a fence (invariant B): whoever is killed and runs again resumes
after the last one, and of two at once one ends as fenced.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

import numpy as np

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.errors import AirmirrorError, command, counted
from airmirror.evidence.logs import Log
from airmirror.flows.freezing import check_none_returns, overtaking, owners_now
from airmirror.flows.prepare import Opened
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failback.divergence import Divergence, Offsets
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import NothingReturns, Pair, check_known
from airmirror.runbooks.failback.plan import FailbackPlan, failback_plan
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.slot.internal_records import put_records
from airmirror.slot.outbox import Outbox, Outgoing
from airmirror.tell import Tell, silent
from airmirror.times import utc
from airmirror.topics.internal import ANY_TIME
from airmirror.windows.driver import commit_written
from airmirror.windows.fence import GrantedLease, fence_around, new_window
from airmirror.wire.batches import HEADER_SIZE
from airmirror.wire.headers import with_headers
from airmirror.wire.moves import Rescue
from airmirror.wire.records import Array, Records, write
from airmirror.wire.requests import Produced

BATCH_BYTES = 512 << 10
LARGEST = 100 << 20  # of a record in a topic of rescued ones: what a request can have
READY_SECONDS = 30.0
ORIGIN = "airmirror.origin."  # the first part of the headers' names


class FlowNotFrozen(AirmirrorError):
    """A rescue of what is not frozen: the flow's next window copies the records that it would rescue."""

    flow: str
    topics: tuple[str, ...]  # that the order names, and that are not frozen

    def __str__(self) -> str:
        freezing = command("flow", "freeze", "--reason", "…", "--yes", flow=self.flow, topics=self.topics)
        which = f"{', '.join(self.topics)} of flow" if self.topics else "flow"
        return f"{which} {self.flow!r} is not frozen, so that its next window copies these records; freeze it first: {freezing}"


class RescueRefused(AirmirrorError):
    """A record that the target does not take; those before it are rescued."""

    cluster: str
    topic: str
    partition: int
    offset: int
    into: str
    reason: str
    says = (
        "{0.topic}-{0.partition} from offset {0.offset} on: topic {0.into!r} of cluster {0.cluster!r} does not take it: "
        "{0.reason}; mend that (its max.message.bytes, the right to write to it), and run it again"
    )


class RescueTopicUnfit(AirmirrorError):
    """A topic of rescued records that is there, and has too few partitions."""

    cluster: str
    topic: str
    partitions: int
    wanted: int
    says = (
        "cluster {0.cluster!r}: topic {0.topic!r} has {0.partitions} partitions, and {0.wanted} are needed: "
        "`kafka-topics.sh --bootstrap-server … --alter --topic {0.topic} --partitions {0.wanted}`"
    )


@dataclass(frozen=True)
class PartitionToRescue:
    """A partition's records to be rescued, and the topic that they are copied to."""

    row: Divergence
    into: str


def to_rescue(plan: FailbackPlan, order: FailbackOrder) -> list[PartitionToRescue]:
    """Return what a rescue would copy; without topics nothing that another order has named. Raises NothingReturns."""
    if strangers := set(order.topics) - {row.topic for row in plan.partitions}:
        raise NothingReturns(plan.flow, tuple(sorted(strangers)))
    date = utc(plan.made_ms, "%Y-%m-%d")
    return [
        PartitionToRescue(row, f"{row.remote_topic}.rescued.{date}")
        for row in plan.partitions
        if row.never.records and (row.topic in order.topics if order.topics else row.topic not in plan.apart)
    ]


def rescue(opened: Opened, order: FailbackOrder, tell: Tell = silent) -> tuple[list[PartitionToRescue], FailbackPlan]:
    """Copy what was never replicated; what was to be copied, and how things are after it. Done again, it copies what is left.

    Raises FlowNotFrozen, NothingReturns, StillReturning, SourceStillGone, RescueTopicUnfit, RescueRefused,
    FlowBusy, SlotFenced, or a cluster's error.
    """
    _check_frozen(opened, order.topics)
    flow = opened.flow
    with (
        Routes(flow.source, f"airmirror|{flow.name}|rescue") as source,
        overtaking(opened, new_window("rescue"), tell) as granted,
    ):
        _check_frozen(opened, order.topics)  # it may have been unfrozen since, or return
        tell("reading both clusters")
        plan = failback_plan(opened, order.topics)
        chosen = to_rescue(plan, order)
        if not chosen:
            return [], plan
        number = fence_around(granted, 1).numbers[0]
        source.refresh({each.row.topic for each in chosen})
        _ensure_topics(granted, chosen, source)
        granted.journal.target.refresh({*(each.into for each in chosen), granted.journal.topics.mappings})
        for each in chosen:
            tell(f"rescuing {each.row.never.records:,} records of {each.row.key}")
            _rescue(each, order, source, granted, number)
    return chosen, failback_plan(opened, order.topics)


def _check_frozen(opened: Opened, topics: Sequence[str]) -> None:
    """Raise what refuses a rescue of ``topics``, none: of the flow: FlowNotFrozen, NothingReturns, StillReturning."""
    owners = owners_now(opened)
    open_ = tuple(topic for topic in topics if not owners.why_frozen(topic))  # the rest of the flow may be frozen
    if open_ if topics else not owners.whole:
        check_known(opened, open_)
        raise FlowNotFrozen(opened.flow.name, open_)
    check_none_returns(opened, topics)


def rescue_step(pair: Pair, order: FailbackOrder, progress: Progress = SILENT) -> int:
    """The same as a step; each partition is told, and what is left: how many records."""
    chosen, after = rescue(pair.forward, order, progress.phase)
    for each in chosen:
        progress.line(f"{each.row.key}: {counted(each.row.never.records, 'record')} copied to {each.into}")
    left = sum(each.row.never.records for each in to_rescue(after, order))
    progress.line(after.headline if left else "nothing is left to rescue")
    return left


def _rescue(what: PartitionToRescue, order: FailbackOrder, source: Routes, granted: GrantedLease, number: int) -> None:
    row, flow = what.row, granted.journal.flow
    key = row.key
    begin = row.start
    limit = topic_configs(granted.journal.target, [what.into], ["max.message.bytes"])[what.into]["max.message.bytes"]
    most = min(BATCH_BYTES, int(limit) - HEADER_SIZE)
    log = Log(source, key, begin, row.end, is_committed=flow.reads_committed)
    # Others lie between where a failback was undone.
    never = Offsets.of([(first, last + 1) for first, last in row.never.runs])
    for records in log.records():
        if not len(records := records.where(never.has(records.offsets))):
            continue
        marked = with_origin(records, flow.source.alias, key)
        first = 0
        while first < len(marked):
            payload, count = write(marked, first, most)
            end = int(marked.offsets[first + count - 1]) + 1
            account = Rescue(
                source_topic_id=UUID(row.source_topic_id),
                topic=row.topic,
                partition=row.partition,
                source_start=begin,
                window=granted.lease.window,
                source_end=end,
                into=what.into,
                target_start=-1,
                target_end=-1,
                records=count,
                time_ms=int(time.time() * 1000),
                reason=order.reason.strip(),
                by=order.by.strip(),
            )
            _commit(granted, number, account, payload, marked.timestamps[first : first + count])
            begin, first = end, first + count


def _commit(granted: GrantedLease, number: int, account: Rescue, payload: memoryview, times: Array) -> None:
    """Commit one batch and its account in one transaction (invariant A)."""
    into, log = TopicPartition(account.into, account.partition), TopicPartition(granted.journal.topics.mappings, 0)

    def put(outbox: Outbox) -> None:
        bases = list[int]()
        batch = outbox.batch(into, payload, account.records, (int(times[0]), int(times.max())))
        outbox.put(
            Outgoing(
                target=into,
                buffers=[batch],
                size=len(batch),
                count=account.records,
                on_refused=partial(_refused, granted.journal.target.alias, account),
                on_written=bases.append,
            )
        )
        outbox.drain()
        written = replace(account, target_start=bases[0], target_end=bases[0] + account.records)
        put_records(outbox, {log: [(written.encode_key(), written.encode_value())]})

    commit_written(granted, number, put)


def with_origin(records: Records, cluster: str, partition: TopicPartition) -> Records:
    """The same records with headers that tell where each came from: cluster, topic, partition, offset and timestamp."""
    same = [("cluster", cluster), ("topic", partition.topic), ("partition", str(partition.partition))]
    bodies = list[bytes]()
    spans = zip(records.starts.tolist(), records.ends.tolist(), strict=True)
    places = zip(records.offsets.tolist(), records.timestamps.tolist(), strict=True)
    for (start, end), (offset, timestamp) in zip(spans, places, strict=True):
        origin = [*same, ("offset", str(offset)), ("timestamp", str(timestamp))]
        headers = [(f"{ORIGIN}{name}", text.encode()) for name, text in origin]
        bodies.append(with_headers(bytes(records.data[start:end]), headers))
    sizes = np.array([len(body) for body in bodies], np.int64)
    ends = np.cumsum(sizes, dtype=np.int64)
    return Records(np.frombuffer(b"".join(bodies), np.uint8), records.offsets, records.timestamps, ends - sizes, ends)


def _ensure_topics(granted: GrantedLease, chosen: Sequence[PartitionToRescue], source: Routes) -> None:
    """Make the topics of rescued records that are missing, with the partitions of the source's, kept for ever."""
    flow, target, mappings = granted.journal.flow, granted.journal.target, granted.journal.topics.mappings
    known = topic_configs(target, [mappings], list(ANY_TIME))[mappings]
    config = {
        "cleanup.policy": "delete",
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "max.message.bytes": str(LARGEST),
        **{key: value for key, value in ANY_TIME.items() if key in known},
    }
    wanted = {each.into: source.partitions(each.row.topic) for each in chosen}
    missing = target.refresh_existing(wanted)
    for name in wanted.keys() - missing.keys():
        if target.partitions(name) < wanted[name]:
            raise RescueTopicUnfit(target.alias, name, target.partitions(name), wanted[name])
    new = [NewTopic(name, wanted[name], flow.replication_factor, config) for name in sorted(missing)]
    for refused in create_topics(connect(flow.target), new, READY_SECONDS).refused if new else ():
        raise refused


def _refused(cluster: str, account: Rescue, answer: Produced) -> Exception:
    reason = answer.message or error_name(answer.error)
    place = account.topic, account.partition, account.source_start
    return RescueRefused(cluster, *place, account.into, reason)
