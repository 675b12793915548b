"""Groups after ``airmirror reset``: at the very next record, or not moved for a reason; no checkpoint leads past records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.protocol.groups import Committed, Group
from airmirror.flows.prepare import caught_up
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.offsets import checkpoints
from airmirror.offsets.groups import plan
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.replicated import Extent
from airmirror.offsets.syncs import emit_offset_syncs, place_of_syncs, read_syncs
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.windows.resets import Choice
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.groups import commit, committed, read_with_group
from support.post_window import apply, checkpoints_on, emit, reverse_of, sync
from support.topics import Record, delete_topic, produce, read_all


def numbers(*bounds: int) -> list[Record]:
    return [Record(b"v%d" % number) for number in range(*bounds)]


def values(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def reset(flow: Mirror, choice: Choice, *, recreate: bool = False) -> None:
    carry_out(
        flow.opened,
        ResetOrder(
            topics=(flow.topic,), partitions=(), choice=choice, recreate=recreate, by="somebody", reason="a test"
        ),
    )


@pytest.fixture
def running(east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]) -> tuple[Mirror, str]:
    """50 records in two windows, so that a marker lies between them; a group at 35, on both sides, and its checkpoint."""
    flow, group = mirror(east, west, tmp_path, settings={"checkpoints.topic.replication.factor": "1"}), topic("billing")
    for bounds in ((0, 30), (30, 50)):
        produce(east, flow.topic, numbers(*bounds))
        assert flow.run().is_verified
    commit(east, group, {(flow.topic, 0): 35})
    assert emit(flow, group) == 1
    assert [(row.downstream, row.reason) for row in sync(flow.opened, group)] == [(36, "")]
    assert last_checkpoint(flow) == (35, 36)
    return flow, group


def last_checkpoint(flow: Mirror) -> tuple[int, int]:
    last = checkpoints_on(flow)[-1]
    return last.upstream, last.downstream


def from_checkpoint(flow: Mirror) -> list[bytes | None]:
    """What a consumer reads that begins at the last checkpoint."""
    begin = last_checkpoint(flow)[1]
    return values([record for record in read_all(flow.target, flow.remote_topic)[0] if record.offset >= begin])


def test_starting_again_behind_what_is_there(running: tuple[Mirror, str]) -> None:
    flow, group = running
    reset(flow, Choice.START_AGAIN)
    assert emit(flow, group) == 0 and last_checkpoint(flow) == (
        35,
        36,
    )  # what follows there is read again, nothing lost
    assert [row.reason for row in sync(flow.opened, group)] == [Reason.NOT_VERIFIED]
    assert flow.run().copied == 50
    assert emit(flow, group) == 1
    assert from_checkpoint(flow) == values(numbers(35, 50))
    assert [row.reason for row in sync(flow.opened, group)] == [""]
    assert values(read_with_group(flow.target, group, flow.remote_topic)[0]) == values(numbers(35, 50))


def test_starting_again_in_a_new_remote_topic(running: tuple[Mirror, str]) -> None:
    """All is copied in one window now, so that positions are lower than before: MirrorMaker 2's rule would keep the old one."""
    flow, group = running
    reset(flow, Choice.START_AGAIN, recreate=True)
    assert last_checkpoint(flow) == (0, 0)
    assert [row.reason for row in sync(flow.opened, group)] == [Reason.NOT_VERIFIED]
    assert flow.run().copied == 50
    assert emit(flow, group) == 1 and last_checkpoint(flow) == (35, 35)
    assert committed(flow.target, group) == {}  # Kafka forgets the positions in a topic that is deleted
    assert [(row.downstream, row.reason) for row in sync(flow.opened, group)] == [(35, "")]
    assert values(read_with_group(flow.target, group, flow.remote_topic)[0]) == values(numbers(35, 50))


def test_going_on_with_a_loss(running: tuple[Mirror, str]) -> None:
    """The remote topic is gone, with what the group has not read there yet; it resumes at what comes next."""
    flow, group = running
    assert emit_offset_syncs(flow.flow, caught_up(flow.opened).ledger, window="syncs")
    delete_topic(flow.target, flow.remote_topic)
    assert [row.reason for row in sync(flow.opened, group)] == [Reason.MISSING]
    reset(flow, Choice.ACCEPT_LOSS)
    assert last_checkpoint(flow) == (35, 0)
    *_, last = read_syncs(*place_of_syncs(flow.flow))
    assert (last.upstream, last.downstream) == (0, -1), "MirrorMaker 2 forgets all others, and translates 35 to 0"
    produce(flow.source, flow.topic, numbers(50, 60))
    assert flow.run().is_verified
    assert [(row.downstream, row.reason) for row in sync(flow.opened, group)] == [(0, "")]
    emit(flow, group)
    assert from_checkpoint(flow) == values(numbers(50, 60))
    assert values(read_with_group(flow.target, group, flow.remote_topic)[0]) == values(numbers(50, 60))


def test_another_remote_topic(running: tuple[Mirror, str]) -> None:
    """Groups are moved in the new one; the old one is left alone, with their positions there, which lead nowhere back."""
    flow, group = running
    reset(flow, Choice.NEW_TOPIC)
    flow = replace(flow, opened=caught_up(flow.opened))
    new = flow.flow.remote_topics[flow.topic]
    assert [(row.remote_topic, row.reason) for row in sync(flow.opened, group)] == [(new, Reason.NOT_VERIFIED)]
    assert flow.run().copied == 50
    assert [(row.downstream, row.reason) for row in sync(flow.opened, group)] == [(35, "")]
    assert committed(flow.target, group) == {(flow.remote_topic, 0): 36, (new, 0): 35}
    assert values(read_with_group(flow.target, group, new)[0]) == values(numbers(35, 50))
    back = {row.topic: (row.downstream, row.reason) for row in apply(reverse_of(flow), group)}
    assert back == {new: (50, ""), flow.remote_topic: (None, Reason.NOT_REPLICATED)}


def test_a_reset_while_checkpoints_are_written(running: tuple[Mirror, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions that were translated before it are not written after it."""
    flow, group = running
    commit(flow.source, group, {(flow.topic, 0): 40})
    write_anew = checkpoints.write_anew

    def after_a_reset(*arguments: object, **named: object) -> int:
        reset(flow, Choice.START_AGAIN, recreate=True)
        return write_anew(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(checkpoints, "write_anew", after_a_reset)
    assert emit(flow, group) == 0 and last_checkpoint(flow) == (0, 0)


def test_a_group_beyond_the_end_of_the_target_is_told_so() -> None:
    row = GroupPosition(
        group="g",
        topic="orders",
        partition=0,
        committed=Committed(5),
        remote_topic="east.orders",
        found=Translated(5, 5),
        source=Extent(0, 9),
        target=Extent(0, 7),
    )
    there = {"g": {TopicPartition("east.orders", 0): Committed(8)}}
    (planned,) = plan([row], {"g": Group("g", "Empty")}, there)
    assert planned.reason == Reason.BEYOND_TARGET
