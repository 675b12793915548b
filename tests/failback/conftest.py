"""Clusters of this room's own, and short waits."""

from __future__ import annotations

from support.sides import sides, two_brokers
from support.waiting import short_waits

__all__ = ["short_waits", "sides", "two_brokers"]
