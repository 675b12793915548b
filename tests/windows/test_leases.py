"""The holder of the lease, from the records in the mapping topic: the log's order and the broker's clock decide (invariant B)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.routes import Leader, Routes
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.flows.prepare import catch_up_ledger, prepare
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.partitions import TopicPartition
from airmirror.slot import attempts, lease
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import SlotFenced
from airmirror.slot.lease import LeaseLog
from airmirror.windows import fence, index
from airmirror.windows.errors import FlowBusy
from airmirror.windows.fence import GrantedLease, leased
from airmirror.windows.findings import GateRow
from airmirror.windows.mirror import Journal
from airmirror.windows.resets import Choice
from airmirror.windows.window import WindowOrder, run_window, verify_window
from airmirror.wire.leases import LeaseEntry, holder
from airmirror.wire.mappings import Lease, LeaseEvent
from airmirror.wire.plain import LogRecord
from airmirror_local.brokers import Broker
from support.flows import in_this_process, mirror
from support.intakes import intake
from support.topics import Record, produce

TAKEN, RENEWED, RELEASED = LeaseEvent.TAKEN, LeaseEvent.RENEWED, LeaseEvent.RELEASED


def log(*records: tuple[str, LeaseEvent, int], first: dict[str, int] | None = None) -> list[LeaseEntry]:
    """Lease records of (window, event, append time); ``first``: when a window took the lease, by its own clock."""
    begun = dict(first or {})
    return [
        LeaseEntry(
            offset,
            time,
            Lease(
                window=window,
                event=event,
                owner="me:1",
                time_ms=begun.setdefault(window, time),
                duration_ms=30_000,
                slots=2,
            ),
        )
        for offset, (window, event, time) in enumerate(records)
    ]


def window_of(entries: Sequence[LeaseEntry], *, compacted: bool = False) -> str | None:
    held = holder(entries, compacted=compacted)
    return None if held is None or held.released else held.lease.window


def test_the_first_lease_holds_while_it_is_renewed() -> None:
    entries = log(("a", TAKEN, 0), ("a", RENEWED, 20_000), ("b", TAKEN, 45_000))
    assert window_of(entries) == "a"


def test_a_lease_is_taken_over_after_its_end_or_its_release() -> None:
    assert window_of(log(("a", TAKEN, 0), ("b", TAKEN, 30_001))) == "b"
    assert window_of(log(("a", TAKEN, 0), ("a", RELEASED, 10), ("b", TAKEN, 20))) == "b"


@pytest.mark.parametrize("is_moved", [False, True])
@pytest.mark.parametrize("look", [LeaseLog.check, partial(LeaseLog.check_follows, starts={}, transaction="id")])
def test_an_attempt_reads_on_where_the_last_one_stopped(
    monkeypatch: pytest.MonkeyPatch, look: Callable[[LeaseLog], None], is_moved: bool
) -> None:
    """From the lease on there are records of hours, which each attempt read for minutes. Leases are read by themselves too, and
    mappings: each lease is noted once, in order. Where another leader may have another log, all of it is read again."""
    slot = replace(intake(10)[0].context.slot, max_ms=60_000)
    written = [
        LogRecord(each.offset, each.timestamp, each.lease.encode_key(), each.lease.encode_value())
        for each in log(("w", TAKEN, 0), ("w", RENEWED, 1), ("other", TAKEN, 2), ("w", RENEWED, 3))
    ]
    ends, read, begun = iter((2, 3, 4)), list[tuple[int, int]](), list[LeaseLog]()

    def records_of(_routes: object, _log: object, start: int, end: int, **_: object) -> list[LogRecord]:
        read.append((start, end))
        return written[start:end]

    def refresh(_slot: Slot, found: attempts._Attempts, *_: object) -> None:
        begun.append(found.lease)
        if len(begun) == 1:
            look(found.lease)
            raise BrokerUnreachable("east", "one:9092", "a test")

    monkeypatch.setattr(lease, "offsets_with_patience", lambda _, logs, *__, **___: dict.fromkeys(logs, next(ends)))
    monkeypatch.setattr(lease, "read_records", records_of)
    monkeypatch.setattr(TransactionalId, "initialise", lambda *_: None)
    monkeypatch.setattr(Routes, "refresh", lambda routes, _: routes.topic_ids.update({slot.mapping_topic: UUID(int=1)}))
    monkeypatch.setattr(Routes, "leader", lambda *_: Leader(1, len(begun) if is_moved else 0))
    monkeypatch.setattr(attempts, "LEAST_PAUSE", 0.0)
    monkeypatch.setattr(attempts, "_refresh", refresh)
    monkeypatch.setattr(attempts, "_usable", lambda *_: [])
    run_slot(slot)
    assert read == [(0, 2), (2, 3), (0 if is_moved else 2, 4)]
    assert [each.offset for each in begun[-1]._leases] == [0, 1, 2, 3]


def test_a_lease_of_the_future_keeps_nobody_out() -> None:
    """The broker's clock was an hour ahead, and is right again: a window that lives has renewed its lease since."""
    ahead = (("a", TAKEN, 3_600_000), ("a", RENEWED, 3_610_000))
    for records, kept_out in ((ahead, False), ((*ahead, ("a", RENEWED, 10_000)), True)):
        held = holder(log(*records), compacted=True)
        assert held is not None and held.lease.window == "a" and held.keeps_out(15_000) is kept_out


