"""The post-window tasks of a window that follows: groups, checkpoints and offset syncs are on the target before it has ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.flows import following
from airmirror.flows.following import following_of
from airmirror.flows.gates import Expectations
from airmirror.flows.post_window import CHECKPOINTS, GROUP_OFFSETS, OFFSET_SYNCS, tasks_due
from airmirror.flows.prepare import Opened
from airmirror.ledger.metrics import SEEN
from airmirror.ledger.recovery import complete_ms
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.syncs import emit_offset_syncs
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import SlotFenced
from airmirror.windows.errors import FlowBusy
from airmirror.windows.fence import HeldLease, leased
from airmirror.windows.findings import GateRow
from airmirror.windows.mirror import Mirror as Session
from airmirror.windows.standing import Seen
from airmirror.windows.window import verify_window
from airmirror.wire.mirrormaker import OffsetSync
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.following import SETTINGS, await_copied, await_verified, ended_by_event, follow, numbered, patiently
from support.groups import await_committed, commit, committed, member
from support.post_window import checkpoints_on
from support.topics import produce, read_all

FOLLOWING = SETTINGS | {
    "sync.group.offsets.enabled": "true",
    "sync.group.offsets.interval.seconds": "0.5",
    "emit.checkpoints.interval.seconds": "1",
    "offset-syncs.topic.location": "target",
}
ALONE = Expectations(None, "a test")


@pytest.fixture
def time_is_up(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    return ended_by_event(monkeypatch)


def translated(flow: Mirror, partition: int, position: int) -> int:
    """Where the record at a position of the source is on the target, by what both hold."""
    here, there = read_all(flow.source, flow.topic), read_all(flow.target, flow.remote_topic, settled=False)
    (value,) = [record.value for record in here[partition] if record.offset == position]
    (found,) = [record.offset for record in there[partition] if record.value == value]
    return found


def test_groups_continue_while_a_window_follows_and_never_past_what_is_verified(
    east: Broker, west: Broker, tmp_path: Path, time_is_up: threading.Event, topic: Callable[[str], str]
) -> None:
    """Aborted transactions and markers move offsets apart. The gate holds partition 1 from its eleventh record on."""
    group = topic("billing")
    flow = mirror(east, west, tmp_path, partitions=2, settings=FOLLOWING | {"groups": group})
    produce(east, flow.topic, numbered(100), partition=0)
    produce(east, flow.topic, numbered(10), partition=1)
    commit(east, group, {(flow.topic, 0): 40, (flow.topic, 1): 5})

    def gate(findings: Sequence[GateRow]) -> Mapping[TopicPartition, str]:
        return {each.key: "no more" for each in findings if each.partition == 1 and each.source_end > 10}

    def on_target(*positions: int) -> dict[tuple[str, int], int]:
        return {(flow.remote_topic, number): position for number, position in enumerate(positions)}

    def work() -> None:
        await_copied(flow, 110)
        await_committed(west, group, on_target(40, 5))
        produce(east, flow.topic, numbered(30, 200), partition=0, transactional="abort")
        produce(east, flow.topic, numbered(60, 300), partition=0, transactional="commit")
        produce(east, flow.topic, numbered(10, 400), partition=1)
        await_copied(flow, 180)
        exact = translated(flow, 0, 150)
        assert exact != 150
        commit(east, group, {(flow.topic, 0): 150, (flow.topic, 1): 17})
        await_committed(west, group, on_target(exact, translated(flow, 1, 9) + 1))
        for attempt in patiently():
            with attempt:
                written = {(each.topic, each.partition): each for each in checkpoints_on(flow)}
                last = [written.get((flow.remote_topic, number)) for number in (0, 1)]
                assert [each and (each.upstream, each.downstream) for each in last] == [(150, exact), (10, 10)]
        for attempt in patiently():
            with attempt:
                (records,) = read_all(west, f"mm2-offset-syncs.{flow.flow.source.alias}.internal").values()
                syncs = [OffsetSync.decode(record.key or b"", record.value or b"") for record in records]
                newest = {each.partition: (each.upstream, each.downstream) for each in syncs}
                assert newest == {0: (190, translated(flow, 0, 190)), 1: (9, 9)}
        with pytest.raises(FlowBusy):  # it still follows
            verify_window(flow.flow, flow.opened.ledger, gate, window="another", trusted=())

    by = replace(following_of(flow.opened, ALONE, window="followed"), gate=gate)
    result = follow(flow, work, time_is_up, by=by, window="followed")
    assert result.copied == 180 and flow.assert_equal() == 180
    assert flow.opened.ledger.verified()[flow.topic, 1].offset == 9


def test_a_task_that_fails_is_told_and_the_window_follows_on(
    east: Broker,
    west: Broker,
    tmp_path: Path,
    time_is_up: threading.Event,
    topic: Callable[[str], str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The target can't make the topic of offset syncs; a group's consumer is on the target until it leaves."""
    group = topic("billing")
    wrong = {"groups": group, "offset-syncs.topic.replication.factor": "3"}
    flow = mirror(east, west, tmp_path, settings=FOLLOWING | wrong)
    produce(east, flow.topic, numbered(50))

    def moved(reason: str) -> None:
        for attempt in patiently():
            with attempt:
                assert [row.reason[:6] for row in flow.opened.ledger.group_offsets()] == [reason[:6]]

    def work() -> None:
        await_copied(flow, 50)
        with member(west, group, flow.remote_topic):
            commit(east, group, {(flow.topic, 0): 20})
            moved("active")
            assert committed(west, group) == {}
        moved("")
        await_committed(west, group, {(flow.remote_topic, 0): 20})
        for attempt in patiently():
            with attempt:
                assert f"Meanwhile, {OFFSET_SYNCS} failed" in caplog.text
        produce(east, flow.topic, numbered(10, 50))
        await_copied(flow, 60)

    by = following_of(flow.opened, ALONE, window="followed")
    result = follow(flow, work, time_is_up, by=by)
    assert result.is_verified and flow.assert_equal() == 60


