"""Exact positions of before a take-over in compacted topics: what a cleaner took is no gap, what was never copied is one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import pytest

from airmirror.clusters.protocol.groups import Committed
from airmirror.flows.prepare import caught_up
from airmirror.flows.verification import compare_all
from airmirror.offsets.positions import positions_of
from airmirror.offsets.translation import Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks.takeover.copies import await_stopped
from airmirror.runbooks.takeover.exact import ComparedCopies
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.sync import apply, look
from airmirror.windows.mirror import Mirror as Session
from airmirror_local.brokers import Broker
from flows.test_takeover import copied_by_mirrormaker, taken
from flows.test_takeover_exact import exact
from offsets.test_groups import COMPACTED, rest_of_the_cleaner, wait_until_compacted
from support.flows import Mirror, mirror
from support.mirrormaker import await_records, dedicated
from support.topics import Record, await_settled, end_offsets, produce, read_all

TIME = 1_700_000_000_000


def of_keys(keys: Sequence[str], start: int = 0) -> list[Record]:
    """Records of these keys, each of another value and time."""
    return [Record(b"v%d" % n, key.encode(), (), TIME + n) for n, key in enumerate(keys, start)]


def assert_positions(flow: Mirror, first: int) -> None:
    """From each position at or after ``first`` a reader of the target gets, of what is on both sides, what one of the source
    would get next, and nothing is left out; before ``first`` no position is exact."""
    opened = caught_up(flow.opened)
    source, target = read_all(flow.source, flow.topic)[0], read_all(flow.target, flow.remote_topic)[0]
    there = {record.content: record.offset for record in reversed(target)}
    key = TopicPartition(flow.topic, 0)
    with Session.open(opened.flow, opened.ledger, "test") as session:
        asked = {f"g{at}": {key: Committed(at)} for at in range(end_offsets(flow.source, flow.topic)[0])}
        found = {each.committed.offset: each.found for each in positions_of(session, asked)}
    for at, translated in found.items():
        if at < first:
            assert not isinstance(translated, Translated) or not translated.exact, at
            continue
        assert isinstance(translated, Translated) and translated.exact, (at, translated)
        unread = [there[each.content] for each in source if each.offset >= at and each.content in there]
        assert not unread or translated.translation <= min(unread), at
        assert not [
            each for each in source if each.offset < at and there.get(each.content, -1) >= translated.translation
        ]


def after_mirrormaker(east: Broker, west: Broker, directory: Path, cleaned: set[int], skipped: set[int]) -> Mirror:
    """A take-over of a compacted topic: MirrorMaker 2 has copied 60 records but for those that it has skipped.

    The target's cleaner has taken those that are ``cleaned`` (an aborted transaction leaves such holes), the source's one.
    """
    flow = mirror(east, west, directory, config={"cleanup.policy": "compact"})
    keys = [f"k{n % 20}" if n != 30 else "once" for n in range(100)]
    produce(east, flow.topic, of_keys(keys), partition=0)
    apply(flow.flow, look(flow.flow))
    ensure_internal_topics(flow.flow)
    source = read_all(east, flow.topic)[0]
    for is_hole, run in groupby(range(60), lambda offset: offset in cleaned):
        its = list(run)
        if is_hole:  # with its marker as many offsets as records
            hole = [Record(b"x", b"x")] * (len(its) - 1)
            produce(west, flow.remote_topic, hole, partition=0, transactional="abort")
            await_settled(west, flow.remote_topic)  # its marker is there before what comes next
        else:
            produce(west, flow.remote_topic, [source[at] for at in its if at not in skipped], partition=0)
        if 9 in its:
            produce(west, flow.remote_topic, [Record(b"cleaned", b"k3", (), TIME + 9)], partition=0)
    copied_by_mirrormaker(flow, [], 59)
    assert taken(flow).error is None and flow.run().is_verified
    return flow


def found_in(row: ComparedCopies) -> tuple[object, ...]:
    found = row.history
    assert found is not None and row.reason == ""
    return row.exact_from, found.copied, found.cleaned, [(gap.first, gap.last) for gap in found.gaps], found.strange


def test_what_a_cleaner_took_is_no_gap(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Records of both sides lack on the other one, and a later one of their key is there."""
    flow = after_mirrormaker(east, west, tmp_path, {5, 6, 22, 23}, set())
    assert found_in(exact(flow)) == ((60, 0), 60, 5, [], ())
    assert_positions(flow, 0)
    assert [each.errors for each in compare_all(flow.opened, [])] == [()]


@pytest.mark.parametrize(
    ("cleaned", "skipped", "gap"),
    [({5, 6, 29, 30}, set(), (30, 30)), ({5, 6}, {25, 26}, (25, 26))],
    ids=["the only record of its key", "no hole in its place"],
)
def test_what_was_never_copied_is_a_gap(
    east: Broker, west: Broker, tmp_path: Path, cleaned: set[int], skipped: set[int], gap: tuple[int, int]
) -> None:
    """No cleaner takes the newest record of a key, and none takes one without leaving a hole."""
    flow = after_mirrormaker(east, west, tmp_path, cleaned, skipped)
    first = gap[1] + 1
    row = exact(flow)
    assert row.needs_somebody and row.exact_from == (60, first) and found_in(row)[3:] == ([gap], ())
    assert_positions(flow, first)
    assert [each.errors for each in compare_all(flow.opened, [])] == [()]


@pytest.mark.long
def test_the_copies_of_the_real_mirrormaker_2_after_both_cleaners(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Both clusters' cleaners have been at work, before the take-over and after it."""
    flow = mirror(east, west, tmp_path, config=COMPACTED)
    keys = [f"k{n % 30}" if n % 2 else f"u{n}" for n in range(300)]
    produce(east, flow.topic, of_keys(keys), partition=0, records_per_batch=7)
    with dedicated(flow, tmp_path, {"sync.topic.configs.enabled": "true"}) as process:
        await_records(west, flow.remote_topic, 100, process)
        wait_until_compacted(east, flow.topic, roll=True)
        produce(east, flow.topic, of_keys(keys, 300), partition=0, records_per_batch=7)
        last = read_all(east, flow.topic)[0][-1].content
        await_records(west, f"mm2-offsets.{flow.flow.source.alias}.internal", 1, process)
        while not any(each.content == last for each in read_all(west, flow.remote_topic)[0][-1:]):
            assert process.running, process.log_tail()
        process.stop(60)
    await_stopped(flow.opened, 120)
    assert taken(flow).error is None
    produce(east, flow.topic, of_keys(keys, 600), partition=0, records_per_batch=7)
    assert flow.run().is_verified
    wait_until_compacted(west, flow.remote_topic, roll=False)
    source, target = rest_of_the_cleaner(east, flow.topic), rest_of_the_cleaner(west, flow.remote_topic)
    assert len({each.content for each in source} ^ {each.content for each in target}) > 0
    row = exact(flow)
    assert row.history is not None and row.reason == "" and row.history.gaps == (), row
    before, first = row.exact_from
    assert row.history.cleaned > 0 and before is not None and first is not None and first < before - 300
    assert_positions(flow, first)
