"""Windows that follow the log in a row: every record once, whatever happens while the claim goes from one to the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.errors import AirmirrorError
from airmirror.flows.holds import add_holds
from airmirror.flows.prepare import prepare
from airmirror.ledger import Ledger
from airmirror.partitions import TopicPartition
from airmirror.slot import go
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import NotBegun, SlotFenced
from airmirror.windows import ahead, chain, fence, renewal
from airmirror.windows.chain import Chain, run_chain
from airmirror.windows.errors import FlowBusy
from airmirror.windows.fence import Granted, claimed, end_window
from airmirror.windows.findings import Finding
from airmirror.windows.following import Follow
from airmirror.windows.index import read_claims
from airmirror.windows.mirror import Mirror as Session
from airmirror.windows.results import WindowResult
from airmirror.windows.verify import no_objection
from airmirror.wire.plain import LogRecord
from airmirror.wire.segments import ClaimEvent
from airmirror_local.brokers import Broker
from support.faults import a_process, await_killed, die_after
from support.flows import Mirror, at_once, mirror
from support.following import await_copied, ended_by_event, numbered, patiently
from support.topics import produce, read_all

WAITS = go.GO_SECONDS  # before a test says otherwise
SHORT = {"window.follow.ms": "1500", "window.follow.commit.ms": "50", "verify.interval.ms": "100"}


@dataclass
class Row:
    """Windows in a row of a flow, with what its tests look at."""

    flow: Mirror
    windows: int = 2
    start: Callable[[Sequence[Slot]], list[SlotResult]] = at_once
    by: Follow = field(default_factory=lambda: Follow(no_objection))
    between: Callable[[], None] = lambda: None  # after a window has been planned before its claim
    told: Callable[[WindowResult], None] = lambda result: None
    looks: Callable[[], None] = lambda: None  # before the look at topics
    may_follow: bool = True
    fails: AirmirrorError | None = None  # of the look at topics
    results: list[WindowResult] = field(default_factory=list)
    early: list[Slot] = field(default_factory=list)
    ends: list[SlotResult] = field(default_factory=list)  # of slots that were started before the claim

    def run(self, window: str = "row") -> WindowResult:
        prepared = prepare(self.flow.opened)

        def start(slots: Sequence[Slot]) -> list[SlotResult]:
            self.early.extend(slots)
            self.between()
            found = self.start(slots)
            self.ends.extend(found)
            return found

        def topics() -> Mapping[str, str] | None:
            self.looks()
            if self.fails is not None:
                raise self.fails
            return prepare(self.flow.opened).topics if self.may_follow else None

        def done(result: WindowResult) -> None:
            self.results.append(result)
            self.told(result)

        links = Chain(
            topics=topics,
            start=start,
            cancel=lambda: None,
            following=lambda name: self.by,
            done=done,
            windows=self.windows,
        )
        return run_chain(
            self.flow.flow, self.flow.opened.ledger, prepared.topics, at_once, links, window=window, slots=lambda: 2
        )

    def claims(self) -> list[tuple[str, ClaimEvent]]:
        """The claims of the flow's windows, in log order."""
        with Session.open(self.flow.flow, self.flow.opened.ledger) as session:
            log = TopicPartition(session.topics.segments, 0)
            session.target.refresh([log.topic])
            end = offsets_with_patience(session.target, [log], LATEST)[log]
            found = read_claims(session.target, log.topic, (), 0, end)
        return [(entry.claim.window, entry.claim.event) for entry in found]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look ahead from the beginning of a window on; a slot that nobody tells to begin ends soon."""
    monkeypatch.setattr(chain, "START_SECONDS", 1.0)
    monkeypatch.setattr(chain, "SETTLE_SECONDS", 0.0)
    monkeypatch.setattr(chain, "SPARE_SECONDS", 0.2)
    monkeypatch.setattr(go, "GO_SECONDS", 20.0)


@contextmanager
def steady(flow: Mirror) -> Iterator[None]:
    """Records all the time, in transactions and not, into both partitions."""
    ended = threading.Event()

    def work() -> None:
        number = 0
        while not ended.wait(0.03):
            how = "commit" if number % 5 == 4 else None
            produce(flow.source, flow.topic, numbered(7, 10 * number), partition=number % 2, transactional=how)
            number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def assert_all_once(flow: Mirror) -> None:
    """What is left is copied and verified; then both sides are equal, each record once."""
    result = flow.run()
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() > 0


def test_windows_in_a_row(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Each begins with slots that were started before its claim; the one before is judged by it; a gap is no hole."""
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT)
    produce(east, flow.topic, numbered(20))
    row = Row(flow, windows=3)
    with steady(flow):
        last = row.run()
    assert [each.window for each in row.results] == ["row", "row-2", "row-3"] and last == row.results[-1]
    assert all(each.copied for each in row.results)
    assert all(slot.claim_offset < 0 <= slot.since for slot in row.early) and len(row.early) == 4
    order = [said for said in row.claims() if said[1] is not ClaimEvent.RENEWED]
    expected = [("row", ClaimEvent.CLAIMED), ("row", ClaimEvent.RELEASED)]
    for name in ("row-2", "row-3"):
        expected += [(name, ClaimEvent.CLAIMED), (name, ClaimEvent.GO), (name, ClaimEvent.RELEASED)]
    assert order == expected
    passed = flow.opened.ledger.verified()
    before = {(each.topic, each.partition): each.source_end for each in row.results[1].rows}
    assert all(passed[key].offset + 1 >= end for key, end in before.items()), (
        "the last window has judged the one before"
    )
    assert_all_once(flow)


