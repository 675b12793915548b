"""Brokers start, keep their data over a restart, run transactions of the second protocol, and compact soon."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from kafka import KafkaAdminClient
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror_local.brokers import IMPATIENT, Broker, start_broker, start_cluster
from airmirror_local.processes import ProcessFailed
from support.topics import (
    Record,
    admin,
    await_settled,
    create_topic,
    end_offsets,
    open_transaction,
    produce,
    read_all,
)


@pytest.mark.long  # tests/windows restarts brokers in mid-window, and compares every record after it
def test_a_broker_keeps_ports_and_data_over_kill_and_restart(tmp_path: Path) -> None:
    broker = start_broker(tmp_path, "north", IMPATIENT)
    try:
        before = broker.bootstrap
        create_topic(broker, "orders")
        produce(broker, "orders", [Record(b"a", timestamp=1)])
        broker.kill()
        assert not broker.process.running
        broker.restart()
        assert broker.bootstrap == before
        assert read_all(broker, "orders")[0][0].content == (None, b"a", (), 1)
    finally:
        broker.stop()
    assert not broker.process.running


def test_a_paused_broker_does_not_answer_until_it_is_resumed(tmp_path: Path) -> None:
    broker = start_broker(tmp_path, "north")
    try:
        broker.pause()
        with pytest.raises(KafkaException):
            admin(broker).list_topics(timeout=1)
        broker.resume()
        assert admin(broker).list_topics(timeout=60).brokers
        broker.pause()
    finally:
        broker.stop()  # also of one that is paused
    assert not broker.process.running


@pytest.mark.long  # tests/windows kills leaders of three nodes in mid-window
def test_a_cluster_of_three_survives_one(tmp_path: Path) -> None:
    cluster = start_cluster(tmp_path, "north", properties=IMPATIENT)
    try:
        create_topic(cluster, "orders", partitions=3, replicas=3)
        cluster.brokers[1].kill()
        assert produce(cluster, "orders", [Record(b"a", bytes([key])) for key in range(100)]) == 100
        assert sum(map(len, read_all(cluster, "orders").values())) == 100
    finally:
        cluster.stop()


def test_a_broker_that_fails_to_start_shows_why(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailed, match=r"(?s)broker north ended with status 1.*min\.insync\.replicas"):
        start_broker(tmp_path, "north", {"min.insync.replicas": "0"})


def test_transactions_use_the_second_protocol(west: Broker) -> None:
    client = KafkaAdminClient(bootstrap_servers=west.bootstrap)
    try:
        features = client.describe_features()
    finally:
        client.close()
    assert features["transaction.version"]


def test_transactions_are_committed_aborted_and_open(west: Broker, topic: Callable[[str], str]) -> None:
    orders = create_topic(west, topic("orders"))
    produce(west, orders, [Record(b"a"), Record(b"b")], transactional="commit")
    produce(west, orders, [Record(b"c")], transactional="abort")
    await_settled(west, orders)
    with open_transaction(west, orders, [Record(b"d")]):
        assert end_offsets(west, orders) == {0: 6}
        assert end_offsets(west, orders, "read_committed") == {0: 5}
        assert [r.value for r in read_all(west, orders, settled=False)[0]] == [b"a", b"b"]
    assert [(r.value, r.offset) for r in read_all(west, orders)[0]] == [(b"a", 0), (b"b", 1)]
    assert [r.value for r in read_all(west, orders, "read_uncommitted")[0]] == [b"a", b"b", b"c", b"d"]


def test_a_compacted_topic_is_compacted_soon(west: Broker, topic: Callable[[str], str]) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01"}
    orders = create_topic(west, topic("orders"), config=config)
    for attempt in Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.2), reraise=True):
        with attempt:
            # The active segment is never compacted: each record rolls a new one.
            produce(west, orders, [Record(b"new", b"key")])
            records = read_all(west, orders)[0]
            assert len(records) < records[-1].offset + 1
