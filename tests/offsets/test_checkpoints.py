"""Checkpoints: MirrorMaker 2's topic, bytes and rule, never past the verified offset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.client import translate_offsets
from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.groups import Committed, commit_offsets
from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.prepare import caught_up
from airmirror.ledger import LedgerUnavailable
from airmirror.offsets.checkpoints import checkpoints_of, emit_checkpoints
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.errors import FlowBusy
from airmirror.wire.checkpoints import Checkpoint
from airmirror_local.brokers import Broker
from support.flows import in_this_process, mirror
from support.groups import commit
from support.post_window import checkpoints_on, emit, of_groups, reverse_of, sync
from support.topics import Record, create_topic, delete_topic, produce, read_all


def at(position: int, translation: int) -> GroupPosition:
    return GroupPosition(
        group="g",
        topic="orders",
        partition=0,
        committed=Committed(position, "m"),
        remote_topic="east.orders",
        found=Translated(position, translation),
    )


@pytest.mark.parametrize(
    ("upstream", "downstream", "written"),
    [
        (5, 5, False),
        (6, 6, True),
        (6, 5, False),
        (4, 4, True),
        (4, 9, True),
        (5, 6, True),
        (6, 4, False),
        (5, 4, False),  # further on the source and back on the target: never back
    ],
)
def test_mirrormaker_2s_rule(upstream: int, downstream: int, written: bool) -> None:
    new, last = (
        Checkpoint(group="g", topic="east.orders", partition=0, upstream=upstream, downstream=downstream, metadata="m"),
        Checkpoint("g", "east.orders", 0, 5, 5),
    )
    assert checkpoints_of([at(upstream, downstream)], {last.key: last}) == ([new] if written else [])
    assert checkpoints_of([at(upstream, downstream)], {}) == [new]
    untranslated = replace(at(1, 1), found=Reason.NOT_VERIFIED)
    assert checkpoints_of([untranslated], {}) == []


def test_a_groups_name_stops_no_other(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str], caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever may commit an offset on the source names his group as he likes, and writes any metadata beside it."""
    flow, group = mirror(east, west, tmp_path), topic("billing")
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(50)])
    flow.run()
    position = {TopicPartition(flow.topic, 0): Committed(20, "by librdkafka\0")}
    names = (group, f"{group}-x\0y", f"{group}-" + "a" * 600)
    with Routes(flow.flow.source, "test") as source:
        assert commit_offsets(source, dict.fromkeys(names, position)) == {}
    assert emit(flow, f"{group}.*") == 1
    written = Checkpoint(
        group=group, topic=flow.remote_topic, partition=0, upstream=20, downstream=20, metadata="by librdkafka"
    )
    assert checkpoints_on(flow) == [written]
    assert emit(flow, f"{group}.*", "again") == 0, "what was written is known"
    assert flow.opened.ledger.malformed == 0
    assert [row.group for row in sync(flow.opened, f"{group}.*")] == [group]
    assert "is left out: its name has a NUL" in caplog.text and "longer than 512 characters" in caplog.text
    properties = {"bootstrap.servers": west.bootstrap}
    (found,) = translate_offsets(properties, flow.flow.source.alias, group)
    assert (found.topic, found.partition, found.offset, found.metadata) == (flow.remote_topic, 0, 20, "by librdkafka")


def test_metadata_of_mirrormaker_2s_checkpoints_may_end_with_a_nul(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    alias, group = f"s{topic('alias').rpartition('-')[2]}", topic("billing")
    checkpoints = create_topic(west, f"{alias}.checkpoints.internal", config={"cleanup.policy": "compact"})
    record = Checkpoint(group=group, topic=f"{alias}.orders", partition=0, upstream=20, downstream=19, metadata="m\0")
    produce(west, checkpoints, [Record(record.encode_value(), record.encode_key())], partition=0)
    (found,) = translate_offsets({"bootstrap.servers": west.bootstrap}, alias, group)
    assert (found.offset, found.metadata) == (19, "m")


def test_lags_that_cannot_be_noted_keep_no_checkpoint_back(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, group = mirror(east, west, tmp_path), topic("billing")
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(50)])
    flow.run()
    commit(east, group, {(flow.topic, 0): 20})

    def refused(*_given: object) -> None:
        raise LedgerUnavailable("sqlite://", "no space left")

    monkeypatch.setattr(flow.opened.ledger, "note_group_lags", refused)
    assert emit(flow, group) == 1 and len(checkpoints_on(flow)) == 1


