"""A database for every test: SQLite, and a real PostgreSQL (from the wheel ``pgserver``) where there is one."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sql

PASSWORD = "planted-password"


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a running PostgreSQL, for SQLAlchemy."""
    pgserver = pytest.importorskip("pgserver", reason="pgserver has no wheel for this Python: PostgreSQL is not tested")
    server = pgserver.get_server(tmp_path_factory.mktemp("postgresql"), cleanup_mode="delete")
    try:
        yield server.get_uri().replace("postgresql://postgres:@", f"postgresql+psycopg2://postgres:{PASSWORD}@", 1)
    finally:
        server.cleanup()


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
