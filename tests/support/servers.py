"""Servers of the whole run that a test has started again: they are not the test's to end. And the wheel of PostgreSQL."""

from __future__ import annotations

from typing import Any

import pytest

from airmirror_local.processes import Process

PASSWORD = "planted-password"  # of the PostgreSQL under test: it must be in no message
POSTGRESQL_SECONDS = 120
KEPT: set[int] = set()


def keep(process: Process) -> None:
    """Leave a process (and its guard) running after the test that started it; whose fixture made it ends it."""
    KEPT.add(process.pid)
    if process.guard is not None:
        KEPT.add(process.guard.pid)


def pgserver() -> Any:
    """The module of that name, which ends a start that takes ten seconds: a busy machine, or a recovery, takes longer.

    Skips the test where it has no wheel for this Python.
    """
    reason = "PostgreSQL's wheel pgserver is for Python 3.11 and 3.12: make clean install PYTHON=python3.12"
    found = pytest.importorskip("pgserver", reason=reason)

    def patient(arguments: list[str], **given: Any) -> str:
        return str(found.pg_ctl(arguments, **given | {"timeout": POSTGRESQL_SECONDS}))

    found.postgres_server.pg_ctl = patient
    return found
