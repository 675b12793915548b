"""Short waits for all tests of this room."""

from __future__ import annotations

from support.waiting import short_waits

__all__ = ["short_waits"]
