"""``airmirror verify`` sees records that no mapping record covers, on either side, and no false difference."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Partition
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.routes import TopicNotFound
from airmirror.flows.prepare import prepare
from airmirror.flows.verification import ComparedPartition, compare_all
from airmirror.naming import mapping_topic
from airmirror.slot.account import NO_DIGEST
from airmirror.slot.errors import ForeignRecords
from airmirror.windows.errors import TargetDiffers, Unaccounted
from airmirror.windows.judging import no_objection
from airmirror.windows.window import WindowOrder, run_window, verify_window
from airmirror.wire.mappings import MappingRecord
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.topics import Record, admin, create_topic, delete_topic, end_offsets, produce, read_all


def values(first: int, end: int) -> list[Record]:
    return [Record(b"v%d" % n, b"k%d" % (n % 5)) for n in range(first, end)]


def filled(east: Broker, west: Broker, directory: Path, **more: object) -> Mirror:
    """Three windows of twenty records."""
    flow = mirror(east, west, directory, **more)  # type: ignore[arg-type]
    for number in range(3):
        produce(east, flow.topic, values(20 * number, 20 * number + 20))
        flow.run()
    return flow


def write(flow: Mirror, *records: tuple[MappingRecord, bool]) -> None:
    """Put mapping records into the mapping topic, or (False) delete them."""
    with Appender(flow.flow.target, mapping_topic(flow.flow.source.alias)) as appender:
        appender.append([(record.encode_key(), record.encode_value() if kept else None) for record, kept in records])


def verified(flow: Mirror) -> ComparedPartition:
    (row,) = compare_all(flow.opened, [])
    return row


def mappings(flow: Mirror) -> list[MappingRecord]:
    return list(flow.opened.ledger.mappings(flow.topic, 0))


def gap(flow: Mirror) -> None:
    write(flow, (mappings(flow)[1], False))


def empty_record(flow: Mirror) -> None:
    """The second record says that nothing was copied, and the target has it all the same."""
    second = mappings(flow)[1]
    write(
        flow,
        (replace(second, copied=0, aborted=20, ranges=(), digest=NO_DIGEST, target_end=second.target_start), True),
    )


def foreign_at_the_end(flow: Mirror) -> None:
    produce(flow.target, flow.remote_topic, values(0, 2), partition=0)


def foreign_between(flow: Mirror) -> None:
    """Where our marker would be: one record of somebody else, and the third window after it."""
    second = mappings(flow)[1]
    run = replace(second.ranges[0], count=19)
    write(flow, (replace(second, copied=19, aborted=1, ranges=(run,), target_end=run.target_end), True))


def tail_is_lost(flow: Mirror) -> None:
    """An unclean election of the mapping topic has taken the newest record; progress is past it."""
    write(flow, (mappings(flow)[2], False))


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (gap, {("Unaccounted", 20, 39), ("ForeignRecords", 21, 40)}),
        pytest.param(empty_record, {("Unaccounted", 20, 39)}, marks=pytest.mark.long),
        (foreign_at_the_end, {("ForeignRecords", 63, 64)}),
        pytest.param(foreign_between, {("Unaccounted", 39, 39)}, marks=pytest.mark.long),
        pytest.param(tail_is_lost, {("Unaccounted", 40, 59), ("ForeignRecords", 42, 61)}, marks=pytest.mark.long),
    ],
)
def test_what_no_mapping_record_covers_is_found(
    damage: Callable[[Mirror], None], expected: set[tuple[str, int, int]], east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow = filled(east, west, tmp_path)
    assert (verified(flow).records, verified(flow).errors) == (60, ())
    damage(flow)
    row = verified(flow)
    errors = [error for error in row.errors if isinstance(error, (Unaccounted, ForeignRecords))]
    assert len(errors) == len(row.errors)
    assert {(type(error).__name__, error.first, error.last) for error in errors} == expected
    assert all(f"{flow.topic}-0" in str(error) for error in errors)


def test_records_of_others_in_an_aggregate_are_no_difference(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path, settings={"aggregate": "true"})
    foreign_at_the_end(flow)
    assert (verified(flow).records, verified(flow).errors) == (60, ())


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_others_are_compared_where_a_topic_is_gone(side: str, east: Broker, west: Broker, tmp_path: Path) -> None:
    prefix = f"part-{uuid.uuid4().hex[:8]}"
    left, gone = (create_topic(east, f"{prefix}-{name}", 1) for name in ("left", "gone"))
    flow = mirror(east, west, tmp_path, topic=f"{prefix}-.*")
    for topic in (left, gone):
        produce(east, topic, values(0, 20))
    flow.run()
    alias = flow.flow.source.alias
    delete_topic(*((east, gone) if side == "source" else (west, f"{alias}.{gone}")))
    missing, there = compare_all(flow.opened, [])
    assert (missing.topic, type(missing.error)) == (gone, TopicNotFound)
    assert (there.topic, there.records, there.errors) == (left, 20, ())
    assert [row.records for row in compare_all(flow.opened, [left])] == [20]
    excluded = replace(flow.opened, flow=replace(flow.flow, topics_exclude=(gone,)))
    assert [row.topic for row in compare_all(excluded, [])] == [left]


COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "100",
    "max.compaction.lag.ms": "100",
}


def not_judged(flow: Mirror, window: str = "w") -> None:
    run_window(
        flow.flow,
        flow.opened.ledger,
        prepare(flow.opened).topics,
        in_this_process,
        WindowOrder(window, slots=lambda _: 1, advance=False),
    )


def judged(flow: Mirror) -> list[object]:
    """The errors of a gate that trusts nobody."""
    return list(verify_window(flow.flow, flow.opened.ledger, no_objection, window="gate", trusted=()).errors)


def test_a_gap_right_after_what_is_verified_is_not_passed(east: Broker, west: Broker, tmp_path: Path) -> None:
    """The rest is accounted for in itself, and begins later than it must."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(0, 20))
    flow.run()
    for window, first in (("second", 20), ("third", 40)):
        produce(east, flow.topic, values(first, first + 20))
        not_judged(flow, window)
    write(flow, (flow.opened.ledger.unverified()[0], False))
    (error,) = judged(flow)
    assert "offsets 40 to 59 are not accounted for: the mapping record before ends at 20" in str(error)
    assert flow.opened.ledger.verified()[flow.topic, 0].offset == 19


