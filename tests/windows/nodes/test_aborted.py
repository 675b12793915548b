"""Aborted transactions that a leader does not name: it has followed before, and its index is wrong (a fault of Kafka's)."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kafka.structs import TopicPartition

from airmirror.slot import source as source_module
from airmirror.slot.attempts import Refusals
from airmirror.slot.errors import AbortLeftOut, PartitionError
from airmirror_local.brokers import Broker, BrokerCluster
from support.elections import await_leader, bring_back
from support.flows import Mirror, mirror
from support.following import SETTINGS, ended_by_event, follow, patiently
from support.moves import await_whole, lead, reassign
from support.topics import SECONDS, Record, admin, delete_topic, open_transaction, produce, read_all

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

TRANSACTIONS, ABORTED, BATCHES = 12, 8, 3


def send(producer: Producer, topic: str, value: bytes) -> None:
    """A batch of one record."""
    producer.produce(topic, value, partition=0)
    producer.flush(SECONDS)


def followed(three: BrokerCluster, west: Broker, directory: Path, settings: dict[str, str] | None = None) -> Mirror:
    """A flow whose source's leader has got a producer's transactions at once, as a follower that was away: all but every third
    were aborted. Another producer's, which comes last, makes the fault: the index has the others stable up to it only."""
    flow = mirror(three, west, directory, settings=settings)
    delete_topic(three, flow.topic)
    new = NewTopic(flow.topic, 1, replica_assignment=[[1, 2]], config={"min.insync.replicas": "1"})
    admin(three).create_topics([new])[flow.topic].result()
    leads, follows = three.brokers[:2]
    await_leader(three, flow.topic, leads)
    try:
        follows.kill()
        first = [Record(b"of the first transaction", None, (), 1_700_000_000_000)]
        with open_transaction(three, flow.topic, first, partition=0) as producer:
            producer.commit_transaction(SECONDS)
            for number in range(TRANSACTIONS):
                producer.begin_transaction()
                for batch in range(BATCHES):
                    send(producer, flow.topic, b"%d of transaction %d" % (batch, number))
                (producer.commit_transaction if number % 3 == 2 else producer.abort_transaction)(SECONDS)
        with open_transaction(three, flow.topic, first, partition=0) as producer:
            producer.commit_transaction(SECONDS)
    finally:
        bring_back(follows)
    await_whole(three)
    partition = TopicPartition(flow.topic, 0)
    reassign(three, {partition: [2, 1]})
    lead(three, [partition])
    await_leader(three, flow.topic, follows)
    return flow


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[PartitionError]:
    """The errors after which a slot may try again."""
    found, allow = list[PartitionError](), Refusals.allow

    def noted(self: Refusals, bad: PartitionError, *more: object) -> bool:
        found.append(bad)
        return allow(self, bad, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(Refusals, "allow", noted)
    return found


@pytest.mark.parametrize("of_one_batch", [True, False])
def test_it_is_not_copied(
    three: BrokerCluster,
    west: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seen: list[PartitionError],
    of_one_batch: bool,
) -> None:
    """Its marker comes in a later answer than its records, or in the same one."""
    monkeypatch.setattr(source_module, "FETCH_BYTES", 1 if of_one_batch else 2000)
    flow = followed(three, west, tmp_path)
    committed = read_all(three, flow.topic)[0]
    result = flow.run()
    assert result.is_verified and result.copied == len(committed) == TRANSACTIONS // 3 * BATCHES + 2
    assert flow.assert_equal() == len(committed)
    assert all(isinstance(each, AbortLeftOut) and not each.is_copied for each in seen)
    assert len(seen) == ABORTED - 1 if of_one_batch else len(seen) < ABORTED // 2, "the first one is named"


def test_a_window_that_follows_leaves_it_out_too(
    three: BrokerCluster, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: list[PartitionError]
) -> None:
    """It goes on with what comes then."""
    monkeypatch.setattr(source_module, "FETCH_BYTES", 1)
    flow = followed(three, west, tmp_path, SETTINGS | {"window.follow.commit.ms": "100000"})
    before, last = len(read_all(three, flow.topic)[0]), Record(b"what comes", None, (), 1_700_000_000_000)

    def work() -> None:
        for attempt in patiently():
            with attempt:
                assert len(seen) == ABORTED - 1
        produce(three, flow.topic, [last], partition=0)
        for attempt in patiently():
            with attempt:
                assert read_all(west, flow.remote_topic, "read_uncommitted")[0][-1].value == last.value

    result = follow(flow, work, ended_by_event(monkeypatch))
    assert result.is_verified and result.copied == flow.assert_equal() == before + 1
    assert not any(isinstance(each, AbortLeftOut) and each.is_copied for each in seen)


def test_what_is_committed_before_its_marker_comes_is_said(
    three: BrokerCluster, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an error of its window; the next one copies what comes after, and no more of it."""
    monkeypatch.setattr(source_module, "FETCH_BYTES", 1)
    flow = followed(three, west, tmp_path, {"window.commit.bytes": "1"})
    errors, window = list[AbortLeftOut](), flow.run()
    while isinstance(error := window.rows[0].error, AbortLeftOut):
        assert error.is_copied and error.until == window.rows[0].source_end
        errors.append(error)
        window = flow.run()
    assert window.is_verified and len(errors) == ABORTED - 1
    committed, copied = (
        [(each.timestamp, each.value) for each in read_all(*log)[0]]
        for log in ((three, flow.topic), (west, flow.remote_topic))
    )
    assert [each for each in copied if each in committed] == committed, "in order, none twice"
    assert len(copied) - len(committed) == sum(error.until - error.first for error in errors)
    assert errors[0].transient is False and "--recreate-remote-topic" in str(errors[0])
