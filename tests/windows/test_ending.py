"""A window that follows for hours ends soon where the next one has more to do, others want its lease, or something fails."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_partitions
from airmirror.clusters.admin.description import NewPartitions
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.flows.following import following_of, topics_interval
from airmirror.flows.gates import Expectations
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot import attempts
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.slot.errors import ForeignRecords
from airmirror.slot.lease import LeaseLog
from airmirror.windows import ending, following
from airmirror.windows.ending import Ending, Topics
from airmirror.windows.errors import FlowBusy
from airmirror.windows.fence import Renewal, leased
from airmirror.windows.findings import GateRow
from airmirror.windows.following import Follow, FollowLoop, Latencies
from airmirror.windows.judging import no_objection
from airmirror.windows.mirror import Mirror as Session
from airmirror.windows.plan import Planned
from airmirror.windows.results import WindowResult
from airmirror.windows.standing import Ends, UnfollowedPartition
from airmirror.wire.leases import LeaseEntry, holder, note
from airmirror.wire.mappings import GATE, Hold, Lease, LeaseEvent
from airmirror.wire.plain import LogRecord
from airmirror_local.brokers import Broker
from support.flows import Mirror, a_flow, at_once, mirror
from support.following import SETTINGS, await_copied, await_verified, ended_by_event, numbered
from support.intakes import intake
from support.topics import assert_mirrored, create_topic, produce, read_all

HOURS = SETTINGS | {"window.follow.ms": "7200000"}
ALONE = Expectations(None, "a test")
KEY, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
SOON_SECONDS = 40.0  # more than a look, a synchronisation of topics, and a commit take


@pytest.fixture
def time_is_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Whoever sets it ends the time for which slots follow."""
    return ended_by_event(monkeypatch)


def stays(
    flow: Mirror, work: Callable[[], None], time_is_up: threading.Event, slots: int = 2, **how: Any
) -> WindowResult:
    """Run a window that follows for hours while ``work`` is done; it is to end by itself soon after that."""
    by = replace(following_of(flow.opened, ALONE, window="long"), **how)

    def execute(given: Sequence[Slot]) -> list[SlotResult]:
        has_ended = threading.Event()

        def watched() -> None:
            try:
                work()
                assert has_ended.wait(SOON_SECONDS), "it does not end by itself"
            finally:
                time_is_up.set()

        with ThreadPoolExecutor(1) as pool:
            watching = pool.submit(watched)
            try:
                return at_once(given)
            finally:
                has_ended.set()
                watching.result()

    return flow.run(execute, "long", slots, by)


@pytest.mark.parametrize("new", [pytest.param("partition", marks=pytest.mark.long), "topic"])
def test_what_is_new_on_the_source_ends_it_and_the_next_one_copies_it(
    east: Broker, west: Broker, tmp_path: Path, time_is_up: threading.Event, new: str
) -> None:
    """What it has copied is verified as at its normal end, and what came last is on the target once."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    first = create_topic(east, f"{name}-a", 2)
    flow = mirror(east, west, tmp_path, topic=first, settings=HOURS | {"topics": f"{name}-.*"})
    produce(east, first, numbered(20))

    def work() -> None:
        await_copied(flow, 20)
        if new == "partition":
            create_partitions(connect(flow.flow.source), (NewPartitions(first, 2, 3),), 30)
            produce(east, first, numbered(30, 100), partition=2)
        else:
            produce(east, create_topic(east, f"{name}-b", 1), numbered(30, 100))
        produce(east, first, numbered(10, 20), partition=1)

    result = stays(flow, work, time_is_up)
    assert result.is_verified and not result.is_cut, [str(row.error) for row in result.rows]
    assert flow.run().is_verified
    assert flow.assert_equal() == (60 if new == "partition" else 30)
    if new == "topic":
        assert assert_mirrored(east, f"{name}-b", west, f"{flow.flow.source.alias}.{name}-b") == 30


@pytest.mark.parametrize("is_seen", [True, False])
def test_who_wants_the_lease_gets_it_within_seconds(
    east: Broker,
    west: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    time_is_up: threading.Event,
    is_seen: bool,
) -> None:
    """Also while the source can't be looked at, as when it is failed over."""
    if not is_seen:
        gone = BrokerUnreachable("east", "b:1", "it is only a test")
        monkeypatch.setattr(following, "source_ends", Mock(side_effect=gone))
    flow = mirror(east, west, tmp_path, partitions=2, settings=HOURS)
    produce(east, flow.topic, numbered(20))

    def wants() -> None:
        with Session.open(flow.flow, flow.opened.ledger) as session, leased(session, "wants", 0) as granted:
            granted.check()

    def work() -> None:
        await_copied(flow, 20)
        with pytest.raises(FlowBusy):
            wants()

    result = stays(flow, work, time_is_up)
    wants()
    assert result.is_verified and result.copied == 20 and flow.assert_equal() == 20


