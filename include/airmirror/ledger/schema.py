"""The version of the ledger's schema: compared at every opening; a new ledger is made whole, an older one migrated by Alembic.

The version is the one row of table ``airmirror_ledger_version`` (Alembic's, under a name of its own, because the
database may be Airflow's too). Alembic is imported only where there is something to migrate.
"""

from __future__ import annotations

import importlib.resources
import tempfile
import threading
from importlib.resources.abc import Traversable
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine

from airmirror.ledger.database import reading, shown, writing
from airmirror.ledger.errors import LedgerTooNew
from airmirror.ledger.tables import metadata

VERSION_TABLE = "airmirror_ledger_version"
VERSIONS = (
    "0001",
    "0002",
    "0003",
    "0004",
    "0005",
    "0006",
    "0007",
    "0008",
    "0009",
    "0010",
    "0011",
    "0012",
    "0013",
    "0014",
    "0015",
)  # the revisions in migrations/versions, oldest first

_version_table = sql.Table(  # as Alembic makes it
    VERSION_TABLE,
    sql.MetaData(),
    sql.Column("version_num", sql.String(32), nullable=False),
    sql.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)
_alembic = threading.Lock()  # its context is one for the whole process


def bring_up_to_date(engine: Engine) -> None:
    """Make or migrate the tables; of processes that do so at once, one does. Raises LedgerUnavailable, LedgerTooNew."""
    with reading(engine) as connection:
        if _version(connection) == VERSIONS[-1]:
            return
    with _alembic, writing(engine, "schema") as connection:
        version = _version(connection)  # another process may have been faster
        if version is not None and version not in VERSIONS:
            raise LedgerTooNew(shown(engine.url), version, VERSIONS[-1])
        if version is None and not _tables(connection) & metadata.tables.keys():
            _make(connection)
        elif version != VERSIONS[-1]:
            upgrade(connection)


def upgrade(connection: Connection, version: str = VERSIONS[-1]) -> None:
    """Run the migrations up to ``version`` in the connection's transaction."""
    from alembic import command
    from alembic.config import Config

    with tempfile.TemporaryDirectory(prefix="airmirror-migrations-") as directory:
        # Alembic reads files, and the library may have been imported from a zip.
        _copy(importlib.resources.files("airmirror.ledger.migrations"), Path(directory))
        config = Config(attributes={"connection": connection, "version_table": VERSION_TABLE})
        config.set_main_option("script_location", directory.replace("%", "%%"))
        command.upgrade(config, version)


def _make(connection: Connection) -> None:
    """All tables at once, as the migrations would make them one after the other (tests/ledger/test_schema.py)."""
    metadata.create_all(connection, checkfirst=False)
    _version_table.create(connection)
    connection.execute(_version_table.insert().values(version_num=VERSIONS[-1]))


def _tables(connection: Connection) -> set[str]:
    return set(sql.inspect(connection).get_table_names())


def _version(connection: Connection) -> str | None:
    """None: the database has no ledger, or one from before there were versions."""
    if not sql.inspect(connection).has_table(VERSION_TABLE):
        return None
    version: str | None = connection.scalar(sql.text(f"select max(version_num) from {VERSION_TABLE}"))
    return version


def _copy(source: Traversable, target: Path) -> None:
    for item in source.iterdir():
        if item.is_dir():
            (target / item.name).mkdir()
            _copy(item, target / item.name)
        elif item.name.endswith(".py"):
            (target / item.name).write_bytes(item.read_bytes())
