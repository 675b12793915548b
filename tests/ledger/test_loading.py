"""The ledger is a function of what the topics hold: whatever was loaded in which order, twice, late or at once."""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import pytest
import sqlalchemy as sql
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from airmirror.ledger import FlowLedger, Ledger, LedgerBegunAnew, LedgerUnavailable, database, queries, tables
from airmirror.ledger.database import reading, writing
from airmirror.ledger.errors import ValueNotKept
from airmirror.partitions import Entry, TopicPartition
from airmirror.threads import begin
from airmirror.windows.results import committed
from airmirror.wire.mappings import (
    FlowIdentity,
    Hold,
    LaterRecord,
    Lease,
    LeaseEvent,
    MappingRecord,
    ResetRecord,
    Verified,
)
from airmirror.wire.mirrormaker import source_offset_key, source_offset_value
from support.databases import new_database
from support.examples import examples
from support.forked import processes
from support.ledgers import (
    MAPPINGS,
    ORDERS,
    ORDERS_AGAIN,
    OTHER_TOPIC_ID,
    PROGRESS,
    TOPIC_ID,
    compacted,
    deleted,
    mapping,
    verified,
    written,
)

Contents = dict[str, list[tuple[object, ...]]]


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[Ledger]:
    with closing(Ledger(ledger_url)) as opened:
        yield opened


def load(flow: FlowLedger, entries: list[Entry], since: int | None = None) -> None:
    """``since``: the offset that the entries were read from, where gaps are to be refused."""
    read_from = None if since is None else {0: since}
    flow.load(MAPPINGS, TOPIC_ID, entries, {0: entries[-1].offset + 1} if entries else {}, read_from)


def contents(flow: FlowLedger, *without: str) -> Contents:
    """Without the name of the flow."""
    return {name: [row[1:] for row in rows] for name, rows in flow.contents().items() if name not in without}


# Few keys, so that they are met again: replaced, deleted, written after that. Gates have seen all before what they write.
topics = st.sampled_from(["orders", "_päyments.ß-1"])
mappings = st.builds(
    lambda start, length, topic_id: mapping(start, start + length, topic_id=topic_id),
    st.sampled_from([0, 5]),
    st.sampled_from([0, 5]),
    st.sampled_from([ORDERS, ORDERS_AGAIN]),
)
records = st.one_of(
    mappings,
    mappings,
    st.builds(verified, st.integers(0, 12), topics),
    st.builds(
        lambda topic, offset: Hold(
            topic=topic, partition=0, offset=offset, reason="why", window="w1", by="gate", time_ms=5
        ),
        topics,
        st.integers(0, 9),
    ),
    st.builds(
        lambda window, event: Lease(window=window, event=event, owner="me", time_ms=1, duration_ms=30_000, slots=2),
        topics,
        st.sampled_from(LeaseEvent),
    ),
    st.just(FlowIdentity("east", "west", "a", "b", 1)),
)
logs = st.lists(st.tuples(records, st.booleans()), min_size=1, max_size=25).map(
    lambda found: [(deleted if gone else written)(at, _seen(record, at)) for at, (record, gone) in enumerate(found)]
)


def _seen(record: object, end: int) -> object:
    return replace(record, seen=end) if isinstance(record, Verified) else record


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=logs, data=st.data())
def test_any_split_any_repetition_and_a_compacted_log_make_the_same_ledger(
    ledger: Ledger, log: list[Entry], data: st.DataObject
) -> None:
    at_once, in_parts, after_cleaning = (ledger.flow(name) for name in ("a->w", "b->w", "c->w"))
    for flow in (at_once, in_parts, after_cleaning):
        flow.forget()
    load(at_once, log)

    edges = sorted({0, *data.draw(st.lists(st.integers(0, len(log)), max_size=4), "edges"), len(log)})
    for start, end in pairwise(edges):
        load(in_parts, log[start:end], start)
        first = data.draw(st.integers(0, end - 1), "again from")
        load(
            in_parts, log[first : data.draw(st.integers(first, end), "to")], first
        )  # another process, which was slower
    assert contents(in_parts) == contents(at_once)

    load(after_cleaning, compacted(log))
    assert contents(after_cleaning, "scanned") == contents(at_once, "scanned")