@pytest.mark.parametrize("why", ["slot", pytest.param("gate", marks=pytest.mark.long)])
def test_a_partition_that_fails_ends_it(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time_is_up: threading.Event, why: str
) -> None:
    """Whether its slot leaves it out or the gate holds it: it is told, however long the window was to be."""
    monkeypatch.setattr(ending, "FAILING_SECONDS", 5.0)
    flow = mirror(east, west, tmp_path, partitions=2, settings=HOURS)
    for partition in (0, 1):
        produce(east, flow.topic, numbered(10), partition=partition)

    def gate(findings: Sequence[GateRow]) -> dict[TopicPartition, str]:
        return {each.key: "no" for each in findings if why == "gate" and each.partition == 0 and each.source_end > 10}

    def work() -> None:
        await_verified(flow)
        if why == "slot":
            produce(west, flow.remote_topic, numbered(1, 500), partition=0)
        for partition in (1, 0):  # what fails last, which leaves the other one its time
            produce(east, flow.topic, numbered(10, 10), partition=partition)

    result = stays(flow, work, time_is_up, gate=gate if why == "gate" else no_objection)
    rows = {row.partition: row for row in result.rows}
    assert rows[1].verified and rows[1].error is None and len(read_all(west, flow.remote_topic)[1]) == 20
    assert rows[0].error is not None and isinstance(rows[0].error, ForeignRecords) == (why == "slot")


def test_what_is_ended_in_its_backlog_is_cut(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time_is_up: threading.Event
) -> None:
    """It does not take the hours that its backlog may take, and the next one resumes."""
    slow = {"window.commit.bytes": "1", "throttle.bytes.per.second": "2000"}
    flow = mirror(east, west, tmp_path, settings=HOURS | slow)
    produce(east, flow.topic, numbered(2000), records_per_batch=10)
    # not before its slot has copied something: what is ended before does nothing
    monkeypatch.setattr(Ending, "why", lambda _self, _granted, state, _ends: "a test" if state.positions else "")
    result = stays(flow, lambda: None, time_is_up, slots=1)
    assert result.is_cut and 0 < result.copied < 2000
    fast = replace(flow.flow, window=replace(flow.flow.window, throttle_bytes_per_second=None))
    flow = replace(flow, opened=replace(flow.opened, flow=fast))
    assert flow.run().is_verified and flow.assert_equal() == 2000


def test_a_slot_that_is_ended_asks_its_source_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its window's hours are no time in which to wait for a cluster that is away; nor is one begun again by Spark."""
    source, lease = Mock(), Mock(is_ending=True, age=0.0, held=set())
    source.refresh.side_effect = AssertionError("the source is asked")
    lease.committed.return_value = {}
    monkeypatch.setattr(attempts, "TransactionalId", Mock())
    monkeypatch.setattr(attempts, "LeaseLog", lambda *_: lease)
    monkeypatch.setattr(attempts, "_clusters", lambda *_: nullcontext((source, Mock())))
    slot = replace(intake(5)[0].context.slot, follow_ms=7_200_000)
    (result,) = run_slot(slot)
    assert result.outcome is Outcome.CUT and result.error is None and result.position == 0


def entry(offset: int, window: str = "w", event: LeaseEvent = LeaseEvent.RENEWED, owner: str = "me") -> LeaseEntry:
    return LeaseEntry(
        offset, 1000 * offset, Lease(window=window, event=event, owner=owner, time_ms=0, duration_ms=30_000, slots=1)
    )


