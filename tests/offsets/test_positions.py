"""Positions that can't be translated, what the ledger may have lost, and mappings that nobody needs any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from confluent_kafka import TopicPartition as Partition

from airmirror.clusters.protocol.groups import Committed
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.flows.post_window import prune_if_due
from airmirror.flows.prepare import catch_up_ledger, prepare
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.offsets.positions import GroupPosition, _row, positions_of, positions_without_source
from airmirror.offsets.pruning import delete_mappings, prune_mappings
from airmirror.offsets.replicated import Extent, Known, PositionLookup
from airmirror.offsets.translation import Reason, Replicated, Translated
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.mirror import Journal
from airmirror.windows.mirror import Mirror as Session
from airmirror.windows.resets import Choice
from airmirror.windows.window import WindowOrder, run_window
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.ledgers import mapping
from support.topics import Record, admin, create_topic, produce, read_all


def translated(flow: Mirror, offsets: dict[tuple[str, int], int], using: Flow | None = None) -> list[GroupPosition]:
    """A group's positions that need not be committed: what a broker would not take can be asked for too."""
    catch_up_ledger(flow.opened)
    committed = {"g": {TopicPartition(*key): Committed(offset) for key, offset in offsets.items()}}
    with Session.open(using or flow.flow, flow.opened.ledger, "test") as both:
        return positions_of(both, committed)


def test_what_is_not_there_has_a_reason(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(10)], partition=0)
    flow.run()
    other = create_topic(east, topic("other"))
    asked = {(flow.topic, 0): 4, (flow.topic, 1): 0, (flow.topic, 9): 4, (topic("gone"), 0): 4, (other, 0): 0}
    found = {(row.topic, row.partition): row.found for row in translated(flow, asked)}
    assert [found[key] for key in asked] == [
        Translated(4, 4),
        Translated(0, 0),
        Reason.NO_PARTITION,
        Reason.NOT_REPLICATED,
        Reason.NOT_REPLICATED,
    ]


