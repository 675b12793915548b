"""Brokers that hang while a slot follows: whoever ends its window does not wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.slot.source import ANSWER_SECONDS
from airmirror.windows.fence import end_window
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Proxy, pass_on
from support.flows import at_once, mirror
from support.following import FOLLOW, SETTINGS, await_copied, beside, numbered
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