def test_leases_of_hours_are_few() -> None:
    """Renewals in a row say what the last one says; a release, an end, and what others have leased between stay."""
    given = [
        entry(0, event=LeaseEvent.TAKEN),
        *map(entry, range(1, 100)),
        entry(100, "other", LeaseEvent.TAKEN),
        *map(entry, range(101, 200)),
        entry(200, event=LeaseEvent.ENDING),
        *map(entry, range(201, 300)),
        entry(300, event=LeaseEvent.RELEASED),
        entry(301),
    ]
    kept: list[LeaseEntry] = []
    for each in given:
        note(kept, each)
        assert holder(kept) == holder(given[: given.index(each) + 1])
    assert [each.offset for each in kept] == [0, 99, 100, 199, 200, 299, 300, 301]


def test_a_slot_is_ended_by_its_own_driver_alone() -> None:
    slot: Any = SimpleNamespace(mapping_topic="mappings", lease_offset=0, window="w")
    for window, is_ending in (("other", False), ("w", True)):
        log = LeaseLog(slot)
        for each in (entry(0, event=LeaseEvent.TAKEN), entry(1, window, LeaseEvent.ENDING), entry(2)):
            log._take(LogRecord(each.offset, each.timestamp, b"", None), each.lease)
        assert log.is_ending == is_ending


def test_each_renewal_says_that_the_slots_are_to_end() -> None:
    """Of a compacted topic the last record of a lease stays; and the first one may not have been written."""
    written: list[Lease] = []
    renewal = Renewal(entry(0).lease, written.append)
    renewal.end()
    renewal.grow(2)
    assert [(each.event, each.slots) for each in written] == [(LeaseEvent.ENDING, 1), (LeaseEvent.ENDING, 2)]


class Here:
    """A lease that somebody wants."""

    def __init__(self, wanted: str = "") -> None:
        self._wanted = wanted

    def wanted_by(self) -> str:
        return self._wanted


def now(work: Callable[[], Collection[str]]) -> Future[Collection[str]]:
    answer: Future[Collection[str]] = Future()
    try:
        answer.set_result(work())
    except Exception as error:
        answer.set_exception(error)
    return answer


def test_only_what_the_next_window_would_copy_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is refused is looked at once, and again at the interval; a look that fails, after a minute."""
    monkeypatch.setattr(ending, "begin", now)
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    looked: list[float] = []
    answers: list[Any] = [{"orders"}, FlowBusy("a->b", "w", "me", 1), {"orders"}, {"orders", "new"}]

    def sync() -> Collection[str]:
        looked.append(clock[0])
        answer = answers[len(looked) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    here: Any = Here()
    ends = Ending(Topics(sync, 600.0), [], ())
    new = [UnfollowedPartition(TopicPartition("new", 0), "a.new")]

    def why(seconds: float, others: Sequence[UnfollowedPartition]) -> str:
        clock[0] = 1000.0 + seconds
        seen = Ends({}, 0, others)
        return ends.why(here, State(), seen) or ends.why(here, State(), seen)

    assert why(1, []) == "" and looked == []
    assert why(5, new) == "" and why(10, new) == "" and why(604, new) == "" and looked == [1005]
    assert why(606, new) == "" and why(665, new) == "" and looked == [1005, 1606]
    assert why(667, new) == "" and looked == [1005, 1606, 1667]
    assert why(1270, new) == "new-0 is new on the source" and len(looked) == 4


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, ""),
        ({"here": Here("audit")}, "window audit wants to write for the flow"),
        ({"end": 7}, "orders-0 was not copied for 0 s"),
        ({"end": 7, "by": "ada", "of": KEY}, ""),
        ({"error": FlowBusy("a->b", "w", "me", 1)}, str(FlowBusy("a->b", "w", "me", 1))),
        ({"by": GATE}, "orders-1 is held: no"),
        ({"by": "ada"}, ""),
        ({"by": GATE, "held": {OTHER}}, ""),
        ({"held": {OTHER}}, "orders-1 is held no more"),
    ],
)
def test_what_ends_it(monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], why: str) -> None:
    """What fails ends it five minutes after its beginning at the earliest, so that it does not end every window at once."""
    hold = Hold(*given.get("of", OTHER), offset=5, reason="no", window="long", by=given.get("by", ""), time_ms=0)
    state = State(holds={(hold.topic, hold.partition): hold} if "by" in given else {})
    planned = Planned(*KEY, "a.orders", 0, 0, 0, error=given.get("error"))
    ends = Ending(Topics(), [planned], given.get("held", ()))
    here: Any = given.get("here", Here())
    seen = Ends({KEY: given.get("end", 0)}, 0)
    assert ends.why(here, state, seen) == (why if "wants" in why or "no more" in why else "")
    monkeypatch.setattr(ending, "FAILING_SECONDS", 0.0)
    assert ends.why(here, state, seen) == why


def test_a_partition_that_stands_still_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one that is behind and resumes, nor one for which nothing comes: five minutes of the same position."""
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    ends = Ending(Topics(), [Planned(*KEY, "a.orders", 0, 0, 0), Planned(*OTHER, "a.orders", 0, 0, 0)], ())
    here: Any = Here()

    def why(seconds: float, position: int, end: int) -> str:
        clock[0] = 1000.0 + seconds
        state = State(progress={KEY: position - 1, OTHER: int(seconds)})
        return ends.why(here, state, Ends({KEY: end, OTHER: 100_000}, 0))

    assert not why(0, 5, 5) and not why(290, 5, 5) and not why(400, 5, 9) and not why(690, 5, 20)
    assert not why(695, 6, 20) and not why(994, 6, 20)
    assert why(995, 6, 20) == "orders-0 was not copied for 300 s"


