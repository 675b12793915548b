"""Faults of one partition of the target: it stops alone, and nothing is written for it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import NewTopic

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.routes import CoordinatorNotAvailable, Leader, LeaderNotAvailable, Routes
from airmirror.clusters.protocol.transactions import COMMITTING, TransactionalId, TransactionBusy, TransactionStuck
from airmirror.config import Flow
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.flows.verification import compare_all
from airmirror.partitions import TopicPartition
from airmirror.slot import attempts
from airmirror.slot import source as source_module
from airmirror.slot.contract import Slot, SlotResult, transactional_id
from airmirror.slot.errors import ForeignRecords, TargetTruncated, TargetUnavailable
from airmirror.slot.intake import Intake
from airmirror.windows import fence, planning
from airmirror.windows.errors import FenceStuck
from airmirror.windows.fence import GrantedLease, Renewal, fence_around
from airmirror.windows.index import InternalTopics
from airmirror.windows.mirror import Journal
from airmirror.windows.resets import Choice
from airmirror.windows.results import WindowResult
from airmirror.wire.mappings import Lease, LeaseEvent
from airmirror_local.brokers import IMPATIENT, Broker, BrokerCluster, start_broker
from support.faults import filled, in_a_process_that_dies, records
from support.flows import Mirror, a_flow, in_this_process, mirror
from support.following import patiently
from support.servers import keep
from support.topics import (
    admin,
    assert_mirrored,
    await_in_sync,
    await_nodes,
    await_settled,
    create_topic,
    end_offsets,
    produce,
    set_config,
)

REPLICATED = {"offset.storage.replication.factor": "3", "window.commit.bytes": "2000"}
AT_ONCE = REPLICATED | {"window.commit.bytes": "1000000", "window.commit.ms": "60000"}  # one transaction for all


NO_LEADER = ([[1], [2], [3], [2]], {0: 1, 2: 1}, "it has no leader")
TOO_FEW = (
    [[1, 3], [2, 3], [3, 1], [3, 2]],
    {0: 2, 1: 1, 2: 2, 3: 1},
    "it has 1 of 2 replicas in sync, min.insync.replicas asks for 2",
)


def spread(
    east: Broker,
    three: BrokerCluster,
    directory: Path,
    assignment: list[list[int]],
    settings: dict[str, str] = REPLICATED,
) -> Mirror:
    """A flow with four partitions, of which the second and the fourth take no records without node 2."""
    flow = mirror(east, three, directory, partitions=4, settings=settings)
    topic = NewTopic(flow.remote_topic, 4, replica_assignment=assignment, config={"min.insync.replicas": "2"})
    admin(three).create_topics([topic])[flow.remote_topic].result()
    fill(flow, 0)
    assert flow.run(slots=1).is_verified
    return flow


def fill(flow: Mirror, start: int) -> None:
    for partition in range(4):
        produce(flow.source, flow.topic, records(100, start), partition=partition, records_per_batch=10)


@pytest.fixture
def short_elections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for an election that does not end."""
    monkeypatch.setattr(attempts, "LEADER_SECONDS", 0.2)
    monkeypatch.setattr(planning, "ELECTION_SECONDS", 0.2)


def errors(result: WindowResult) -> dict[int, str]:
    return {row.partition: type(row.error).__name__ for row in result.rows if row.error is not None}


