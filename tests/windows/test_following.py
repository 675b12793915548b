"""A window that follows the log: what comes is copied and verified meanwhile, exactly once, whatever happens to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.flows.holds import add_holds
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot import attempts, outbox
from airmirror.slot import source as source_module
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.slot.copy import copy
from airmirror.slot.errors import PartitionUnavailable
from airmirror.slot.follow import NO_END, seconds_left
from airmirror.slot.lease import LeaseLog
from airmirror.slot.limit import Limit
from airmirror.slot.pace import Pace
from airmirror.slot.source import Source
from airmirror.topics.internal import HOUR_MS, MAPPING_CONFIG
from airmirror.windows import fence, following
from airmirror.windows.errors import FlowBusy, GateFailed, PartitionHeld
from airmirror.windows.fence import end_window
from airmirror.windows.findings import GateRow
from airmirror.windows.following import Follow, FollowLoop, Latencies
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder
from airmirror.wire.leases import CurrentLease, LeaseEntry, holder
from airmirror.wire.mappings import Lease, LeaseEvent
from airmirror.wire.requests import Fetched, Produced
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy
from support.faults import a_process, await_killed, die_after
from support.flows import at_once, mirror
from support.following import (
    FOLLOW,
    SETTINGS,
    await_copied,
    await_verified,
    beside,
    ended_by_event,
    follow,
    numbered,
    patiently,
)
from support.intakes import FLOW, intake
from support.topics import await_settled, end_offsets, produce, read_all

NOT_ENOUGH_REPLICAS = 19


@pytest.fixture
def time_is_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Whoever sets it ends the time for which slots follow."""
    return ended_by_event(monkeypatch)


def test_what_comes_while_a_window_follows(
    east: Broker, west: Broker, tmp_path: Path, time_is_up: threading.Event
) -> None:
    """Transactions and aborted ones among it; all is readable and verified before the window has ended."""
    flow = mirror(east, west, tmp_path, partitions=4, settings=SETTINGS)
    produce(east, flow.topic, numbered(100))

    def work() -> None:
        await_copied(flow, 100)
        for turn in range(1, 4):
            produce(east, flow.topic, numbered(100, 1000 * turn), records_per_batch=7)
            produce(east, flow.topic, numbered(50, 1000 * turn + 200), transactional="abort")
            produce(east, flow.topic, numbered(50, 1000 * turn + 300), transactional="commit", codec="lz4")
            await_copied(flow, 100 + 150 * turn)
        await_verified(flow)

    result = follow(flow, work, time_is_up, slots=2)
    assert result.is_verified and not result.is_cut, [str(row.error) for row in result.rows]
    assert result.copied == 550 and result.followed is not None and result.followed.records == 450
    assert 0 <= result.followed.median <= result.followed.p99
    assert flow.assert_equal() == 550
    assert not flow.run().rows  # nothing is left


