"""The version of the ledger's schema: compared at every opening; a new ledger is made whole.

The version is the one row of table ``airmirror_ledger_version``: the database may be Airflow's too. There is one so far, and
a ledger of another one is refused: it can be made again from Kafka.
"""

from __future__ import annotations

import sqlalchemy as sql
from sqlalchemy.engine import Connection, Engine

from airmirror.ledger.database import reading, shown, writing
from airmirror.ledger.errors import LedgerOfOtherVersion
from airmirror.ledger.tables import metadata

VERSION_TABLE = "airmirror_ledger_version"
VERSION = "0001"

_version_table = sql.Table(
    VERSION_TABLE,
    sql.MetaData(),
    sql.Column("version_num", sql.String(32), nullable=False),
    sql.PrimaryKeyConstraint("version_num", name=f"{VERSION_TABLE}_pkc"),
)


def make_or_check(engine: Engine) -> None:
    """Make the tables where there are none; of processes that do so at once, one does.

    Raises LedgerUnavailable, LedgerOfOtherVersion.
    """
    with reading(engine) as connection:
        version = _version(connection)
    if version is None:
        with writing(engine, "schema") as connection:
            version = _version(connection) or _make(connection)  # another process may have been faster
    if version != VERSION:
        raise LedgerOfOtherVersion(shown(engine.url), version, VERSION)


def _make(connection: Connection) -> str:
    metadata.create_all(connection, checkfirst=False)
    _version_table.create(connection)
    connection.execute(_version_table.insert().values(version_num=VERSION))
    return VERSION


def _version(connection: Connection) -> str | None:
    """None: the database has no ledger."""
    if not sql.inspect(connection).has_table(VERSION_TABLE):
        return None
    version: str | None = connection.scalar(sql.text(f"select max(version_num) from {VERSION_TABLE}"))
    return version
