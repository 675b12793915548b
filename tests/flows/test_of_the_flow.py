"""Topics that a flow does not replicate: named by mistake, or excluded since it did; without brokers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airmirror.cli.failures import BAD_INPUT, status_of
from airmirror.clusters.protocol.routes import TopicNotFound
from airmirror.flows import verification
from airmirror.flows.reset import NotOfTheFlow
from airmirror.flows.verification import ComparedPartition, compare_all
from airmirror.partitions import TopicPartition
from airmirror.runbooks import draining
from airmirror.runbooks.takeover import exact
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.owners import Owners
from support.flows import a_flow
from support.ledgers import mapping

ON_TARGET = {"east.orders"}
FLOW = replace(a_flow("east"), topics_exclude=("old",))
ON_SOURCE = {"orders", "old"}


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[ComparedPartition]]:
    """``compare_all`` of a flow with these mapping records, on clusters that have one partition of their topics."""

    def routes(alias: str, names: Collection[str]) -> SimpleNamespace:
        return SimpleNamespace(
            alias=alias,
            refresh_existing=lambda asked: {name: TopicNotFound(alias, name) for name in {*asked} - {*names}},
            has=lambda key: key.partition == 0,
        )

    @contextmanager
    def opened(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(flow=FLOW, source=routes("east", ON_SOURCE), target=routes("west", ON_TARGET))

    def compared(*, last: MappingRecord, **_: object) -> ComparedPartition:
        return ComparedPartition(*last.key, last.remote_topic, records=10, expired=0, lost=0, errors=())

    def run(topics: Sequence[str], *records: MappingRecord, forgotten: str = "") -> list[ComparedPartition]:
        ledger = SimpleNamespace(
            last_mappings=lambda: {record.key: record for record in records},
            state=lambda: SimpleNamespace(forgotten={(forgotten, 0)}),
            mappings=lambda *_: [],
            progress=dict,
            resets=list,
        )
        return compare_all(cast(Any, SimpleNamespace(flow=FLOW, ledger=ledger)), topics)

    def here(_: object, records: Collection[MappingRecord]) -> dict[TopicPartition, int]:
        assert all(record.topic in ON_SOURCE and record.remote_topic in ON_TARGET for record in records)
        return {}

    monkeypatch.setattr(verification, "Mirror", SimpleNamespace(open=opened))
    monkeypatch.setattr(verification, "catch_up_ledger", lambda _: None)
    monkeypatch.setattr(verification, "_stable_ends", lambda routes, records: here(routes, list(records)))
    monkeypatch.setattr(verification, "look_at_logs", here)
    monkeypatch.setattr(verification, "_compared", compared)
    return run


def test_nothing_is_verified_of_a_topic_that_there_is_not(verified: Callable[..., list[ComparedPartition]]) -> None:
    """An empty table and status 0 would say that it is well."""
    for topic in ("oders", "old"):
        with pytest.raises(NotOfTheFlow, match=topic):
            verified(["orders", topic])
    assert verified(["orders"]) == verified([]) == []  # nothing of it was copied yet


def test_a_topic_that_is_gone_is_an_error_of_its_own(verified: Callable[..., list[ComparedPartition]]) -> None:
    """The others are compared. What is left out by topics.exclude or forgotten is an error only where somebody names it."""
    orders, gone, copy = mapping(0, 10, "orders"), mapping(0, 10, "gone"), mapping(0, 10, "old")
    more = mapping(0, 10, "orders", partition=1)
    rows = verified([], orders, gone, copy, more)
    errors = {(row.topic, row.partition): str(row.error) for row in rows if row.error}
    assert [row.records for row in rows] == [0, 10, 0] and errors.keys() == {("gone", 0), ("orders", 1)}
    assert "'east' has no topic 'gone'" in errors["gone", 0] and "no partition orders-1" in errors["orders", 1]
    assert [row.topic for row in verified([], orders, gone, forgotten="gone")] == ["orders"]
    assert [(row.topic, bool(row.error)) for row in verified(["orders"], orders, gone)] == [("orders", False)]
    (named,) = verified(["old"], orders, copy)
    assert "'west' has no topic 'east.old'" in str(named.error)


@contextmanager
def opened(*_: object) -> Iterator[Any]:
    source = SimpleNamespace(refresh_existing=lambda names: {name: "gone" for name in {*names} - ON_SOURCE})
    target = SimpleNamespace(refresh_existing=lambda names: set[str]())
    yield SimpleNamespace(flow=FLOW, source=source, target=target, refresh=lambda: None)


@pytest.mark.parametrize("write", [False, True])
def test_the_history_of_a_topic_that_there_is_not_is_refused(write: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was made exact, and *Done: history* would say that it was."""
    monkeypatch.setattr(exact, "Mirror", SimpleNamespace(open=opened))
    monkeypatch.setattr(exact, "caught_up", lambda given: given)
    monkeypatch.setattr(exact, "catch_up_ledger", lambda given: None)
    monkeypatch.setattr(exact, "_firsts", lambda ledger: {})
    monkeypatch.setattr(exact, "compacted_topics", lambda mirror, topics: {})
    given: Any = SimpleNamespace(flow=FLOW, ledger=None)
    for topic in ("oders", "old"):
        with pytest.raises(NotOfTheFlow, match=topic) as refused:
            exact.make_exact(given, ["orders", topic], write=write, wait=0)
        assert status_of(refused.value) == BAD_INPUT
    assert exact.make_exact(given, ["orders"], write=write, wait=0) == []


def test_a_topic_that_is_excluded_since_is_not_drained(monkeypatch: pytest.MonkeyPatch) -> None:
    """No window copies it: a planned failover would wait for it until it gives up."""
    planned = SimpleNamespace(topics={"orders": "east.orders"})
    monkeypatch.setattr(draining, "plan_topics", lambda opened, *, frozen_too: planned)
    known = [("gone", 0), ("old", 0), ("orders", 0)]
    ledger = SimpleNamespace(owners=Owners, state=lambda: SimpleNamespace(known=known))
    assert draining._topics(SimpleNamespace(flow=FLOW, ledger=ledger)) == {"gone", "orders"}  # type: ignore[arg-type]