def test_a_renewal_never_makes_an_older_lease_the_newest() -> None:
    assert window_of(log(("a", TAKEN, 0), ("b", TAKEN, 40_000), ("a", RENEWED, 41_000))) == "b"
    skewed = log(("b", TAKEN, 40_000), ("a", RENEWED, 41_000), first={"b": 0, "a": 99_000})
    assert window_of(skewed) == "b", "a slot reads from its own lease on: what renews without one there is older"


def test_of_the_last_records_alone_the_latest_lease_that_was_renewed_holds() -> None:
    kept = log(("a", RENEWED, 41_000), ("b", RENEWED, 42_000), first={"a": 0, "b": 40_000})
    assert window_of(kept, compacted=True) == "b"
    assert window_of(kept[::-1], compacted=True) == "b"
    assert window_of(log(("a", RELEASED, 50)), compacted=True) is None


def test_a_lease_that_was_refused_does_not_hide_the_one_that_is_renewed() -> None:
    """Who was refused may die before he deletes his lease: of the others the last records alone are known."""
    kept = log(("b", TAKEN, 5_000), ("a", RENEWED, 40_000), first={"a": 0, "b": 5_000})
    assert window_of(kept, compacted=True) == "a"
    later = log(("a", RENEWED, 40_000), ("b", TAKEN, 50_000), ("c", TAKEN, 75_000), first={"a": 0})
    assert window_of(later, compacted=True) == "c", "the lease of a had ended, that of b never began"


def test_a_lease_that_was_released_stays_so() -> None:
    """Whoever ends a window from outside releases its lease; its driver's thread may renew it once more."""
    records = [("a", TAKEN, 0), ("a", RENEWED, 1), ("a", RELEASED, 5_000), ("a", RENEWED, 6_000)]
    assert window_of(log(*records)) is None and window_of(log(*records), compacted=True) is None


def test_a_second_attempt_of_a_window_takes_its_lease_over() -> None:
    """As YARN starts an application again under one window's id: the first one's renewals count no more."""
    first, second = (
        Lease(window="w", event=TAKEN, owner=owner, time_ms=time, duration_ms=30_000, slots=2)
        for owner, time in (("a:1", 0), ("b:1", 5_000))
    )
    entries = [LeaseEntry(7, 0, first), LeaseEntry(8, 5_000, second)]
    late = [LeaseEntry(9, 6_000, replace(first, event=RENEWED)), LeaseEntry(10, 7_000, replace(first, event=RELEASED))]
    held = holder([*entries, *late])
    assert held is not None and held.offset == 8 and held.lease.owner == "b:1" and not held.released


def test_a_renewal_proves_that_its_lease_was_granted() -> None:
    """A slot of b reads from b's lease on: c was granted its lease, by mistake or not, and has fenced since (tests/model)."""
    records = [("b", TAKEN, 31_000), ("a", RENEWED, 31_500), ("c", TAKEN, 32_000)]
    assert window_of(log(*records, first={"a": 0})) == "b", "c may have been refused"
    assert window_of(log(*records, ("c", RENEWED, 32_001), first={"a": 0})) == "c"


