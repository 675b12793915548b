"""A database for every test: SQLite, and a real PostgreSQL where there is one."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
import sqlalchemy as sql


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    url: str = request.getfixturevalue("postgresql")
    name = f"ledger_{uuid.uuid4().hex[:8]}"
    engine = sql.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sql.text(f"create database {name}"))
    engine.dispose()
    return url.replace("/postgres?", f"/{name}?")