def test_an_idle_window_follows_too_and_ends_when_it_is_released(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing comes: no transaction is begun, no id initialised again; the slot finds out by itself that it was ended."""
    flow = mirror(east, west, tmp_path, partitions=2, settings=SETTINGS | {"window.follow.ms": "30000"})
    produce(east, flow.topic, numbered(20))
    assert flow.run().is_verified
    ends = await_settled(west, flow.remote_topic)
    looked, initialised, results = threading.Event(), list[str](), list[SlotResult]()
    check, initialise = LeaseLog.check, TransactionalId.initialise

    def look(self: LeaseLog) -> None:
        check(self)
        looked.set()

    def count(self: TransactionalId, patience: float = 60.0) -> None:
        initialised.append(threading.current_thread().name)
        initialise(self, patience)

    monkeypatch.setattr(LeaseLog, "check", look)

    def released() -> None:
        assert looked.wait(100)
        assert end_window(flow.flow, flow.opened.ledger, "idle")

    def execute(given: Sequence[Slot]) -> list[SlotResult]:
        monkeypatch.setattr(TransactionalId, "initialise", count)
        with beside(released, threading.Event()):
            results.extend(at_once(given))
        return results

    result = flow.run(execute, "idle", 1, FOLLOW)
    assert {each.outcome for each in results} == {Outcome.FENCED} and result.copied == 0
    assert [name for name in initialised if name.startswith("slot")] == ["slot_0"], "once, and not again while it waits"
    assert end_offsets(west, flow.remote_topic) == ends


def test_what_is_open_when_the_time_is_up_is_committed(
    east: Broker, west: Broker, tmp_path: Path, time_is_up: threading.Event
) -> None:
    flow = mirror(east, west, tmp_path, settings=SETTINGS | {"window.follow.commit.ms": "100000"})
    produce(east, flow.topic, numbered(10))
    assert flow.run().is_verified

    def work() -> None:
        produce(east, flow.topic, numbered(30, 10))
        for attempt in patiently():
            with attempt:
                assert end_offsets(west, flow.remote_topic)[0] == 10 + 1 + 30  # with the marker of the first commit
        assert end_offsets(west, flow.remote_topic, "read_committed")[0] == 10 + 1

    result = follow(flow, work, time_is_up)
    assert result.is_verified and result.copied == 30
    assert flow.assert_equal() == 40


def test_a_newer_window_fences_one_that_follows(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time_is_up: threading.Event
) -> None:
    """The old one's driver sleeps, its slots do not."""
    monkeypatch.setattr(fence, "RENEW_SECONDS", 1000.0)
    monkeypatch.setattr(fence, "LEASE_MS", 1)
    flow = mirror(east, west, tmp_path, partitions=3, settings=SETTINGS)
    produce(east, flow.topic, numbered(100))
    results: list[SlotResult] = []
    ended = threading.Event()

    def newer() -> WindowResult:
        for attempt in patiently(FlowBusy):
            with attempt:
                return flow.run(at_once, "newer", 2, FOLLOW)
        raise AssertionError("unreachable")

    def work() -> None:
        await_copied(flow, 100)
        with ThreadPoolExecutor(1) as pool:
            try:
                following = pool.submit(newer)
                produce(east, flow.topic, numbered(100, 100))
                assert ended.wait(100)
                produce(east, flow.topic, numbered(100, 200))
                await_copied(flow, 300)
            finally:
                time_is_up.set()
            assert following.result().is_verified

    def execute(given: Sequence[Slot]) -> list[SlotResult]:
        with beside(work, time_is_up):
            results.extend(at_once(given))
            ended.set()
        return results

    flow.run(execute, "older", 2, FOLLOW)
    assert {each.outcome for each in results} == {Outcome.FENCED}
    assert flow.run().is_verified
    assert flow.assert_equal() == 300


def test_a_slot_that_is_killed_while_it_follows(
    east: Broker, west: Broker, tmp_path: Path, time_is_up: threading.Event
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, settings=SETTINGS)
    produce(east, flow.topic, numbered(100))

    def killed(given: Sequence[Slot]) -> list[SlotResult]:
        process = a_process(die_after, given, 1)
        await_copied(flow, 100)
        produce(east, flow.topic, numbered(100, 100))
        await_killed(process)  # in its second transaction

        def work() -> None:
            await_copied(flow, 200)
            produce(east, flow.topic, numbered(100, 200))
            await_copied(flow, 300)

        with beside(work, time_is_up):
            return at_once(given)  # as Spark does: the same slots, from the committed progress (invariant C)

    result = flow.run(killed, None, 1, FOLLOW)
    assert result.is_verified and result.copied == 300, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 300


def test_a_target_that_is_away_and_a_partition_that_takes_no_records_for_a_while(
    east: Broker,
    west: Broker,
    west_proxy: Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    time_is_up: threading.Event,
) -> None:
    """Longer than a transaction may wait: it alone is left out, and taken in again in the same window."""
    monkeypatch.setattr(attempts, "AGAIN_SECONDS", 0.2)
    short = SETTINGS | {"producer.transaction.timeout.ms": "1000"}
    flow = mirror(east, west, tmp_path, partitions=2, settings=short, through=west_proxy.bootstrap)
    produce(east, flow.topic, numbered(100))
    decode, taken_in_again = outbox.decode_produce, attempts._taken_in_again
    refuses, again = threading.Event(), threading.Event()
    late = TopicPartition(flow.remote_topic, 0)

    def refusing(*answer: object) -> tuple[int, dict[TopicPartition, Produced]]:
        throttle_ms, found = decode(*answer)  # type: ignore[arg-type]
        if refuses.is_set() and late in found:
            found[late] = Produced(NOT_ENOUGH_REPLICAS, -1, None)  # a cluster of one node has no other replicas
        return throttle_ms, found

    def note(found: attempts._Attempts) -> bool:
        is_again = taken_in_again(found)
        if is_again:
            again.set()
        return is_again

    monkeypatch.setattr(outbox, "decode_produce", refusing)
    monkeypatch.setattr(attempts, "_taken_in_again", note)

    def work() -> None:
        await_copied(flow, 100)
        west_proxy.cut()
        produce(east, flow.topic, numbered(100, 100))
        await_copied(flow, 200)
        refuses.set()
        for partition in (0, 1):
            produce(east, flow.topic, numbered(100, 200), partition=partition)
        assert again.wait(100)
        others = len(read_all(east, flow.topic)[1])
        await_copied(flow, others, partition=1)
        refuses.clear()
        await_copied(flow, 400)

    result = follow(flow, work, time_is_up)
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 400


def test_a_partition_that_the_gate_holds_is_copied_no_more(
    east: Broker, west: Broker, tmp_path: Path, time_is_up: threading.Event
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, settings=SETTINGS)
    bad, good = TopicPartition(flow.topic, 0), TopicPartition(flow.topic, 1)

    def put(partition: int, count: int, start: int) -> None:
        produce(east, flow.topic, numbered(count, start), partition=partition)

    for partition in (0, 1):
        put(partition, 10, 0)

    def gate(findings: Sequence[GateRow]) -> Mapping[TopicPartition, str]:
        return {each.key: "too many" for each in findings if each.key == bad and each.source_end > 10}

    def work() -> None:
        await_verified(flow)
        put(0, 5, 10)
        for attempt in patiently():
            with attempt:
                assert bad in flow.opened.ledger.holds()
        for count in (11, 12, 13):  # with the first commit after the hold it is seen, before the second it is obeyed
            put(1, 1, count - 1)
            await_copied(flow, count, partition=1)
        put(0, 50, 15)
        put(1, 50, 13)
        await_copied(flow, 63, partition=1)
        for attempt in patiently():
            with attempt:
                assert flow.opened.ledger.verified()[good].offset == 62

    result = follow(flow, work, time_is_up, by=Follow(gate))
    rows = {row.partition: row for row in result.rows}
    assert len(read_all(west, flow.remote_topic)[0]) == 15
    assert flow.opened.ledger.verified()[bad].offset == 9, "nothing of what was held has passed"
    assert rows[1].verified and rows[1].error is None
    assert rows[0].error is not None and "too many" in str(rows[0].error)
    assert isinstance(rows[0].error, GateFailed) or "held" in str(rows[0].error)
    [hold] = flow.opened.ledger.holds().values()
    assert hold.window == result.window and hold.offset == 10


def test_a_partition_that_an_operator_holds_is_copied_no_more(
    east: Broker, west: Broker, tmp_path: Path, time_is_up: threading.Event
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, settings=SETTINGS)
    for partition in (0, 1):
        produce(east, flow.topic, numbered(10), partition=partition)

    def work() -> None:
        await_copied(flow, 20)
        add_holds(flow.opened, flow.topic, [0], reason="schema change", by="ops")
        for count in (11, 12, 13):
            produce(east, flow.topic, numbered(1, count), partition=1)
            await_copied(flow, count, partition=1)
        produce(east, flow.topic, numbered(10, 100), partition=0)
        produce(east, flow.topic, numbered(1, 100), partition=1)
        await_copied(flow, 14, partition=1)

    rows = {row.partition: row for row in follow(flow, work, time_is_up).rows}
    assert len(read_all(west, flow.remote_topic)[0]) == 10
    assert rows[1].error is None and isinstance(rows[0].error, PartitionHeld) and rows[0].error.is_decided


@pytest.mark.parametrize("compacted", [True, False])
def test_an_empty_answer_at_the_moving_end(monkeypatch: pytest.MonkeyPatch, compacted: bool) -> None:
    """Nothing comes at the log's end; below it only a compacted topic has holes, up to what can be read (invariant E)."""
    monkeypatch.setattr(source_module, "is_compacted", lambda *_: True)
    taker, _ = intake(30, compacted=compacted)
    taker.end_at(NO_END)
    source = Source(None, taker.context.slot, [taker], Pace(60_000), Limit.of(taker.context.slot))  # type: ignore[arg-type]

    def answered(stable: int) -> None:
        empty = Fetched(
            error=0, high_watermark=50, last_stable_offset=stable, log_start_offset=0, aborted=(), start=0, end=0
        )
        source._look_at_empty([(taker, empty)])

    answered(20)
    assert taker.position == 0 and taker.withheld == "it can be read up to 20 only"
    answered(40)
    assert taker.position == (40 if compacted else 0) and bool(taker.account.holes) == compacted
    assert compacted or taker.withheld == "an answer without records"
    taker.position = 40
    answered(40)
    assert taker.position == 40 and taker.withheld == "" and not taker.is_done


def test_taking_in_others_again_ends_nothing_that_is_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """While one works off its backlog, minutes long, those that had reached their planned ends were not copied."""
    monkeypatch.setattr(attempts, "AGAIN_SECONDS", 0.0)
    caught_up, behind = intake(30)[0], intake(30)[0]
    caught_up.position = 30
    slot = replace(caught_up.context.slot, follow_ms=60_000)
    lease = Mock(held=set(), is_ending=False)
    found = attempts._Attempts.of(slot)
    found.failed[TopicPartition("orders", 7)] = PartitionUnavailable("east", "orders", 7, "it has no leader")
    follow = attempts._following(slot, found, lease, [caught_up, behind])
    follow.step([caught_up, behind])
    assert not caught_up.is_done
    context, source = Mock(slot=slot, read_back=None), Mock()
    context.target.rest.return_value, source.answer.return_value = 0.0, (memoryview(b""), [])
    both, until = [caught_up, behind], time.monotonic() + 5
    assert copy(context, source, both, lease, until, follow) and not behind.is_done, "the next attempt continues"
    assert attempts._taken_in_again(found) and not found.failed


def test_a_slot_that_was_started_again_follows_as_long_as_the_others() -> None:
    """By the target's clock, from the lease to its last renewal."""
    leases = LeaseLog(_NO_SLOT)  # type: ignore[arg-type]
    first = Lease(window="w", event=LeaseEvent.TAKEN, owner="a", time_ms=0, duration_ms=30_000, slots=1)
    renewed = Lease(window="w", event=LeaseEvent.RENEWED, owner="a", time_ms=0, duration_ms=30_000, slots=1)
    other = Lease(window="x", event=LeaseEvent.TAKEN, owner="b", time_ms=0, duration_ms=30_000, slots=1)
    leases._leases = [LeaseEntry(0, 5_000, first), LeaseEntry(1, 25_000, renewed), LeaseEntry(2, 90_000, other)]
    assert leases.age == 20.0
    assert seconds_left(60_000, 20.0) == 60.0, "one that Spark was slow to begin has all its time"
    assert seconds_left(60_000, 80.0) == 10.0


class _NO_SLOT:
    mapping_topic, lease_offset, since = "mappings", 0, -1


def test_a_window_ends_before_its_lease_may_be_compacted_away() -> None:
    """A slot that begins again reads the lease that was granted, and so does who judges: without it both were fenced."""
    week = replace(FLOW, window=replace(FLOW.window, follow_ms=7 * 24 * HOUR_MS))
    most = WindowOrder("w", following=Follow(None)).follow_ms(week)
    assert 0 < most <= int(MAPPING_CONFIG["min.compaction.lag.ms"]) - HOUR_MS, "its last judgement reads the lease, too"
    granted, renewed = (
        LeaseEntry(offset, 1, Lease("w", event, "a:1", 1, 30_000, 1))
        for offset, event in enumerate(LeaseEvent)
        if offset < 2
    )
    assert (holder([granted, renewed]), holder([renewed])) == (CurrentLease(renewed.lease, 0, 1), None)


def test_how_late_a_window_was() -> None:
    """The oldest record of a transaction counts for all; what was there before the window says nothing."""

    class Copied:
        key = TopicPartition("orders", 0)

        def __init__(self, start: int, copied: int, late_ms: int) -> None:
            self.source_start, self.copied, self.min_timestamp, self.time_ms = start, copied, 1_000, 1_000 + late_ms

    key = TopicPartition("orders", 0)
    records = [Copied(0, 5_000, 99_000), Copied(100, 98, 200), Copied(198, 1, 400), Copied(199, 1, 3_000)]
    late, later = Latencies({key: 100}), Latencies({key: 500})
    for each in (late, later):
        assert len(list(each.noting(records))) == 4  # type: ignore[arg-type]
    found = late.followed()
    assert found is not None
    assert (found.records, found.median, found.p99) == (100, 0.2, 0.4)
    assert later.followed() is None


@pytest.mark.parametrize("is_held", [True, False])
def test_what_is_held_is_left_to_the_last_judgement(monkeypatch: pytest.MonkeyPatch, is_held: bool) -> None:
    """Its gate would lift the hold where it has no objection any more, while records are copied."""
    judged: list[set[TopicPartition]] = []

    def judge(*_: object, left: set[TopicPartition], **__: object) -> Mock:
        judged.append(set(left))
        return Mock(verdicts=[], errors=[])

    monkeypatch.setattr(following, "verify_committed", judge)
    granted, mirrored = Mock(), Mock()
    granted.journal.flow.window.follow_ms = 60_000
    mirrored.index.unverified.return_value = [Mock(key=TopicPartition("orders", 1))]
    holds = {("orders", 1): Mock()} if is_held else {}
    meanwhile = FollowLoop(granted, Follow(gate=None), [])
    meanwhile._judge(mirrored, granted, State(holds=holds))
    assert judged == ([] if is_held else [set()])


@pytest.mark.parametrize(("is_transient", "seconds", "times"), [(True, 0.0, 2), (True, 60.0, 1), (False, 0.0, 1)])
def test_what_could_not_be_read_is_judged_again_after_a_while(
    monkeypatch: pytest.MonkeyPatch, is_transient: bool, seconds: float, times: int
) -> None:
    """It was left to the last judgement as what is held is, for hours; it is not read again and again either."""
    key = TopicPartition("orders", 1)
    failed = Mock(key=key, error=Mock(transient=is_transient))
    judge = Mock(return_value=Mock(verdicts=[failed], errors=[failed.error]))
    monkeypatch.setattr(following, "verify_committed", judge)
    monkeypatch.setattr(following, "AGAIN_SECONDS", seconds)
    granted, mirrored = Mock(), Mock()
    granted.journal.flow.window.follow_ms = 60_000
    mirrored.index.unverified.return_value = [Mock(key=key)]
    meanwhile = FollowLoop(granted, Follow(gate=None), [])
    for _ in range(2):
        meanwhile._judge(mirrored, granted, State())
    assert judge.call_count == times
