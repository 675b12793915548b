"""Positions of before a take-over: exact once MirrorMaker 2's copies were compared; what it copied twice is listed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from airmirror.clusters.protocol.groups import Committed
from airmirror.flows.prepare import caught_up
from airmirror.flows.verification import compare_all
from airmirror.offsets.positions import positions_of
from airmirror.offsets.translation import Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks.takeover.copies import await_stopped
from airmirror.runbooks.takeover.exact import ComparedCopies, make_exact, told
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.sync import apply, look
from airmirror.windows import history
from airmirror.windows.mirror import Mirror as Session
from airmirror_local.brokers import Broker
from flows.test_takeover import copied_by_mirrormaker, taken
from support.flows import Mirror, mirror
from support.mirrormaker import await_records, dedicated, numbered
from support.topics import Record, await_settled, end_offsets, produce, read_all


def taken_over(
    east: Broker, west: Broker, directory: Path, ranges: Sequence[tuple[int, int]], *, strange: int = 0
) -> Mirror:
    """A flow that has taken over after ``ranges`` of its source's records, and has copied what comes after them."""
    flow = mirror(east, west, directory)
    produce(east, flow.topic, numbered(100))
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    for number in range(strange):
        # Of a time in the middle of the source's: where its records begin is not to be told by that.
        produce(west, flow.remote_topic, [Record(b"foreign %d" % number, timestamp=1_700_000_000_050)], partition=0)
    copied_by_mirrormaker(flow, ranges, max(end for _, end in ranges) - 1)
    assert taken(flow).error is None
    assert flow.run().is_verified
    return flow


def exact(flow: Mirror, *, write: bool = True) -> ComparedCopies:
    [row] = make_exact(flow.opened, write=write, wait=10)
    return row


def assert_positions(flow: Mirror, first: int) -> None:
    """From each position a reader of the target gets what one of the source would get next; from ``first`` on it is exact."""
    opened = caught_up(flow.opened)
    [source], [target] = read_all(flow.source, flow.topic).values(), read_all(flow.target, flow.remote_topic).values()
    there = {record.content: record.offset for record in reversed(target)}  # where each lies first
    ends = end_offsets(flow.source, flow.topic)[0], end_offsets(flow.target, flow.remote_topic)[0]
    key = TopicPartition(flow.topic, 0)
    with Session.open(opened.flow, opened.ledger, "test") as session:
        asked = {f"g{at}": {key: Committed(at)} for at in range(ends[0])}
        found = {each.committed.offset: each.found for each in positions_of(session, asked)}
    for record in source:
        translated = found[record.offset]
        if record.offset < first:
            assert not isinstance(translated, Translated) or not translated.exact, record.offset
        else:
            assert isinstance(translated, Translated) and translated.exact, (record.offset, translated)
            assert translated.translation == there[record.content], record.offset


