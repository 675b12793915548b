"""Groups that are read while their application restarts, and their coordinator: positions are there, and never go back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Position

from airmirror.clusters.protocol.groups import committed_offsets, list_groups
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.partitions import TopicPartition
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.flows import mirror
from support.groups import Protocol, commit, committed, member
from support.post_window import emit, sync
from support.topics import Record, create_topic, produce

POST_WINDOW_TASKS = 5
COUNT = 1000  # records: more than restarts in the time that tasks take


@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=pytest.mark.long)])
def test_rounds_while_an_application_restarts(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str], protocol: Protocol
) -> None:
    """It joins, commits and leaves again and again: each round sees what is committed by then, and the target follows."""
    flow, group = mirror(east, west, tmp_path, partitions=2), topic("billing")
    for partition in range(2):
        produce(east, flow.topic, [Record(b"%d" % n) for n in range(COUNT)], partition=partition)
    assert flow.run().is_verified
    at, failed = [0], list[BaseException]()
    began, over = threading.Event(), threading.Event()

    def application() -> None:
        try:
            for position in range(1, COUNT):
                with member(east, group, flow.topic, protocol) as consumer:
                    offsets = [Position(flow.topic, partition, position) for partition in range(2)]
                    consumer.commit(offsets=offsets, asynchronous=False)
                at[0] = position
                began.set()
                if over.is_set():
                    return
        except BaseException as error:
            failed.append(error)
            began.set()

    thread = threading.Thread(target=application)
    thread.start()
    assert began.wait(60)
    try:
        rounds = 0
        while not failed and (rounds < POST_WINDOW_TASKS or at[0] <= POST_WINDOW_TASKS):
            rounds += 1
            before = at[0]
            rows = sync(flow.opened, group)
            assert [row.partition for row in rows] == [0, 1] and not any(row.reason for row in rows), rows
            assert all(before <= row.position <= at[0] + 1 and row.exact for row in rows)
            emit(flow, group)
    finally:
        over.set()
        thread.join()
    assert not failed and at[0] > POST_WINDOW_TASKS
    assert [row.position for row in sync(flow.opened, group)] == [at[0]] * 2
    assert committed(west, group) == {(flow.remote_topic, 0): at[0], (flow.remote_topic, 1): at[0]}


@pytest.mark.long
def test_groups_while_their_coordinator_restarts(tmp_path: Path) -> None:
    """Its partitions are loaded anew then: no group is left out, none has committed nothing."""
    broker = start_broker(tmp_path, "own-east", IMPATIENT)
    try:
        create_topic(broker, "orders", 1)
        groups = [f"group-{number}" for number in range(20)]
        for group in groups:
            commit(broker, group, {("orders", 0): 7})
        key, seen, over = TopicPartition("orders", 0), [0], threading.Event()
        failed = list[BaseException]()

        def read() -> None:
            try:
                while not over.is_set():
                    with Routes(Cluster("east", (broker.bootstrap,), {}), "test", was_reached=True) as routes:
                        assert set(groups) <= list_groups(routes).keys()
                        found = committed_offsets(routes, groups)
                        assert {name: each[key].offset for name, each in found.items()} == dict.fromkeys(groups, 7)
                        seen[0] += 1
            except BaseException as error:
                failed.append(error)

        reader = threading.Thread(target=read)
        reader.start()
        for _ in range(3):
            before = seen[0]
            broker.kill()
            broker.restart()
            while seen[0] < before + 2 and reader.is_alive():
                reader.join(0.05)
        over.set()
        reader.join()
        assert not failed, failed
    finally:
        broker.kill()