def test_under_a_lease_that_is_lost_nothing_is_written(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """A window that slept is told so by the mapping topic, after its transactional id is its own again (invariant B)."""
    group = topic("billing")
    flow = mirror(east, west, tmp_path, settings=FOLLOWING | {"groups": group})
    produce(east, flow.topic, numbered(50))
    commit(east, group, {(flow.topic, 0): 20})
    assert flow.run().is_verified
    ledger = flow.opened.ledger
    with Session.open(flow.flow, ledger, "test") as session:
        with leased(session, "slept", slots=0) as granted:
            held = HeldLease(session, granted.check)
        for emit in (emit_offset_syncs, emit_checkpoints):
            with pytest.raises(SlotFenced):
                emit(flow.flow, ledger, window="slept", under=held)
    assert not read_all(west, f"mm2-offset-syncs.{flow.flow.source.alias}.internal")[0]
    assert not checkpoints_on(flow)


def test_where_partitions_stand_and_where_the_source_ends_is_noted_meanwhile(
    east: Broker, west: Broker, tmp_path: Path, time_is_up: threading.Event
) -> None:
    """Nothing comes any more: the recovery point stays as near as the last look."""
    flow = mirror(east, west, tmp_path, settings=SETTINGS)
    produce(east, flow.topic, numbered(50))
    ledger = flow.opened.ledger

    def complete() -> int:
        seen = ledger.numbers().get((SEEN, ""))
        (row,) = ledger.partition_metrics()
        assert seen is not None and (row.high_watermark, row.lag_records, row.records) == (50, 0, 50)
        found = complete_ms(row, round(seen * 1000))
        assert found is not None
        return found

    def work() -> None:
        await_verified(flow)
        before = int(time.time() * 1000)
        for attempt in patiently():
            with attempt:
                (row,) = ledger.partition_metrics() or [None]
                assert row is not None and row.counted_end == 50 and complete() > before

    assert follow(flow, work, time_is_up, by=following_of(flow.opened, ALONE, window="w")).is_verified


def test_groups_go_first_and_wait_for_no_second_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a judgement has let pass is what they have waited for. A longer interval is kept."""
    settings = FOLLOWING | {"verify.interval.ms": "1000", "sync.group.offsets.interval.seconds": "1"}
    flow = mirror("east:9", "west:9", tmp_path, topic="orders", settings=settings)
    done = list[str]()

    def note(opened: Opened, name: str, window: str, under: HeldLease | None = None) -> str:
        opened.ledger.note_begun(name)
        done.append(name)
        return name

    monkeypatch.setattr(following, "do_task", note)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)  # else a second may go by, and they are due again
    tasks = following_of(flow.opened, ALONE, window="w").tasks
    for verified in (False, False, True, True):
        tasks(None, verified)  # type: ignore[arg-type]
    both = [GROUP_OFFSETS, CHECKPOINTS]
    assert done == [*both, *both, OFFSET_SYNCS, *both, OFFSET_SYNCS]
    done.clear()
    flow = mirror("east:9", "west:9", tmp_path, topic="orders", settings=settings | {"verify.interval.ms": "999"})
    tasks = following_of(flow.opened, ALONE, window="w").tasks
    for verified in (False, True):
        tasks(None, verified)  # type: ignore[arg-type]
    assert done == [*both, OFFSET_SYNCS]


def test_what_a_command_does_not_want_is_not_done_meanwhile(tmp_path: Path) -> None:
    flow = mirror("east:9", "west:9", tmp_path, topic="orders", settings=FOLLOWING)
    assert following_of(flow.opened, ALONE, window="w").seconds == 0.5
    assert following_of(flow.opened, ALONE, window="w", tasks=["emit_checkpoints"]).seconds == 1
    assert following_of(flow.opened, ALONE, window="w", tasks=[]).seconds == float("inf")


def test_a_window_that_follows_tells_when_it_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or its throughput would be plotted over the pause before it too."""
    flow, told = mirror("east:9", "west:9", tmp_path, topic="orders", settings=FOLLOWING), list[object]()
    monkeypatch.setattr(following, "measure_meanwhile", lambda *_, begun_ms: told.append(begun_ms))
    begun_ms = time.time() * 1000
    following_of(flow.opened, ALONE, window="w").seen(Seen((), 0))
    assert told == [pytest.approx(begun_ms, abs=60_000)]


def test_a_clock_that_was_ahead_keeps_no_task_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker has noted a time that is still to come for the others: groups would not be moved for an hour."""
    flow, now = mirror("east:9", "west:9", tmp_path, topic="orders", settings=FOLLOWING), time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    flow.opened.ledger.note_begun(GROUP_OFFSETS)
    assert GROUP_OFFSETS not in tasks_due(flow.opened)
    monkeypatch.setattr(time, "time", lambda: now)
    assert GROUP_OFFSETS in tasks_due(flow.opened)
