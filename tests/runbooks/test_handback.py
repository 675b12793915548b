"""What the check of a hand-back says of a MirrorMaker 2 that runs, as it should by then, and what a hand-back needs and leaves
out."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.workers import Worker
from airmirror.flows import freezing
from airmirror.runbooks.takeover import handback, handback_check
from airmirror.runbooks.takeover.handback_check import FirstRecords, HandbackCheck, HandbackVerdict, check_handback
from airmirror.runbooks.takeover.handback_shown import shown_check
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.runbooks.takeover.runbook import HANDBACK
from airmirror.windows import mirrormaker
from airmirror.windows.errors import FlowFrozen
from airmirror.windows.mirrormaker import dedicated_group, writers
from airmirror.wire.owners import Change
from pairs.facts import BILL, SHOP, STANDING, Facts, owners_of
from support.flows import a_flow


def test_who_rightly_runs_is_named_and_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    flow: Any = a_flow("east")
    running = Worker(dedicated_group(flow), "mirror-1", "", None)
    monkeypatch.setattr(mirrormaker, "workers", lambda target: [running])
    monkeypatch.setattr(mirrormaker, "open_transactions", lambda target: [])
    (found,) = shown_check(HandbackCheck(flow.name, tuple(writers(flow, flow)), ())).findings
    assert (found.level, found.evidence) == ("ok", "MirrorMaker 2 at mirror-1, of group 'east-mm2'")
    (found,) = shown_check(HandbackCheck(flow.name, (), (), "it does not answer")).findings
    assert (found.level, found.evidence) == ("warn", "it does not answer")


def test_a_dedicated_one_needs_nothing_and_a_connector_its_topic() -> None:
    opened: Any = SimpleNamespace(flow=a_flow("east"))
    assert "finds its progress in mm2-offsets.east.internal" in HANDBACK.over(opened, HandbackOrder())
    order = HandbackOrder(into="connect-offsets")
    assert HANDBACK.over(opened, order) == ""
    assert order.name_of(opened.flow) == opened.flow.settings.takeover_connector_name
    assert HandbackOrder(connector="our mirror").name_of(opened.flow) == "our mirror"


@pytest.fixture
def nobody_asks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No cluster is asked: partitions that are looked at have resumed. The remote topics in which somebody may have written."""
    asked = list[str]()
    for module, name in (
        (handback, "catch_up_ledger"),
        (handback_check, "catch_up_ledger"),
        (freezing, "catch_up_soon"),
    ):
        monkeypatch.setattr(module, name, lambda *_: None)
    monkeypatch.setattr(handback, "written_since", lambda journal, remote: asked.extend(remote))
    routes = SimpleNamespace(refresh_existing=lambda topics: {})
    session = SimpleNamespace(source=routes, target=routes, refresh=lambda: None)
    for name, value in {
        "Mirror": SimpleNamespace(open=lambda *_: nullcontext(session)),
        "compacted_topics": lambda mirror, topics: dict.fromkeys(topics, False),
        "_unfit": lambda *_: None,
        "first_records": lambda mirror, last, compacted: FirstRecords(
            last.key, last.remote_topic, last.source_end, HandbackVerdict.RESUMED
        ),
        "writers": lambda *_: [],
    }.items():
        monkeypatch.setattr(handback_check, name, value)
    return asked


def test_a_flow_that_is_failed_over_is_not_handed_back(nobody_asks: list[str]) -> None:
    """A dedicated MirrorMaker 2 is started after the plan: it would copy among what applications write."""
    opened = STANDING["failover"].forward
    for ask in (handback.positions, check_handback):
        with pytest.raises(FlowFrozen):
            ask(opened)


def test_what_applications_write_is_not_held_against_mirrormaker(nobody_asks: list[str]) -> None:
    """In a topic that is frozen by its name, or was excluded since, which no take-over takes either."""
    frozen = Facts(owners_of((Change.FREEZE, (SHOP,)))).forward
    excluded = replace(frozen, flow=replace(frozen.flow, topics_exclude=(SHOP,)), ledger=Facts().forward.ledger)
    for opened in (frozen, excluded):
        assert [row.key.topic for row in check_handback(opened).partitions] == [BILL]
        handback.check_copied(SimpleNamespace(flow=opened.flow, index=opened.ledger))  # type: ignore[arg-type]
    assert nobody_asks == [f"east.{BILL}"] * 2
    assert [each.topic for each in handback.positions(excluded)] == [BILL], "its progress would be set back"
