"""Taking over from MirrorMaker 2: its progress counts, and what it wrote past it is not copied again."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.clusters.admin.appender import Appender
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.flows.verification import compare_all
from airmirror.naming import progress_topic
from airmirror.slot.errors import ForeignRecords, PartitionUnavailable
from airmirror.windows.resets import Choice
from airmirror.windows.takeover import overlap
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from airmirror_local.brokers import Broker
from support.faults import unseen_before_the_starts
from support.flows import Mirror, as_mirrormaker, mirror
from support.hostile import delete_records
from support.topics import Record, end_offsets, produce, read_all


@pytest.mark.parametrize(
    ("copied", "progress"),
    [
        pytest.param(100, 99, marks=pytest.mark.long),
        (100, 60),
        pytest.param(100, 0, marks=pytest.mark.long),
        pytest.param(300, 250, marks=pytest.mark.long),
    ],
)
def test_what_is_there_already_is_not_copied_again(
    east: Broker, west: Broker, tmp_path: Path, copied: int, progress: int
) -> None:
    flow = mirror(east, west, tmp_path)
    same = [Record(b"the same", b"k", (), 1_700_000_000_000) for _ in range(20)]
    produce(east, flow.topic, [Record(b"v%d" % n, b"k", (), 1_700_000_000_000 + n) for n in range(260)] + same * 2)
    as_mirrormaker(flow, copied, progress)
    assert flow.run().is_verified
    assert flow.assert_equal() == 300
    produce(east, flow.topic, [Record(b"more")])
    assert flow.run().is_verified
    assert flow.assert_equal() == 301


def test_one_that_was_killed_twice_before_it_told_its_progress(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Its tail goes back in between: all of it is recognised, what is there twice too, and the rest is copied."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(0, 150))
    as_mirrormaker(flow, 90, 59)
    source = read_all(east, flow.topic)[0]
    for first, end in ((60, 100), (60, 80)):
        produce(west, flow.remote_topic, source[first:end], partition=0)
    assert flow.run().is_verified
    expected = [source[n] for first, end in ((0, 90), (60, 100), (60, 80), (100, 150)) for n in range(first, end)]
    assert [each.content for each in read_all(west, flow.remote_topic)[0]] == [each.content for each in expected]
    [compared] = compare_all(flow.opened, [])
    assert (compared.records, compared.errors) == (90, ())


def test_one_record_of_others_after_what_was_taken_over(east: Broker, west: Broker, tmp_path: Path) -> None:
    """No marker of ours follows what MirrorMaker 2 has copied: the next offset is explained by nothing."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(10)])
    as_mirrormaker(flow, 10, 5)
    assert flow.run().is_verified
    produce(west, flow.remote_topic, [Record(b"of others")], partition=0)
    produce(east, flow.topic, [Record(b"more")])
    [row] = flow.run().rows
    assert isinstance(row.error, ForeignRecords) and (row.error.first, row.error.last) == (10, 10)
    assert end_offsets(west, flow.remote_topic) == {0: 11}


def test_a_partition_that_is_seen_only_after_the_others_were_taken_over(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the next window's: what MirrorMaker 2 has copied of it are no records of strangers (chaos seed 105)."""
    flow = mirror(east, west, tmp_path, partitions=2)
    for number in (0, 1):
        produce(east, flow.topic, numbered(100 * number, 100 * number + 100), partition=number)
    as_mirrormaker(flow, 60, 40)
    produce(west, flow.remote_topic, read_all(east, flow.topic)[1][:60], partition=1)
    key = source_offset_key(flow.flow.source.alias, flow.topic, 1)
    with Appender(flow.flow.target, progress_topic(flow.flow.source.alias), murmur2_partition(key, 3)) as appender:
        appender.append([(key, source_offset_value(40))])
    begun = unseen_before_the_starts(monkeypatch, flow, 1)
    [first, second] = flow.run().rows
    assert begun and first.verified and first.source_end == 100
    assert isinstance(second.error, PartitionUnavailable) and "after the others were taken over" in str(second.error)
    assert flow.run().is_verified
    assert flow.assert_equal() == 200


@given(st.lists(st.sampled_from([b"a", b"b"]), max_size=12), st.data())
def test_the_overlap_is_a_prefix_of_the_source_and_a_suffix_of_the_target(
    source: list[bytes], data: st.DataObject
) -> None:
    before = data.draw(st.lists(st.sampled_from([b"a", b"b"]), max_size=6))
    there = data.draw(st.integers(0, len(source)))
    target = before + source[:there]
    count = overlap(source, target, before)
    assert target[len(target) - count :] == source[:count]


def test_distinct_records_overlap_exactly() -> None:
    source = [b"%d" % n for n in range(10)]
    for there in range(11):
        assert overlap(source, [b"x", *source[:there]], [b"x"]) == there


@pytest.mark.parametrize("end", ["aborted", "committed"])
def test_aborted_records_in_the_tail_are_told_from_committed_ones(
    east: Broker, west: Broker, tmp_path: Path, end: str
) -> None:
    """MirrorMaker 2 copies them by default; killed before it wrote its progress, it has left them in its tail."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(0, 60), transactional="commit")
    produce(east, flow.topic, numbered(1000, 1010), transactional="abort")
    if end == "committed":
        produce(east, flow.topic, numbered(60, 100), transactional="commit")
    there = as_default_mirrormaker(flow, progress=39)
    assert flow.run().is_verified
    produce(east, flow.topic, numbered(100, 110))
    result = flow.run()
    assert result.is_verified and result.copied == 10
    assert [record.content for record in read_all(west, flow.remote_topic)[0]] == [
        record.content for record in there + read_all(east, flow.topic)[0][-10:]
    ]
    assert not [row.error for row in compare_all(flow.opened, []) if row.error]


def test_a_tail_that_is_not_the_source_s_is_an_error(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Nothing tells how far MirrorMaker 2 has come, so nothing is copied; the reset that is advised leads on."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(0, 100))
    as_mirrormaker(flow, 70, 39)
    produce(west, flow.remote_topic, [Record(b"somebody else's")], partition=0)
    result = flow.run()
    assert [type(row.error).__name__ for row in result.rows] == ["TailDiffers"] and result.copied == 0
    assert "--accept-loss" in str(result.rows[0].error) and len(read_all(west, flow.remote_topic)[0]) == 71
    [reset] = carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test"))
    assert (reset.start, reset.lost) == (40, 0) and "is not known" in reset.problem
    result = flow.run()
    assert result.is_verified and result.copied == 60


def test_a_progress_before_which_nothing_was_kept_tells_nothing(east: Broker, west: Broker, tmp_path: Path) -> None:
    """The source's retention has taken what the target ends with: no contradiction."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(0, 60))
    as_mirrormaker(flow, 60, 59)
    delete_records(east, flow.topic, 60)
    produce(east, flow.topic, numbered(60, 90))
    result = flow.run()
    assert result.is_verified and result.copied == 30


def numbered(start: int, end: int) -> list[Record]:
    return [Record(b"v%d" % n, b"k%d" % n, (), 1_700_000_000_000 + n) for n in range(start, end)]


def as_default_mirrormaker(flow: Mirror, progress: int) -> list[Record]:
    """Everything is on the target, what was aborted too, as read_uncommitted reads it; what that is."""
    as_mirrormaker(flow, 0, progress)
    everything = read_all(flow.source, flow.topic, "read_uncommitted")[0]
    produce(flow.target, flow.remote_topic, everything, partition=0)
    return everything
