"""Taking over from MirrorMaker 2, again and again: what it has copied is recognised, and nothing is copied twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from airmirror.cli.failures import BAD_INPUT, status_of
from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.admin.client import describe
from airmirror.clusters.protocol.workers import Worker
from airmirror.errors import AirmirrorError
from airmirror.flows.verification import compare_all
from airmirror.naming import mapping_topic, progress_topic
from airmirror.runbooks import run as running
from airmirror.runbooks.takeover.copies import Continued, TakenOverAsAWhole, take_over_copies
from airmirror.runbooks.takeover.order import TakeoverOrder
from airmirror.runbooks.takeover.plan import takeover_plan
from airmirror.runbooks.takeover.runbook import TAKEOVER
from airmirror.topics.sync import apply, look
from airmirror.windows import mirrormaker
from airmirror.windows.errors import ProgressDiffers
from airmirror.windows.handover import CopiesDiffer, CopiesLost, CopiesSkipped
from airmirror.windows.mirrormaker import MirrorMakerBeside, dedicated_group
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from airmirror_local.brokers import Broker
from support.flows import Mirror, a_flow, mirror
from support.mirrormaker import numbered
from support.topics import Record, create_topic, produce, read_all


@pytest.mark.parametrize("begins", [running.run, running.look])
def test_single_topics_are_not_taken_over(begins: Callable[..., object]) -> None:
    """The order named one: all the others would be taken over too."""
    order = TakeoverOrder(reason="why", by="ada", topics=("orders",))
    with pytest.raises(TakenOverAsAWhole, match=r"--step history .*--topic orders") as refused:
        begins(TAKEOVER, SimpleNamespace(flow=a_flow("east")), order)
    assert status_of(refused.value) == BAD_INPUT


def copied_by_mirrormaker(flow: Mirror, ranges: Sequence[tuple[int, int]], progress: int | None) -> None:
    """Records of the source, by their numbers, are appended to the remote topic, one range after the other."""
    source = read_all(flow.source, flow.topic)[0]
    for first, end in ranges:
        produce(flow.target, flow.remote_topic, source[first:end], partition=0)
    if progress is not None:
        key = source_offset_key(flow.flow.source.alias, flow.topic, 0)
        place = murmur2_partition(key, 3)
        with Appender(flow.flow.target, progress_topic(flow.flow.source.alias), place) as appender:
            appender.append([(key, source_offset_value(progress))])


def taken(flow: Mirror) -> Continued:
    """The one partition of a take-over."""
    [row] = take_over_copies(flow.opened, "me", "takeover-1")
    return row


def contents(records: Sequence[Record]) -> list[object]:
    return [record.content for record in records]


def begun(east: Broker, west: Broker, directory: Path, count: int = 100) -> Mirror:
    """A flow that has copied ``count`` records, and as many more on its source."""
    flow = mirror(east, west, directory)
    produce(east, flow.topic, numbered(count))
    assert flow.run().is_verified
    produce(east, flow.topic, numbered(count, count))
    return flow


@pytest.mark.parametrize(
    "progress",
    [
        pytest.param(149, id="up to date", marks=pytest.mark.long),
        pytest.param(119, id="behind", marks=pytest.mark.long),
        pytest.param(None, id="never told"),
    ],
)
def test_there_and_back_again(east: Broker, west: Broker, tmp_path: Path, progress: int | None) -> None:
    """It was killed twice in between; what it has copied twice stays on the target, unmapped, and nothing is copied again."""
    flow = begun(east, west, tmp_path)
    ranges = [(100, 130), (120, 140), (110, 150)]
    copied_by_mirrormaker(flow, ranges, progress)
    [row] = flow.run().rows
    assert type(row.error).__name__ == ("ForeignRecords" if progress is None else "ProgressDiffers")
    assert "airmirror takeover run" in str(row.error)
    [seen] = takeover_plan(flow.opened).partitions
    assert seen == taken(flow) and (seen.copied, seen.again, seen.start, seen.error) == (50, 40, 150, None)
    result = flow.run()
    assert result.is_verified and result.copied == 50
    source, target = read_all(east, flow.topic)[0], read_all(west, flow.remote_topic)[0]
    expected = [source[n] for first, end in [(0, 100), *ranges, (150, 200)] for n in range(first, end)]
    assert contents(target) == contents(expected)
    [compared] = compare_all(flow.opened, [])
    assert (compared.records, compared.lost, compared.errors) == (200, 0, ())
    assert "take-over, nothing lost (MirrorMaker 2 has copied 50 records since, and 40 of them again" in str(
        flow.opened.ledger.resets()[0]
    )
    assert taken(flow).copied == 0 and len(flow.opened.ledger.resets()) == 1, "nothing is left to be taken over"


@pytest.mark.long  # there and back again is above
def test_three_times_there_and_back(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = begun(east, west, tmp_path)
    for number in range(3):
        start = 100 * (number + 1)
        copied_by_mirrormaker(flow, [(start, start + 50)], start + 39)
        assert (taken(flow).copied, flow.run().copied) == (50, 50)
        produce(east, flow.topic, numbered(100, start + 100))
    assert flow.run().is_verified and flow.assert_equal() == 500
    assert [row.errors for row in compare_all(flow.opened, [])] == [()]


def test_one_that_was_started_by_mistake_has_copied_everything_again(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow = begun(east, west, tmp_path)
    assert flow.run().is_verified
    copied_by_mirrormaker(flow, [(50, 200)], 120)
    found = taken(flow)
    assert (found.copied, found.again, found.start, found.error) == (0, 150, 200, None)
    produce(east, flow.topic, numbered(10, 200))
    assert flow.run().is_verified
    assert [(row.records, row.errors) for row in compare_all(flow.opened, [])] == [(210, ())]


def test_copies_before_the_first_progress(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Killed in its first minute, it has told nothing; killed again, it begins at the beginning."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(100))
    apply(flow.flow, look(flow.flow))
    copied_by_mirrormaker(flow, [(0, 40), (0, 70)], None)
    found = taken(flow)
    assert (found.copied, found.again, found.start, found.since) == (70, 40, 70, 0), found.error
    assert flow.run().is_verified and flow.run().copied == 0
    assert [(row.records, row.errors) for row in compare_all(flow.opened, [])] == [(100, ())]


@pytest.mark.parametrize(
    ("ranges", "more", "progress", "error"),
    [
        pytest.param([(100, 120), (130, 150)], [], 149, CopiesSkipped, id="a gap"),
        pytest.param([(100, 120)], [Record(b"of others")], 119, CopiesDiffer, id="another writer"),
        pytest.param([(100, 120)], [], 149, CopiesLost, id="lost on the target"),
        pytest.param([], [], 149, CopiesLost, id="nothing there", marks=pytest.mark.long),
    ],
)
def test_what_can_not_be_taken_over_stays_as_it_is(
    east: Broker,
    west: Broker,
    tmp_path: Path,
    ranges: list[tuple[int, int]],
    more: list[Record],
    progress: int,
    error: type[AirmirrorError],
) -> None:
    flow = begun(east, west, tmp_path)
    copied_by_mirrormaker(flow, ranges, progress)
    produce(west, flow.remote_topic, more, partition=0)
    found = taken(flow)
    assert type(found.error) is error and "airmirror reset" in str(found.error)
    if isinstance(found.error, CopiesSkipped):
        assert (found.error.first, found.error.last, found.error.count) == (120, 129, 10)
    [row] = flow.run().rows
    assert isinstance(row.error, ProgressDiffers) and row.copied == 0 and not flow.opened.ledger.resets()


def test_a_first_window_does_not_begin_beside_it(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(20))
    create_topic(west, flow.remote_topic)
    running = [Worker(dedicated_group(flow.flow), "10.0.0.7", "", None)]
    monkeypatch.setattr(mirrormaker, "workers", lambda _: running)
    with pytest.raises(MirrorMakerBeside, match=r"takeover run --reason '…' --yes.*\n.*10\.0\.0\.7"):
        flow.run()
    assert not describe(flow.flow.target).keys() & {mapping_topic(flow.flow.source.alias)}, "nothing was written"
    running.clear()
    assert flow.run().copied == 20
    running.append(Worker(dedicated_group(flow.flow), "10.0.0.7", "", None))
    assert flow.run().is_verified, "a flow that has begun is stopped where something was written, and nowhere else"
