"""A ledger that is locked, gone or down in mid-window: the window's data is safe, and the next window resumes."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from airmirror.flows.prepare import Opened, catch_up_ledger, read_again
from airmirror.ledger import Ledger, LedgerUnavailable, database
from airmirror.slot.contract import Slot, SlotResult
from airmirror_local.brokers import Broker
from support.faults import filled
from support.flows import Mirror, in_this_process
from support.servers import pgserver


def opened_again(flow: Mirror, url: str) -> Mirror:
    """The flow as another process opens it."""
    return Mirror(
        flow.source,
        flow.target,
        flow.topic,
        Opened(flow.opened.configuration, flow.flow, Ledger(url).flow(flow.flow.name)),
    )


def assert_continued(flow: Mirror) -> None:
    """All is copied and verified, and the ledger is what Kafka says."""
    assert flow.run().is_verified
    assert flow.assert_equal() == 900
    assert not flow.opened.ledger.unverified()
    catch_up_ledger(flow.opened)
    before = flow.opened.ledger.contents()
    read_again(flow.opened)
    assert flow.opened.ledger.contents() == before


def test_sqlite_locked_by_another_process(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.5)
    flow = filled(east, west, tmp_path)
    file = tmp_path / f"{flow.flow.source.alias}.db"
    other = sqlite3.connect(file, isolation_level=None)

    def locked(slots: Sequence[Slot]) -> list[SlotResult]:
        other.execute("begin immediate")
        return in_this_process(slots)

    with pytest.raises(LedgerUnavailable, match="locked") as caught:
        flow.run(locked)
    assert caught.value.transient
    other.execute("rollback")
    other.close()
    assert_continued(flow)


def test_a_sqlite_file_that_is_deleted(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)
    file = tmp_path / f"{flow.flow.source.alias}.db"

    def deleted(slots: Sequence[Slot]) -> list[SlotResult]:
        results = in_this_process(slots)
        for part in tmp_path.glob(f"{file.name}*"):
            part.unlink()
        return results

    try:
        assert flow.run(deleted).is_verified  # on the file that it holds open
    except LedgerUnavailable as error:
        assert error.transient
    assert_continued(opened_again(flow, f"sqlite:///{file}"))


@pytest.fixture
def server() -> Iterator[tuple[str, Callable[[str], None]]]:
    """A PostgreSQL of this test's own: its URL, and what stops and starts it.

    Not in ``tmp_path``: the server runs as another user, and whatever pytest begins next takes others' access to its directories.
    """
    data, wheel = Path(tempfile.mkdtemp(prefix="airmirror-postgresql-")), pgserver()
    server = wheel.get_server(data, cleanup_mode="delete")

    def control(action: str) -> None:
        if action == "stop":
            wheel.pg_ctl(["-w", "-m", "immediate", "stop"], pgdata=data, user=server.system_user)
        else:
            server.ensure_postgres_running()

    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg2://", 1), control
    finally:
        server.cleanup()
        shutil.rmtree(data, ignore_errors=True)


def test_postgresql_goes_down_and_comes_back(
    east: Broker, west: Broker, tmp_path: Path, server: tuple[str, Callable[[str], None]]
) -> None:
    url, control = server
    flow = opened_again(filled(east, west, tmp_path), url)
    assert flow.opened.ledger.contents()["mappings"] == []

    def down(slots: Sequence[Slot]) -> list[SlotResult]:
        results = in_this_process(slots)
        control("stop")
        return results

    with pytest.raises(LedgerUnavailable) as caught:
        flow.run(down)
    assert caught.value.transient
    control("start")
    assert_continued(flow)
