"""Clusters of this room's own, and a source that is given up soon."""

from __future__ import annotations

import pytest

from airmirror.failover import plan as planning
from support.sides import sides, two_brokers

__all__ = ["sides", "two_brokers"]


@pytest.fixture(autouse=True)
def the_source_is_given_up_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "REACH_SECONDS", 1.0)
