"""Topics that a flow does not replicate: named by mistake, or excluded since it did; without brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.flows import verification
from airmirror.flows.reset import NotOfTheFlow
from airmirror.flows.verification import compare_all
from airmirror.runbooks import draining
from airmirror.wire.owners import Owners
from support.flows import a_flow

FLOW = replace(a_flow("east"), topics_exclude=("old",))
ON_SOURCE = {"orders", "old"}


def test_nothing_is_verified_of_a_topic_that_there_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty table and status 0 would say that it is well."""

    @contextmanager
    def opened(*_: object) -> Iterator[Any]:
        source = SimpleNamespace(refresh_existing=lambda names: {name: "gone" for name in {*names} - ON_SOURCE})
        yield SimpleNamespace(source=source, target=None)

    monkeypatch.setattr(verification, "Mirror", SimpleNamespace(open=opened))
    for name, answer in (("catch_up_ledger", None), ("_stable_ends", {}), ("look_at_logs", None)):
        monkeypatch.setattr(verification, name, lambda *_, answer=answer: answer)
    ledger = SimpleNamespace(last_mappings=dict, progress=dict, resets=list)
    given: Any = SimpleNamespace(flow=FLOW, ledger=ledger)
    for topic in ("oders", "old"):
        with pytest.raises(NotOfTheFlow, match=topic):
            compare_all(given, ["orders", topic])
    assert compare_all(given, ["orders"]) == compare_all(given, []) == []  # nothing of it was copied yet


def test_a_topic_that_is_excluded_since_is_not_drained(monkeypatch: pytest.MonkeyPatch) -> None:
    """No window copies it: a planned failover would wait for it until it gives up."""
    planned = SimpleNamespace(topics={"orders": "east.orders"})
    monkeypatch.setattr(draining, "plan_topics", lambda opened, *, frozen_too: planned)
    known = [("gone", 0), ("old", 0), ("orders", 0)]
    ledger = SimpleNamespace(owners=Owners, state=lambda: SimpleNamespace(known=known))
    assert draining._topics(SimpleNamespace(flow=FLOW, ledger=ledger)) == {"gone", "orders"}  # type: ignore[arg-type]
