"""The recovery point of a partition, and what the ledger keeps for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.clusters.protocol import log
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import parse
from airmirror.ledger import Ledger
from airmirror.ledger.metrics import SEEN, Standing
from airmirror.ledger.recovery import complete_ms, seen_by_flow
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failover import plan
from airmirror.runbooks.failover.partitions import points
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.owners import OrderScope, Owner, Ownership
from ledger.test_ledger import entries, load, mapping, verified

FLOW = "a->b"


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with closing(Ledger("sqlite://")) as opened:
        yield opened


def complete(ledger: Ledger) -> int | None:
    (row,) = ledger.partition_metrics()
    return complete_ms(row, seen_by_flow(ledger.flow_metrics()).get(FLOW))


def stands(ledger: Ledger, *log: object, position: int, end: int, seen_ms: int = 90_000) -> int | None:
    """After a window that has seen the source end at ``end``, with ``position`` as the next offset to replicate."""
    flow = ledger.flow(FLOW)
    load(flow, entries(*log))
    flow.note_standings([Standing("orders", 0, "a.orders", position, end)])
    flow.count_verified()
    flow.note({}, {(SEEN, ""): seen_ms / 1000})
    return complete(ledger)


def test_where_nothing_is_left_it_is_when_that_was_seen(ledger: Ledger) -> None:
    assert stands(ledger, mapping(0, 10), verified(9), position=10, end=10) == 90_000


def test_an_empty_partition_is_complete(ledger: Ledger) -> None:
    assert stands(ledger, position=0, end=0) == 90_000


def timed(start: int, end: int, newest_ms: int) -> MappingRecord:
    """A mapping record with the timestamp of its newest record."""
    return replace(mapping(start, end), max_timestamp=newest_ms, time_ms=9_000)


def test_where_something_is_left_it_is_the_newest_verified_record(ledger: Ledger) -> None:
    first, second = timed(0, 10, 5_000), timed(10, 20, 7_000)
    assert stands(ledger, first, second, verified(9), position=20, end=25) == 5_000
    log = (first, second, verified(9), verified(19))
    assert stands(ledger, *log, position=20, end=25) == 7_000
    # A range without records after it tells nothing newer.
    empty = replace(mapping(20, 22), copied=0, ranges=(), max_timestamp=-1)
    assert stands(ledger, *log, empty, verified(21), position=22, end=25) == 7_000


@pytest.mark.parametrize(("read_ms", "expected"), [(800, 800), (-1, 9_000)])
def test_a_record_from_the_future_is_as_old_as_its_copy(ledger: Ledger, read_ms: int, expected: int) -> None:
    """Or nothing would be lost, and nothing would lag, for as long as nothing newer is verified."""
    record = replace(timed(0, 10, 2**62), read_ms=read_ms)
    assert stands(ledger, record, verified(9), position=10, end=25) == expected
    assert [row.newest_ms for row in ledger.partition_metrics()] == [expected]


def test_the_oldest_record_of_a_new_topic_is_not_from_the_future(monkeypatch: pytest.MonkeyPatch) -> None:
    place, routes = TopicPartition("orders", 0), cast(Routes, None)
    monkeypatch.setattr(log, "ask_leaders", lambda *_: {place: (0, 2**62)})
    assert log.oldest_times(routes, [place])[place] <= time.time() * 1000


def test_after_a_reset_nothing_of_the_old_copy_counts(ledger: Ledger) -> None:
    """The partition ends where it did; of what is copied again nothing is verified, whatever was of the other copy."""
    copy, passed = timed(0, 10, 5_000), verified(9)
    assert stands(ledger, copy, passed, position=10, end=10) == 90_000
    again = (copy, passed, (copy,), (passed,), copy)
    assert stands(ledger, *again, position=10, end=10) is None
    assert stands(ledger, *again, position=10, end=12) is None
    assert stands(ledger, *again, passed, position=10, end=10) == 90_000
    assert [row.records for row in ledger.partition_metrics()] == [20]


def test_what_is_verified_of_the_next_copy_does_not_make_it_the_old_one(ledger: Ledger) -> None:
    """A window that follows: its gate has let a part pass when it is first measured."""
    old, passed = timed(0, 10, 5_000), verified(9)
    stands(ledger, old, passed, position=10, end=10)
    again = (old, passed, (old,), (passed,), timed(0, 4, 3_000), verified(3))
    assert stands(ledger, *again, position=4, end=10) is None
    assert stands(ledger, *again, timed(4, 10, 5_000), verified(9), position=10, end=12) == 5_000


def test_what_is_committed_and_not_verified_does_not_count(ledger: Ledger) -> None:
    first, second = timed(0, 10, 5_000), timed(10, 20, 7_000)
    assert stands(ledger, first, second, verified(9), position=20, end=20) == 5_000
    assert stands(ledger, first, second, verified(9), verified(19), position=20, end=20) == 90_000


def test_nothing_verified_is_not_known(ledger: Ledger) -> None:
    assert stands(ledger, mapping(0, 10), position=10, end=10) is None


def test_what_the_last_window_could_not_see_is_as_old_as_the_one_before(ledger: Ledger) -> None:
    log = (mapping(0, 10), verified(9))
    stands(ledger, *log, position=10, end=10, seen_ms=90_000)
    assert stands(ledger, *log, position=10, end=-1, seen_ms=95_000) == 90_000
    assert stands(ledger, *log, position=10, end=-1, seen_ms=96_000) == 90_000
    assert stands(ledger, *log, position=10, end=10, seen_ms=97_000) == 97_000


def test_what_is_frozen_by_its_name_does_not_count(ledger: Ledger) -> None:
    """A migration's topics: no window sees where they end, so that nobody would know the recovery point of all others."""
    flow = ledger.flow(FLOW)
    load(flow, entries(mapping(0, 10), verified(9)))
    source_gone: dict[str, Any] = {"shown": {}, "seen_ms": None, "live": None, "new": {}, "oldest": {}, "ids": {}}
    known = source_gone | {"unverified": [], "target": {}, "now_ms": 90_000}
    (point,) = points(flow.state(), **known, taken=["orders"])
    assert point.missing is None and point.complete_ms is None
    assert points(flow.state(), **known, taken=[]) == []


