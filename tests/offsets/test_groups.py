"""Groups that fail over and back: together, the reads on both clusters are every record exactly once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror.clusters.appender import Appender
from airmirror.clusters.groups import Committed, commit_offsets, committed_offsets
from airmirror.clusters.routes import Routes
from airmirror.config import parse
from airmirror.flows.prepare import Opened
from airmirror.ledger import GroupOffset
from airmirror.offsets.syncs import place_of_syncs
from airmirror.offsets.translation import Reason
from airmirror.offsets.writing import ensure_topic
from airmirror.windows.slots import Slot, SlotResult
from airmirror.wire.mirrormaker import OffsetSync
from airmirror.wire.requests import TopicPartition
from airmirror_local.brokers import Broker
from support.flows import Mirror, as_mirrormaker, in_this_process, mirror
from support.groups import Protocol, commit, committed, member, read_with_group
from support.rounds import sync
from support.topics import (
    Record,
    admin,
    create_topic,
    delete_topic,
    end_offsets,
    produce,
    read_all,
)

Fill = Callable[[Broker, str, int, str], None]


def flow_of(east: Broker, west: Broker, directory: Path, **more: object) -> Mirror:
    settings = {"checkpoints.topic.replication.factor": "1", "offset-syncs.topic.replication.factor": "1"}
    settings |= more.pop("settings", {})  # type: ignore[arg-type]
    return mirror(east, west, directory, settings=settings, **more)  # type: ignore[arg-type]


def reverse_of(flow: Mirror) -> Opened:
    """The flow from the target back to the source, in the same ledger; it replicates none of these topics."""
    alias = flow.flow.source.alias
    lines = {
        "clusters": f"{alias}, west",
        f"{alias}.bootstrap.servers": flow.source.bootstrap,  # type: ignore[union-attr]
        "west.bootstrap.servers": flow.target.bootstrap,  # type: ignore[union-attr]
        f"west->{alias}.enabled": "true",
        f"west->{alias}.topics": "nothing",
        "checkpoints.topic.replication.factor": "1",
        "offset.storage.replication.factor": "1",
    }
    configuration = parse("\n".join(f"{key} = {value}" for key, value in lines.items()), "test")
    back = configuration.flow(f"west->{alias}")
    return Opened(configuration, back, flow.opened.ledger.beside(back.name))


def values(records: Mapping[int, Iterable[Record]]) -> dict[int, list[bytes | None]]:
    return {partition: [record.value for record in found] for partition, found in records.items()}


def joined(*reads: Mapping[int, list[Record]]) -> dict[int, list[bytes | None]]:
    """What several reads have seen together, by partition, in their order."""
    return {number: [record.value for read in reads for record in read.get(number, [])] for number in reads[0]}


def plain(broker: Broker, topic: str, partition: int, name: str) -> None:
    produce(broker, topic, [Record(f"{name}-{n}".encode()) for n in range(60)], partition=partition)


def transactional(broker: Broker, topic: str, partition: int, name: str) -> None:
    for number, end in enumerate(("commit", "abort", "commit", "abort")):
        records = [Record(f"{name}-{number}-{n}".encode()) for n in range(9)]
        produce(broker, topic, records, partition=partition, transactional=end)  # type: ignore[arg-type]


def mixed(broker: Broker, topic: str, partition: int, name: str) -> None:
    plain(broker, topic, partition, name)
    transactional(broker, topic, partition, name)
    produce(broker, topic, [Record(None, b"key"), Record(b"", b"key")], partition=partition)


@pytest.mark.parametrize(
    ("fill", "protocol"),
    [
        (mixed, "classic"),
        (transactional, "consumer"),
        pytest.param(plain, "classic", marks=pytest.mark.long),
        pytest.param(transactional, "classic", marks=pytest.mark.long),
        pytest.param(plain, "consumer", marks=pytest.mark.long),
        pytest.param(mixed, "consumer", marks=pytest.mark.long),
    ],
)
def test_a_group_fails_over_and_back_and_reads_every_record_once(
    east: Broker, west: Broker, tmp_path: Path, fill: Fill, protocol: Protocol, topic: Callable[[str], str]
) -> None:
    chance = random.Random(f"{fill.__name__} {protocol}")
    flow, group = flow_of(east, west, tmp_path, partitions=3), topic("billing")
    for partition in range(3):
        fill(east, flow.topic, partition, "first")
    flow.run()
    for partition in range(3):
        fill(east, flow.topic, partition, "second")
    flow.run()
    everything = values(read_all(east, flow.topic))

    def part_of(left: int) -> dict[int, int]:
        return {number: chance.randint(1, left) for number in range(3)}

    size = min(map(len, everything.values()))
    here = read_with_group(east, group, flow.topic, part_of(size // 2), protocol)
    rows = sync(flow.opened, group)
    assert [row.reason for row in rows] == ["", "", ""] and all(row.exact and row.again == 0 for row in rows)
    there = read_with_group(west, group, flow.remote_topic, part_of(size // 3), protocol)
    back = sync(reverse_of(flow), group)
    assert [row.reason for row in back] == ["", "", ""] and all(row.exact for row in back)
    again = read_with_group(east, group, flow.topic, None, protocol)
    assert joined(here, there, again) == everything
    # At the end of the source: over once more, nothing is left to read, and what is new is read once.
    sync(flow.opened, group)
    for partition in range(3):
        fill(east, flow.topic, partition, "third")
    flow.run()
    rest = read_with_group(west, group, flow.remote_topic, None, protocol)
    assert joined(here, there, again, rest) == values(read_all(east, flow.topic))


def compacted_topic(east: Broker, flow: Mirror) -> None:
    """Fill a compacted topic and wait until its cleaner has taken records away."""
    for turn in range(4):
        records = [Record(f"{turn}-{n}".encode(), b"key-%d" % (n % 30)) for n in range(60)]
        produce(east, flow.topic, records, partition=0, records_per_batch=7)
        produce(east, flow.topic, [Record(b"last-%d" % turn, b"last-%d" % turn)], partition=0)
    wait_until_compacted(east, flow.topic)


def wait_until_compacted(cluster: Broker, topic: str) -> None:
    """Until the log holds fewer records than were written; each look writes one more, so that the segment rolls."""
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.5), reraise=True):
        with attempt:
            found = read_all(cluster, topic)[0]
            produce(cluster, topic, [Record(b"roll", b"roll")], partition=0)
            assert len(found) < end_offsets(cluster, topic)[0] - 60


def test_a_group_on_a_compacted_topic(east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]) -> None:
    config = {
        "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100",
        "max.compaction.lag.ms": "100",
    }  # fmt: skip
    flow, group = flow_of(east, west, tmp_path, config=config), topic("billing")
    compacted_topic(east, flow)
    admin(east).incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, flow.topic, incremental_configs=[
            ConfigEntry("segment.ms", "86400000", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("max.compaction.lag.ms", "86400000", incremental_operation=AlterConfigOpType.SET),
            ConfigEntry("min.cleanable.dirty.ratio", "0.99", incremental_operation=AlterConfigOpType.SET),
        ])]
    )  # fmt: skip
    await_cleaner_at_rest(east, flow.topic)
    flow.run()
    source, target = read_all(east, flow.topic)[0], read_all(west, flow.remote_topic)[0]
    assert [record.content for record in source] == [record.content for record in target]
    # At every position there is, gaps and both ends included: what is read on both sides is the whole.
    key, remote = TopicPartition(flow.topic, 0), TopicPartition(flow.remote_topic, 0)
    positions = {f"{group}-{position}": position for position in range(source[-1].offset + 2)}
    with Routes(flow.flow.source, "test") as routes:
        assert commit_offsets(routes, {name: {key: Committed(at)} for name, at in positions.items()}) == {}
    rows = sync(flow.opened, f"{group}-.*")
    assert {row.group: row.position for row in rows} == positions and not any(row.reason for row in rows)
    with Routes(flow.flow.target, "test") as routes:
        moved = committed_offsets(routes, positions)
    for name, position in positions.items():
        unread = [record.content for record in source if record.offset >= position]
        assert [record.content for record in target if record.offset >= moved[name][remote].offset] == unread


def await_cleaner_at_rest(cluster: Broker, topic: str) -> None:
    """Until two looks, one after the other, see the same records."""
    seen = []
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(1), reraise=True):
        with attempt:
            seen.append([record.offset for record in read_all(cluster, topic)[0]])
            assert len(seen) > 1 and seen[-1] == seen[-2]


def test_a_commit_while_a_window_runs_and_past_the_verified_offset(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = flow_of(east, west, tmp_path), topic("billing")
    plain(east, flow.topic, 0, "first")
    flow.run()
    plain(east, flow.topic, 0, "second")
    seen: list[GroupOffset] = []

    def in_the_middle(slots: Sequence[Slot]) -> list[SlotResult]:
        """The window has claimed and planned: a group goes on, and is synced before and after the copy."""
        commit(east, group, {(flow.topic, 0): 75})
        seen.extend(sync(flow.opened, group))
        results = in_this_process(slots)
        seen.extend(sync(flow.opened, group))
        return results

    flow.run(in_the_middle)
    # Neither before nor after the copy is the window verified; a marker lies between it and the one before.
    assert [(row.reason, row.upstream, row.downstream, row.again) for row in seen] == [
        ("", 60, 60, 15),
        ("", 60, 61, 15),
    ]
    assert committed(west, group) == {(flow.remote_topic, 0): 61}
    (row,) = sync(flow.opened, group)
    assert (row.upstream, row.downstream, row.again, row.on_target) == (75, 76, 0, 61)
    rest = read_with_group(west, group, flow.remote_topic, None)
    assert values(rest) == {0: [b"second-%d" % n for n in range(15, 60)]}


def test_every_reason_not_to_move_a_group(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, name = flow_of(east, west, tmp_path, partitions=2), topic("g")
    other = create_topic(east, topic("other"))
    plain(east, flow.topic, 0, "first")
    flow.run()
    plain(east, flow.topic, 1, "not copied yet")
    first, second = (flow.topic, 0), (flow.topic, 1)
    commit(east, f"{name}-moved", {first: 20})
    commit(east, f"{name}-not-replicated", {(other, 0): 0})
    commit(east, f"{name}-not-verified", {second: 30})
    commit(east, f"{name}-ahead", {first: 20})
    commit(west, f"{name}-ahead", {(flow.remote_topic, 0): 40})
    commit(east, f"{name}-beyond", {first: 61})
    commit(east, f"{name}-deleted", {first: 5})
    commit(east, f"{name}-active", {first: 20})
    with member(west, f"{name}-active", flow.remote_topic):
        reasons = {row.group.removeprefix(f"{name}-"): row.reason for row in sync(flow.opened, f"{name}-.*")}
    assert reasons == {
        "moved": "", "deleted": "", "not-replicated": Reason.NOT_REPLICATED, "not-verified": Reason.NOT_VERIFIED,
        "ahead": Reason.AHEAD, "beyond": Reason.BEYOND_END, "active": Reason.ACTIVE,
    }  # fmt: skip
    assert committed(west, f"{name}-ahead") == {(flow.remote_topic, 0): 40}
    assert committed(west, f"{name}-moved") == {(flow.remote_topic, 0): 20}
    for missing in ("active", "beyond", "not-verified", "not-replicated"):
        assert committed(west, f"{name}-{missing}") == {}
    # Back on the source: the target is not moved back.
    commit(east, f"{name}-moved", {first: 3})
    (row,) = sync(flow.opened, f"{name}-moved")
    assert (row.reason, row.on_target) == (Reason.AHEAD, 20)
    # What the target has deleted is not where a group is moved to; nor what the source has, which it still holds there.
    delete_records(west, flow.remote_topic, 50)
    commit(east, f"{name}-late", {first: 30})
    assert [row.reason for row in sync(flow.opened, f"{name}-late")] == [Reason.BELOW_START]
    delete_records(east, flow.topic, 55)
    commit(east, f"{name}-before", {first: 52})
    (row,) = sync(flow.opened, f"{name}-before")
    assert (row.reason, row.downstream, row.exact) == ("", 52, True)
    # Another topic of the same name: nothing that was known of it counts.
    delete_topic(east, flow.topic)
    create_topic(east, flow.topic, 1)
    plain(east, flow.topic, 0, "other")
    commit(east, f"{name}-again", {first: 20})
    assert [row.reason for row in sync(flow.opened, f"{name}-again")] == [Reason.RECREATED]


def delete_records(cluster: Broker, topic: str, before: int) -> None:
    client = admin(cluster)
    client.delete_records([Partition(topic, 0, before)])[Partition(topic, 0, before)].result(30)


def test_lag_over_its_limit_holds_groups_where_it_is_told_to(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    limits = {"window.max.lag.blocks": "groups", "window.max.lag.records": "50"}
    flow, group = flow_of(east, west, tmp_path, settings=limits), topic("billing")
    plain(east, flow.topic, 0, "first")
    flow.run()
    commit(east, group, {(flow.topic, 0): 20})
    assert [row.reason for row in sync(flow.opened, group)] == [""]
    plain(east, flow.topic, 0, "second")
    commit(east, group, {(flow.topic, 0): 30})
    assert [row.reason for row in sync(flow.opened, group)] == [Reason.LAGGING]
    flow.run()
    assert [row.reason for row in sync(flow.opened, group)] == [""]


def test_history_of_mirrormaker_2_is_estimated_and_never_past_its_syncs(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    settings = {"offset-syncs.topic.location": "target"}
    flow, group = flow_of(east, west, tmp_path, settings=settings), topic("billing")
    for number in range(3):
        plain(east, flow.topic, 0, str(number))
    as_mirrormaker(flow, 100, 99)
    cluster, syncs = place_of_syncs(flow.flow)
    ensure_topic(cluster, syncs, 1)
    written = [OffsetSync(flow.topic, 0, offset, offset) for offset in (0, 40, 80)]
    with Appender(cluster, syncs) as appender:
        appender.append([(sync_.encode_key(), sync_.encode_value()) for sync_ in written] + [(b"foreign", b"record")])
    flow.run()
    for position in (40, 70, 100, 150):
        commit(east, f"{group}-{position}", {(flow.topic, 0): position})
    rows = sync(flow.opened, f"{group}-.*")
    assert {(row.position, row.downstream, row.exact) for row in rows} == {
        (40, 40, False), (70, 41, False), (100, 100, True), (150, 150, True),
    }  # fmt: skip
