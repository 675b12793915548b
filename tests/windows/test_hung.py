"""Brokers that hang while a slot copies: whoever ends its window does not wait for them, nor do partitions that others lead."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.throttle import ConnectionThrottle
from airmirror.partitions import TopicPartition
from airmirror.slot import source as source_module
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.slot.limit import Limit
from airmirror.slot.pace import Pace
from airmirror.slot.source import ANSWER_SECONDS, Source
from airmirror.windows.fence import end_window
from airmirror.wire.requests import Fetched
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Proxy, pass_on
from support.flows import at_once, mirror
from support.following import FOLLOW, SETTINGS, await_copied, beside, numbered
from support.intakes import intake
from support.topics import bootstrap, produce

PRODUCE, FETCH, END_TXN = 0, 1, 26


@pytest.mark.parametrize(
    ("side", "api_key"),
    [("source", FETCH), ("target", PRODUCE), pytest.param("target", END_TXN, marks=pytest.mark.long)],
)
def test_a_window_is_ended_while_a_broker_hangs(
    east: Broker, west: Broker, east_proxy: Proxy, west_proxy: Proxy, tmp_path: Path, side: str, api_key: int
) -> None:
    """The slot ends within seconds, not when it gives the broker up; everything comes once in the next window."""
    flow = mirror(east_proxy.bootstrap, west, tmp_path, settings=SETTINGS, through=west_proxy.bootstrap)
    proxy = east_proxy if side == "source" else west_proxy
    direct = replace(flow.flow, target=replace(flow.flow.target, bootstrap_servers=(bootstrap(west),)))
    hangs, hung, over = threading.Event(), threading.Event(), threading.Event()
    produce(east, flow.topic, numbered(10))
    ended: list[float] = []

    def hold(exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key == api_key and hangs.is_set():
            hung.set()
            over.wait(120)
        return frame

    def work() -> None:
        await_copied(flow, 10)
        proxy.on_answer = hold
        hangs.set()
        produce(east, flow.topic, numbered(10, 10))
        assert hung.wait(100)
        assert end_window(direct, flow.opened.ledger, "hung")
        ended.append(time.monotonic())

    def execute(given: Sequence[Slot]) -> list[SlotResult]:
        try:
            with beside(work, threading.Event()):
                results = at_once(given)
            took = time.monotonic() - ended[0]
        finally:
            over.set()
            proxy.on_answer = pass_on
        assert {each.outcome for each in results} == {Outcome.FENCED}
        assert took < ANSWER_SECONDS / 3, "some seconds, where the machine has nothing else to do"
        return results

    flow.run(execute, "hung", 1, FOLLOW)
    assert flow.run().is_verified
    assert flow.assert_equal() == 20


@dataclass(eq=False)
class Connected:
    """A connection to one of two brokers, of which the other one answers each fetch at once."""

    broker: str
    answers: bool
    fetch_version: int = 13
    throttle = ConnectionThrottle(print)


class TwoBrokers:
    """Node 1 leads partition 0 and says nothing, node 2 leads partition 1; what they were asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        takers = [intake(30)[0], intake(30)[0]]
        takers[1].partition = replace(takers[1].partition, partition=1)
        self.alias, self.topic_ids = "east", {"orders": takers[0].partition.source_topic_id}
        self.nodes, self.asked, self.dropped = {0: 1, 1: 2}, list[tuple[str, list[int]]](), set[int]()
        self.connections = {node: Connected(f"node {node}", node == 2) for node in (1, 2)}
        self.refused = self.refreshed = 0
        end = Fetched(error=0, high_watermark=30, last_stable_offset=30, log_start_offset=0, aborted=(), start=0, end=0)
        got = memoryview(b""), {takers[1].partition.key: end}
        monkeypatch.setattr(source_module, "send_fetch", self.send)
        monkeypatch.setattr(source_module, "ready", lambda those, *_: [each for each in those if each.answers])
        monkeypatch.setattr(source_module, "receive_fetch", lambda *_: got)
        slot = takers[0].context.slot
        self.takers = takers
        self.source = Source(cast(Any, self), slot, takers, Pace(60_000), Limit.of(slot))

    def send(self, _: object, connection: Connected, positions: dict[TopicPartition, object], **__: object) -> int:
        self.asked.append((connection.broker, sorted(key.partition for key in positions)))
        return 13

    def leader(self, key: TopicPartition) -> SimpleNamespace:
        return SimpleNamespace(node=self.nodes[key.partition], epoch=0)

    def connection(self, node: int, _: str) -> Connected:
        if node in self.dropped:
            self.refused += 1
            raise BrokerUnreachable(self.alias, f"node {node}", "timed out")
        return self.connections[node]

    def round_trip(self, _: int) -> float:
        return 0.0

    def rest(self, _: str) -> float:
        return 0.0

    def refresh(self, _: object) -> None:
        self.refreshed += 1

    def drop(self, node: int, _: str) -> None:
        self.dropped.add(node)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> TwoBrokers:
    """Asked once each, and the silent one is late since."""
    two = TwoBrokers(monkeypatch)
    two.source.ask()
    two.source.answer()
    assert two.asked == [("node 1", [0]), ("node 2", [1])] and not two.dropped
    two.source.ask()
    monkeypatch.setattr(source_module, "ANSWER_SECONDS", 0.0)
    return two


def test_a_broker_that_says_nothing_is_given_up_though_another_one_answers(
    two: TwoBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a power failure, or where a firewall has forgotten a connection: its partitions are led by another by then."""
    monkeypatch.setattr(two, "refresh", lambda _: two.nodes.update({0: 2}))
    two.source.answer()
    assert two.dropped == {1}
    two.source.answer()
    two.source.ask()
    assert two.asked[2:] == [("node 2", [1]), ("node 2", [0, 1])]


def test_a_broker_that_says_nothing_and_still_leads_stops_no_other_one(
    two: TwoBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each connection to it takes seconds of the slot's only thread: it is asked for one, and commits ask for none."""
    monkeypatch.setattr(source_module, "LOOK_SECONDS", -1.0)  # as if each had taken longer than a second
    two.source.answer()
    for _ in range(5):
        two.source.answer()
        two.source.ask()
        two.source.check_topics()
    assert two.refused == 1 and two.asked[2:] == [("node 2", [1])] * 6
    assert two.takers[0].withheld == "its leader says nothing" != two.takers[1].withheld
    two.nodes[0] = 2
    two.source.answer()
    two.source.ask()
    assert two.asked[-1] == ("node 2", [0, 1])