# What lies in the log: None for a reset, or the offset of a verdict, and how many records its gate has not seen.
slept = st.lists(st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=8)


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=slept, cuts=st.lists(st.integers(0, 8), max_size=3))
@example(found=[None, (3, 1), (2, 1)], cuts=[2])  # what counts for nothing keeps out no other
def test_verdicts_of_gates_that_slept_make_the_same_ledger_in_any_split(
    ledger: Ledger, found: list[tuple[int, int] | None], cuts: list[int]
) -> None:
    log = [
        written(at, verified(each[0], seen=max(0, at - each[1])) if each else reset_at(at))
        for at, each in enumerate(found)
    ]
    at_once, in_parts = ledger.flow("a->w"), ledger.flow("b->w")
    for flow in (at_once, in_parts):
        flow.forget()
    load(at_once, log)
    for start, end in pairwise(sorted({0, *(min(cut, len(log)) for cut in cuts), len(log)})):
        load(in_parts, log[start:end], start)
    assert contents(in_parts) == contents(at_once)


def test_a_number_that_no_database_keeps_is_an_error_for_good(ledger: Ledger) -> None:
    found, entry = ledger.flow("east->west"), written(0, FlowIdentity("east", "west", "id-east", "id-west", 0))
    with pytest.raises(ValueNotKept) as caught:
        found.load(MAPPINGS, TOPIC_ID, [replace(entry, timestamp=-(2**80))], {0: 1}, {0: 0})
    assert not caught.value.transient and found.scanned(MAPPINGS, TOPIC_ID) == {}


