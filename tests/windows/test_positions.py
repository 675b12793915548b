"""The position of a partition is its newest mapping's end; MirrorMaker 2's progress is an export, a rebuilt ledger no matter."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.routes import TopicNotFound
from airmirror.flows.prepare import prepare, read_again
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.flows.verification import compare_all
from airmirror.ledger import Ledger
from airmirror.partitions import Entry
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import PartitionUnavailable
from airmirror.windows.resets import Choice, Reset, ResetNotPossible
from airmirror.windows.results import WindowResult
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from airmirror_local.brokers import Broker
from support.faults import records
from support.flows import Mirror, in_this_process, mirror
from support.groups import commit, committed
from support.post_window import sync
from support.topics import create_topic, delete_topic, produce, read_all


def errors(result: WindowResult) -> list[str]:
    return [type(row.error).__name__ for row in result.rows if row.error is not None]


def write_progress(flow: Mirror, offset: int) -> None:
    """As MirrorMaker 2 does it, or somebody by hand."""
    alias = flow.flow.source.alias
    key = source_offset_key(alias, flow.topic, 0)
    with Appender(flow.flow.target, f"mm2-offsets.{alias}.internal", murmur2_partition(key, 3)) as appender:
        appender.append([(key, source_offset_value(offset))])


def accept_loss(flow: Mirror) -> list[Reset]:
    return carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test"))


@pytest.mark.parametrize("aggregate", ["false", pytest.param("true", marks=pytest.mark.long)])
def test_progress_that_is_deleted_is_written_again(east: Broker, west: Broker, tmp_path: Path, aggregate: str) -> None:
    flow = mirror(east, west, tmp_path, settings={"aggregate": aggregate})
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    exported = flow.opened.ledger.progress()
    delete_topic(west, f"mm2-offsets.{flow.flow.source.alias}.internal")
    result = flow.run()  # with nothing new
    assert not result.rows and result.standings[0].position == 100
    assert flow.opened.ledger.progress() == exported == {(flow.topic, 0): 99}
    produce(east, flow.topic, records(10, 100))
    assert flow.run().is_verified
    assert flow.assert_equal() == 110


def test_progress_that_is_deleted_beneath_a_slot_ends_it(east: Broker, west: Broker, tmp_path: Path) -> None:
    """The next window makes the topic again: no attempt of this one can."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))

    found: list[SlotResult] = []

    def deleted(slots: Sequence[Slot]) -> list[SlotResult]:
        delete_topic(west, f"mm2-offsets.{flow.flow.source.alias}.internal")
        found.extend(in_this_process(slots))
        return found

    with pytest.raises(TopicNotFound):
        flow.run(deleted)
    assert [type(each.error) for each in found] == [PartitionUnavailable] and "mm2-offsets" in str(found[0].error)
    assert flow.run().is_verified
    assert flow.assert_equal() == 100


