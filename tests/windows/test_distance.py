"""Clusters that are far away: more is under way, batches are merged, and every record is there all the same."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partialmethod
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from airmirror.clusters.protocol.connection import Connection
from airmirror.clusters.protocol.routes import ASKING, Routes
from airmirror.partitions import TopicPartition
from airmirror.slot import source as source_module
from airmirror.slot.pace import Pace
from airmirror.slot.source import LANES
from airmirror.wire.batches import parse
from airmirror.wire.merging import MERGED_BELOW
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.following import numbered
from support.topics import Record, await_settled, produce

PARTITIONS = 5


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, frozenset[TopicPartition]]]:
    """Of each fetch: how many were under way on its connection, and its partitions."""
    found: list[tuple[int, frozenset[TopicPartition]]] = []
    send = source_module.send_fetch

    def note(routes: Routes, connection: Connection, positions: Mapping[TopicPartition, Any], **more: Any) -> int:
        found.append((connection.waiting, frozenset(positions)))
        return send(routes, connection, positions, **more)

    monkeypatch.setattr(source_module, "send_fetch", note)
    return found


@pytest.mark.parametrize("is_far", [True, pytest.param(False, marks=pytest.mark.long)])
def test_every_partition_is_in_one_fetch_and_each_connection_has_one(
    east: Broker,
    west: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: list[tuple[int, frozenset[TopicPartition]]],
    is_far: bool,
) -> None:
    monkeypatch.setattr(Routes, "round_trip", lambda self, node: 3 * source_module.LANE_SECONDS if is_far else 0.0)
    purposes = set[str]()
    connection = Routes.connection

    def opened(self: Routes, node: int, purpose: str = ASKING) -> Connection:
        purposes.add(purpose)
        return connection(self, node, purpose)

    monkeypatch.setattr(Routes, "connection", opened)
    flow = mirror(east, west, tmp_path, partitions=PARTITIONS)
    for each in range(PARTITIONS):
        produce(east, flow.topic, numbered(300, 1000 * each), partition=each, records_per_batch=50)
    produce(east, flow.topic, numbered(200, 9000), transactional="abort")
    produce(east, flow.topic, numbered(200, 8000), transactional="commit")
    await_settled(east, flow.topic)
    assert flow.run(slots=1).is_verified
    assert flow.assert_equal() == PARTITIONS * 300 + 200
    assert {waiting for waiting, _ in asked} == {0}
    first = asked[:3] if is_far else asked[:1]
    assert sorted(len(partitions) for _, partitions in first) == ([1, 2, 2] if is_far else [PARTITIONS])
    assert len(frozenset.union(*[partitions for _, partitions in first])) == PARTITIONS
    assert {lane for lane in LANES if lane in purposes} == set(LANES[:3] if is_far else LANES[:1])


def test_one_partition_of_a_far_source_is_fetched_in_larger_pieces(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = mirror(east, west, tmp_path)
    sizes: list[int] = []
    send = source_module.send_fetch

    def note(*arguments: Any, max_bytes: int, **more: Any) -> int:
        sizes.append(max_bytes)
        return send(*arguments, max_bytes=max_bytes, **more)

    monkeypatch.setattr(source_module, "send_fetch", note)
    monkeypatch.setattr(source_module, "FETCH_BYTES", 64 << 10)
    monkeypatch.setattr(Pace, "__init__", partialmethod(Pace.__init__, bytes=16 << 10))
    monkeypatch.setattr(
        Routes, "round_trip", lambda self, node: 4 * source_module.LANE_SECONDS if self.alias != "west" else 0.0
    )
    produce(east, flow.topic, sized(2_000), records_per_batch=20)
    assert flow.run(slots=1).is_verified and flow.assert_equal() == 2_000
    assert sizes[0] == 16 << 10 and max(sizes) == 4 * (64 << 10), "one fetch is as large as four lanes' together"


@pytest.mark.parametrize("verify", ["readback", "acks"])
def test_batches_that_do_not_fill_the_line_to_a_far_target_are_merged(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verify: str
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, settings={"window.verify": verify})
    for partition in range(2):
        produce(east, flow.topic, sized(1_000), partition=partition, records_per_batch=20)
    produce(east, flow.topic, sized(400), transactional="abort", records_per_batch=20)
    produce(east, flow.topic, sized(400), transactional="commit", records_per_batch=20)
    await_settled(east, flow.topic)
    monkeypatch.setattr(Routes, "round_trip", lambda self, node: 0.1 if self.alias == "west" else 0.0)
    result = flow.run(slots=1)
    assert not [row.error for row in result.rows if row.error]
    assert flow.assert_equal() == 2_400
    sizes = batch_sizes(west, flow.remote_topic)
    assert median(batch_sizes(east, flow.topic)) > MERGED_BELOW[0], "a near target would get them as they are"
    assert max(sizes) > 10 * MERGED_BELOW[0] and len(sizes) < 20, sizes


def sized(count: int) -> list[Record]:
    """Records of a thousand bytes: twenty are a batch that is not small."""
    return [
        Record(b"%04d" % number * 250, b"key-%d" % number, (), 1_700_000_000_000 + number) for number in range(count)
    ]


def batch_sizes(broker: Broker, topic: str) -> list[int]:
    """The sizes of the batches with records in a topic's logs."""
    found = []
    for log in broker.directory.glob(f"data/{topic}-*/*.log"):
        buffer = memoryview(log.read_bytes())
        found += [batch.size for batch in parse(buffer, 0, len(buffer)) if not batch.is_control]
    return found


def test_the_round_trip_is_that_of_the_quickest_answer(east: Broker, tmp_path: Path) -> None:
    flow = mirror(east, east, tmp_path, topic="orders")
    with Routes(flow.flow.source, "test") as routes:
        assert routes.round_trip(1) == 0.0
        routes.refresh([])
        [node] = routes.nodes
        routes.connection(node, LANES[0])
        assert 0 < routes.round_trip(node) < 30
        quick = routes.connection(node, LANES[1])
        quick.round_trip = 1e-9
        assert routes.round_trip(node) == 1e-9