def test_a_lost_ledger_is_rebuilt_without_help(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    for _ in range(3):
        produce(east, flow.topic, [Record(b"v%d" % n) for n in range(10)])
        flow.run()
    asked = {(flow.topic, 0): 25}
    (before,) = translated(flow, asked)
    assert before.found == Translated(25, 27)  # two markers lie before
    flow.opened.ledger.forget()
    assert translated(flow, asked) == [before]


@pytest.mark.parametrize("side", ["source", "target"])
def test_no_translation_lies_past_the_log_end_of_the_other_cluster(
    side: Literal["source", "target"], east: Broker, west: Broker, tmp_path: Path
) -> None:
    """A log that was cut has its topic id still."""
    flow = mirror(east, west, tmp_path, topic="orders")
    names = {"orders": flow.remote_topic, flow.remote_topic: "orders"}
    logs = (Extent(0, 100), Extent(0, 60)) if side == "source" else (Extent(0, 60), Extent(0, 100))
    known = Known(*logs, mapping(0, 100), Replicated(0, 0, 99, 100, (mapping(0, 100),)))
    with Routes(flow.flow.source, "test") as source, Routes(flow.flow.target, "test") as target:
        lookup = PositionLookup(
            flow=flow.flow, ledger=flow.opened.ledger, source=source, target=target, remote_topics=names, groups_on=side
        )
        found = [_row("g", TopicPartition("orders", 0), Committed(at), lookup, known).found for at in (60, 61, 100)]
    assert found == [Translated(60, 60), Reason.BEYOND_TARGET, Reason.BEYOND_TARGET]


def test_an_aggregate_moves_only_groups_that_are_named(east: Broker, west: Broker, tmp_path: Path) -> None:
    """With its source and without. What is none of its own is told as what it is."""
    flow, other = mirror(east, west, tmp_path), create_topic(east, f"payments-{tmp_path.name}")
    produce(east, flow.topic, [Record(b"v%d" % n) for n in range(10)])
    flow.run()
    asked = {(flow.topic, 0): 4, (other, 0): 0, (flow.topic, 9): 4}
    for groups, expected in (((".*",), Reason.AGGREGATE), (("h", "g"), Translated(4, 4))):
        aggregate = replace(flow.flow, settings=replace(flow.flow.settings, aggregate=True, groups=groups))
        found = {(row.topic, row.partition): row.found for row in translated(flow, asked, aggregate)}
        assert [found[key] for key in asked] == [expected, Reason.NOT_REPLICATED, Reason.NO_PARTITION]
        with Journal.open(aggregate, flow.opened.ledger, "test") as journal:
            (row,) = positions_without_source(journal, {"g": {TopicPartition(flow.topic, 0): Committed(4)}})
        assert row.found == expected


def test_mappings_below_the_log_start_are_pruned_but_the_newest(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    for _ in range(4):
        produce(east, flow.topic, [Record(b"v%d" % n) for n in range(10)])
        flow.run()
    ledger = flow.opened.ledger

    def starts() -> list[int]:
        catch_up_ledger(flow.opened)
        return [record.source_start for record in ledger.mappings(flow.topic, 0)]

    assert prune_mappings(flow.flow, ledger) == 0 and starts() == [0, 10, 20, 30]
    delete_before(east, flow.topic, 25)
    assert prune_mappings(flow.flow, ledger) == 2 and starts() == [20, 30]
    (kept, gone) = (translated(flow, {(flow.topic, 0): at})[0].found for at in (27, 3))
    assert kept == Translated(27, 29) and gone is Reason.BEFORE_MAPPINGS
    delete_before(east, flow.topic, 40)
    assert prune_mappings(flow.flow, ledger) == 1 and starts() == [30]
    ledger.forget()
    assert starts() == [30]
    produce(east, flow.topic, [Record(b"more")])
    assert flow.run().is_verified
    assert [record.value for record in read_all(west, flow.remote_topic)[0]][-1] == b"more"


def test_pruning_keeps_what_is_not_verified_and_what_is_new(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    ledger = flow.opened.ledger
    for number in range(3):
        produce(east, flow.topic, [Record(b"v%d" % n) for n in range(10)])
        topics = prepare(flow.opened).topics
        run_window(
            flow.flow,
            ledger,
            topics,
            in_this_process,
            WindowOrder(f"w{number}", slots=lambda _: 1, advance=number == 0),
        )

    def starts() -> list[int]:
        catch_up_ledger(flow.opened)
        return [record.source_start for record in ledger.mappings(flow.topic, 0)]

    delete_before(east, flow.topic, 25)
    assert prune_mappings(flow.flow, ledger) == 1 and starts() == [10, 20], "10 to 19 are not verified"

    asked = list[list[int]]()

    def keys() -> list[bytes]:
        """The first time somebody starts again between the answer and the deletion, and a window writes the same keys."""
        found = [record.encode_key() for record in ledger.mappings(flow.topic, 0) if record.source_end <= 20]
        asked.append([record.source_start for record in ledger.mappings(flow.topic, 0)])
        if len(asked) == 1:
            carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.START_AGAIN, by="ada", reason="a test"))
            assert flow.run().copied == 5
        return found

    assert delete_mappings(flow.flow, ledger, keys, print) == 0
    assert asked == [[10, 20], [25]] and starts() == [25]


def test_pruning_waits_for_its_hour_and_for_windows(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Whatever is emitted: it needs no checkpoints."""
    flow = mirror(east, west, tmp_path, settings={"emit.checkpoints.enabled": "false"})
    for _ in range(3):
        produce(east, flow.topic, [Record(b"v%d" % n) for n in range(10)])
        flow.run()
    delete_before(east, flow.topic, 20)
    produce(east, flow.topic, [Record(b"more")])

    def in_the_middle(slots: Sequence[Slot]) -> list[SlotResult]:
        assert prune_if_due(flow.opened) is None, "a window is at work"
        return in_this_process(slots)

    flow.run(in_the_middle)
    assert prune_if_due(flow.opened) == 2
    assert prune_if_due(flow.opened) is None, "not yet"


def delete_before(cluster: Broker, topic: str, offset: int) -> None:
    client = admin(cluster)
    client.delete_records([Partition(topic, 0, offset)])[Partition(topic, 0, offset)].result(30)
