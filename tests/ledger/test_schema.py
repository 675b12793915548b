"""The ledger's schema: made, migrated once by whoever is first, refused where it is newer, and cheap where it is right."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sql

import airmirror
from airmirror.ledger import Ledger, LedgerTooNew, LedgerUnavailable, LedgerUrlInvalid
from airmirror.ledger.database import connect, reading, writing
from airmirror.ledger.schema import VERSION_TABLE, VERSIONS, bring_up_to_date, upgrade
from airmirror.ledger.tables import LATER, OWN, metadata
from airmirror.on_spark import library
from support.ledgers import PROGRESS, SEGMENTS, TOPIC_ID, segment, written
from support.servers import PASSWORD


def version(ledger_url: str) -> list[str]:
    with closing(Ledger(ledger_url)) as ledger, reading(ledger.engine) as connection:
        return list(connection.scalars(sql.text(f"select version_num from {VERSION_TABLE}")))


def set_version(ledger_url: str, to: str) -> None:
    engine = connect(ledger_url)
    with writing(engine, "test") as connection:
        connection.execute(sql.text(f"update {VERSION_TABLE} set version_num = :to"), {"to": to})
    engine.dispose()


def at_version(ledger_url: str, to: str) -> sql.Engine:
    engine = connect(ledger_url)
    with writing(engine, "test") as connection:
        upgrade(connection, to)
    return engine


@pytest.mark.parametrize("migrated", [True, False], ids=["migrated", "new"])
def test_a_ledger_has_what_the_tables_say(ledger_url: str, migrated: bool) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    if migrated:
        at_version(ledger_url, VERSIONS[-1]).dispose()
    with closing(Ledger(ledger_url)) as ledger, ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
        assert compare_metadata(context, metadata) == []
        inspector = sql.inspect(connection)
        for table in metadata.sorted_tables:
            assert inspector.get_pk_constraint(table.name)["constrained_columns"] == table.primary_key.columns.keys()
    assert version(ledger_url) == [VERSIONS[-1]]


def test_the_revisions_are_those_that_are_named() -> None:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(Path(airmirror.__file__).parent / "ledger" / "migrations"))
    walked = ScriptDirectory.from_config(config).walk_revisions()
    assert [script.revision for script in walked] == list(reversed(VERSIONS))


@pytest.mark.parametrize("versioned", [True, False], ids=["0001", "from before there were versions"])
def test_an_old_ledger_is_migrated_and_reads_its_segment_topic_again(ledger_url: str, versioned: bool) -> None:
    engine = at_version(ledger_url, "0001")
    with writing(engine, "test") as connection:
        for topic in (SEGMENTS, PROGRESS):
            row = {"topic": topic, "id": str(TOPIC_ID)}
            connection.execute(sql.text("insert into scanned values ('east->west', :topic, 0, :id, 7)"), row)
        connection.execute(sql.text("insert into progress values ('east->west', 'orders', 0, 41)"))
        if not versioned:
            connection.execute(sql.text(f"drop table {VERSION_TABLE}"))
    engine.dispose()
    with closing(Ledger(ledger_url)) as ledger:
        flow = ledger.flow("east->west")
        assert flow.scanned(SEGMENTS, TOPIC_ID) == {} and flow.scanned(PROGRESS, TOPIC_ID) == {0: 7}
        assert flow.progress() == {("orders", 0): 41}
        flow.load_segments(SEGMENTS, TOPIC_ID, [written(0, segment(0, 5))], {0: 1}, {0: 0})
        assert [found.source_end for found in flow.unverified()] == [5]
    assert version(ledger_url) == [VERSIONS[-1]]


def test_rows_of_a_flow_without_a_name_are_dropped(ledger_url: str) -> None:
    """Commands without ``--flow`` once wrote them."""
    example = {int: 7, float: 7.0, str: "x", bytes: b"x", bool: False}
    engine = at_version(ledger_url, "0012")
    tables = [table for table in metadata.sorted_tables if sql.inspect(engine).has_table(table.name)]
    with writing(engine, "test") as connection:
        for table in tables:
            row = {each.name: example[each.type.python_type] for each in table.columns if not each.nullable}
            connection.execute(table.insert(), [row | {"flow": flow} for flow in ("", " anew", "east->west")])
    engine.dispose()
    with closing(Ledger(ledger_url)) as ledger, reading(ledger.engine) as connection:
        for table in tables:
            assert list(connection.scalars(sql.select(table.c.flow))) == ["east->west"], table.name


def test_a_migration_that_fails_changes_nothing(ledger_url: str) -> None:
    engine = at_version(ledger_url, "0001")
    with writing(engine, "test") as connection:
        connection.execute(sql.text("insert into scanned values ('east->west', 'airmirror-segments', 0, 'x', 7)"))
        connection.execute(sql.text("create table verified (already integer)"))
    with pytest.raises(LedgerUnavailable, match="verified"):
        bring_up_to_date(engine)
    with reading(engine) as connection:
        assert connection.scalar(sql.text(f"select version_num from {VERSION_TABLE}")) == "0001"
        assert connection.scalar(sql.text("select next_offset from scanned")) == 7
        assert sql.inspect(connection).has_table("newest")
    engine.dispose()


def test_a_ledger_newer_than_the_code_is_refused(ledger_url: str) -> None:
    assert version(ledger_url) == [VERSIONS[-1]]
    set_version(ledger_url, "9999")
    with pytest.raises(LedgerTooNew) as caught:
        Ledger(ledger_url)
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.version, error.known, error.transient) == ("9999", VERSIONS[-1], False)
    assert "9999" in str(error) and PASSWORD not in str(error)


def test_a_ledger_that_is_opened_by_many_at_once_is_made_once(ledger_url: str) -> None:
    def open_and_close(_: int) -> None:
        Ledger(ledger_url).close()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(open_and_close, range(16)))
    assert version(ledger_url) == [VERSIONS[-1]]


@pytest.mark.long
def test_opening_is_cheap(ledger_url: str) -> None:
    Ledger(ledger_url).close()
    took = []
    for _ in range(5):
        start = time.process_time()  # a busy machine takes longer, and does not do more
        Ledger(ledger_url).close()
        took.append(time.process_time() - start)
    assert min(took) < 0.03


@pytest.mark.seconds
def test_opening_needs_no_alembic(ledger_url: str) -> None:
    Ledger(ledger_url).close()
    code = "import sys; from airmirror.ledger import Ledger; Ledger(sys.stdin.read()); print('alembic' in sys.modules)"
    assert _python(code, Path(airmirror.__file__).parents[1], ledger_url) == "False"


@pytest.mark.seconds
def test_the_library_migrates_a_ledger_from_its_zip_too(tmp_path: Path) -> None:
    at_version(url := f"sqlite:///{tmp_path}/old.db", "0001").dispose()
    archive = library.build(library.digest(), str(tmp_path))
    code = (
        "import sys, airmirror.ledger as found; ledger = found.Ledger(sys.stdin.read());"
        "print('.zip' in found.__file__, len(ledger.flow('a->b').contents()))"
    )
    answer = _python(code, archive, url)
    assert answer == f"True {len(metadata.tables) - len(OWN) - len(LATER)}"


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


def _python(code: str, path: Path, stdin: str) -> str:
    """What another Python prints, which finds the library at ``path`` (first, before an installed one)."""
    code = f"import sys; sys.path.insert(0, {str(path)!r}); {code}"
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", code], input=stdin, capture_output=True, text=True, timeout=400
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