def test_a_topic_with_too_few_replicas_in_sync_holds_up_no_other(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_elections: None
) -> None:
    """As a cluster tells it whose node is gone: here of a topic that has one replica."""
    name = f"orders-{uuid4().hex[:8]}"
    few, other = (create_topic(east, f"{name}-{each}") for each in ("few", "other"))
    flow = mirror(east, west, tmp_path, topic=few, settings={"topics": f"{name}-.*"})
    remote, real = flow.remote_topic, Routes.leader

    def one_short(self: Routes, key: TopicPartition) -> Leader:
        found = real(self, key)
        return replace(found, in_sync=1, replicas=2) if key.topic == remote else found

    def produced(start: int) -> None:
        for topic in (few, other):
            produce(east, topic, records(100, start), partition=0)

    produced(0)
    assert flow.run().is_verified
    set_config(west, remote, "min.insync.replicas", "2")
    produced(100)
    with monkeypatch.context() as patched:
        patched.setattr(Routes, "leader", one_short)
        result = flow.run()
    wrong = {row.topic: row.error for row in result.rows if row.error}
    assert wrong.keys() == {few} and isinstance(wrong[few], TargetUnavailable), wrong
    assert "it has 1 of 2 replicas in sync, min.insync.replicas asks for 2" in str(wrong[few])
    assert [row.verified for row in result.rows if row.topic == other] == [True]
    assert end_offsets(west, remote, "read_committed") == {0: 101}, "nothing of it, and the marker of before"
    assert flow.run().is_verified
    alias = flow.flow.source.alias
    assert [assert_mirrored(east, topic, west, f"{alias}.{topic}") for topic in (few, other)] == [200, 200]


@pytest.mark.long
@pytest.mark.parametrize(("assignment", "in_sync", "reason"), [NO_LEADER, TOO_FEW])
def test_a_node_of_the_target_is_gone(
    east: Broker,
    three: BrokerCluster,
    tmp_path: Path,
    assignment: list[list[int]],
    in_sync: dict[int, int],
    reason: str,
) -> None:
    """A slot died in its transaction, and two partitions take no marker: the others continue, under another id."""
    flow = spread(east, three, tmp_path, assignment, AT_ONCE)
    fill(flow, 100)

    def dies(slots: Sequence[Slot]) -> list[SlotResult]:
        in_a_process_that_dies(slots, 0)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flow.run(dies, slots=1)
    ends, stable = (end_offsets(three, flow.remote_topic, level) for level in ("read_uncommitted", "read_committed"))
    assert all(stable[number] < ends[number] for number in range(4)), "every partition is in the transaction"
    node = three.brokers[1]
    node.kill()
    try:
        await_nodes(three, 2)
        numbers: list[int] = []

        def noting(slots: Sequence[Slot]) -> list[SlotResult]:
            numbers.extend(slot.number for slot in slots)
            return in_this_process(slots)

        for _ in range(2):
            await_in_sync(three, flow.remote_topic, in_sync)
            result = flow.run(noting, slots=1)
            assert errors(result) == {1: "TargetUnavailable", 3: "TargetUnavailable"}
            assert all(reason in str(row.error) for row in result.rows if row.error)
            assert [row.verified for row in result.rows if row.partition in (0, 2)] in ([True, True], [])
        assert numbers == [1]  # the second window had nothing to copy
        fill(flow, 200)
        await_in_sync(three, flow.remote_topic, in_sync)
        assert errors(flow.run(noting, slots=1)) == {1: "TargetUnavailable", 3: "TargetUnavailable"}
        assert numbers == [1, 1]
    finally:
        node.restart()
        keep(node.process)
    assert flow.run(slots=1).is_verified
    assert flow.assert_equal() == 4 * 300