def test_a_partition_without_a_leader_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its slot leaves it out, and says so in its result only: the next window's plan has the error."""
    clock = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    ends, here = Ending(Topics(), [Planned(*KEY, "a.orders", 5, 5, 5)], ()), Here()

    def why(seconds: float, watermarks: dict[TopicPartition, int]) -> str:
        clock[0] = 1000.0 + seconds
        return ends.why(here, State(), Ends(watermarks, 0))  # type: ignore[arg-type]

    assert (
        not why(0, {KEY: 5}) and not why(290, {}) and not why(400, {KEY: 5}) and not why(600, {}) and not why(899, {})
    )
    assert why(900, {}) == "orders-0 was not copied for 300 s"


@pytest.mark.parametrize("takes_part", [True, False])
def test_what_a_window_was_not_asked_for_does_not_end_it(monkeypatch: pytest.MonkeyPatch, takes_part: bool) -> None:
    monkeypatch.setattr(ending, "FAILING_SECONDS", 0.0)
    granted = Mock(is_ending=False)
    granted.wanted_by.return_value = ""
    granted.journal.index.holds.return_value = {}
    planned = [Planned(*key, "a.orders", 0, 0, 0) for key in (KEY, OTHER)]
    meanwhile = FollowLoop(granted, Follow(None), planned, lambda key: takes_part or key == KEY)
    meanwhile._end(granted, State(), Ends({KEY: 0, OTHER: 7}, 0))
    assert granted.renewal.end.called == takes_part


def test_whatever_fails_meanwhile_others_get_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of a library, too: without this thread a window of hours hears of nobody who wants to write."""
    granted = Mock(is_ending=False)
    granted.journal.flow.window.verify_interval_ms = 1
    failed: list[str] = []

    def ready() -> None:
        failed.append("a library's own error")
        raise ValueError(failed[-1])

    heard = threading.Event()

    def let_others(*_: object) -> None:
        if len(failed) == 2:
            heard.set()
        raise ValueError("what the library can't do here either")

    monkeypatch.setattr(following, "Journal", SimpleNamespace(open=let_others))
    with FollowLoop(granted, Follow(None, ready=ready), []):
        assert heard.wait(10)


def test_latencies_of_hours_are_few() -> None:
    late = Latencies({})
    given = [
        SimpleNamespace(key=TopicPartition("orders", 0), source_start=0, copied=1, min_timestamp=0, time_ms=late_ms)
        for late_ms in range(0, 200_000, 7)
    ]
    assert len(list(late.noting(given))) == len(given)  # type: ignore[arg-type]
    assert len(late._records) < 3_000
    found = late.followed()
    assert found is not None and found.records == len(given) and found.median == pytest.approx(100, rel=0.01)


def test_topics_are_synchronised_at_mirrormakers_intervals() -> None:
    flow = a_flow("east")

    def seconds(**settings: object) -> float:
        return topics_interval(replace(flow, settings=replace(flow.settings, **settings)))  # type: ignore[arg-type]

    assert seconds() == 600
    assert seconds(sync_topic_configs_interval_seconds=60) == 60
    assert seconds(sync_topic_configs_interval_seconds=60, sync_topic_configs_enabled=False) == 600
    never = {
        "refresh_topics_interval_seconds": -1,
        "sync_topic_acls_enabled": False,
        "sync_topic_configs_enabled": False,
    }
    assert seconds(**never) == float("inf")
