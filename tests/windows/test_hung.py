"""Brokers that hang while a slot copies: whoever ends its window does not wait for them, nor do partitions that others lead."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

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


def test_a_broker_that_says_nothing_is_given_up_though_another_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a power failure, or where a firewall has forgotten a connection: its partitions are led by another by then."""
    takers = [intake(30)[0], intake(30)[0]]
    takers[1].partition = replace(takers[1].partition, partition=1)

    class Asked:
        throttle = ConnectionThrottle(print)

        def __init__(self, broker: str, *, answers: bool) -> None:
            self.broker, self.answers = broker, answers

    silent, answering = Asked("node 1", answers=False), Asked("node 2", answers=True)
    nodes, asked, dropped = {0: 1, 1: 2}, list[tuple[str, list[int]]](), set[int]()
    nothing = Fetched(error=0, high_watermark=30, last_stable_offset=30, log_start_offset=0, aborted=(), start=0, end=0)

    def send(_: object, connection: Any, positions: dict[TopicPartition, object], **__: object) -> int:
        asked.append((connection.broker, sorted(key.partition for key in positions)))
        return 13

    def elect(_: object) -> None:
        nodes[0] = 2

    routes: Any = SimpleNamespace(
        alias="east",
        topic_ids={"orders": takers[0].partition.source_topic_id},
        leader=lambda key: SimpleNamespace(node=nodes[key.partition], epoch=0),
        connection=lambda node, _: silent if node == 1 else answering,
        round_trip=lambda _: 0.0,
        refresh=elect,
        drop=lambda node, _: dropped.add(node),
    )
    monkeypatch.setattr(source_module, "send_fetch", send)
    monkeypatch.setattr(source_module, "ready", lambda those, *_: [each for each in those if each.answers])
    monkeypatch.setattr(
        source_module, "receive_fetch", lambda *_: (memoryview(b""), {takers[1].partition.source: nothing})
    )
    slot = takers[0].context.slot
    source = Source(routes, slot, takers, Pace(60_000), Limit.of(slot))
    source.ask()
    source.answer()
    assert asked == [("node 1", [0]), ("node 2", [1])] and not dropped
    source.ask()
    monkeypatch.setattr(source_module, "ANSWER_SECONDS", 0.0)
    source.answer()
    assert dropped == {1}
    source.answer()
    source.ask()
    assert asked[2:] == [("node 2", [1]), ("node 2", [0, 1])]
