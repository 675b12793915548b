"""Whatever a source's log holds: windows copy every record exactly once, equal and in order, and count every offset.

All kinds of logs are filled at once and copied by two flows: by one window that reads back, and by two windows without
that end wherever it hurts, in the middle of batches, transactions and holes.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from airmirror.flows.status import flow_status
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.results import WindowResult
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.hostile import KINDS, Counted, Kind, numbered
from support.topics import Record, await_settled, create_topic, end_offsets, open_transaction, read_all, start_offsets

# The target must keep what it is given while it is compared: it neither compacts nor expires.
KEEP = {"config.properties.exclude": "cleanup\\.policy, segment\\.ms, retention\\.ms, message\\.timestamp\\.type"}


@dataclass(frozen=True)
class Run:
    """A flow of all kinds' topics, and its windows."""

    flow: Mirror
    windows: tuple[WindowResult, ...]


@dataclass(frozen=True)
class Copied:
    """The topics of all kinds, by the kinds' names, what must be counted in them, and the flows that copied them."""

    topics: dict[str, str]
    counted: dict[str, Counted]
    runs: tuple[Run, ...]


@pytest.fixture(scope="module")
def copied(east: Broker, west: Broker, tmp_path_factory: pytest.TempPathFactory) -> Copied:
    directory = tmp_path_factory.mktemp("any-log")

    def fill(kind: Kind) -> tuple[str, Counted]:
        name = create_topic(east, f"hostile-{uuid.uuid4().hex[:8]}", kind.partitions, kind.config)
        return name, kind.fill(east, name)

    with ThreadPoolExecutor(len(KINDS)) as threads:
        filled = dict(zip([kind.name for kind in KINDS], threads.map(fill, KINDS), strict=True))
    topics = {kind: topic for kind, (topic, _) in filled.items()}
    whole = mirror(east, west, directory, topic=", ".join(topics.values()), settings=KEEP)
    cut = mirror(east, west, directory, topic=", ".join(topics.values()), settings=KEEP | {"window.verify": "acks"})
    runs = (Run(whole, (whole.run(),)), Run(cut, (cut.run(cut_in_half), cut.run())))
    return Copied(topics, {kind: counted for kind, (_, counted) in filled.items()}, runs)


def cut_in_half(slots: Sequence[Slot]) -> list[SlotResult]:
    """Slots that end in the middle of every partition."""
    return in_this_process(
        [
            replace(
                slot, partitions=tuple(replace(p, end=p.start + (p.end - p.start + 1) // 2) for p in slot.partitions)
            )
            for slot in slots
        ]
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_kind_of_log(east: Broker, copied: Copied, kind: Kind) -> None:
    topic = copied.topics[kind.name]
    starts, ends = start_offsets(east, topic), end_offsets(east, topic)
    extents = {partition: (start, ends[partition]) for partition, start in starts.items()}
    sources = read_all(east, topic)
    for run in copied.runs:
        assert_copied(replace(run.flow, topic=topic), run.windows, copied.counted[kind.name], extents, sources)


def assert_copied(
    flow: Mirror,
    windows: Sequence[WindowResult],
    counted: Counted,
    extents: dict[int, tuple[int, int]],
    sources: dict[int, list[Record]],
) -> None:
    """Invariants C, D, E and G for all partitions, and what the rows of the windows say of them."""
    rows = [row for window in windows for row in window.rows if row.topic == flow.topic]
    assert all(row.verified and row.error is None for row in rows), [str(row.error) for row in rows]
    targets = read_all(flow.target, flow.remote_topic)
    assert set(targets) == set(sources)
    for partition, (start, end) in extents.items():
        assert [record.content for record in targets[partition]] == [record.content for record in sources[partition]]
        of_partition = [row for row in rows if row.partition == partition]
        copied = sum(row.copied for row in of_partition)
        control = sum(row.control for row in of_partition)
        aborted = sum(row.aborted for row in of_partition)
        holes = sum(row.holes for row in of_partition)
        assert copied == len(sources[partition])
        assert copied + control + aborted + holes == end - start
        assert not any(row.lost for row in of_partition)
        if partition == 0 and counted.control >= 0:
            assert (control, aborted, holes > 0) == (counted.control, counted.aborted, counted.has_holes)
        position = start
        mapping = {}
        for record in flow.opened.ledger.mappings(flow.topic, partition):
            assert record.source_start == position
            position = record.source_end
            assert record.copied + record.control + record.aborted + record.holes == position - record.source_start
            for run in record.ranges:
                for number in range(run.count):
                    mapping[run.source_first + number] = run.target_first + number
        assert position == end
        pairs = zip(sources[partition], targets[partition], strict=True)
        assert mapping == {source.offset: target.offset for source, target in pairs}


def test_a_transaction_that_is_left_open(east: Broker, west: Broker, tmp_path: Path) -> None:
    """What lies behind its first record waits until it ends, is counted as lag, and is then copied in order."""
    flow = mirror(east, west, tmp_path)
    records = numbered(5)
    with open_transaction(east, flow.topic, records, partition=0) as producer:
        with open_transaction(east, flow.topic, records[::-1], partition=0) as other:
            other.commit_transaction(30)
        result = flow.run()
        assert result.is_verified and not result.copied
        assert flow.run().copied == 0
        assert flow_status(flow.opened).lag == 11, "to the high watermark, not to the last stable offset"
        producer.commit_transaction(30)
    assert await_settled(east, flow.topic)[0] == 12
    assert flow.run().copied == 10
    assert flow.assert_equal() == 10
