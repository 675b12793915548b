"""The ledger on SQLite and on PostgreSQL: what is loaded twice counts once, and it can always be made anew."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from sqlalchemy.sql.compiler import SQLCompiler

from airmirror.flows.prepare import Opened, read_again
from airmirror.ledger import FlowLedger, FreezeLost, Ledger, LedgerUnavailable
from airmirror.ledger.database import connect, reading
from airmirror.partitions import Entry
from airmirror.wire.mappings import (
    FlowIdentity,
    Hold,
    Lease,
    LeaseEvent,
    Tombstone,
    decode,
)
from airmirror.wire.mirrormaker import source_offset_key, source_offset_value
from airmirror.wire.owners import OrderScope, Owner, Ownership
from airmirror_local.brokers import Broker
from support.examples import examples
from support.flows import mirror
from support.ledgers import MAPPINGS, ORDERS, OTHER_TOPIC_ID, PROGRESS, TOPIC_ID, mapping, verified
from support.servers import PASSWORD
from support.topics import Record, produce

TOPIC, ID, OTHER = MAPPINGS, TOPIC_ID, OTHER_TOPIC_ID


def entries(*records: object, start: int = 0) -> list[Entry]:
    """Records of the mapping topic at consecutive offsets; a (record, None) is its tombstone."""
    found = []
    for offset, record in enumerate(records, start=start):
        if isinstance(record, bytes):
            found.append(Entry(0, offset, offset, record, b"x"))
        elif isinstance(record, tuple):
            found.append(Entry(0, offset, offset, record[0].encode_key(), None))
        else:
            found.append(Entry(0, offset, offset, record.encode_key(), record.encode_value()))  # type: ignore[attr-defined]
    return found


def load(ledger: FlowLedger, given: Sequence[Entry], topic_id: UUID = ID) -> None:
    ledger.load(TOPIC, topic_id, given, {0: given[-1].offset + 1} if given else {})


STREAM = entries(
    Lease(window="w1", event=LeaseEvent.TAKEN, owner="me", time_ms=1, duration_ms=30_000, slots=2),
    mapping(0, 10),
    mapping(0, 4, partition=1),
    b"\x63malformed",
    verified(9),
    Hold(topic="orders", partition=1, offset=0, reason="why", window="w1", by="gate", time_ms=5),
    Lease(window="w1", event=LeaseEvent.RELEASED, owner="me", time_ms=1, duration_ms=30_000, slots=2),
    mapping(10, 30, window="w2"),
    (Hold(topic="orders", partition=1, offset=0, reason="why", window="w1", by="gate", time_ms=5), None),
    FlowIdentity("east", "west", "a", "b", 1),
    mapping(0, 5, "päyments.ß", window="w2"),
    (mapping(0, 10), None),
    verified(3, partition=1),
)


@contextmanager
def opened(url: str, flow: str = "east->west") -> Iterator[FlowLedger]:
    with closing(Ledger(url)) as ledger:
        yield ledger.flow(flow)


def test_what_is_loaded_can_be_asked(ledger_url: str) -> None:
    with opened(ledger_url) as ledger:
        load(ledger, STREAM)
        assert ledger.malformed == 1
        assert ledger.scanned(TOPIC, ID) == {0: len(STREAM)}
        assert [lease.event for _, _, lease in ledger.leases()] == [LeaseEvent.RELEASED]
        assert {key: record.offset for key, record in ledger.verified().items()} == {("orders", 0): 9, ("orders", 1): 3}
        assert ledger.holds() == {}
        assert ledger.identity() == FlowIdentity("east", "west", "a", "b", 1)
        assert [record.source_start for record in ledger.mappings("orders", 0)] == [10]  # the first one was pruned
        assert list(ledger.mappings("orders", 0, ORDERS, 0, 10)) == []
        assert {key: record.source_end for key, record in ledger.last_mappings().items()} == {
            ("orders", 0): 30,
            ("orders", 1): 4,
            ("päyments.ß", 0): 5,
        }
        assert [(r.topic, r.partition, r.source_start) for r in ledger.unverified()] == [
            ("orders", 0, 10),
            ("päyments.ß", 0, 0),
        ]
        assert [record.window for record in ledger.of_window("w2")] == ["w2", "w2"]
        assert [(row.window, row.partitions, row.copied, row.bytes) for row in ledger.windows()] == [
            ("w2", 2, 25, 250),
            ("w1", 1, 4, 40),
        ]


@examples(15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=4), again=st.integers(0, len(STREAM)))
def test_however_it_is_cut_and_repeated_it_is_the_same(ledger_url: str, cuts: list[int], again: int) -> None:
    with opened(ledger_url) as ledger, opened(ledger_url, "other->west") as other:
        ledger.forget()
        other.forget()
        load(other, STREAM)
        edges = sorted({0, *cuts, len(STREAM)})
        for first, end in pairwise(edges):
            load(ledger, STREAM[first:end])
        load(ledger, STREAM[again:])  # a load that was interrupted before it was noted
        assert _without_flow(ledger) == _without_flow(other)


def _without_flow(ledger: FlowLedger) -> dict[str, list[tuple[object, ...]]]:
    return {name: [row[1:] for row in rows] for name, rows in ledger.contents().items()}


def test_what_may_be_forgotten_lies_before_all_that_is_kept(ledger_url: str) -> None:
    """The clock of the executor that committed the second one was two hours behind."""
    times = {0: 10_000, 100: 2_800, 200: 10_100, 300: 2_000}
    orders = [replace(mapping(start, start + 100), time_ms=at) for start, at in times.items()]
    before = [
        replace(mapping(start, start + 10, topic_id=OTHER), time_ms=at) for start, at in ((0, 1), (10, 9_000), (20, 2))
    ]
    late = [replace(mapping(start, start + 10, partition=1), time_ms=1) for start in (0, 10, 20)]
    with closing(Ledger(ledger_url)) as ledger:
        flow = ledger.flow("east->west")
        load(flow, entries(*before, *orders, verified(399), *late, verified(9, partition=1)))

        def prunable(before_ms: int) -> list[tuple[int, UUID, int]]:
            found = [decode(key, None) for key in flow.prunable(before_ms)]
            assert all(isinstance(each, Tombstone) for each in found)
            return [(key[2], key[0], key[3]) for key in (each.key for each in found)]  # type: ignore[union-attr,misc]

        of_late = [(1, ORDERS, 0)]  # the others are not verified, or the newest
        assert prunable(5_000) == [(0, OTHER, 0), *of_late]
        assert prunable(10_050) == [
            (0, OTHER, 0),
            (0, OTHER, 10),
            (0, OTHER, 20),
            (0, ORDERS, 0),
            (0, ORDERS, 100),
            *of_late,
        ]
        assert prunable(99_999)[-2:] == [(0, ORDERS, 200), *of_late]
        assert flow.prunable(99_999, ["orders"]) == [], "a topic that is frozen may return"


def test_progress_is_loaded_and_deleted(ledger_url: str) -> None:
    def entry(offset: int, partition: int, value: bytes | None, cluster: str = "east") -> Entry:
        return Entry(3, offset, 0, source_offset_key(cluster, "orders", partition), value)

    with opened(ledger_url) as ledger:
        given = [
            entry(0, 0, source_offset_value(5)),
            entry(1, 1, source_offset_value(7)),
            entry(2, 0, source_offset_value(9)),
            entry(3, 0, source_offset_value(99), "south"),
            entry(4, 1, None),
            Entry(3, 5, 0, b"{", b""),
        ]
        ledger.load(PROGRESS, ID, given, {3: 6})
        assert ledger.progress() == {("orders", 0): 9}
        assert ledger.malformed == 1 and ledger.scanned(PROGRESS, ID) == {3: 6}


def test_a_topic_that_was_made_anew_begins_empty(ledger_url: str) -> None:
    with opened(ledger_url) as ledger:
        load(ledger, STREAM)
        ledger.load(PROGRESS, ID, [], {0: 1})
        assert ledger.scanned(TOPIC, OTHER) == {}
        assert ledger.last_mappings() == {} and ledger.leases() == [] and list(ledger.mappings("orders", 0)) == []
        assert ledger.scanned(PROGRESS, ID) == {0: 1}


def test_a_freeze_is_not_forgotten_with_the_topic_that_said_so(ledger_url: str) -> None:
    """Only the ledger knows by now that applications write on the target."""
    shut = Ownership("orders", Owner.TARGET, OrderScope.TOPIC, "", "w", 1, 1, 1, "moved", "ada")
    with opened(ledger_url) as ledger:
        load(ledger, entries(mapping(0, 10), shut))
        with pytest.raises(FreezeLost, match=f"is frozen for orders, and {TOPIC} with the record of it") as lost:
            ledger.scanned(TOPIC, OTHER)
        assert not lost.value.transient and ledger.owners().frozen and ledger.last_mappings()
        load(ledger, entries(replace(shut, owner=Owner.SOURCE), start=2))
        assert ledger.scanned(TOPIC, OTHER) == {} and ledger.last_mappings() == {}


def test_flows_in_one_database_are_apart(ledger_url: str) -> None:
    with opened(ledger_url) as ledger, opened(ledger_url, "north->west") as other:
        load(ledger, STREAM)
        load(other, entries(mapping(0, 3)))
        ledger.forget()
        assert ledger.contents() == {name: [] for name in ledger.contents()}
        assert [record.source_end for record in other.mappings("orders", 0)] == [3]


def test_loads_at_once_are_no_harm(ledger_url: str) -> None:
    def work(_number: int) -> dict[str, list[tuple[object, ...]]]:
        with opened(ledger_url) as ledger:
            for _ in range(5):
                load(ledger, STREAM)
            return ledger.contents()

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert all(contents == found[0] for contents in found)


@pytest.mark.seconds
def test_new_sqlite_databases_opened_by_many_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(6) as pool:
        for number in range(150):  # one of a hundred opens was refused while others switched the file to WAL
            barrier = threading.Barrier(6)
            opens = [pool.submit(_opened, f"sqlite:///{tmp_path}/{number}.db", barrier) for _ in range(6)]
            assert [opened.result() for opened in opens] == ["wal"] * 6


@pytest.mark.parametrize(
    "url", [f"postgresql+psycopg2://me:{PASSWORD}@127.0.0.1:1/x", "sqlite:////proc/nowhere/ledger.db"]
)
def test_a_database_that_is_not_there(url: str) -> None:
    with pytest.raises(LedgerUnavailable) as caught:
        Ledger(url)
    assert PASSWORD not in str(caught.value) and caught.value.transient
    assert "--ledger sqlite:///new.db" in str(caught.value), "docs/disaster-recovery.md: what to do if it was lost"


def test_a_window_with_this_ledger_and_its_rebuilding(
    east: Broker, west: Broker, tmp_path: Path, ledger_url: str
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, ledger_url=ledger_url)
    produce(east, flow.topic, [Record(b"v%d" % n, b"k%d" % n) for n in range(200)])
    assert flow.run().is_verified
    produce(east, flow.topic, [Record(b"v%d" % n, b"k%d" % n) for n in range(100)])
    assert flow.run().is_verified
    assert flow.assert_equal() == 300
    ledger = flow.opened.ledger
    flow.run()  # reads what the last window has released
    before = ledger.contents()
    read_again(Opened(flow.opened.configuration, flow.flow, ledger))
    assert ledger.contents() == before


def _opened(url: str, barrier: threading.Barrier) -> str:
    engine = connect(url)
    try:
        barrier.wait(60)
        with reading(engine) as connection:
            return str(connection.exec_driver_sql("PRAGMA journal_mode").scalar())
    finally:
        engine.dispose()


def test_a_ledger_that_is_opened_again_compiles_nothing_again(ledger_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks little, often, would compile more than it asks."""
    for _ in range(2):  # the first one makes the schema, of which the second one asks the version
        with closing(Ledger(ledger_url)) as opened:
            opened.flow("a->b").state()
    engine, compile_ = opened.engine, SQLCompiler.__init__
    compiled = list[object]()

    def noted(compiler: SQLCompiler, *args: Any, **kwargs: Any) -> None:
        compiled.append(args)
        compile_(compiler, *args, **kwargs)

    monkeypatch.setattr(SQLCompiler, "__init__", noted)
    with closing(Ledger(ledger_url)) as opened:
        opened.flow("a->b").state()
    assert opened.engine is engine and not compiled


def test_a_process_that_was_forked_uses_none_of_its_parents_connections(
    ledger_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Ledger(ledger_url)) as opened, reading(opened.engine):
        monkeypatch.setattr("airmirror.ledger.database.os.getpid", lambda: -1)
        with closing(Ledger(ledger_url)) as of_child:
            assert of_child.engine.pool is not opened.engine.pool


def test_ledgers_of_one_process_wait_for_no_connection_of_each_other(ledger_url: str) -> None:
    """They have an engine between them, whose pool has five connections: each gets as many as it asks for."""
    with ExitStack() as stack:
        for _ in range(20):
            opened = stack.enter_context(closing(Ledger(ledger_url)))
            stack.enter_context(reading(opened.engine))
        opened.close()  # closes none that another one uses
        assert opened.flow("a->b").windows() == []


def test_ledgers_in_memory_are_apart() -> None:
    with closing(Ledger("sqlite://")) as one, closing(Ledger("sqlite://")) as other:
        load(one.flow("a->b"), STREAM)
        assert one.flow("a->b").state().mappings and not other.flow("a->b").state().mappings