def test_progress_that_was_cut_is_an_error_of_its_own(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    write_progress(flow, 39)
    produce(east, flow.topic, records(10, 100))
    result = flow.run()
    assert errors(result) == ["ProgressDiffers"] and result.copied == 0
    said = str(result.rows[0].error)
    assert "offset 39" in said and "offset 99" in said and "--accept-loss" in said
    assert len(read_all(west, flow.remote_topic)[0]) == 100
    [reset] = accept_loss(flow)
    assert (reset.start, reset.lost) == (100, 0)
    assert flow.run().is_verified
    assert flow.assert_equal() == 110


def test_mirrormaker_in_between_is_taken_over_and_groups_follow(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Airmirror, MirrorMaker 2 for a while, which was killed past its progress, and Airmirror again."""
    flow = mirror(east, west, tmp_path)
    group = f"billing-{flow.topic}"
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    produce(east, flow.topic, records(60, 100))
    produce(west, flow.remote_topic, records(50, 100), partition=0)
    write_progress(flow, 139)
    result = flow.run()
    assert errors(result) == ["ProgressDiffers"] and result.copied == 0
    [reset] = accept_loss(flow)
    assert (reset.start, reset.lost) == (150, 0)
    assert flow.run().is_verified
    assert flow.assert_equal() == 160
    assert not [row.error for row in compare_all(flow.opened, []) if row.error]
    commit(east, group, {(flow.topic, 0): 120})
    assert [row.exact for row in sync(flow.opened, group)] == [True]
    at = committed(west, group)[(flow.remote_topic, 0)]
    [first, *_] = [record for record in read_all(west, flow.remote_topic)[0] if (record.offset or 0) >= at]
    assert first.value == b"v120"


def test_what_another_writer_has_left_is_lost_from_the_last_record_on(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """What lies on the target is not what the source has: the loss begins where this flow's records end (invariant E)."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    produce(east, flow.topic, records(60, 100))
    produce(west, flow.remote_topic, records(50, 5000), partition=0)
    write_progress(flow, 149)
    assert errors(flow.run()) == ["ProgressDiffers"]
    [reset] = accept_loss(flow)
    assert (reset.lost_first, reset.lost_end, reset.start) == (100, 150, 150)
    assert "is not known" in reset.problem
    assert flow.run().is_verified
    ours = [record.value for record in records(100) + records(10, 150)]
    assert [record.value for record in read_all(west, flow.remote_topic)[0]] == [
        *ours[:100],
        *(record.value for record in records(50, 5000)),
        *ours[100:],
    ]
    assert not accept_loss(flow), "nothing is left to decide"


def test_a_topic_that_is_there_is_not_forgotten(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    with pytest.raises(ResetNotPossible, match="the source has it"):
        carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.FORGET, by="me", reason="a test"))
    assert flow.run().is_verified
    assert flow.assert_equal() == 100


@pytest.mark.parametrize("aggregate", ["false", pytest.param("true", marks=pytest.mark.long)])
def test_a_ledger_that_is_begun_anew_while_a_window_plans(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregate: str
) -> None:
    """Whatever another process does to the ledger between reading the topics and planning: the plan is of all they hold."""
    flow = mirror(east, west, tmp_path, settings={"aggregate": aggregate})
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    produce(east, flow.topic, records(10, 100))
    ledger, others = flow.opened.ledger, Ledger(str(flow.opened.ledger.engine.url))
    state, disturbed = type(ledger).state, []
    half = others.flow(flow.flow.name)

    def disturb(self: object) -> object:
        if self is ledger and len(disturbed) < 4:
            disturbed.append(True)
            half.forget() if len(disturbed) % 2 else read_again(replace(flow.opened, ledger=half))
        return state(self)  # type: ignore[arg-type]

    monkeypatch.setattr(type(ledger), "state", disturb)
    assert flow.run().is_verified and len(disturbed) == 4
    assert flow.assert_equal() == 110
    others.close()


def test_rebuilding_beside_windows(east: Broker, west: Broker, tmp_path: Path) -> None:
    """`airmirror ledger rebuild` at any time, again and again: no false accusation, no record twice."""
    flow = mirror(east, west, tmp_path, partitions=2)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    other = Ledger(str(flow.opened.ledger.engine.url)).flow(flow.flow.name)
    ended, rebuilt = threading.Event(), []

    def rebuild() -> None:
        while not ended.is_set():
            rebuilt.append(read_again(replace(flow.opened, ledger=other)))

    thread = threading.Thread(target=rebuild)
    thread.start()
    try:
        for number in range(1, 6):
            produce(east, flow.topic, records(20, 80 + 20 * number))
            result = flow.run()
            assert result.is_verified, [str(row.error) for row in result.rows]
    finally:
        ended.set()
        thread.join()
    assert len(rebuilt) > 1 and flow.assert_equal() == 200


def test_a_ledger_that_is_ahead_of_kafka_is_read_anew(east: Broker, west: Broker, tmp_path: Path) -> None:
    """As after the target's disk was restored from a backup: what the ledger has read is not there any more."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    ledger, [last] = flow.opened.ledger, flow.opened.ledger.last_mappings().values()
    state = ledger.state()
    for topic, (topic_id, offsets) in state.scanned.items():
        if topic.startswith("airmirror-mappings"):
            end = offsets[0]
            lost = replace(last, source_start=100, source_end=200, window="lost", copied=0, ranges=())
            entry = Entry(0, end + 5, 0, lost.encode_key(), lost.encode_value())
            ledger.load(topic, topic_id, [entry], {0: end + 50})
        else:
            key = source_offset_key(flow.flow.source.alias, flow.topic, 0)
            number = murmur2_partition(key, 3)
            more = Entry(number, offsets[number] + 5, 0, key, source_offset_value(199))
            ledger.load(topic, topic_id, [more], {number: offsets[number] + 6})
    assert ledger.state().positions == {(flow.topic, 0): 200}
    result = flow.run()
    assert not result.rows and [standing.position for standing in result.standings] == [100]
    produce(east, flow.topic, records(100, 100))
    assert flow.run().is_verified
    assert flow.assert_equal() == 200


def test_a_ledger_of_a_log_that_was_cut_and_has_grown_again(east: Broker, west: Broker, tmp_path: Path) -> None:
    """It has read a record that is not there any more, at an offset that is there again: the leader epoch tells."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    ledger, [last] = flow.opened.ledger, flow.opened.ledger.last_mappings().values()
    topic = f"airmirror-mappings.{flow.flow.source.alias}.internal"
    topic_id, offsets = ledger.state().scanned[topic]
    lost = replace(last, source_start=120, source_end=200, window="lost", copied=0, ranges=())
    entry = Entry(0, offsets[0], 0, lost.encode_key(), lost.encode_value(), epoch=1_000)
    ledger.load(topic, topic_id, [entry], {0: offsets[0] + 1})
    assert ledger.state().positions == {(flow.topic, 0): 200}
    other = replace(flow, opened=replace(flow.opened, ledger=Ledger(f"sqlite:///{tmp_path}/o.db").flow(flow.flow.name)))
    produce(east, flow.topic, records(100, 100))
    assert other.run().is_verified  # the log grows past what was read of it
    produce(east, flow.topic, records(10, 200))
    result = flow.run()
    assert result.is_verified and result.copied == 10, errors(result)
    assert flow.assert_equal() == 210
    assert "lost" not in {row.window for row in ledger.windows()}


def test_a_ledger_of_other_clusters(east: Broker, west: Broker, tmp_path: Path) -> None:
    """One flow's name, one ledger, and clusters that were made again: topics of which these know nothing are no error."""
    flow = mirror(east, west, tmp_path)
    alias, before = flow.flow.source.alias, flow.topic
    produce(east, before, records(100))
    assert flow.run().is_verified
    for name in (f"airmirror-mappings.{alias}.internal", f"mm2-offsets.{alias}.internal", flow.remote_topic):
        delete_topic(west, name)
    delete_topic(east, before)
    again = _only(flow, create_topic(east, f"{before}-again", 1), before)
    produce(east, again.topic, records(30))
    prepared = prepare(again.opened)
    assert not prepared.refused
    assert again.run().is_verified and again.assert_equal() == 30


def _only(flow: Mirror, *topics: str) -> Mirror:
    """The flow with these topics, the first of them to be looked at."""
    return replace(flow, topic=topics[0], opened=replace(flow.opened, flow=replace(flow.flow, topics=topics)))