def test_compaction_is_no_difference(east: Broker, west: Broker, tmp_path: Path) -> None:
    """The cleaner was at work on the target, in what is verified and in what the gate is to judge."""
    flow = mirror(east, west, tmp_path, config=COMPACTED)
    produce(east, flow.topic, values(0, 200))
    flow.run()
    produce(east, flow.topic, values(200, 400))
    not_judged(flow)
    for attempt in Retrying(stop=stop_after_delay(90), wait=wait_fixed(0.3), reraise=True):
        with attempt:
            produce(west, flow.remote_topic, [Record(b"roll", b"roll")], partition=0, transactional="abort")
            assert len(read_all(west, flow.remote_topic)[0]) < 200
    assert judged(flow) == []
    row = verified(flow)
    assert row.errors == () and row.records + row.expired == 400 and row.expired > 200


def test_retention_before_the_gate_is_no_difference(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, values(0, 100))
    not_judged(flow)
    client = admin(west)
    deleted = Partition(flow.remote_topic, 0, 70)
    client.delete_records([deleted])[deleted].result(30)
    assert judged(flow) == [] and not flow.opened.ledger.holds()
    assert flow.opened.ledger.verified()[flow.topic, 0].offset == 99
    row = verified(flow)
    assert (row.records, row.expired, row.errors) == (30, 70, ())


def test_what_the_target_lacks_above_its_start_is_a_difference(east: Broker, west: Broker, tmp_path: Path) -> None:
    """A topic that is not compacted: the mapping record maps one more than the target holds."""
    flow = filled(east, west, tmp_path)
    second = mappings(flow)[1]
    run = replace(second.ranges[0], target_first=second.ranges[0].target_first + 1)  # ends at our marker
    write(flow, (replace(second, ranges=(run,), target_end=run.target_end), True))
    assert any(isinstance(error, (TargetDiffers, ForeignRecords)) for error in verified(flow).errors)
    assert end_offsets(west, flow.remote_topic) == {0: 63}
