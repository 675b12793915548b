"""Servers of the whole run that a test has started again: they are not the test's to end."""

from __future__ import annotations

from airmirror_local.processes import Process

PASSWORD = "planted-password"  # of the PostgreSQL under test: it must be in no message
KEPT: set[int] = set()


def keep(process: Process) -> None:
    """Leave a process (and its guard) running after the test that started it; whose fixture made it ends it."""
    KEPT.add(process.pid)
    if process.guard is not None:
        KEPT.add(process.guard.pid)
