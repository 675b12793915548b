"""The ledger's database, SQLite or PostgreSQL: connections, transactions, and what the two do differently."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sql
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError, DataError, SQLAlchemyError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from airmirror.config.values import is_secret
from airmirror.ledger.errors import LedgerUnavailable, LedgerUrlInvalid, ValueNotKept

Row = dict[str, Any]
Made = TypeVar("Made")

DIALECTS = ("sqlite", "postgresql")
PATIENCE_SECONDS = 60  # for whoever writes; on PostgreSQL also with one that does nothing in its transaction
# libpq's own would wait for hours for a machine that is gone. What the URL says of them counts.
LIBPQ = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def connect(url: str) -> Engine:
    """The process's engine for a SQLAlchemy URL; SQLite's directory is made. Raises LedgerUrlInvalid, LedgerUnavailable.

    Whoever disposes of it closes connections that nobody uses now; it keeps the statements that it has compiled.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise LedgerUrlInvalid("it is not a URL") from error
    except ValueError as error:  # its text could be a part of the password
        raise LedgerUrlInvalid("its port is not a number") from error
    dialect = parsed.get_backend_name()
    if dialect not in DIALECTS:
        raise LedgerUrlInvalid(f"{dialect!r} is not one of {', '.join(DIALECTS)}")
    in_memory = dialect == "sqlite" and parsed.database in (None, "", ":memory:")
    if dialect == "sqlite" and not in_memory:
        try:
            Path(str(parsed.database)).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise LedgerUnavailable(shown(parsed), str(error)) from error
    try:
        return _engine(parsed) if in_memory else _kept_engine(parsed, os.getpid())
    except (ImportError, SQLAlchemyError) as error:
        raise LedgerUrlInvalid(
            f"the driver of {parsed.drivername} is not there ({error}); the extra postgres has psycopg2"
        ) from error


@lru_cache(maxsize=8)
def _kept_engine(url: URL, _process: int) -> Engine:
    """To compile its statements takes an engine longer than to carry most of them out. A process that was forked has its own, as
    its parent's connections are the parent's."""
    return _engine(url, max_overflow=-1)  # as many connections as all ledgers of the process ask for


def _engine(url: URL, **options: Any) -> Engine:
    if url.get_backend_name() == "sqlite":
        engine = sql.create_engine(url, connect_args={"timeout": PATIENCE_SECONDS}, **options)
        sql.event.listen(engine, "connect", _set_up_sqlite)
        sql.event.listen(engine, "begin", _begin_sqlite)
        return engine
    if url.drivername == "postgresql+psycopg2":  # deletes of many rows travel together; psycopg 3 does so by itself
        options["executemany_mode"] = "values_plus_batch"
    if "psycopg" in url.get_driver_name():
        options["connect_args"] = {name: value for name, value in LIBPQ.items() if name not in url.query}
    # A server that was restarted has forgotten the connections of the pool.
    return sql.create_engine(url, pool_pre_ping=True, **options)


def shown(url: URL) -> str:
    """The URL without its password, wherever it is."""
    query = {key: "***" if is_secret(key) else value for key, value in url.query.items()}
    return url.set(query=query).render_as_string(hide_password=True)


@cache
def rows_of(table: sql.Table, *keys: str) -> sql.Select[Any]:
    """Return the query for the rows of a flow, and of values by name: to make it takes longer than to ask it."""
    return sql.select(table).where(*(table.c[key] == sql.bindparam(key) for key in ("flow", *keys)))


def by_partition(connection: Connection, table: sql.Table, flow: str) -> dict[tuple[str, int], Row]:
    """Return the rows of a flow in a table that has one a partition."""
    rows = connection.execute(rows_of(table), {"flow": flow}).mappings()
    return {(row["topic"], row["partition"]): dict(row) for row in rows}


def columns_of(table: sql.Table, kind: type) -> list[sql.Column[Any]]:
    """Return the columns that are the fields of a dataclass, in their order."""
    return [table.c[field.name] for field in fields(kind)]


def objects_of(connection: Connection, table: sql.Table, kind: type[Made], flow: str | None = None) -> list[Made]:
    """Return the rows of a flow, or those of all by primary key, as objects of a dataclass whose fields are columns."""
    query = sql.select(*columns_of(table, kind))
    query = query.order_by(*table.primary_key.columns) if flow is None else query.where(table.c.flow == flow)
    return [kind(*row) for row in connection.execute(query)]


