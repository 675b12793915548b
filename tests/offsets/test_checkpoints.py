"""Checkpoints: MirrorMaker 2's topic, bytes and rule, never past the verified offset."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.appender import Appender
from airmirror.clusters.groups import Committed
from airmirror.offsets.checkpoints import checkpoints_of
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Reason, Translated
from airmirror.windows.errors import FlowBusy
from airmirror.windows.slots import Slot, SlotResult
from airmirror.wire.checkpoints import Checkpoint
from airmirror_local.brokers import Broker
from support.flows import in_this_process, mirror
from support.groups import commit
from support.rounds import checkpoints_on, emit
from support.topics import Record, create_topic, delete_topic, produce


def at(position: int, translation: int) -> GroupPosition:
    return GroupPosition("g", "orders", 0, Committed(position, "m"), "east.orders", Translated(position, translation))


@pytest.mark.parametrize(
    ("upstream", "downstream", "written"),
    [(5, 5, False), (6, 6, True), (6, 5, False), (4, 4, True), (4, 9, True), (5, 6, True)],
)
def test_mirrormaker_2s_rule(upstream: int, downstream: int, written: bool) -> None:
    new, last = Checkpoint("g", "east.orders", 0, upstream, downstream, "m"), Checkpoint("g", "east.orders", 0, 5, 5)
    assert checkpoints_of([at(upstream, downstream)], {last.key: last}) == ([new] if written else [])
    assert checkpoints_of([at(upstream, downstream)], {}) == [new]
    untranslated = replace(at(1, 1), found=Reason.NOT_VERIFIED)
    assert checkpoints_of([untranslated], {}) == []


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
