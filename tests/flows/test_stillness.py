"""When a source counts as quiet, on a clock and a cluster that are made up; and that both procedures wait for so long."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import MoveGroup
from airmirror.flows.prepare import Opened
from airmirror.partitions import TopicPartition
from airmirror.runbooks import draining, stillness
from airmirror.runbooks.failover import steps
from airmirror.runbooks.migration import chosen, producers
from airmirror.runbooks.migration.chosen import Move
from airmirror.runbooks.stillness import SAMPLE_SECONDS, await_still
from airmirror.wire.owners import Owners
from support.failovers import PLANNED
from support.flows import a_flow
from support.migrations import ORDER

KEY = TopicPartition("orders", 0)


class Clock:
    """Time that passes while somebody sleeps, and at no other time."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Log:
    """A cluster of one partition, whose end is another one at each look; ``stable``: where its first open transaction is."""

    def __init__(self, ends: Sequence[int], stable: Sequence[int] = ()) -> None:
        self._ends: Iterator[int] = chain(ends, repeat(ends[-1]))
        self._stable: Iterator[int | None] = chain(stable, repeat(None))
        self._end = 0

    def keys_now(self, topics: Collection[str]) -> list[TopicPartition]:
        return [KEY]

    def offsets(self, *, read_committed: bool) -> dict[TopicPartition, int]:
        if not read_committed:
            self._end = next(self._ends)
            return {KEY: self._end}
        stable = next(self._stable)
        return {KEY: self._end if stable is None else stable}


Waits = Callable[..., tuple[Sequence[str], list[str], float]]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Waits:
    """Wait for a log: what was left, what was told, the seconds that it took."""
    clock = Clock()
    monkeypatch.setattr(stillness, "time", clock)

    def offsets(cluster: Log, keys: object, at: int, *, read_committed: bool = False) -> dict[TopicPartition, int]:
        return cluster.offsets(read_committed=read_committed)

    monkeypatch.setattr(stillness, "offsets_with_patience", offsets)

    def wait(log: Log, still: float, seconds: float) -> tuple[Sequence[str], list[str], float]:
        told: list[str] = []
        left = await_still(
            cast(Routes, log), ["orders"], still=still, seconds=seconds,
            reasons=lambda moving: list(moving.values()), tell=told.append,
        )  # fmt: skip
        return left, told, clock.now

    return wait


def test_a_log_that_grows_is_waited_for_and_then_the_quiet_time(waits: Waits) -> None:
    left, told, took = waits(Log([10, 12, 15]), still=2.0, seconds=60.0)
    assert left == () and told[:2] == ["waiting: orders-0 grew from 10 to 12", "waiting: orders-0 grew from 12 to 15"]
    assert set(told[2:]) == {"no producer writes; waiting whether it stays so"}
    assert took == 2 * SAMPLE_SECONDS + 2.0, "the whole quiet time, from when it last grew"


def test_the_quiet_time_begins_again_with_each_record(waits: Waits) -> None:
    left, told, took = waits(Log([10, 10, 10, 11]), still=2.0, seconds=60.0)
    assert left == () and "waiting: orders-0 grew from 10 to 11" in told and took == 3 * SAMPLE_SECONDS + 2.0


def test_a_log_that_never_rests_is_named_in_the_end(waits: Waits) -> None:
    left, _, took = waits(Log(range(10, 1000)), still=0.0, seconds=3.0)
    assert left == ["orders-0 grew from 16 to 17"] and took == 3.0 + SAMPLE_SECONDS


def test_an_open_transaction_is_waited_for(waits: Waits) -> None:
    left, told, took = waits(Log([10], stable=[7, 7]), still=0.0, seconds=60.0)
    assert left == () and told == ["waiting: orders-0 has an open transaction from offset 7 on"] * 2
    assert took == 3 * SAMPLE_SECONDS


class Asked(Exception):
    """What was waited for; nothing comes after it."""

    def __init__(self, still_ms: int, seconds: float) -> None:
        super().__init__(still_ms, seconds)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """A flow with quiet times of its own, whose waiting ends at once with what was asked for."""

    def asked(_opened: Opened, *, still_ms: int, seconds: float, **_given: Any) -> None:
        raise Asked(still_ms, seconds)

    for module in (steps, producers):
        monkeypatch.setattr(module, "await_quiet", asked)
    monkeypatch.setattr(producers, "is_frozen", lambda _opened, _move: False)
    flow = a_flow("quiet")
    settings = replace(flow.settings, move_quiet_ms=4321, failover_quiet_ms=1234)
    return Opened(cast(Any, None), replace(flow, settings=settings), cast(Any, None))


def test_a_planned_failover_waits_for_its_quiet_time(opened: Opened) -> None:
    with pytest.raises(Asked) as waited:
        steps.drain_step(opened, replace(PLANNED, wait=9.0))
    assert waited.value.args == (1234, 9.0)


def test_producers_are_cut_over_after_the_quiet_time(opened: Opened) -> None:
    move = Move("shop", {"orders": "east.orders"}, (), None)
    with pytest.raises(Asked) as waited:
        producers.cut_over_writers(opened, move, replace(ORDER, wait=9.0), lambda phase: None)
    assert waited.value.args == (4321, 9.0)


def test_heartbeats_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They never end: Airmirror's own, or those of MirrorMaker 2."""
    flow = replace(a_flow("quiet"), moves=(MoveGroup("shop", (".*",), groups=()),))
    ledger = SimpleNamespace(owners=Owners, state=lambda: SimpleNamespace(known=[("heartbeats", 0)]))
    opened = Opened(cast(Any, None), flow, cast(Any, ledger))
    planned = SimpleNamespace(topics={each: f"quiet.{each}" for each in ("orders", "heartbeats")}, refused=())
    for module in (draining, chosen):
        monkeypatch.setattr(module, "plan_topics", lambda *_, **__: planned)
    monkeypatch.setattr(chosen, "all_groups", lambda _source: {})
    asked = list[Collection[str]]()
    monkeypatch.setattr(draining, "await_still", lambda _source, topics, **_given: asked.append(topics))
    draining.await_quiet(opened, still_ms=0, seconds=0.0)
    assert asked == [{"orders"}] == [chosen.chosen_move(opened, "shop").names.keys()]
