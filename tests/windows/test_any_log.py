"""Whatever a source's log holds: windows copy every record exactly once, equal and in order, and count every offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.windows.slots import Slot, SlotResult
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.hostile import KINDS, Counted, Kind
from support.topics import create_topic, end_offsets, read_all, start_offsets

# The target must keep what it is given while it is compared: it neither compacts nor expires.
KEEP = {"config.properties.exclude": "cleanup\\.policy, segment\\.ms, retention\\.ms, message\\.timestamp\\.type"}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_of_log(east: Broker, west: Broker, tmp_path: Path, topic: object, kind: Kind) -> None:
    name = create_topic(east, topic("hostile"), kind.partitions, kind.config)  # type: ignore[operator]
    counted = kind.fill(east, name)
    whole = mirror(east, west, tmp_path, topic=name, settings=KEEP)
    assert_copied(whole, [whole.run()], counted)
    cut = mirror(east, west, tmp_path, topic=name, settings=KEEP | {"window.verify": "acks"})
    assert_copied(cut, in_parts(cut), counted)


def in_parts(flow: Mirror) -> list[object]:
    """Windows that end wherever it hurts: in the middle of batches, transactions and holes."""
    first, end = start_offsets(flow.source, flow.topic)[0], end_offsets(flow.source, flow.topic)[0]
    cuts = {(first + end) // 2} & set(range(first + 1, end))

    def only_to(cut: int):  # type: ignore[no-untyped-def]
        def execute(slots: Sequence[Slot]) -> list[SlotResult]:
            return in_this_process(
                [replace(s, partitions=tuple(replace(p, end=min(p.end, cut)) for p in s.partitions)) for s in slots]
            )

        return execute

    return [*(flow.run(only_to(cut)) for cut in cuts), flow.run()]


def assert_copied(flow: Mirror, results: Sequence[object], counted: Counted) -> None:
    """Invariants C, D, E and G for all partitions, and what the rows of the windows say of them."""
    for result in results:
        assert result.is_verified, [str(row.error) for row in result.rows]
    rows = [row for result in results for row in result.rows]
    flow.assert_equal()
    starts, ends = start_offsets(flow.source, flow.topic), end_offsets(flow.source, flow.topic)
    sources, targets = read_all(flow.source, flow.topic), read_all(flow.target, flow.remote_topic)
    for partition, start in starts.items():
        of_partition = [row for row in rows if row.partition == partition]
        copied = sum(row.copied for row in of_partition)
        control = sum(row.control for row in of_partition)
        aborted = sum(row.aborted for row in of_partition)
        holes = sum(row.holes for row in of_partition)
        assert copied == len(sources[partition])
        assert copied + control + aborted + holes == ends[partition] - start
        if partition == 0 and counted.control >= 0:
            assert (control, aborted, holes > 0) == (counted.control, counted.aborted, counted.has_holes)
        position = start
        mapping = {}
        for record in flow.opened.ledger.segments(flow.topic, partition):
            assert record.source_start == position
            position = record.source_end
            assert record.copied + record.control + record.aborted + record.holes == position - record.source_start
            for segment in record.segments:
                for number in range(segment.count):
                    mapping[segment.source_first + number] = segment.target_first + number
        assert position == ends[partition]
        pairs = zip(sources[partition], targets[partition], strict=True)
        assert mapping == {source.offset: target.offset for source, target in pairs}
