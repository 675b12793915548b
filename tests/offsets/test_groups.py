"""Groups that fail over and back: together, the reads on both clusters are every record exactly once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Partition
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.admin.creation import ensure_topic
from airmirror.clusters.protocol.groups import Committed, commit_offsets, committed_offsets
from airmirror.clusters.protocol.routes import Routes
from airmirror.ledger import GroupOffset
from airmirror.offsets.syncs import place_of_syncs
from airmirror.offsets.translation import Reason
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot, SlotResult
from airmirror.wire.mirrormaker import OffsetSync
from airmirror_local.brokers import Broker
from support.flows import Mirror, as_mirrormaker, in_this_process, mirror
from support.groups import Protocol, commit, committed, forget_group, member, read_with_group
from support.post_window import apply, reverse_of, sync
from support.topics import (
    Record,
    admin,
    await_settled,
    create_topic,
    delete_topic,
    end_offsets,
    produce,
    read_all,
    set_config,
)

Fill = Callable[[Broker, str, str], None]


def flow_of(east: Broker, west: Broker, directory: Path, **more: object) -> Mirror:
    settings = {"checkpoints.topic.replication.factor": "1", "offset-syncs.topic.replication.factor": "1"}
    settings |= more.pop("settings", {})  # type: ignore[arg-type]
    return mirror(east, west, directory, settings=settings, **more)  # type: ignore[arg-type]


def values(records: Mapping[int, Iterable[Record]]) -> dict[int, list[bytes | None]]:
    return {partition: [record.value for record in found] for partition, found in records.items()}


def joined(*reads: Mapping[int, list[Record]]) -> dict[int, list[bytes | None]]:
    """What several reads have seen together, by partition, in their order."""
    return {number: [record.value for read in reads for record in read.get(number, [])] for number in reads[0]}


def keyed(name: str, count: int) -> list[Record]:
    """Records whose keys spread them over the partitions."""
    return [Record(f"{name}-{n}".encode(), b"%d" % (n % 17)) for n in range(count)]


def plain(broker: Broker, topic: str, name: str, partition: int | None = None) -> None:
    if partition is None:
        produce(broker, topic, keyed(name, 90))
    else:
        produce(broker, topic, [Record(f"{name}-{n}".encode()) for n in range(60)], partition=partition)


def transactional(broker: Broker, topic: str, name: str) -> None:
    for number, end in enumerate(("commit", "abort", "commit", "abort")):
        produce(broker, topic, keyed(f"{name}-{number}", 60), transactional=end)  # type: ignore[arg-type]
    await_settled(broker, topic)  # a commit is answered before its markers are written, on old brokers long before


def mixed(broker: Broker, topic: str, name: str) -> None:
    plain(broker, topic, name)
    transactional(broker, topic, name)
    produce(broker, topic, [Record(None, b"1"), Record(b"", b"2")])


@pytest.mark.parametrize(
    ("fill", "protocol"),
    [
        pytest.param(mixed, "classic", marks=pytest.mark.long),
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
    """Its members stop anywhere: in what is verified, and inside the window that is running."""
    chance = random.Random(f"{fill.__name__} {protocol}")
    flow, group = flow_of(east, west, tmp_path, partitions=3), topic("billing")
    fill(east, flow.topic, "first")
    flow.run()
    sizes = {number: len(records) for number, records in read_all(east, flow.topic).items()}
    fill(east, flow.topic, "second")
    everything = values(read_all(east, flow.topic))
    reads: list[dict[int, list[Record]]] = []

    def in_the_middle(slots: Sequence[Slot]) -> list[SlotResult]:
        verified = chance.randint(1, sizes[0])
        inside = sizes[1] + chance.randint(1, sizes[1] // 2)
        anywhere = chance.randint(1, sizes[2] + sizes[2] // 2)
        most = {0: verified, 1: inside, 2: anywhere}
        reads.append(read_with_group(east, group, flow.topic, most, protocol))
        first = sync(flow.opened, group)
        results = in_this_process(slots)
        for rows in (first, sync(flow.opened, group)):
            assert [row.reason for row in rows] == ["", "", ""] and any(row.again for row in rows)
        return results

    flow.run(in_the_middle)
    rows = sync(flow.opened, group)
    assert [row.reason for row in rows] == ["", "", ""] and all(row.exact and row.again == 0 for row in rows)
    some = {number: chance.randint(1, size // 3) for number, size in sizes.items()}
    reads.append(read_with_group(west, group, flow.remote_topic, some, protocol))
    back = apply(reverse_of(flow), group)
    assert [row.reason for row in back] == ["", "", ""] and all(row.exact for row in back)
    reads.append(read_with_group(east, group, flow.topic, None, protocol))
    assert joined(*reads) == everything
    # At the end of the source: over once more, nothing is left to read, and what is new is read once.
    sync(flow.opened, group)
    fill(east, flow.topic, "third")
    flow.run()
    reads.append(read_with_group(west, group, flow.remote_topic, None, protocol))
    assert joined(*reads) == values(read_all(east, flow.topic))


COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "100",
    "max.compaction.lag.ms": "100",
}
AT_REST = {"min.cleanable.dirty.ratio": "0.99", "segment.ms": "86400000", "max.compaction.lag.ms": "86400000"}


def wait_until_compacted(cluster: Broker, topic: str, *, roll: bool = False) -> None:
    """Until the log holds fewer records than were written. ``roll``: each look writes one more, so that its mapping ends."""
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.3), reraise=True):
        with attempt:
            found = read_all(cluster, topic)[0]
            if roll:
                value = b"roll-%d" % attempt.retry_state.attempt_number
                produce(cluster, topic, [Record(value, b"roll")], partition=0)
            assert len(found) < end_offsets(cluster, topic)[0] - 30


def rest_of_the_cleaner(cluster: Broker, topic: str) -> list[Record]:
    """What is left when two looks, one after the other, have seen the same records and nothing more is compacted."""
    seen: list[list[Record]] = []
    for key, value in AT_REST.items():
        set_config(cluster, topic, key, value)
    for attempt in Retrying(stop=stop_after_delay(60), wait=wait_fixed(1), reraise=True):
        with attempt:
            seen.append(read_all(cluster, topic)[0])
            assert len(seen) > 1 and seen[-1] == seen[-2]
    return seen[-1]


def test_groups_on_a_compacted_topic_there_and_back(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """Both clusters' cleaners work independently, before windows and after. What is on both is read once, from anywhere."""
    flow, group = flow_of(east, west, tmp_path, config=COMPACTED | AT_REST), topic("billing")
    for turn in range(4):
        # Half of the keys come again and again.
        records = [
            Record(b"%d-%d" % (turn, n), b"key-%d" % (n % 30) if n % 2 else b"%d-%d" % (turn, n)) for n in range(60)
        ]
        produce(east, flow.topic, records, partition=0, records_per_batch=7)
        produce(east, flow.topic, [Record(b"last-%d" % turn, b"last-%d" % turn)], partition=0)
        if turn == 1:
            flow.run()  # what is compacted on the source from here on is on the target still, or was compacted there
            for cluster, name in ((east, flow.topic), (west, flow.remote_topic)):
                for key in AT_REST:
                    set_config(cluster, name, key, COMPACTED[key])
            wait_until_compacted(east, flow.topic, roll=True)
    assert flow.run().is_verified
    wait_until_compacted(west, flow.remote_topic)
    source, target = rest_of_the_cleaner(east, flow.topic), rest_of_the_cleaner(west, flow.remote_topic)
    both = {record.content for record in source} & {record.content for record in target}
    assert len(both) > 120

    def unread(records: Sequence[Record], position: int) -> list[object]:
        return [record.content for record in records if record.offset >= position and record.content in both]

    # From every position there is, gaps, markers and both ends included.
    key, remote = TopicPartition(flow.topic, 0), TopicPartition(flow.remote_topic, 0)
    there = {f"{group}-there-{position}": position for position in range(source[-1].offset + 2)}
    back = {f"{group}-back-{position}": position for position in range(end_offsets(west, flow.remote_topic)[0] + 1)}
    with Routes(flow.flow.source, "test") as here, Routes(flow.flow.target, "test") as beyond:
        assert commit_offsets(here, {name: {key: Committed(at)} for name, at in there.items()}) == {}
        assert commit_offsets(beyond, {name: {remote: Committed(at)} for name, at in back.items()}) == {}
        forward, backward = sync(flow.opened, f"{group}-there-.*"), apply(reverse_of(flow), *back)
        moved = {name: at[remote].offset for name, at in committed_offsets(beyond, there).items()}
        moved_back = {name: at[key].offset for name, at in committed_offsets(here, back).items()}
    assert {row.group: row.position for row in (*forward, *backward)} == there | back
    assert all(row.exact and not row.reason and not row.again for row in (*forward, *backward))
    for name, position in there.items():
        assert unread(target, moved[name]) == unread(source, position), name
    for name, position in back.items():
        assert unread(source, moved_back[name]) == unread(target, position), name
    # And as a group reads: a part here, a part there, the rest here.
    reads = [read_with_group(east, group, flow.topic, {0: len(source) // 3})]
    sync(flow.opened, group)
    reads.append(read_with_group(west, group, flow.remote_topic, {0: len(target) // 3}))
    apply(reverse_of(flow), group)
    reads.append(read_with_group(east, group, flow.topic))
    assert [record.content for read in reads for record in read[0] if record.content in both] == unread(source, 0)


def test_a_commit_while_a_window_runs_and_past_the_verified_offset(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    flow, group = flow_of(east, west, tmp_path), topic("billing")
    plain(east, flow.topic, "first", 0)
    flow.run()
    plain(east, flow.topic, "second", 0)
    seen: list[GroupOffset] = []

    def in_the_middle(slots: Sequence[Slot]) -> list[SlotResult]:
        """The window has taken the lease and planned: a group resumes, and is synced before and after the copy."""
        commit(east, group, {(flow.topic, 0): 75})
        seen.extend(sync(flow.opened, group))
        results = in_this_process(slots)
        seen.extend(sync(flow.opened, group))
        return results

    flow.run(in_the_middle)
    # Neither before nor after the copy is the window verified, and its first record lies behind what is.
    assert [(row.reason, row.upstream, row.downstream, row.again) for row in seen] == [("", 60, 60, 15)] * 2
    assert committed(west, group) == {(flow.remote_topic, 0): 60}
    assert "moved to the verified position 60; 15 records before 75 will be read again" in caplog.text
    (row,) = sync(flow.opened, group)
    assert (row.upstream, row.downstream, row.again, row.on_target) == (75, 76, 0, 60)
    rest = read_with_group(west, group, flow.remote_topic, None)
    assert values(rest) == {0: [b"second-%d" % n for n in range(15, 60)]}


def test_every_reason_not_to_move_a_group(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    flow, name = flow_of(east, west, tmp_path, partitions=2), topic("g")
    other = create_topic(east, topic("other"))
    plain(east, flow.topic, "first", 0)
    flow.run()
    plain(east, flow.topic, "not copied yet", 1)
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
        "moved": "",
        "deleted": "",
        "not-replicated": Reason.NOT_REPLICATED,
        "not-verified": Reason.NOT_VERIFIED,
        "ahead": Reason.AHEAD,
        "beyond": Reason.BEYOND_END,
        "active": Reason.ACTIVE,
    }
    in_ledger = {row.group.removeprefix(f"{name}-"): row.reason for row in flow.opened.ledger.group_offsets()}
    assert in_ledger == reasons
    for group, reason in reasons.items():
        assert not reason or f"Not moved, {reason}: {name}-{group} " in caplog.text
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
    plain(east, flow.topic, "other", 0)
    commit(east, f"{name}-again", {first: 20})
    assert [row.reason for row in sync(flow.opened, f"{name}-again")] == [Reason.RECREATED]


def test_what_a_flow_has_written_of_a_group_does_not_come_back_by_itself(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """Both flows synchronise groups: one that is rewound, or deleted, where it reads, would go to where its copy stands."""
    flow, group = flow_of(east, west, tmp_path), topic("billing")
    plain(east, flow.topic, "first", 0)
    flow.run()
    commit(east, group, {(flow.topic, 0): 50})
    assert [row.reason for row in sync(flow.opened, group)] == [""] and committed(west, group)
    commit(east, group, {(flow.topic, 0): 10})
    assert [row.reason for row in sync(reverse_of(flow), group)] == [Reason.FROM_TARGET]
    assert committed(east, group) == {(flow.topic, 0): 10}
    forget_group(east, group)
    sync(reverse_of(flow), group)
    assert committed(east, group) == {}
    assert [row.reason for row in apply(reverse_of(flow), group)] == [""], "a person says so"
    assert committed(east, group) == {(flow.topic, 0): 50}


def delete_records(cluster: Broker, topic: str, before: int) -> None:
    client = admin(cluster)
    client.delete_records([Partition(topic, 0, before)])[Partition(topic, 0, before)].result(30)


def test_lag_over_its_limit_holds_groups_where_it_is_told_to(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    limits = {"window.max.lag.blocks": "groups", "window.max.lag.records": "50"}
    flow, group = flow_of(east, west, tmp_path, settings=limits), topic("billing")
    plain(east, flow.topic, "first", 0)
    flow.run()
    commit(east, group, {(flow.topic, 0): 20})
    assert [row.reason for row in sync(flow.opened, group)] == [""]
    plain(east, flow.topic, "second", 0)
    commit(east, group, {(flow.topic, 0): 30})
    assert [row.reason for row in sync(flow.opened, group)] == [Reason.LAGGING]
    flow.run()
    assert [row.reason for row in sync(flow.opened, group)] == [""]


@pytest.mark.parametrize("location", ["target", pytest.param("source", marks=pytest.mark.long)])
def test_history_of_mirrormaker_2_is_estimated_and_never_past_its_syncs(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str], location: str
) -> None:
    settings = {"offset-syncs.topic.location": location}
    flow, group = flow_of(east, west, tmp_path, settings=settings), topic("billing")
    for number in range(3):
        plain(east, flow.topic, str(number), 0)
    as_mirrormaker(flow, 100, 99)
    other = OffsetSync("another", 0, 7, 7)
    cluster, syncs = place_of_syncs(flow.flow)
    for place, name in (
        (flow.flow.source, "mm2-offset-syncs.west.internal"),
        (flow.flow.target, f"mm2-offset-syncs.{flow.flow.source.alias}.internal"),
    ):  # what lies in either of other topics tells nothing of this one
        ensure_topic(place, name, 1, {}, "")
        with Appender(place, name) as appender:
            appender.append([(other.encode_key(), other.encode_value())])
    written = [OffsetSync(flow.topic, 0, offset, offset) for offset in (0, 40, 80)]
    with Appender(cluster, syncs) as appender:
        appender.append([(sync_.encode_key(), sync_.encode_value()) for sync_ in written] + [(b"foreign", b"record")])
    flow.run()
    for position in (40, 70, 100, 150):
        commit(east, f"{group}-{position}", {(flow.topic, 0): position})
    rows = sync(flow.opened, f"{group}-.*")
    assert {(row.position, row.downstream, row.exact) for row in rows} == {
        (40, 40, False),
        (70, 41, False),
        (100, 100, True),
        (150, 150, True),
    }
    # And back, whatever the reverse flow's own location is.
    back = {f"{group}-back-{position}": position for position in (40, 70, 100, 150)}
    for name, position in back.items():
        commit(west, name, {(flow.remote_topic, 0): position})
    for of_reverse in ("source", "target"):
        rows = apply(reverse_of(flow, of_reverse), *back)
        assert {(row.position, row.downstream, row.exact) for row in rows} == {
            (40, 40, False),
            (70, 41, False),
            (100, 100, True),
            (150, 150, True),
        }
