"""Records before the first replicated offset go into topics of their own: once, in order, verified; every record compared."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.flows.audit import Audit, Bucket, MappingsGone, Range, audit, ranges_of
from airmirror.flows.audit_report import as_text, shown_audit
from airmirror.flows.backfill import BackfillFailed, backfill, before_the_first, joined
from airmirror.flows.maintenance import DAY_MS, prune
from airmirror.flows.prepare import Opened, backfill_of, prepare
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.errors import FlowBusy
from airmirror.windows.results import WindowResult
from airmirror.windows.window import Execute, WindowOrder
from airmirror_local.brokers import Broker
from support.flows import Mirror, in_this_process, mirror
from support.topics import Record, create_topic, end_offsets, produce, read_all

HOUR = 3_600_000
START = 1_700_000_000_000 // HOUR * HOUR
SETTINGS = {"consumer.auto.offset.reset": "latest", "backfill.into.suffix": ".history"}


def records(first: int, count: int) -> list[Record]:
    """A record a minute."""
    return [Record(b"value-%d" % n, b"key-%d" % n, (), START + n * 60_000) for n in range(first, first + count)]


def content(cluster: Broker, topic: str) -> dict[int, list[Record]]:
    """All records of a topic, wherever they lie."""
    found = read_all(cluster, topic)
    return {partition: [replace(record, offset=-1) for record in some] for partition, some in found.items()}


def begun(east: Broker, west: Broker, directory: Path, partitions: int = 1, *, died: bool = False) -> Mirror:
    """A flow that began at the 151st record; it has 30 more. ``died``: its first transaction was aborted."""
    topic = create_topic(east, f"orders-{uuid.uuid4().hex[:8]}", partitions)
    settings = SETTINGS | {"topics": f"{topic}.*"}
    flow = mirror(east, west, directory, topic=topic, settings=settings)
    for partition in range(partitions):
        produce(east, topic, records(0, 150), partition=partition, records_per_batch=7)
    flow.run()
    if died:
        produce(west, flow.remote_topic, records(150, 30), partition=0, transactional="abort")
    for partition in range(partitions):
        produce(east, topic, records(150, 30), partition=partition)
    assert flow.run().copied == 30 * partitions
    return flow


def hours(flow: Mirror, first: int, end: int) -> list[Range]:
    ranges, _ = ranges_of(flow.opened, [flow.topic], START + first * HOUR, START + end * HOUR)
    return before_the_first(flow.opened, ranges)


def fill(
    flow: Mirror, first: int, end: int, execute: Execute = in_this_process, name: str = "b"
) -> WindowResult | None:
    """Of hours ``first`` until before ``end``."""
    return backfill(flow.opened, hours(flow, first, end), execute, WindowOrder(f"{name}-{first}", slots=lambda _: 2))


def beside(flow: Mirror) -> Opened:
    found = backfill_of(flow.opened)
    assert found is not None
    return found


def test_it_is_replicated_once_in_order_and_compared(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = begun(east, west, tmp_path, 2)
    history = f"{flow.remote_topic}.history"
    assert [(item.start, item.end) for item in hours(flow, 2, 3)] == [(120, 150), (120, 150)]
    for hour, copied in ((0, 120), (2, 180), (1, None), (0, None), (2, None)):
        result = fill(flow, hour, hour + 1)
        assert (result and result.copied) == copied
        end = 60 if hour == 0 and copied else 150
        assert content(west, history) == {0: records(0, end), 1: records(0, end)}
    assert content(west, flow.remote_topic) == {0: records(150, 30), 1: records(150, 30)}
    assert not beside(flow).ledger.unverified() and {
        each.offset for each in beside(flow).ledger.verified().values()
    } == {149}
    # The flow continues as ever, and nothing of the one is in the other.
    produce(east, flow.topic, records(180, 10), partition=0)
    assert flow.run().copied == 10 and fill(flow, 0, 4) is None
    assert content(west, history) == {0: records(0, 150), 1: records(0, 150)}
    assert content(west, flow.remote_topic) == {0: records(150, 40), 1: records(150, 30)}
    ranges, _ = ranges_of(flow.opened, [flow.topic], START, START + 4 * HOUR)
    ours = audit(flow.opened, ranges, refuse_before=False, refuse_missing=True)
    theirs = audit(beside(flow), before_the_first(flow.opened, ranges), refuse_before=False, refuse_missing=True)
    found = joined(ours, theirs)
    assert not found.errors and sum(item.equal for item in found.partitions) == 370
    assert sum(bucket.source for bucket in found.buckets.values()) == 370
    assert sum(bucket.target for bucket in found.buckets.values()) == 370
    assert history in as_text(shown_audit(found, flow.flow.name, "run"))


def test_of_pruned_mappings_nothing_is_copied_again(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = begun(east, west, tmp_path, died=True)
    assert [(item.start, item.end) for item in hours(flow, 0, 4)] == [(0, 150)], "what was aborted is no record"
    for first in (180, 190):
        produce(east, flow.topic, records(first, 10))
        flow.run()
    assert prune(flow.opened, 30, now_ms=int(time.time() * 1000) + 31 * DAY_MS).mappings == 2
    assert hours(flow, 0, 4) == []
    ranges, _ = ranges_of(flow.opened, [flow.topic], START, START + 4 * HOUR)
    (error,) = audit(flow.opened, ranges, refuse_before=True, refuse_missing=False).errors
    assert isinstance(error, MappingsGone) and (error.first, error.last, error.known) == (0, 189, 190)
    assert "--start-again" not in str(error), "which would copy all of it again"
    assert not audit(flow.opened, ranges, refuse_before=False, refuse_missing=False).errors


def test_two_audits_together_have_the_latency_of_both() -> None:
    one, other = Bucket(2, 2, 2, 100, 60), Bucket(1, 1, 1, 20, 20)
    found = joined(Audit((), {0: one}), Audit((), {0: other, HOUR: other}))
    assert [(each.replicated, each.latency_ms) for each in found.buckets.values()] == [(3, 40.0), (1, 20.0)]


def test_one_that_died_is_continued_also_with_a_ledger_that_was_lost(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow = begun(east, west, tmp_path, 2)

    def dies(slots: Sequence[Slot]) -> list[SlotResult]:
        in_this_process(slots[:1])
        raise InterruptedError

    with pytest.raises(InterruptedError):
        fill(flow, 0, 3, dies, "died")
    beside(flow).ledger.forget()
    flow.opened.ledger.forget()
    result = fill(flow, 0, 3)
    assert result is not None and result.copied == 150 and not beside(flow).ledger.unverified()
    assert content(west, f"{flow.remote_topic}.history") == {0: records(0, 150), 1: records(0, 150)}
    assert fill(flow, 0, 3) is None


@pytest.mark.long  # it takes the flow's lease, as any window: tests/windows/test_faults.py has two at once
def test_it_and_the_flow_never_write_at_once(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = begun(east, west, tmp_path)
    produce(east, flow.topic, records(180, 5))

    def meanwhile(slots: Sequence[Slot]) -> list[SlotResult]:
        with pytest.raises(FlowBusy):
            flow.run(window="live")
        return in_this_process(slots)

    filled = fill(flow, 0, 3, meanwhile)
    assert filled is not None and filled.copied == 150

    def backfilling(slots: Sequence[Slot]) -> list[SlotResult]:
        with pytest.raises(FlowBusy):
            backfill(flow.opened, [Range(flow.topic, 0, 0, 151)], in_this_process, WindowOrder("late"))
        return in_this_process(slots)

    assert flow.run(backfilling).copied == 5
    assert content(west, f"{flow.remote_topic}.history") == {0: records(0, 150)}
    assert content(west, flow.remote_topic) == {0: records(150, 35)}


def test_nobody_elses_topic_is_written(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = begun(east, west, tmp_path)
    history = create_topic(west, f"{flow.remote_topic}.history")
    produce(west, history, records(0, 1))
    with pytest.raises(BackfillFailed, match="records of another writer"):
        fill(flow, 0, 3)
    assert end_offsets(west, history) == {0: 1}


def test_it_never_shares_a_topic_with_the_flow_itself(east: Broker, west: Broker, tmp_path: Path) -> None:
    first, second = begun(east, west, tmp_path), begun(east, west, tmp_path)
    # A topic of the source that would come under the same name: before the backfill it is in its way, …
    produce(east, create_topic(east, f"{first.topic}.history"), records(0, 3))
    with pytest.raises(BackfillFailed, match="several topics of the source"):
        fill(first, 0, 3)
    assert first.run().copied == 3 and content(west, f"{first.remote_topic}.history") == {0: records(0, 3)}
    # … after it the topic is refused, and the others continue; also with a ledger that was lost.
    filled = fill(second, 0, 3)
    assert filled is not None and filled.copied == 150
    produce(east, create_topic(east, f"{second.topic}.history"), records(0, 3))
    produce(east, second.topic, records(180, 5))
    beside(second).ledger.forget()
    second.opened.ledger.forget()
    (refused,) = prepare(second.opened).refused
    assert f"{second.topic}.history" in refused and "older records of another topic" in refused
    assert second.run().copied == 5
    assert content(west, f"{second.remote_topic}.history") == {0: records(0, 150)}
