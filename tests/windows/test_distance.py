"""A source that is far away: several fetches of one broker are under way, and nothing else differs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from airmirror.clusters.protocol.connection import Connection
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition
from airmirror.slot import source as source_module
from airmirror.slot.source import LANES
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.following import numbered
from support.topics import produce

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

    def opened(self: Routes, node: int, purpose: str) -> Connection:
        purposes.add(purpose)
        return connection(self, node, purpose)

    monkeypatch.setattr(Routes, "connection", opened)
    flow = mirror(east, west, tmp_path, partitions=PARTITIONS)
    for each in range(PARTITIONS):
        produce(east, flow.topic, numbered(300, 1000 * each), partition=each, records_per_batch=50)
    produce(east, flow.topic, numbered(200, 9000), transactional="abort")
    produce(east, flow.topic, numbered(200, 8000), transactional="commit")
    assert flow.run(slots=1).is_verified
    assert flow.assert_equal() == PARTITIONS * 300 + 200
    assert {waiting for waiting, _ in asked} == {0}
    first = asked[:3] if is_far else asked[:1]
    assert sorted(len(partitions) for _, partitions in first) == ([1, 2, 2] if is_far else [PARTITIONS])
    assert len(frozenset.union(*[partitions for _, partitions in first])) == PARTITIONS
    assert {lane for lane in LANES if lane in purposes} == set(LANES[:3] if is_far else LANES[:1])


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