@pytest.mark.parametrize(
    "at_once", [pytest.param(100_000, marks=pytest.mark.long), 16], ids=["at once", "some at a time"]
)
def test_duplicates_and_strangers_before_the_take_over(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    """Two records of another writer, copies, and again those since its last progress, twice; all that is known, one by one."""
    monkeypatch.setattr(history, "AT_ONCE", at_once)
    flow = taken_over(east, west, tmp_path, [(0, 40), (25, 60), (50, 80)], strange=2)
    before = read_all(west, flow.remote_topic)
    assert_positions(flow, 80)
    seen = exact(flow, write=False)
    assert_positions(flow, 80)  # nothing was written
    row = exact(flow)
    assert [*told(seen)] == [*told(row)] and seen.exact_from == row.exact_from == (80, 0)
    assert row.history is not None and row.reason == ""
    assert row.history.copied == 80 and row.history.strange == ((0, 2),) and row.history.gaps == ()
    runs = [(run.source_first, run.target_first, run.count) for run in row.history.again]
    assert sum(count for *_, count in runs) == 25
    places = {at + n: source + n for source, at, count in runs for n in range(count)}
    assert places == {42 + n: 25 + n for n in range(15)} | {77 + n: 50 + n for n in range(10)}
    assert_positions(flow, 0)
    assert before == read_all(west, flow.remote_topic), "nothing is ever written to a remote topic"
    assert [(each.records, each.lost, each.errors) for each in compare_all(flow.opened, [])] == [(100, 0, ())]
    again = exact(flow)
    assert again.exact_from == (0, 0) and again.history is not None and again.history.copied == 0
    produce(east, flow.topic, numbered(50, 100))
    assert flow.run().is_verified
    assert_positions(flow, 0)


def test_before_a_gap_nothing_is_exact(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MirrorMaker 2 skipped some records: they are named, and no position before them jumps over them."""
    monkeypatch.setattr(history, "AT_ONCE", 16)
    flow = taken_over(east, west, tmp_path, [(0, 30), (40, 70)])
    row = exact(flow)
    assert row.history is not None and row.history.gaps
    assert [(gap.first, gap.last, gap.count) for gap in row.history.gaps] == [(30, 39, 10)]
    assert row.exact_from == (70, 40)
    assert_positions(flow, 40)
    assert [each.errors for each in compare_all(flow.opened, [])] == [()]


def test_transactions_and_markers_leave_no_gap(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Aborted records, which MirrorMaker 2 copies by default, are mapped nowhere; markers are accounted for."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(10))
    produce(east, flow.topic, numbered(10, 10), transactional="commit")
    await_settled(east, flow.topic)  # its marker is there
    produce(east, flow.topic, numbered(5, 500), transactional="abort")
    await_settled(east, flow.topic)
    produce(east, flow.topic, numbered(20, 20))
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    every = read_all(east, flow.topic, "read_uncommitted")[0]
    produce(west, flow.remote_topic, every[:35], partition=0)  # the aborted ones too
    copied_by_mirrormaker(flow, [], every[34].offset)
    assert taken(flow).error is None and flow.run().is_verified
    row = exact(flow)
    assert row.exact_from[1] == 0 and row.history is not None and row.history.refused == ""
    control, aborted = (sum(getattr(each, what) for each in row.history.accounts) for what in ("control", "aborted"))
    assert (row.history.copied, control, aborted) == (30, 2, 5)
    assert_positions(flow, 0)
    assert [each.errors for each in compare_all(flow.opened, [])] == [()]


def test_what_is_not_verified_stays_as_it_is(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    copied_by_mirrormaker(flow, [(0, 60)], 59)
    assert taken(flow).error is None
    row = exact(flow)
    assert row.history is None and "nothing of it is verified yet: `airmirror run-window --flow" in row.reason
    assert flow.run().is_verified and exact(flow).exact_from == (60, 0)


def test_a_partition_that_nobody_has_written_to_since_becomes_exact_too(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """MirrorMaker 2 had copied all of it, so that the window after the take-over had nothing to copy."""
    row = exact(taken_over(east, west, tmp_path, [(0, 100)]))
    assert row.exact_from == (100, 0) and row.reason == ""


@pytest.mark.long
def test_the_copies_of_the_real_mirrormaker_2(east: Broker, west: Broker, tmp_path: Path) -> None:
    """It has told its progress, is killed, copies some records again, and is stopped: then all positions are exact."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(300))
    never = {f"{flow.flow.target.alias}.offset.flush.interval.ms": "3600000"}  # but when it is stopped in order
    with dedicated(flow, tmp_path) as process:
        await_records(west, flow.remote_topic, 300, process)
        process.stop(60)
    produce(east, flow.topic, numbered(200, 300))
    with dedicated(flow, tmp_path, never) as process:
        await_records(west, flow.remote_topic, 500, process)
        process.kill()
    with dedicated(flow, tmp_path) as process:
        await_records(west, flow.remote_topic, 700, process)
        process.stop(60)
    await_stopped(flow.opened, 120)
    assert taken(flow).error is None
    produce(east, flow.topic, numbered(100, 500))
    assert flow.run().is_verified
    assert_positions(flow, 500)
    row = exact(flow)
    assert row.exact_from == (500, 0) and row.history is not None and row.reason == ""
    assert [(run.source_first, run.target_first, run.count) for run in row.history.again] == [(300, 500, 200)]
    assert_positions(flow, 0)
    assert [(each.records, each.lost, each.errors) for each in compare_all(flow.opened, [])] == [(600, 0, ())]
