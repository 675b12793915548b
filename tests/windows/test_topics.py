"""Topics and partitions that come and grow while windows run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_partitions
from airmirror.clusters.admin.description import NewPartitions
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.flows.prepare import prepare
from airmirror.slot import attempts
from airmirror.windows.window import WindowOrder, run_window
from airmirror_local.brokers import Broker
from airmirror_local.ports import free_port
from airmirror_local.proxy import forward
from support.answers import Behind
from support.flows import in_this_process, mirror
from support.topics import Record, produce


def records(count: int, start: int = 0) -> list[Record]:
    return [Record(b"v%d" % number, b"k%d" % number) for number in range(start, start + count)]


def test_partitions_that_come_between_two_windows(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    create_partitions(connect(flow.flow.source), [NewPartitions(flow.topic, 2, 5)])
    for partition in range(5):
        produce(east, flow.topic, records(20, 100 * partition), partition=partition)
    result = flow.run()
    assert result.is_verified and result.copied == 100
    assert flow.assert_equal() == 200


def test_partitions_that_come_while_a_window_runs_are_the_next_ones(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    prepared = prepare(flow.opened)
    create_partitions(connect(flow.flow.source), [NewPartitions(flow.topic, 2, 4)])
    for partition in range(4):
        produce(east, flow.topic, records(20, 100 * partition), partition=partition)
    result = run_window(
        flow.flow, flow.opened.ledger, prepared.topics, in_this_process, WindowOrder("between", slots=lambda _: 2)
    )
    assert result.copied == 40 and not [row.error for row in result.rows if row.error]
    assert flow.run().copied == 40
    assert flow.assert_equal() == 80


def test_a_node_that_does_not_know_a_new_topic_yet_is_asked_again(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, missed = mirror(east, west, tmp_path), list[str]()

    class JustStarted(Routes):
        def refresh(self, topics: Iterable[str] | None) -> None:
            if flow.remote_topic in (topics or ()) and not missed:
                missed.append(flow.remote_topic)
                raise TopicNotFound(self.alias, flow.remote_topic)
            super().refresh(topics)

    monkeypatch.setattr(attempts, "Routes", JustStarted)
    produce(east, flow.topic, records(10))
    assert flow.run().is_verified and missed


def test_a_window_copies_a_topic_that_the_first_node_does_not_know_yet(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """It was made a moment ago, and this node was just started: the window's rows said that the topic was deleted."""
    with forward(free_port(), west.port) as new:
        flow = mirror(east, west, tmp_path, partitions=2, through=new.bootstrap)
        new.on_answer = behind = Behind(flow.remote_topic)
        produce(east, flow.topic, records(10))
        result = flow.run()
        assert result.is_verified and result.copied == 10, [str(row.error) for row in result.rows]
        assert behind.happened