def key_of(table: sql.Table, flow: str, identity: Iterable[Any]) -> Row:
    """Return the primary key of a flow's row; ``identity``: the columns after the flow, in their order."""
    return dict(zip([column.name for column in table.primary_key.columns], (flow, *identity), strict=True))


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that only reads, all of it as of one moment. Raises LedgerUnavailable."""
    with _own_errors(engine), engine.connect() as connection:
        if connection.dialect.name == "postgresql":  # SQLite's are so by themselves
            connection.execution_options(isolation_level="REPEATABLE READ")
        with connection.begin():
            yield connection


@contextmanager
def writing(engine: Engine, what: str) -> Iterator[Connection]:
    """A transaction that excludes all others on the same ``what``, from its first read on. Raises LedgerUnavailable."""
    with _own_errors(engine), engine.connect() as connection:
        connection.execution_options(writes=True)
        with connection.begin():
            exclude(connection, what)
            yield connection


def exclude(connection: Connection, what: str) -> None:
    """Let no other transaction write to ``what`` from now on, until this one ends. SQLite has one that writes at a time.

    A transaction of a machine that stands still, or is gone, ends after a while; what the server or the URL say of that counts.
    """
    if connection.dialect.name == "postgresql":
        key = sql.func.hashtextextended(f"airmirror.ledger {what}", 0)
        limits = (_limit(name) for name in ("lock_timeout", "idle_in_transaction_session_timeout"))
        connection.execute(sql.select(*limits, sql.func.pg_advisory_xact_lock(key)))


def _limit(name: str) -> sql.ColumnElement[str]:
    own = sql.func.nullif(sql.func.current_setting(name), "0")
    return sql.func.set_config(name, sql.func.coalesce(own, f"{PATIENCE_SECONDS * 1000:.0f}"), True)


def same(
    one: sql.Table, other: sql.Table, columns: Iterable[str] = ("flow", "topic", "partition")
) -> sql.ColumnElement[bool]:
    """Return whether rows of two tables are of one partition, or have other columns in common."""
    return sql.and_(*(one.c[column] == other.c[column] for column in columns))


def is_of(table: sql.Table, flow: str, key: tuple[str, int]) -> sql.ColumnElement[bool]:
    """Return whether a row is of this partition."""
    return sql.and_(table.c.flow == flow, table.c.topic == key[0], table.c.partition == key[1])


def upsert(connection: Connection, table: sql.Table, rows: Sequence[Row]) -> None:
    """Insert rows, or replace those with the same primary key."""
    if not rows:
        return
    connection.execute(_upsert_of(table, connection.dialect.name), list(rows))


@cache
def _upsert_of(table: sql.Table, dialect: str) -> sql.Insert:
    """The statement, which takes longer to make than to carry out."""
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert  # type: ignore[assignment]
    keys = [column.name for column in table.primary_key.columns]
    statement = insert(table)
    others = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=others)


def delete(connection: Connection, table: sql.Table, keys: Sequence[Mapping[str, Any]]) -> None:
    """Delete the rows with these primary keys."""
    if not keys:
        return
    columns = list(table.primary_key.columns)
    statement = table.delete().where(*(column == sql.bindparam(f"key_{column.name}") for column in columns))
    connection.execute(statement, [{f"key_{column.name}": key[column.name] for column in columns} for key in keys])


def _set_up_sqlite(connection: Any, _record: object) -> None:
    # Python's own BEGIN comes too late, before the first write only: what was read until then may be out of date.
    connection.isolation_level = None
    cursor = connection.cursor()
    if cursor.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        # SQLite refuses this at once, whatever the timeout, while another connection does the same.
        while_busy = Retrying(
            retry=retry_if_exception(lambda error: getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY),
            stop=stop_after_delay(PATIENCE_SECONDS),
            wait=wait_random(0.001, 0.05),
            reraise=True,
        )
        while_busy(cursor.execute, "PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")  # what is lost is read again
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def _own_errors(engine: Engine) -> Iterator[None]:
    try:
        yield
    except (DataError, OverflowError) as error:  # of PostgreSQL; of SQLite's driver
        raise ValueNotKept(shown(engine.url), str(error.__cause__ or error)) from error
    except SQLAlchemyError as error:
        raise LedgerUnavailable(shown(engine.url), str(error.__cause__ or error)) from error