def test_a_look_ahead_that_takes_longer_than_the_window(east: Broker, west: Broker, tmp_path: Path) -> None:
    """It is waited for: by then the window has released its claim, which says nothing."""
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT)
    produce(east, flow.topic, numbered(20))
    row = Row(flow)

    def late() -> None:
        for attempt in patiently():
            with attempt:
                assert ("row", ClaimEvent.RELEASED) in row.claims()

    row.looks = late
    assert row.run().window == "row-2" and flow.assert_equal() == 20


def test_what_was_committed_since_the_plan_is_not_copied_again(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its slots know positions from before, and find what the window before has copied since in the segment topic (C)."""
    for name in ("LOOK_SECONDS", "START_SECONDS"):
        monkeypatch.setattr(chain, name, 1000.0)
    time_is_up = ended_by_event(monkeypatch)
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT | {"window.follow.ms": "120000"})
    produce(east, flow.topic, numbered(20))

    def work() -> None:
        produce(east, flow.topic, numbered(30, 20))
        await_copied(flow, 50)
        time_is_up.set()

    def more(result: WindowResult) -> None:
        if result.window == "row":
            produce(east, flow.topic, numbered(20, 50))
            await_copied(flow, 70)
            time_is_up.set()

    say = Granted.go

    def begin(self: Granted) -> None:
        time_is_up.clear()
        say(self)

    monkeypatch.setattr(Granted, "go", begin)
    row = Row(flow, between=work, told=more)
    result = row.run()
    assert [each.window for each in row.results] == ["row", "row-2"] and all(each.error is None for each in row.ends)
    assert result.copied == 20 and flow.assert_equal() == 70


def test_a_slot_that_is_killed_after_go(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Spark starts it again: it finds go in the log, and goes on after what is committed."""
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT)
    produce(east, flow.topic, numbered(20))

    def killed(slots: Sequence[Slot]) -> list[SlotResult]:
        await_killed(a_process(die_after, slots[:1], 1))
        return at_once(slots)

    row = Row(flow, start=killed)
    with steady(flow):
        row.run()
    assert [each.window for each in row.results] == ["row", "row-2"] and all(each.error is None for each in row.ends)
    assert_all_once(flow)


