"""Topics that a flow does not replicate: named by mistake, or excluded since it did; without brokers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
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
from airmirror.runbooks.failback import differing, pair
from airmirror.runbooks.failback import plan as failback_plan
from airmirror.runbooks.failback.divergence import Divergence, Written
from airmirror.runbooks.failover import undo
from airmirror.runbooks.takeover import exact
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.owners import WHOLE, Change, OrderScope, Owners, Signed, after, changed
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
            owners=Owners,
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


@pytest.fixture
def failed_over(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """``orders``, and ``old``, excluded since, were failed over; ``moved`` was frozen by its name; ``back`` came back by it; of
    ``empty`` there was nothing to copy."""
    owners = Owners()
    for change, which, scope in (
        (Change.FREEZE, ["moved", "back"], OrderScope.TOPIC),
        (Change.FREEZE, [WHOLE], OrderScope.FLOW),
        *((change, ["back"], OrderScope.TOPIC) for change in (Change.BEGIN, Change.END, Change.FINISH)),
    ):
        owners = after(owners, changed(owners, change, which, Signed("w", 5, 7, "why", "ada"), scope=scope))
    last = {(topic, 0): mapping(0, 10, topic) for topic in ("back", "moved", "old", "orders")}
    ledger = SimpleNamespace(
        state=lambda: SimpleNamespace(known=sorted(last)),
        last_mappings=lambda: last,
        partition_metrics=lambda: [
            SimpleNamespace(topic=each, remote_topic=f"east.{each}") for each in ("empty", "old")
        ],
        unverified=lambda: list(last.values()),
        owners=lambda: owners,
    )
    planned = SimpleNamespace(topics={"orders": "east.orders"}, refused=())
    for module in (failback_plan, pair):
        monkeypatch.setattr(module, "plan_topics", lambda opened, *, frozen_too: planned)
    configuration = SimpleNamespace(has_reverse=lambda flow: True, flows={})
    return SimpleNamespace(flow=FLOW, ledger=ledger, configuration=configuration)


def test_what_is_excluded_since_returns_only_by_its_name(failed_over: SimpleNamespace) -> None:
    """It is still written on the source: a failback of all others would be refused, or copy its remote topic back."""
    both = pair.Pair(cast(Any, failed_over), None)
    assert both.names() == {"east.back": "back", "east.orders": "orders"}
    assert both.names(["old"]) == {"east.old": "old"}


def test_what_is_empty_and_not_what_is_excluded_since_keeps_a_failover_from_its_undo(
    failed_over: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(undo, "to_put_back", lambda journal, ours: [])
    monkeypatch.setattr(undo, "written_since", lambda journal, remote: sorted(remote))
    found = undo._look(cast(Any, failed_over), cast(Any, SimpleNamespace(index=failed_over.ledger)), True)
    assert found.reasons == ("east.back", "east.empty", "east.orders")


def test_what_is_excluded_since_differs_for_those_that_name_it(
    failed_over: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = SimpleNamespace(open=lambda *_: nullcontext(SimpleNamespace(index=failed_over.ledger, refresh=lambda: 0)))
    monkeypatch.setattr(differing, "Mirror", mirror)
    monkeypatch.setattr(differing, "catch_up_soon", lambda opened: None)
    monkeypatch.setattr(differing, "_differing", lambda mirror, topics: sorted(topics))
    assert differing.differing(cast(Any, failed_over), []) == ["back", "orders"]
    assert differing.differing(cast(Any, failed_over), ["old"]) == ["old"]


def test_the_plan_of_a_failback_is_of_what_returns(
    failed_over: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of what is frozen by its name. What windows copy would be rescued beside that, and so be there twice."""
    clusters = {
        "caught_up": lambda opened, soon: opened,
        "unreachable": lambda opened: "",
        "Mirror": SimpleNamespace(open=lambda *_: nullcontext(SimpleNamespace(target=None, refresh=lambda: None))),
        "kinds_of": lambda *_: {},
        "drifts": lambda planned: (),
    }
    for name, value in clusters.items():
        monkeypatch.setattr(failback_plan, name, value)
    monkeypatch.setattr(failback_plan, "divergences", lambda mirror, names: [_diverged(name) for name in sorted(names)])

    def made(*topics: str) -> tuple[list[str], dict[str, str]]:
        found = failback_plan.failback_plan(cast(Any, failed_over), topics)
        return [row.topic for row in found.partitions], {each.what: each.way_out for each in found.findings}

    topics, findings = made()
    assert topics == ["moved", "orders"] and failback_plan.FROZEN in findings
    rescue = "all records of the source are replicated or rescued"
    assert "--step rescue" in findings[rescue] and "--topic" not in findings[rescue], "it leaves out what is apart"
    topics, findings = made("old")  # freezing the flow for one topic would stop all others
    assert topics == ["moved", "old", "orders"] and failback_plan.FROZEN not in findings
    assert "--step rescue" in findings[rescue] and "--topic old" in findings[rescue]
    monkeypatch.setattr(failback_plan, "divergences", lambda mirror, names: [_diverged("moved")])
    assert "--topic moved" in made()[1][rescue], "what is apart is rescued by its name"


def _diverged(topic: str) -> Divergence:
    never = Written(2, 20, 1, 1, ((10, 11),))
    return Divergence(topic, 0, f"east.{topic}", "id", 10, 10, 0, "", start=10, end=12, never=never)
