"""What ``airmirror handback --check`` says of a MirrorMaker 2 that runs, as it should by then."""

from __future__ import annotations

from typing import Any

import pytest

from airmirror.cli.handback import shown_check
from airmirror.clusters.protocol.workers import Worker
from airmirror.runbooks.takeover.handback_check import HandbackCheck
from airmirror.windows import mirrormaker
from airmirror.windows.mirrormaker import dedicated_group, writers
from support.flows import a_flow


def test_who_rightly_runs_is_named_and_not_accused(monkeypatch: pytest.MonkeyPatch) -> None:
    flow: Any = a_flow("east")
    running = Worker(dedicated_group(flow), "mirror-1", "", None)
    monkeypatch.setattr(mirrormaker, "workers", lambda target: [running])
    monkeypatch.setattr(mirrormaker, "open_transactions", lambda target: [])
    checked = HandbackCheck(flow.name, tuple(writers(flow, flow)), ())
    assert str(shown_check(checked)[0]) == "running MirrorMaker 2 at mirror-1, of group 'east-mm2'"
