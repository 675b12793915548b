"""What the check of a hand-back says of a MirrorMaker 2 that runs, as it should by then, and what a hand-back needs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.clusters.protocol.workers import Worker
from airmirror.runbooks.takeover.handback_check import HandbackCheck
from airmirror.runbooks.takeover.handback_shown import shown_check
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.runbooks.takeover.runbook import HANDBACK
from airmirror.windows import mirrormaker
from airmirror.windows.mirrormaker import dedicated_group, writers
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
