"""Short waits: what procedures wait for in production is looked at often, and given up soon, in tests."""

from __future__ import annotations

import pytest

from airmirror.runbooks import stillness
from airmirror.runbooks.failover import plan

BUSY = 4  # times as long as promised: this machine may be busy with other tests


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that is gone is given up after half a second; whether producers write is looked at every 50 ms."""
    monkeypatch.setattr(plan, "REACH_SECONDS", 0.5)
    monkeypatch.setattr(stillness, "SAMPLE_SECONDS", 0.05)
