"""The plan: where partitions resume, what is an error of theirs, and how they are packed into slots."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from airmirror.config import parse
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import SlotPartition
from airmirror.windows.errors import ProgressDiffers
from airmirror.windows.fence import Fenced, GrantedLease, Renewal
from airmirror.windows.index import InternalTopics
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import LogExtent, Planned, leaderless, left_out, pack, plan
from airmirror.windows.starts import at_latest, commit_starts, need_starts
from airmirror.wire.mappings import Lease, LeaseEvent, MappedRange, MappingRecord


def partition(number: int) -> SlotPartition:
    return SlotPartition(
        topic="orders",
        partition=number,
        remote_topic="east.orders",
        start=0,
        end=1,
        source_topic_id=UUID(int=1),
        target_topic_id=UUID(int=2),
        target_end=-1,
        leader_epoch=-1,
        compacted=False,
        max_message_bytes=1_000_000,
    )


@given(st.lists(st.floats(0, 1e12), max_size=60), st.integers(1, 8))
def test_every_partition_is_in_one_slot_and_no_slot_has_more_than_its_part(sizes: list[float], slots: int) -> None:
    sized = {partition(number): size for number, size in enumerate(sizes)}
    packed = pack(list(sized.items()), slots)
    assert sorted(each.partition for members, _ in packed for each in members) == list(range(len(sizes)))
    assert len(packed) == min(slots, len(sizes))
    assert all(members for members, _ in packed if any(sizes))
    bytes_of = [sum(sized[each] for each in members) for members, _ in packed]
    if sum(sizes):
        # The largest first, each to the emptiest slot: what makes a slot the fullest was put into the emptiest one.
        assert max(bytes_of) - min(bytes_of) <= max(sizes) * 1.000001
        assert abs(sum(share for _, share in packed) - 1) < 1e-6


SOURCE, REMOTE = UUID(int=1), UUID(int=2)


def last(start: int, end: int) -> MappingRecord:
    return MappingRecord(
        source_topic_id=SOURCE,
        topic="orders",
        partition=0,
        source_start=start,
        window="w",
        slot=0,
        time_ms=0,
        source_end=end,
        target_topic_id=REMOTE,
        remote_topic="east.orders",
        target_start=start,
        target_end=end,
        copied=end - start,
        control=0,
        aborted=0,
        holes=0,
        lost=0,
        size=50,
        max_timestamp=0,
        leader_epoch=1,
        digest=bytes(16),
        ranges=(MappedRange(start, start, end - start),),
    )


def planned_of(state: State) -> Planned:
    key = TopicPartition("orders", 0)
    [found] = plan(
        source="east",
        progress_topic="mm2",
        remote_topics={"orders": "east.orders"},
        extents={key: LogExtent(5, 90, 100)},
        topic_ids={"orders": SOURCE},
        state=state,
    )
    return found


@given(st.none() | st.integers(5, 100), st.none() | st.integers(5, 100))
def test_the_newest_mapping_says_where_to_continue_and_progress_only_where_there_is_none(
    mapping_end: int | None, progress_end: int | None
) -> None:
    key = ("orders", 0)
    state = State(
        mappings={} if mapping_end is None else {key: last(0, mapping_end)},
        progress={} if progress_end is None else {key: progress_end - 1},
    )
    found = planned_of(state)
    assert found.start == next((end for end in (mapping_end, progress_end) if end is not None), 5)
    differ = None not in (mapping_end, progress_end) and mapping_end != progress_end
    assert isinstance(found.error, ProgressDiffers) == differ and found.last == state.mappings.get(key)


def test_progress_that_differs_names_both_and_the_way_out() -> None:
    state = State(mappings={("orders", 0): last(0, 50)}, progress={("orders", 0): 69})
    said = str(planned_of(state).error)
    assert "offset 69" in said and "offset 49" in said and "offsets 50 to 69" in said
    assert "airmirror reset --topic orders --partition 0 --accept-loss" in said
    said = str(planned_of(replace(state, progress={("orders", 0): 39})).error)
    assert "offset 39" in said and "offset 49" in said and "was cut or altered" in said


LATEST = parse(
    "clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\n"
    "a->b.consumer.auto.offset.reset = latest\n",
    "test",
).flow("a->b")


def part(number: int, start: int, end: int) -> Planned:
    return Planned("orders", number, "a.orders", start=start, end=end, high_watermark=end)


def test_under_latest_a_first_window_that_finds_nothing_is_the_first_all_the_same() -> None:
    """Without a start the next window would skip what was written meanwhile. An empty partition besides others needs none."""
    full, empty = part(0, 5, 90), part(1, 0, 0)
    gone = replace(part(2, 0, 0), error=leaderless("a", TopicPartition("orders", 2)))
    assert [(each.planned, each.end) for each in at_latest(LATEST, State(), [full, empty])] == [(full, 90)]
    assert [(each.planned, each.end) for each in at_latest(LATEST, State(), [empty, gone])] == [(empty, 0)]
    [begun] = at_latest(LATEST, State(), [empty])
    [record] = begun.records((SOURCE, REMOTE), window="w", time_ms=0)
    state = State(mappings={(record.topic, record.partition): record})
    assert state.positions == {("orders", 1): 0} and not need_starts(
        LATEST, state, [replace(part(1, 0, 10), last=record)]
    )


def test_under_latest_nothing_begins_before_every_partition_can_be_seen() -> None:
    """One that is seen later would begin at its earliest offset (a partition without a leader in the first window)."""
    flow, seen = LATEST, part(0, 5, 90)
    unseen = left_out(TopicPartition("orders", 1), "a.orders", State(), leaderless("a", TopicPartition("orders", 1)))
    nothing: Any = None
    silent: Any = SimpleNamespace(refresh=lambda topics: None)  # nothing else may be asked of it
    both = Mirror(flow, silent, InternalTopics("mappings", "progress"), nothing, nothing)
    lease = Lease(window="w", event=LeaseEvent.TAKEN, owner="me", time_ms=0, duration_ms=1, slots=1)
    granted = GrantedLease(both, nothing, Renewal(lease, print), 0)
    errors = commit_starts(both, granted, Fenced((0,)), State(), [seen, unseen])
    assert set(errors) == {seen.key, unseen.key} and "orders-1" in str(errors[seen.key])
    assert all(error is not None and error.transient for error in errors.values())