def test_what_is_excluded_since_does_not_count(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """No window sees where it ends: the recovery point of all others would not be known. The plan names it, and no heartbeats."""
    own = ledger.flow(FLOW)
    others = [replace(mapping(0, 5), topic=name, remote_topic=f"a.{name}") for name in ("old", "heartbeats")]
    load(own, entries(mapping(0, 10), verified(9), *others))
    own.note_standings([Standing("orders", 0, "a.orders", 10, 10)])
    own.count_verified()
    own.note({}, {(SEEN, ""): 90.0})
    flow = parse("clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true", "").flow(
        FLOW
    )
    opened: Any = SimpleNamespace(flow=flow, ledger=own, configuration=SimpleNamespace(has_reverse=lambda _: True))
    source_gone: dict[str, Any] = {
        "caught_up": lambda given, soon: given,
        "unreachable": lambda _: "it is gone",
        "Mirror": Opens,
    }
    source_gone |= {"extents": lambda *_: {}, "rows_as_last_seen": lambda _: ([], {}), "points_of": lambda *_: []}
    source_gone["kinds_as_last_seen"] = lambda _: {}
    source_gone["maybe_streams"] = lambda *_: ["counts"]
    for name, value in source_gone.items():
        monkeypatch.setattr(plan, name, value)
    assert plan.failover_plan(opened).recovery_ms is None
    opened.flow = replace(flow, topics_exclude=("old",))
    made = plan.failover_plan(opened)
    assert made.recovery_ms == made.made_ms - 90_000 and list(made.names) == ["orders"]
    (kinds,) = [each for each in made.findings if each.what == "groups of every kind are followed"]
    assert "only checkpoints tell of counts" in kinds.evidence and "streams.applications" in kinds.way_out
    assert [each.what for each in made.findings if "any more: old" in each.evidence] == ["something was replicated"]
    load(own, entries(Ownership("orders", Owner.TARGET, OrderScope.TOPIC, "", "w", 1, 1, 1, "moved", "ada"), start=9))
    (moved,) = [each for each in plan.failover_plan(opened).findings if each.what == "something was replicated"]
    assert moved.level == "warn" and moved.evidence.endswith("any more: old; left out, as it is frozen by name: orders")


class Opens:
    """In the place of ``Mirror``: no cluster is asked."""

    @staticmethod
    def open(*_: object) -> Any:
        return nullcontext(SimpleNamespace(target=None, source=SimpleNamespace(topic_ids={})))
