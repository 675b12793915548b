"""New databases in the PostgreSQL under test."""

from __future__ import annotations

import sqlalchemy as sql


def new_database(postgresql: str, name: str) -> str:
    """Create a database; returns its URL."""
    engine = sql.create_engine(postgresql, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(sql.text(f"create database {name}"))
    engine.dispose()
    return postgresql.replace("/postgres?", f"/{name}?")
