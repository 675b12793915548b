"""A database for every test: SQLite, and a real PostgreSQL where there is one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from support.databases import new_database


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.servers)])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    url: str = request.getfixturevalue("postgresql")
    return new_database(url, f"ledger_{uuid.uuid4().hex[:8]}")
