"""Topics that a flow does not replicate: named by mistake, or excluded since it did; without brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.cli.failures import BAD_INPUT, status_of
from airmirror.flows import verification
from airmirror.flows.reset import NotOfTheFlow
from airmirror.flows.verification import compare_all
from airmirror.runbooks import draining
from airmirror.runbooks.takeover import exact
from airmirror.wire.owners import Owners
from support.flows import a_flow

FLOW = replace(a_flow("east"), topics_exclude=("old",))
ON_SOURCE = {"orders", "old"}


@contextmanager
def opened(*_: object) -> Iterator[Any]:
    source = SimpleNamespace(refresh_existing=lambda names: {name: "gone" for name in {*names} - ON_SOURCE})
    target = SimpleNamespace(refresh_existing=lambda names: set[str]())
    yield SimpleNamespace(flow=FLOW, source=source, target=target, refresh=lambda: None)


def test_nothing_is_verified_of_a_topic_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty table and status 0 would say that it is well."""
    monkeypatch.setattr(verification, "Mirror", SimpleNamespace(open=opened))
    for name, answer in (("catch_up_ledger", None), ("_stable_ends", {}), ("look_at_logs", None)):
        monkeypatch.setattr(verification, name, lambda *_, answer=answer: answer)
    ledger = SimpleNamespace(last_mappings=dict, progress=dict, resets=list)
    given: Any = SimpleNamespace(flow=FLOW, ledger=ledger)
    for topic in ("oders", "old"):
        with pytest.raises(NotOfTheFlow, match=topic):
            compare_all(given, ["orders", topic])
    assert compare_all(given, ["orders"]) == compare_all(given, []) == []  # nothing of it was copied yet


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