def test_who_woke_up_late_does_not_hide_a_lease_that_waits_for_its_first_renewal() -> None:
    """a slept longer than its lease before it renewed; b was granted the lease meanwhile, and c must find it busy."""
    kept = log(("b", TAKEN, 31_000), ("a", RENEWED, 31_500), ("a", RELEASED, 31_600), first={"a": 0})
    assert window_of(kept, compacted=True) == "b"


def test_a_window_that_has_renewed_its_lease_keeps_it(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has a lease's last record only, which is a renewal: the newcomer must find it busy all the same."""
    monkeypatch.setattr(fence, "RENEW_SECONDS", 0.05)
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, [Record(b"v")] * 10)

    def with_a_second_window(slots: Sequence[Slot]) -> list[SlotResult]:
        while not any(lease.event is RENEWED for _, _, lease in flow.opened.ledger.leases()):
            catch_up_ledger(flow.opened)
        with pytest.raises(FlowBusy, match="'first'"):
            flow.run(window="second")
        return in_this_process(slots)

    assert flow.run(with_a_second_window, window="first").is_verified
    assert flow.assert_equal() == 10


def test_a_lease_is_checked_by_what_is_new(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of hours looks at its lease every second: it does not read the topic from its beginning on each time."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, [Record(b"v")])
    assert flow.run().is_verified
    read, ranges = index.read_leases, list[tuple[int, int]]()

    def noted(
        routes: Routes, topic: str, known: Sequence[tuple[int, int, Lease]], start: int, end: int
    ) -> list[LeaseEntry]:
        ranges.append((start, end))
        return read(routes, topic, known, start, end)

    monkeypatch.setattr(index, "read_leases", noted)
    with Journal.open(flow.flow, flow.opened.ledger, "test") as journal:
        with leased(journal, "mine", slots=0) as granted:
            for _ in range(3):
                granted.check()
                granted.renewal.grow(1)
            assert ranges[0][0] == granted.offset
            assert [start for start, _ in ranges[1:]] == [end for _, end in ranges[:-1]]
        with pytest.raises(SlotFenced, match="released"):
            granted.check()
        assert ranges[-1][1] - ranges[-1][0] < 5


@pytest.mark.parametrize("has_looked", [False, True])
def test_a_gate_that_slept_over_its_lease_verifies_nothing(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_looked: bool
) -> None:
    """Meanwhile a person has begun the partition again, and a window has copied it anew: no gate has seen that.

    ``has_looked``: it sleeps after it has looked at its lease, and writes when it wakes.
    """
    flow = mirror(east, west, tmp_path)
    ledger = flow.opened.ledger
    produce(east, flow.topic, [Record(b"v")] * 10)

    def copied(window: str) -> None:
        topics = prepare(flow.opened).topics
        run_window(flow.flow, ledger, topics, in_this_process, WindowOrder(window, slots=lambda _: 1, advance=False))

    def asleep(_findings: Sequence[GateRow]) -> dict[TopicPartition, str]:
        (mine,) = (lease for _, _, lease in ledger.leases() if lease.window == "gate")
        with Appender(flow.flow.target, f"airmirror-mappings.{flow.flow.source.alias}.internal") as appender:
            appender.append([(mine.encode_key(), replace(mine, event=RELEASED).encode_value())])  # its lease is over
        carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.START_AGAIN, by="me", reason="a test"))
        copied("later")
        return {}

    check = GrantedLease.check

    def looks_and_sleeps(granted: GrantedLease) -> None:
        check(granted)
        monkeypatch.setattr(GrantedLease, "check", check)
        asleep(())

    copied("first")
    if has_looked:
        monkeypatch.setattr(GrantedLease, "check", looks_and_sleeps)
    with nullcontext() if has_looked else pytest.raises(SlotFenced):
        verify_window(flow.flow, ledger, None if has_looked else asleep, window="gate", trusted={"first"})
    catch_up_ledger(flow.opened)
    assert [record.window for record in ledger.unverified()] == ["later"]
    assert (
        not verify_window(flow.flow, ledger, None, window="next", trusted={"later"}).errors and not ledger.unverified()
    )