def test_a_driver_that_dies_before_go(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its slots have seen its claim, and wait on: it takes go. They end with the claim and have done nothing (invariant B)."""
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT)
    produce(east, flow.topic, numbered(20))

    look, read = go._event_of, go.read_next
    claim_seen, waits_on = set[int](), set[int]()

    def seen(record: LogRecord, window: str) -> ClaimEvent | None:
        event = look(record, window)
        if event is ClaimEvent.CLAIMED:
            claim_seen.add(threading.get_ident())
        return event

    def reads(*what: Any, **how: Any) -> tuple[list[LogRecord], int]:
        waits_on.update({threading.get_ident()} & claim_seen)
        return read(*what, **how)

    def dies(self: Granted) -> None:
        for attempt in patiently():
            with attempt:
                assert len(waits_on) == 2
        raise OSError("killed")

    monkeypatch.setattr(go, "_event_of", seen)
    monkeypatch.setattr(go, "read_next", reads)
    monkeypatch.setattr(Granted, "go", dies)
    row = Row(flow)
    with steady(flow), pytest.raises(OSError, match="killed"):
        row.run()
    copied = len(read_all(west, flow.remote_topic)[0])
    for attempt in patiently():
        with attempt:
            assert len(row.ends) == 2
    assert len(read_all(west, flow.remote_topic)[0]) == copied
    assert all(isinstance(each.error, SlotFenced) for each in row.ends), "its claim was released"
    assert_all_once(flow)


def test_slots_that_nobody_tells_to_begin_end(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(go, "GO_SECONDS", 1.0)
    flow = mirror(east, west, tmp_path, settings=SHORT)
    produce(east, flow.topic, numbered(20))
    assert flow.run().is_verified
    with Session.open(flow.flow, flow.opened.ledger) as session:
        session.refresh()
        plan = ahead.look_ahead(
            session,
            prepare(flow.opened).topics,
            window="w",
            numbers=(0,),
            only=lambda partition: True,
            follow_ms=1000,
        )
    (result,) = at_once(plan.slots)
    assert result.error is not None and "was not told to begin" in str(result.error) and result.error.transient
    assert str(NotBegun("a->b", "w", 60.0)).startswith("flow 'a->b': a slot of window 'w'")


def test_early_slots_wait_as_long_as_late_ones_may_follow() -> None:
    """The slots of the window before follow for their whole time, though Spark has begun them late."""
    assert go.START_SECONDS + chain.SETTLE_SECONDS + 3.0 < WAITS


@pytest.mark.long
@pytest.mark.parametrize("stays", [False, True])
def test_another_deployment_claims_between_two_windows(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stays: bool
) -> None:
    """One that is over has moved positions: the window plans again. One that stays ends the row."""
    monkeypatch.setattr(go, "GO_SECONDS", 8.0)
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT)
    other = replace_ledger(flow, tmp_path)
    produce(east, flow.topic, numbered(20))
    found, over = chain.Scout.found, threading.Event()

    def then(self: chain.Scout) -> object:
        looked = found(self)
        if looked is not None and not over.is_set():
            over.set()
            if stays:
                holding.__enter__()
            else:
                assert other.run(at_once, "other", 1).copied
        return looked

    monkeypatch.setattr(chain.Scout, "found", then)
    with Session.open(flow.flow, other.opened.ledger) as session:
        session.refresh()
        holding = claimed(session, "other", 1)
        row = Row(flow)
        with steady(flow):
            row.run()
        if stays:
            assert [each.window for each in row.results] == ["row"]
            with pytest.raises(FlowBusy):
                flow.run()
            holding.__exit__(None, None, None)
        else:
            assert [each.window for each in row.results] == ["row", "row-2"] and row.results[1].copied
            assert ("row-2", ClaimEvent.GO) not in row.claims()
    assert_all_once(flow)


def test_another_deployment_claims_before_go(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver has fenced, and sleeps for longer than its lease: who claims meanwhile fences its slots, go or not."""
    monkeypatch.setattr(renewal, "RENEW_SECONDS", 1000.0)
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT)
    other = replace_ledger(flow, tmp_path)
    produce(east, flow.topic, numbered(20))
    say = Granted.go

    def late(self: Granted) -> None:
        monkeypatch.setattr(fence, "LEASE_MS", 30_000)
        for attempt in patiently(FlowBusy):
            with attempt:
                assert other.run(at_once, "other", 1).copied
        say(self)

    monkeypatch.setattr(fence, "LEASE_MS", 1)
    monkeypatch.setattr(Granted, "go", late)
    row = Row(flow)
    with steady(flow):
        row.run()
    assert row.ends and all(isinstance(each.error, SlotFenced) for each in row.ends)
    assert_all_once(flow)


def replace_ledger(flow: Mirror, directory: Path) -> Mirror:
    """The same flow of another deployment: with a ledger of its own."""
    ledger = Ledger(f"sqlite:///{directory / 'other.db'}").flow(flow.flow.name)
    return replace(flow, opened=replace(flow.opened, ledger=ledger))


def test_what_is_held_between_plan_and_go_is_not_copied(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT | {"window.follow.ms": "3000"})
    produce(east, flow.topic, numbered(20), partition=0)
    produce(east, flow.topic, numbered(20), partition=1)

    def hold() -> None:
        await_copied(flow, 40)
        add_holds(flow.opened, flow.topic, [0], reason="schema change", by="ops")

    def more(result: WindowResult) -> None:
        if result.window == "row":  # the next one follows by now
            produce(east, flow.topic, numbered(20, 100), partition=0)
            produce(east, flow.topic, numbered(20, 100), partition=1)

    row = Row(flow, between=hold, told=more)
    assert row.run().window == "row-2"
    copied = read_all(west, flow.remote_topic)
    assert (len(copied[0]), len(copied[1])) == (20, 40)


@pytest.mark.parametrize(
    "why", ["held", "wanted", *(pytest.param(why, marks=pytest.mark.long) for why in ("refused", "ended", "fails"))]
)
def test_the_row_ends(east: Broker, west: Broker, tmp_path: Path, why: str) -> None:
    """Where somebody must be told of something, or wants the claim; and what it was ended by."""
    flow = mirror(east, west, tmp_path, partitions=2, settings=SHORT)
    produce(east, flow.topic, numbered(20), partition=0)
    row = Row(flow, may_follow=why != "refused")

    def objects(findings: Sequence[Finding]) -> Mapping[TopicPartition, str]:
        return {finding.key: "too many" for finding in findings}

    def seen(_: object) -> None:
        if why == "wanted":
            with (
                Session.open(flow.flow, flow.opened.ledger) as session,
                pytest.raises(FlowBusy),
                claimed(session, "wants", 1),
            ):
                raise AssertionError("granted")
        if why == "ended":
            await_copied(flow, 20)
            assert end_window(flow.flow, flow.opened.ledger, "row")

    row.by = replace(row.by, gate=objects if why == "held" else no_objection, seen=seen)
    if why == "fails":  # the window before is told all the same
        row.fails = NotBegun("a->b", "w", 1.0)
        with pytest.raises(NotBegun):
            row.run()
    else:
        assert row.run().window == "row"
    (result,) = row.results
    assert result.window == "row" and result.copied == 20
    if why == "ended":
        assert any(isinstance(each.error, SlotFenced) for each in result.rows)