def test_the_unverified_are_those_past_their_verified_offset(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    log = [
        mapping(0, 10),
        mapping(10, 20),
        verified(9),  # one of two
        mapping(0, 10, partition=1),
        verified(9, partition=1),  # all
        mapping(0, 10, partition=2),
        verified(4, partition=2),  # a part of one
        mapping(0, 10, partition=3),  # nothing
        mapping(0, 0, partition=4),  # nothing, and there was no record yet
        mapping(0, 0, partition=5),
        verified(-1, partition=5),
        mapping(0, 10, partition=6),
        verified(9, partition=6),
        mapping(0, 5, partition=6, topic_id=ORDERS_AGAIN),
        mapping(0, 10, partition=7),
        mapping(0, 5, partition=7, topic_id=ORDERS_AGAIN),
        verified(4, partition=7, topic_id=ORDERS_AGAIN),
        mapping(0, 10, "Zebra"),
        mapping(0, 10, "_a"),  # in Python's order, whatever the database's collation
    ]
    load(flow, [written(offset, record) for offset, record in enumerate(log)])
    assert [(found.topic, found.partition, found.source_start, found.source_end) for found in flow.unverified()] == [
        ("Zebra", 0, 0, 10),
        ("_a", 0, 0, 10),
        ("orders", 0, 10, 20),
        ("orders", 2, 0, 10),
        ("orders", 3, 0, 10),
        ("orders", 4, 0, 0),
        ("orders", 6, 0, 5),
    ]
    of_window = [(found.topic, found.partition, found.source_start) for found in flow.of_window("w1")]
    assert of_window == sorted(of_window) and of_window[0][0] == "Zebra"


def test_a_window_of_hours_is_read_some_commits_at_a_time(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    flow, most = ledger.flow("east->west"), [0]
    load(flow, [written(offset, mapping(offset, offset + 1)) for offset in range(500)])
    monkeypatch.setattr(queries, "READ_AT_ONCE", 50)
    made, kept = queries.mapping_of, weakref.WeakSet[MappingRecord]()

    def noted(row: object) -> MappingRecord:
        kept.add(record := made(row))
        return record

    monkeypatch.setattr(queries, "mapping_of", noted)
    rows = committed(_most(flow.of_window("w1"), kept, most))
    assert rows[TopicPartition("orders", 0)].copied == 500 and most[0] < 10


def _most(
    records: Iterator[MappingRecord], kept: weakref.WeakSet[MappingRecord], most: list[int]
) -> Iterator[MappingRecord]:
    for record in records:
        most[0] = max(most[0], len(kept))
        yield record


def test_mappings_of_a_range(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    log = [mapping(0, 10), mapping(10, 20), mapping(20, 20), mapping(20, 35), mapping(0, 99, topic_id=ORDERS_AGAIN)]
    load(flow, [written(offset, record) for offset, record in enumerate(log)])

    def found(start: int, end: int | None) -> list[int]:
        return [record.source_start for record in flow.mappings("orders", 0, log[0].source_topic_id, start, end)]

    assert found(0, None) == [0, 10, 20]
    assert found(9, 10) == [0] and found(10, 11) == [10] and found(9, 11) == [0, 10]
    assert found(34, None) == [20] and found(35, None) == [] and found(0, 0) == []
    assert len(list(flow.mappings("orders", 0))) == 4 and list(flow.mappings("orders", 1)) == []


def test_mappings_are_pruned_by_their_tombstones(ledger: Ledger) -> None:
    """What the source no longer holds: below offset 20, and everything of the topic that was there before."""
    flow = ledger.flow("east->west")
    before = [mapping(start, start + 10, topic_id=ORDERS_AGAIN) for start in range(0, 30, 10)]
    now = [mapping(start, start + 10, window=f"w{start}") for start in range(0, 50, 10)]
    other = [mapping(0, 10, partition=1)]
    load(flow, [written(offset, record) for offset, record in enumerate((*before, *now, *other))])
    load(flow, [deleted(100 + offset, record) for offset, record in enumerate((*before, *now[:2]))])
    assert list(flow.mappings("orders", 0)) == now[2:] and list(flow.mappings("orders", 1)) == other
    assert list(flow.of_window("w0")) == [] and list(flow.of_window("w20")) == [now[2]]
    assert [row.window for row in flow.windows()] == ["w40", "w30", "w20", "w1"]
    assert flow.last_mappings() == {("orders", 0): now[4], ("orders", 1): other[0]}
    load(flow, [deleted(200, now[4])])  # the newest: the one before it takes its place, as after a rebuild
    assert flow.last_mappings()[("orders", 0)] == now[3]
    load(flow, [deleted(201, now[3]), deleted(202, now[2]), deleted(203, now[2])])
    assert flow.last_mappings() == {("orders", 1): other[0]}


def test_the_newest_mapping_is_that_of_the_largest_end(ledger: Ledger) -> None:
    """Not the last in the log: what counts as lost is written again without its position, whatever comes after it."""
    flow = ledger.flow("east->west")
    log = [mapping(0, 10), mapping(10, 20), mapping(20, 20), mapping(0, 10, window="again")]
    load(flow, [written(offset, record) for offset, record in enumerate(log)])
    assert flow.last_mappings() == {("orders", 0): log[2]} and flow.state().positions == {("orders", 0): 20}
    load(flow, [written(4, mapping(20, 35)), written(5, mapping(10, 15))])
    assert flow.last_mappings() == {("orders", 0): mapping(20, 35)}
    load(flow, [written(6, mapping(20, 25)), written(7, mapping(0, 5, topic_id=ORDERS_AGAIN))])
    assert flow.last_mappings() == {("orders", 0): mapping(0, 5, topic_id=ORDERS_AGAIN)}, "another topic of the name"
    load(flow, [deleted(8, mapping(0, 5, topic_id=ORDERS_AGAIN))])
    assert flow.last_mappings() == {("orders", 0): mapping(20, 25)}


def test_what_is_read_in_one_transaction_is_of_one_moment(ledger_url: str) -> None:
    with closing(Ledger(ledger_url)) as one, closing(Ledger(ledger_url)) as other:
        flow = one.flow("east->west")
        load(flow, [written(0, mapping(0, 10))])
        query = sql.select(sql.func.max(tables.mappings.c.source_end)).where(tables.mappings.c.flow == flow.flow)
        with reading(one.engine) as connection:
            before = connection.scalar(query)
            load(other.flow("east->west"), [written(1, mapping(10, 20))])
            assert connection.scalar(query) == before == 10
        assert flow.state().positions == {("orders", 0): 20}


def test_a_ledger_that_was_read_anew_takes_the_old_one_s_place_at_once(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    log = [written(offset, mapping(10 * offset, 10 * offset + 10)) for offset in range(4)]
    load(flow, log[:3], 0)
    beside = flow.anew()
    load(beside, log[:2], 0)
    assert not flow.replace_by(beside), "it has read less"
    assert flow.state().positions == {("orders", 0): 30}
    load(beside, log[2:], 2)
    assert flow.replace_by(beside)
    assert flow.state().positions == {("orders", 0): 40} and flow.scanned(MAPPINGS, TOPIC_ID) == {0: 4}
    assert beside.state().positions == {}
    with pytest.raises(LedgerBegunAnew):  # a process that was slower, at what is not there any more
        load(beside, [written(4, mapping(40, 50))], 4)


def test_no_other_rebuild_loads_a_part_while_it_takes_the_old_one_s_place(postgresql: str) -> None:
    """Both read into the same part: half of what the other one loads would leave a gap."""
    url = new_database(postgresql, f"ledger_{uuid.uuid4().hex[:8]}")
    with closing(Ledger(url)) as one, closing(Ledger(f"{url}&options=-c%20lock_timeout%3D200")) as other:
        flow = one.flow("east->west")
        beside = flow.anew()
        load(beside, [written(0, mapping(0, 10))], 0)
        with writing(one.engine, beside.flow), pytest.raises(LedgerUnavailable, match="lock timeout"):
            other.flow(flow.flow).replace_by(other.flow(beside.flow))
        assert flow.last_mappings() == {} and beside.last_mappings() == {("orders", 0): mapping(0, 10)}


def test_a_writer_that_stands_still_holds_up_nobody_for_long(postgresql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one whose machine is gone: PostgreSQL by itself would wait for two hours. What a URL says counts more."""
    monkeypatch.setattr(database, "PATIENCE_SECONDS", 0.3)
    url = new_database(postgresql, f"ledger_{uuid.uuid4().hex[:8]}")
    patient = f"{url}&options=-c%20idle_in_transaction_session_timeout%3D60000"
    with closing(Ledger(url)) as one, closing(Ledger(patient)) as other:
        with writing(other.engine, "a->b"), pytest.raises(LedgerUnavailable, match="lock timeout"):
            begin(lambda: one.flow("a->b").note_begun("x")).result(30)
        with (
            pytest.raises(LedgerUnavailable, match=r"terminating connection|closed the connection"),
            writing(one.engine, "a->b") as connection,
        ):
            begin(lambda: other.flow("a->b").note_begun("x")).result(30)
            connection.scalar(sql.text("select 1"))


def test_what_the_url_says_of_a_connection_counts() -> None:
    given = list[dict[str, object]]()
    engine = database.connect("postgresql+psycopg2://nowhere/ledger?connect_timeout=3")

    @sql.event.listens_for(engine, "do_connect")
    def connects(_dialect: object, _record: object, _arguments: object, settings: dict[str, object]) -> None:
        given.append(settings)
        raise LedgerUnavailable("here", "planted")

    with pytest.raises(LedgerUnavailable):
        engine.connect()
    assert given[0]["connect_timeout"] == "3" and given[0]["tcp_user_timeout"] == 60_000


def test_the_progress_of_another_connector_counts_where_nothing_else_tells(ledger: Ledger) -> None:
    """Strimzi's connector has a name of its own, so its progress lies beside ours for ever, in another partition."""
    flow = ledger.flow("east->west")
    theirs = Entry(
        1, 0, 0, source_offset_key("east", "orders", 0, "east->west.MirrorSourceConnector"), source_offset_value(9)
    )
    ours = Entry(0, 0, 0, source_offset_key("east", "orders", 0), source_offset_value(29))
    flow.load(PROGRESS, TOPIC_ID, [theirs], {1: 1})
    assert flow.state().positions == {("orders", 0): 10}
    load(flow, [written(0, mapping(10, 30))])
    assert flow.state().progress == {}, "it is older, and no contradiction"
    flow.load(PROGRESS, TOPIC_ID, [ours], {0: 1})
    assert flow.state().progress == {("orders", 0): 29}
    rebuilt = ledger.flow("b->west")
    rebuilt.load(PROGRESS, TOPIC_ID, [ours], {0: 1})
    rebuilt.load(PROGRESS, TOPIC_ID, [theirs], {1: 1})
    assert rebuilt.progress() == flow.progress() == {("orders", 0): 29}


def test_a_slower_process_does_not_turn_the_ledger_back(ledger: Ledger) -> None:
    log = [written(offset, mapping(10 * offset, 10 * offset + 10)) for offset in range(4)]
    faster, slower = ledger.flow("east->west"), ledger.flow("east->west")
    load(faster, log, 0)
    load(slower, log[:2], 0)
    assert faster.last_mappings()[("orders", 0)].source_end == 40
    assert faster.scanned(MAPPINGS, TOPIC_ID) == {0: 4}
    for flow, offsets in ((faster, range(9)), (slower, range(3))):
        entries = [Entry(3, n, 0, source_offset_key("east", "orders", 0), source_offset_value(n)) for n in offsets]
        flow.load(PROGRESS, TOPIC_ID, entries, {3: len(entries)}, {3: 0})
    assert faster.progress() == {("orders", 0): 8} and faster.scanned(PROGRESS, TOPIC_ID) == {3: 9}


def test_what_was_begun_anew_meanwhile_gets_no_gap(ledger: Ledger) -> None:
    log = [written(offset, mapping(10 * offset, 10 * offset + 10)) for offset in range(4)]
    reader, rebuilder = ledger.flow("east->west"), ledger.flow("east->west")
    load(reader, log[:2], 0)
    rebuilder.forget()
    with pytest.raises(LedgerBegunAnew) as caught:
        load(reader, log[2:], 2)
    assert caught.value.transient and "east->west" in str(caught.value) and MAPPINGS in str(caught.value)
    assert reader.scanned(MAPPINGS, TOPIC_ID) == {} and reader.last_mappings() == {}
    load(reader, log, 0)
    with pytest.raises(LedgerBegunAnew):  # the topic was made anew, and somebody has not noticed
        reader.load(MAPPINGS, OTHER_TOPIC_ID, log[:1], {0: 1}, {0: 0})
    assert reader.scanned(MAPPINGS, TOPIC_ID) == {0: 4}


@pytest.mark.parametrize("name", ["o" * 249, "a.b_c-D", "größe ' \" % \\ \N{PILE OF POO}", "%(x)s :y ?"])
def test_unusual_names(ledger: Ledger, name: str) -> None:
    flow = ledger.flow(f"{name[:40]}->west")
    record = mapping(0, 10, name, window=name)
    load(
        flow,
        [
            written(0, record),
            written(1, Lease(window=name, event=LeaseEvent.TAKEN, owner="me", time_ms=1, duration_ms=30_000, slots=2)),
        ],
    )
    progress = Entry(0, 0, 0, source_offset_key("east", name, 3), source_offset_value(2**63 - 1))
    flow.load(PROGRESS, TOPIC_ID, [progress], {0: 1})
    assert flow.last_mappings() == {(name, 0): record} and list(flow.mappings(name, 0)) == [record]
    assert list(flow.of_window(name)) == [record] and [row.window for row in flow.windows()] == [name]
    assert flow.progress() == {(name, 3): 2**63 - 1} and [lease.window for _, _, lease in flow.leases()] == [name]
    assert flow.malformed == 0


def test_what_no_database_has_room_for_is_counted_and_does_not_stop_the_rest(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    bad = [
        mapping(0, 10, "o" * 250),
        mapping(0, 10, "a\0b"),
        mapping(0, 10, window="w" * 513),
        verified(1, "a\0b"),
        Lease(window="w" * 5000, event=LeaseEvent.TAKEN, owner="me", time_ms=1, duration_ms=30_000, slots=2),
    ]
    log = [written(offset, record) for offset, record in enumerate((*bad, mapping(0, 10)))]
    log += [deleted(len(log), bad[1]), deleted(len(log) + 1, bad[3])]
    load(flow, log)
    assert flow.malformed == len(bad) + 2
    assert list(flow.last_mappings()) == [("orders", 0)] and flow.scanned(MAPPINGS, TOPIC_ID) == {0: len(log)}
    entries = [
        Entry(0, 0, 0, source_offset_key("east", "orders", 0), source_offset_value(2**63)),
        Entry(0, 1, 0, source_offset_key("east", "orders", 2**31), source_offset_value(1)),
        Entry(0, 2, 0, source_offset_key("east", "a\0b", 0), source_offset_value(1)),
        Entry(0, 3, 0, source_offset_key("east", "half", 0).replace(b"half", rb"\ud800"), source_offset_value(1)),
        Entry(0, 4, 0, source_offset_key("east", "orders", 1), source_offset_value(1)),
    ]
    flow.load(PROGRESS, TOPIC_ID, entries, {0: 5})
    assert flow.progress() == {("orders", 1): 1} and flow.malformed == len(bad) + 2 + 4


def test_what_a_later_version_wrote_is_not_skipped(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    lease = Lease(window="w", event=LeaseEvent.TAKEN, owner="me", time_ms=1, duration_ms=30_000, slots=2)
    later = Entry(0, 1, 1, lease.encode_key(), b"\0\1" + lease.encode_value()[2:] + b"more")
    for _ in range(2):  # nothing counts as read: after an upgrade it is
        with pytest.raises(LaterRecord, match=f"{MAPPINGS} at offset 1 has a record of kind 1 in version 1"):
            load(flow, [written(0, mapping(0, 10)), later])
        assert flow.scanned(MAPPINGS, TOPIC_ID) == {} and flow.last_mappings() == {}


@pytest.mark.seconds
def test_processes_that_make_and_load_a_ledger_at_once(ledger_url: str) -> None:
    barrier, answers = processes.Barrier(3), processes.Queue()
    started = [processes.Process(target=_open_and_load, args=(ledger_url, barrier, answers)) for _ in range(3)]
    for process in started:
        process.start()
    found = [answers.get(timeout=300) for _ in started]
    for process in started:
        process.join(30)
    assert found == ["loaded"] * 3
    with closing(Ledger(ledger_url)) as opened, closing(Ledger("sqlite://")) as expected:
        load(expected.flow("east->west"), _long_log())
        assert opened.flow("east->west").contents() == expected.flow("east->west").contents()


def test_a_read_while_a_load_is_not_finished_sees_none_of_it(ledger_url: str) -> None:
    with closing(Ledger(ledger_url)) as one, closing(Ledger(ledger_url)) as other:
        loading, seen = threading.Event(), threading.Event()

        def entries() -> Iterator[Entry]:
            yield written(0, mapping(0, 10))
            loading.set()
            assert seen.wait(30)
            yield written(1, mapping(10, 20))

        class Slow(list[Entry]):
            def __iter__(self) -> Iterator[Entry]:
                return entries()

        thread = threading.Thread(target=load, args=(one.flow("east->west"), Slow([written(1, mapping(10, 20))])))
        thread.start()
        assert loading.wait(30)
        before = other.flow("east->west").contents()
        seen.set()
        thread.join(30)
        assert not any(before.values())
        assert other.flow("east->west").last_mappings()[("orders", 0)].source_end == 20


def _long_log() -> list[Entry]:
    return [written(offset, mapping(offset, offset + 1, partition=offset % 7)) for offset in range(300)]


def _open_and_load(url: str, barrier, answers) -> None:  # type: ignore[no-untyped-def]
    try:
        barrier.wait(60)
        with closing(Ledger(url)) as opened:
            log = _long_log()
            for start in range(0, len(log), 20):
                load(opened.flow("east->west"), log[start : start + 20], start)
        answers.put("loaded")
    except BaseException as error:
        answers.put(repr(error))
        raise


def test_what_a_gate_judged_before_a_reset_and_wrote_after_it_counts_for_nothing(ledger: Ledger) -> None:
    flow = ledger.flow("east->west")
    load(flow, [written(0, mapping(0, 20)), written(1, reset_at(7))])
    load(flow, [written(2, verified(19, seen=1))])
    assert flow.verified() == {}
    load(flow, [written(3, verified(19, seen=2))])
    assert [each.seen for each in flow.verified().values()] == [2]
    late, other = verified(19, seen=4), verified(9, "bills", seen=4)
    load(flow, [written(4, reset_at(8)), written(5, late), written(6, other)])
    assert list(flow.verified()) == [("bills", 0)]


def test_a_verdict_below_one_that_its_gate_has_not_seen_counts_for_nothing(ledger: Ledger) -> None:
    flow, late = ledger.flow("east->west"), written(3, verified(9, seen=2))
    load(flow, [written(0, mapping(0, 20)), written(1, verified(9, seen=1)), written(2, verified(19, seen=2)), late])
    assert [each.offset for each in flow.verified().values()] == [19]
    load(flow, [written(4, verified(9, seen=2))])
    assert [each.offset for each in flow.verified().values()] == [19]
    load(flow, [written(5, verified(4, topic_id=ORDERS_AGAIN, seen=2))])
    assert [each.offset for each in flow.verified().values()] == [4], "of another topic of that name"
    load(flow, [written(6, verified(3, topic_id=ORDERS_AGAIN, seen=6))])
    assert [each.offset for each in flow.verified().values()] == [3], "its gate has seen what it lowers"


@pytest.mark.parametrize("ahead", [-3_600_000, 0, 3_600_000])
def test_what_is_forgotten_is_told_by_the_log_and_by_no_clock(ledger: Ledger, ahead: int) -> None:
    """``ahead``: of the clocks of slots, that of the machine where it was decided."""
    flow, copied = ledger.flow("east->west"), mapping(0, 20)
    load(flow, [written(0, copied), written(1, replace(reset_at(copied.time_ms + ahead), choice="forget"))])
    assert flow.state().forgotten == {("orders", 0)} and not flow.state().known
    assert not flow.unverified(), "a gate would hold it again in each run"
    load(flow, [written(2, mapping(20, 30))])
    assert not flow.state().forgotten and flow.state().known == [("orders", 0)]
    assert len(flow.unverified()) == 2


def reset_at(time_ms: int) -> ResetRecord:
    return ResetRecord(
        topic="orders",
        partition=0,
        time_ms=time_ms,
        choice="start-again",
        problem="",
        lost_first=0,
        lost_end=0,
        start=0,
        window="r",
        by="ann",
        reason="why",
    )