@pytest.mark.long
def test_a_node_of_the_target_dies_in_mid_transaction(
    east: Broker, three: BrokerCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot's partitions that can't be written to fail, the others are cut; the next window resumes with those."""
    flow = spread(east, three, tmp_path, NO_LEADER[0])
    fill(flow, 100)
    node = three.brokers[1]
    take = Intake.take
    killed = []

    def kill(self: Intake, *args: object) -> None:
        take(self, *args)  # type: ignore[arg-type]
        if not killed:
            killed.append(True)
            node.kill()
            await_nodes(three, 2)

    monkeypatch.setattr(Intake, "take", kill)
    try:
        first = flow.run(slots=1)
        assert set(errors(first)) <= {1, 3} and errors(first), [str(row.error) for row in first.rows]
        second = flow.run(slots=1)
        assert errors(second) == {1: "TargetUnavailable", 3: "TargetUnavailable"}
        assert all(row.verified for row in [*first.rows, *second.rows] if row.partition in (0, 2))
    finally:
        node.restart()
        keep(node.process)
    assert flow.run(slots=1).is_verified
    assert flow.assert_equal() == 4 * 200


def test_a_commit_whose_marker_two_partitions_lack(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, short_elections: None
) -> None:
    """As a cluster tells of it whose node is gone, below: they are left out, and the id: the others continue, under another."""
    flow = mirror(east, west, tmp_path, partitions=4, settings={"window.commit.bytes": "1000000"})
    fill(flow, 0)
    assert flow.run(slots=1).is_verified
    fill(flow, 100)
    name, lacking = transactional_id(flow.flow, 0), [TopicPartition(flow.remote_topic, number) for number in (1, 3)]
    committed: list[str] = []
    end, initialise, leader = TransactionalId.end, TransactionalId._initialise, Routes.leader

    def without_an_answer(self: TransactionalId, commit: bool) -> None:
        end(self, commit)
        if commit and not committed:
            committed.append(self.name)
            raise BrokerUnreachable("west", west.bootstrap, "it hung up")

    def busy(self: TransactionalId) -> None:
        if self.name in committed:
            raise TransactionBusy("west", self.name)
        initialise(self)

    def nobody(self: Routes, key: TopicPartition) -> Leader:
        if committed and key in lacking:
            raise LeaderNotAvailable("west", key, 5)
        return leader(self, key)

    numbers: list[int] = []

    def noting(slots: Sequence[Slot]) -> list[SlotResult]:
        numbers.extend(slot.number for slot in slots)
        return in_this_process(slots)

    with monkeypatch.context() as broken:
        broken.setattr(TransactionalId, "end", without_an_answer)
        broken.setattr(TransactionalId, "_initialise", busy)
        broken.setattr(TransactionalId, "_describe", lambda self: (COMMITTING, lacking))
        broken.setattr(Routes, "leader", nobody)
        first = flow.run(noting, slots=1)
        assert committed == [name] and errors(first) == {1: "TargetUnavailable", 3: "TargetUnavailable"}
        assert all("it has no leader" in str(row.error) for row in first.rows if row.error)
        fill(flow, 200)
        second = flow.run(noting, slots=1)
        assert errors(second) == {1: "TargetUnavailable", 3: "TargetUnavailable"}
        assert [row.verified for row in second.rows if row.partition in (0, 2)] == [True, True]
    assert flow.run(noting, slots=1).is_verified
    assert numbers == [0, 1, 0]
    assert flow.assert_equal() == 4 * 300


@pytest.mark.long
def test_a_commit_that_cannot_be_ended(
    east: Broker, three: BrokerCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions that lack its marker are left out, and its id: the others continue, under another one."""
    monkeypatch.setattr(source_module, "FETCH_BYTES", 4096)
    monkeypatch.setattr(source_module, "LEAST_PARTITION_BYTES", 1024)
    flow = mirror(east, three, tmp_path, partitions=4, settings=REPLICATED)
    with Routes(flow.flow.target, "test") as routes:  # a node that does not coordinate the transaction
        for attempt in patiently(CoordinatorNotAvailable):  # the cluster's first question makes the topic
            with attempt:
                coordinator = routes.coordinator(transactional_id(flow.flow, 0))
    gone, one, other = sorted(range(1, 4), key=lambda node: node == coordinator)
    node = three.brokers[gone - 1]
    topic = NewTopic(flow.remote_topic, 4, replica_assignment=[[one], [gone], [other], [gone]])
    admin(three).create_topics([topic])[flow.remote_topic].result()
    fill(flow, 0)
    assert flow.run(slots=1).is_verified
    fill(flow, 100)
    end = TransactionalId.end

    def without_the_node(self: TransactionalId, commit: bool) -> None:
        if commit and node.process.running:
            node.kill()
            await_nodes(three, 2)
        end(self, commit)

    monkeypatch.setattr(TransactionalId, "end", without_the_node)
    numbers: list[int] = []

    def noting(slots: Sequence[Slot]) -> list[SlotResult]:
        numbers.extend(slot.number for slot in slots)
        return in_this_process(slots)

    try:
        first = flow.run(slots=1)
        assert not node.process.running and set(errors(first)) <= {1, 3}, [str(row.error) for row in first.rows]
        fill(flow, 200)
        second = flow.run(noting, slots=1)
        assert errors(second) == {1: "TargetUnavailable", 3: "TargetUnavailable"}
        assert [row.verified for row in second.rows if row.partition in (0, 2)] == [True, True]
        assert numbers == [1]  # the end of what id 0 has committed is still to be written
    finally:
        monkeypatch.undo()  # else the node that was started again is killed by the next commit
        node.restart()
        keep(node.process)
    assert flow.run(noting, slots=1).is_verified
    assert numbers == [1, 0]
    assert flow.assert_equal() == 4 * 300


def test_nothing_is_written_where_others_have_written(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)
    produce(west, flow.remote_topic, records(1), partition=0)
    before = await_settled(west, flow.remote_topic)
    for _ in range(2):
        result = flow.run()
        assert errors(result) == {0: "ForeignRecords"}
        assert next(row for row in result.rows if row.partition == 0).copied == 0
    after = end_offsets(west, flow.remote_topic)
    assert after[0] == before[0] and after[1] > before[1]


def test_one_record_of_others_where_no_marker_can_be(east: Broker, west: Broker, tmp_path: Path) -> None:
    """After a start that wrote no records there is no marker: one offset before ours is not explained."""
    flow = mirror(east, west, tmp_path, settings={"consumer.auto.offset.reset": "latest"})
    produce(east, flow.topic, records(10))
    flow.run()
    produce(west, flow.remote_topic, records(1), partition=0)
    produce(east, flow.topic, records(10, 10))
    [row] = flow.run().rows
    assert isinstance(row.error, ForeignRecords) and (row.error.first, row.error.last) == (0, 0)
    assert end_offsets(west, flow.remote_topic) == {0: 1}


def test_a_record_of_others_before_our_marker(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lies between the last record of a transaction and the marker that commits it."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(10))
    end = TransactionalId.end
    written = []

    def write_first(self: TransactionalId, commit: bool) -> None:
        if not written:
            written.append(produce(west, flow.remote_topic, records(1), partition=0))
        end(self, commit)

    monkeypatch.setattr(TransactionalId, "end", write_first)
    flow.run()
    assert written and await_settled(west, flow.remote_topic) == {0: 12}
    produce(east, flow.topic, records(10, 10))
    [row] = flow.run().rows
    assert isinstance(row.error, ForeignRecords) and (row.error.first, row.error.last) == (10, 10)
    assert end_offsets(west, flow.remote_topic) == {0: 12}


def test_records_of_others_in_mid_window(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = filled(east, west, tmp_path)
    take = Intake.take
    written = []

    def write(self: Intake, *args: object) -> None:
        if self.partition.partition == 0 and not written:
            written.append(produce(west, flow.remote_topic, records(1), partition=0))
        take(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Intake, "take", write)
    result = flow.run()
    assert errors(result) == {0: "ForeignRecords"}
    assert next(row for row in result.rows if row.partition == 1).verified


def test_a_remote_topic_that_ends_before_its_account(east: Broker, west: Broker, tmp_path: Path) -> None:
    """As when the last records are gone: noticed in every window, also when nothing is new."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    (last,) = flow.opened.ledger.mappings(flow.topic, 0)
    further = replace(last, target_end=last.target_end + 50, control=last.control + 50)
    with Appender(flow.flow.target, f"airmirror-mappings.{flow.flow.source.alias}.internal") as appender:
        appender.append([(further.encode_key(), further.encode_value())])
    for more in (0, 60):  # with nothing new, and with something
        produce(east, flow.topic, records(more, 100))
        [row] = flow.run().rows
        assert isinstance(row.error, TargetTruncated) and row.error.end < row.error.expected_end, str(row.error)


@pytest.mark.long
def test_a_remote_topic_that_was_cut_short(east: Broker, tmp_path: Path) -> None:
    """The same topic id, but fewer records: noticed in every window, also when nothing is new."""
    west = start_broker(tmp_path, "cut", IMPATIENT)
    try:
        flow = filled(east, west, tmp_path, 0)
        west.kill()
        [log] = (west.directory / "data").glob(f"{flow.remote_topic}-0")
        shutil.rmtree(log)
        west.restart()
        for more in (0, 10):  # with nothing new, and with something
            produce(east, flow.topic, records(more, 300))
            result = flow.run()
            assert errors(result) == {0: "TargetTruncated"}
            [error] = [row.error for row in result.rows if row.error is not None]
            assert isinstance(error, TargetTruncated) and error.end < error.expected_end
    finally:
        west.kill()


def test_a_remote_topic_that_was_cut_and_has_grown_again(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Its end tells nothing; the leader epoch of what was read back does. Here the mapping record tells of another one."""
    flow = mirror(east, west, tmp_path)
    for start in (0, 100):
        produce(east, flow.topic, records(100, start))
        assert flow.run().is_verified
    first, second = flow.opened.ledger.mappings(flow.topic, 0)
    assert first.target_epoch == second.target_epoch >= 0
    other = replace(second, target_epoch=1_000)
    with Appender(flow.flow.target, f"airmirror-mappings.{flow.flow.source.alias}.internal") as appender:
        appender.append([(other.encode_key(), other.encode_value())])
    [row] = flow.run().rows
    assert isinstance(row.error, TargetTruncated) and row.error.expected_end == second.target_end > row.error.end
    [reset] = carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test"))
    assert (reset.start, reset.lost_first, reset.lost_end) == (200, 100, 200)
    produce(east, flow.topic, records(10, 200))
    result = flow.run()
    assert result.is_verified and result.copied == 10
    [checked] = compare_all(flow.opened, [])
    assert (checked.records, checked.error) == (110, None)


def test_an_error_of_the_target_survives_its_way() -> None:
    import pickle

    error = TargetUnavailable(
        cluster="east",
        topic="orders",
        partition=0,
        target="west",
        remote_topic="east.orders",
        reason="it has no leader",
    )
    assert str(pickle.loads(pickle.dumps(error))) == str(error) and error.transient
    assert replace(error, reason="x").reason == "x"


def test_where_an_internal_topic_lacks_the_marker_the_flow_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows the positions; elsewhere the id and the partition are left out, however the transaction ended."""
    nothing: Any = None
    lease = Lease(window="w", event=LeaseEvent.RENEWED, owner="me", time_ms=0, duration_ms=0, slots=2)
    journal = Journal(a_flow("east"), nothing, InternalTopics("mappings", "progress"), nothing)
    granted = GrantedLease(journal, nothing, Renewal(lease, lambda record: 0), 0)
    lacking = TopicPartition("east.orders", 1)

    def fence_first(_flow: Flow, _target: Routes, number: int) -> TransactionStuck | None:
        return TransactionStuck("west", "id", False, {lacking: "it has no leader"}) if number == 0 else None

    monkeypatch.setattr(fence, "_fence", fence_first)
    fenced = fence_around(granted, 1)
    assert fenced.numbers == (1,) and fenced.stuck == {lacking: "it has no leader"}
    lacking = TopicPartition("mappings", 0)
    with pytest.raises(FenceStuck) as caught:
        fence_around(granted, 1)
    assert caught.value.transient and caught.value.partitions == ("mappings-0",)
    assert "mappings-0: it has no leader" in str(caught.value) and "(committed)" in str(caught.value)
