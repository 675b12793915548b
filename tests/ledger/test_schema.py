"""The ledger's schema: made once by whoever is first, refused where it is another, and cheap where it is right."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sql

from airmirror.ledger import Ledger, LedgerUnavailable
from airmirror.ledger.database import connect, reading, writing
from airmirror.ledger.errors import LedgerOfOtherVersion, LedgerUrlInvalid
from airmirror.ledger.schema import VERSION, VERSION_TABLE, make_or_check
from airmirror.ledger.tables import metadata
from support.servers import PASSWORD


def version(ledger_url: str) -> list[str]:
    with closing(Ledger(ledger_url)) as ledger, reading(ledger.engine) as connection:
        return list(connection.scalars(sql.text(f"select version_num from {VERSION_TABLE}")))


def set_version(ledger_url: str, to: str) -> None:
    engine = connect(ledger_url)
    with writing(engine, "test") as connection:
        connection.execute(sql.text(f"update {VERSION_TABLE} set version_num = :to"), {"to": to})
    engine.dispose()


def test_a_new_ledger_has_its_tables_and_version(ledger_url: str) -> None:
    with closing(Ledger(ledger_url)) as ledger:
        inspector = sql.inspect(ledger.engine)
        assert {VERSION_TABLE, *metadata.tables} <= set(inspector.get_table_names())
        for table in metadata.sorted_tables:
            assert [each["name"] for each in inspector.get_columns(table.name)] == table.columns.keys()
            assert inspector.get_pk_constraint(table.name)["constrained_columns"] == table.primary_key.columns.keys()
    assert version(ledger_url) == [VERSION]


def test_tables_that_can_not_be_made_are_none(ledger_url: str) -> None:
    """A table of somebody else has the name of one: nothing is left behind."""
    engine = connect(ledger_url)
    with writing(engine, "test") as connection:
        connection.execute(sql.text("create table verified (already integer)"))
    with pytest.raises(LedgerUnavailable, match="verified"):
        make_or_check(engine)
    assert set(sql.inspect(engine).get_table_names()) == {"verified"}
    engine.dispose()


def test_a_ledger_of_another_version_is_refused(ledger_url: str) -> None:
    assert version(ledger_url) == [VERSION]
    set_version(ledger_url, "9999")
    with pytest.raises(LedgerOfOtherVersion) as caught:
        Ledger(ledger_url)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.version, error.known, error.transient) == ("9999", VERSION, False)
    assert "9999" in str(error) and PASSWORD not in str(error)


def test_a_ledger_that_is_opened_by_many_at_once_is_made_once(ledger_url: str) -> None:
    def open_and_close(_: int) -> None:
        Ledger(ledger_url).close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(open_and_close, range(16)))
    assert version(ledger_url) == [VERSION]


@pytest.mark.long
def test_opening_is_cheap(ledger_url: str) -> None:
    Ledger(ledger_url).close()
    took = []
    for _ in range(5):
        start = time.process_time()  # a busy machine takes longer, and does not do more
        Ledger(ledger_url).close()
        took.append(time.process_time() - start)
    assert min(took) < 0.03


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        f"mysql://me:{PASSWORD}@nowhere/x",
        f"postgresql+psycopg2://me@nowhere:{PASSWORD}/x",
        f"postgresql+pg9000://me:{PASSWORD}@nowhere/x",
        f"sqlite:{PASSWORD}",
    ],
)
def test_an_url_that_is_none_is_refused_for_good(url: str) -> None:
    with pytest.raises(LedgerUrlInvalid) as caught:
        Ledger(url)
    assert not caught.value.transient and PASSWORD not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_password_in_the_query_is_hidden_too() -> None:
    url = f"postgresql+psycopg2://me@127.0.0.1:1/x?password={PASSWORD}&sslpassword={PASSWORD}&connect_timeout=5"
    with pytest.raises(LedgerUnavailable) as caught:
        Ledger(url)
    assert PASSWORD not in str(caught.value) and "connect_timeout=5" in str(caught.value)


def test_a_ledger_in_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    Ledger(f"sqlite:///{tmp_path}/not/yet/ledger.db").close()
    assert (tmp_path / "not" / "yet" / "ledger.db").exists()