def test_the_reverse_flow_of_a_flow_needs_nothing_to_replicate(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """Its own windows have never run, and its cluster has no topic of its own: groups' positions go back all the same."""
    flow, group = mirror(east, west, tmp_path), topic("billing")
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(50)])
    flow.run()
    back = caught_up(reverse_of(flow))
    assert emit_checkpoints(of_groups(back.flow, group), back.ledger, window="idle") == 0
    commit(west, group, {(flow.remote_topic, 0): 30})
    assert emit_checkpoints(of_groups(back.flow, group), back.ledger, window="back") == 1
    (records,) = read_all(east, "west.checkpoints.internal").values()
    found = [Checkpoint.decode(each.key or b"", each.value) for each in records if each.value]
    assert [point for point in found if point.group == group] == [Checkpoint(group, flow.topic, 0, 30, 30)]


def test_checkpoints_are_written_when_a_group_moves_up_to_the_verified_offset(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path, partitions=2), topic("billing")
    for partition in range(2):
        produce(east, flow.topic, [Record(b"v%d" % n) for n in range(50)], partition=partition)
    flow.run()
    commit(east, group, {(flow.topic, 0): 20, (flow.topic, 1): 50})
    assert emit(flow, group, "first") == 2
    assert emit(flow, group, "again") == 0
    written = [Checkpoint(group, flow.remote_topic, 0, 20, 20), Checkpoint(group, flow.remote_topic, 1, 50, 50)]
    assert checkpoints_on(flow) == written
    produce(east, flow.topic, [Record(b"w%d" % n) for n in range(50)], partition=0)
    commit(east, group, {(flow.topic, 0): 70, (flow.topic, 1): 40})
    assert emit(flow, group, "not verified") == 2
    written += [Checkpoint(group, flow.remote_topic, 0, 50, 50), Checkpoint(group, flow.remote_topic, 1, 40, 40)]
    assert checkpoints_on(flow) == written
    flow.run()
    # A record of somebody else is skipped, and what is in the topic counts, not what the ledger was told.
    with Appender(flow.flow.target, f"{flow.flow.source.alias}.checkpoints.internal") as appender:
        appender.append([(b"foreign", b"record"), (b"", b"")])
    flow.opened.ledger.forget()
    assert emit(flow, group, "verified") == 1
    assert checkpoints_on(flow)[-1] == Checkpoint(group, flow.remote_topic, 0, 70, 71)
    assert flow.opened.ledger.malformed == 2


def test_while_a_window_is_at_work_nothing_is_written(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path), topic("billing")
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(50)])
    flow.run()
    commit(east, group, {(flow.topic, 0): 20})
    produce(east, flow.topic, [Record(b"more")])

    def meanwhile(slots: list[Slot]) -> list[SlotResult]:
        with pytest.raises(FlowBusy):
            emit(flow, group, "meanwhile")
        return in_this_process(slots)

    flow.run(meanwhile)  # type: ignore[arg-type]
    assert emit(flow, group, "afterwards") == 1


def test_a_checkpoints_topic_that_was_made_anew_is_filled_again(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow, group = mirror(east, west, tmp_path), topic("billing")
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(50)])
    flow.run()
    commit(east, group, {(flow.topic, 0): 20})
    assert emit(flow, group, "first") == 1
    name = f"{flow.flow.source.alias}.checkpoints.internal"
    delete_topic(west, name)
    create_topic(west, name, config={"cleanup.policy": "compact"})
    assert emit(flow, group, "second") == 1
    assert checkpoints_on(flow) == [Checkpoint(group, flow.remote_topic, 0, 20, 20)]
