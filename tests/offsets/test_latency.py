"""End-to-end latency from heartbeats: over one flow and two, of the last window, with what is no heartbeat among them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airmirror.flows.measure import measure_latency
from airmirror.flows.status import flow_status
from airmirror.offsets.latency import Latency, measure
from airmirror.wire.mirrormaker import Heartbeat
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.heartbeats import east, heartbeats_deleted, west
from support.topics import Record, create_topic, produce

__all__ = ["east", "west"]


@pytest.fixture(autouse=True)
def none_left(east: Broker, west: Broker) -> Iterator[None]:
    with heartbeats_deleted(east, west):
        yield


def beats(*seconds_ago: float) -> list[Record]:
    now = time.time()
    found = [Heartbeat("west", "east", int((now - ago) * 1000)) for ago in seconds_ago]
    return [Record(each.encode_value(), each.encode_key(), (), each.time_ms) for each in found]


def latencies(flow: Mirror) -> dict[str, Latency]:
    return {latency.origin: latency for latency in measure(flow.flow, flow.opened.ledger)}


def test_heartbeats_of_the_last_window_tell_the_latency(east: Broker, west: Broker, tmp_path: Path) -> None:
    there = mirror(east, west, tmp_path)
    alias = there.flow.source.alias
    assert measure(there.flow, there.opened.ledger) == []
    create_topic(east, "heartbeats")
    produce(east, "heartbeats", beats(1000, 900))
    assert there.run().is_verified
    old = latencies(there)[alias]
    assert (old.hops, old.heartbeats) == (1, 2) and 900 <= old.readable.least < 960 < 1000 <= old.readable.most < 1060
    # Of the next window only its own count, and neither garbage nor another window without any.
    produce(east, "heartbeats", [*beats(60, 30), Record(b"garbage", b"key"), *beats(0)])
    assert there.run(window="second").is_verified
    produce(east, there.topic, [Record(b"a record")])
    assert there.run().is_verified
    found = latencies(there)[alias]
    assert (found.window, found.heartbeats) == ("second", 3)
    assert 0 <= found.readable.least < 30 <= found.readable.mean < 60 <= found.readable.most < 90
    # Verified after it could be read.
    assert found.readable.least <= found.verified.least < 30 and found.readable.most <= found.verified.most < 90
    assert 0 <= found.age_seconds() < 60
    assert flow_status(there.opened).latency == [found]
    measure_latency(there.opened)
    numbers = there.opened.ledger.numbers()
    assert numbers[("latency_readable_mean", alias)] == found.readable.mean
    assert numbers[("heartbeat", alias)] == found.newest_ms / 1000


def test_heartbeats_that_came_over_two_flows(east: Broker, west: Broker, tmp_path: Path) -> None:
    for name, ago in (("heartbeats", 10), ("origin.heartbeats", 100)):
        create_topic(east, name)
        produce(east, name, beats(ago))
    flow = mirror(east, west, tmp_path)
    assert flow.run().is_verified
    near, far = measure(flow.flow, flow.opened.ledger)
    assert (near.origin, near.hops) == (flow.flow.source.alias, 1) and 10 <= near.readable.least < 60
    assert (far.origin, far.hops) == ("origin", 2) and 100 <= far.readable.least < 160
