"""A source that no longer has what comes next: never a silent jump, never a record of another log (invariant E)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from airmirror.flows.reset import ResetOrder, carry_out, consider
from airmirror.flows.verification import compare_all
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import SourceDiverged, SourceTruncated, TopicRecreated
from airmirror.windows.resets import Choice
from airmirror_local.brokers import Broker, BrokerCluster
from support.elections import await_leader, bring_back, make_unclean, patiently, take_over
from support.faults import filled, records
from support.flows import Mirror, in_this_process, mirror
from support.topics import (
    await_settled,
    create_topic,
    delete_topic,
    end_offsets,
    produce,
    read_all,
    set_config,
    start_offsets,
)


def expire(flow: Mirror) -> None:
    """Let retention take everything: the records are years old."""
    set_config(flow.source, flow.topic, "retention.ms", "1000")
    for attempt in patiently():
        with attempt:
            assert start_offsets(flow.source, flow.topic) == end_offsets(flow.source, flow.topic)
    set_config(flow.source, flow.topic, "retention.ms", "-1")


@pytest.mark.parametrize("when", [pytest.param("before the plan", marks=pytest.mark.long), "after the plan"])
def test_retention_below_the_progress_is_an_error(east: Broker, west: Broker, tmp_path: Path, when: str) -> None:
    flow = filled(east, west, tmp_path)
    copied = await_settled(west, flow.remote_topic)

    def expired(slots: Sequence[Slot]) -> list[SlotResult]:
        if when == "after the plan":
            expire(flow)
        return in_this_process(slots)

    if when == "before the plan":
        expire(flow)
    result = flow.run(expired)
    errors = [row.error for row in result.rows]
    assert [type(error) for error in errors] == [SourceTruncated] * 2
    assert all("were deleted before they were copied" in str(error) for error in errors)
    assert end_offsets(west, flow.remote_topic, "read_committed") == copied


def test_retention_of_what_is_copied_is_none(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path, 100)
    assert flow.run().is_verified
    expire(flow)
    assert flow.run().is_verified
    produce(east, flow.topic, records(50, 200))
    result = flow.run()
    assert result.is_verified and result.copied == 50


def test_a_topic_created_again_in_mid_window_with_more_than_before(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = filled(east, west, tmp_path)
    copied = await_settled(west, flow.remote_topic)

    def create_again(slots: Sequence[Slot]) -> list[SlotResult]:
        delete_topic(east, flow.topic)
        create_topic(east, flow.topic, 2)
        produce(east, flow.topic, records(2000))
        return in_this_process(slots)

    result = flow.run(create_again)
    assert {type(row.error) for row in result.rows} == {TopicRecreated}
    assert end_offsets(west, flow.remote_topic, "read_committed") == copied
    assert {type(row.error) for row in flow.run().rows} == {TopicRecreated}


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_unclean_leader_election_below_the_progress(three: BrokerCluster, west: Broker, tmp_path: Path) -> None:
    """The new leader's log ends below the progress; later it is longer again, but not the same log."""
    flow = mirror(three, west, tmp_path)
    make_unclean(three, flow.topic)
    first, second = three.brokers[0], three.brokers[1]
    produce(three, flow.topic, records(100))
    assert flow.run().is_verified
    epoch = flow.opened.ledger.last_mappings()[flow.topic, 0].leader_epoch
    second.kill()
    try:
        produce(three, flow.topic, records(100, 100))  # when the second is no longer in sync
        result = flow.run()
        assert result.is_verified and result.copied == 100
        first.kill()
        second.restart()
        await_leader(three, flow.topic, second)
        assert end_offsets(three, flow.topic) == {0: 100}
        [row] = flow.run().rows
        assert type(row.error) is SourceTruncated and "truncated" in str(row.error)
        accept = ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test")
        for more in range(3):  # shorter than what was copied, as long, longer
            produce(three, flow.topic, records(50, 1000 + 50 * more))
            result = flow.run()
            [row] = result.rows
            assert type(row.error) is (SourceDiverged if more else SourceTruncated), str(row.error)
            assert not more or "ends at offset 100 now" in str(row.error)
            assert not result.is_verified and result.copied == 0
            [reset] = consider(flow.opened, accept)
            assert (reset.start, reset.lost) == (100, 0)
        assert len(read_all(west, flow.remote_topic)[0]) == 200
        [reset] = carry_out(flow.opened, accept)
        assert (reset.start, reset.lost, "cut at offset 100" in reset.facts.problem) == (100, 0, True)
        (last,) = flow.opened.ledger.last_mappings().values()
        assert (last.source_end, last.leader_epoch) == (100, epoch), (
            "that of the record before it, not the new leader's"
        )
        result = flow.run()
        assert result.is_verified and result.copied == 150
        values = [record.value for record in read_all(west, flow.remote_topic)[0]]
        assert values == [record.value for record in [*records(200), *records(150, 1000)]]
        [row] = compare_all(flow.opened, [])
        assert (row.records, row.error) == (250, None)
    finally:
        bring_back(first, second)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_an_unclean_leader_election_in_mid_window(three: BrokerCluster, west: Broker, tmp_path: Path) -> None:
    """After the plan another log takes the place, longer than what was planned: only the fetch itself can tell (KIP-595)."""
    flow = mirror(three, west, tmp_path)
    make_unclean(three, flow.topic)
    first, second = three.brokers[0], three.brokers[1]

    def elect(slots: Sequence[Slot]) -> list[SlotResult]:
        take_over(three, flow.topic, second, first, lambda: None)
        produce(three, flow.topic, records(150, 1000))
        return in_this_process(slots)

    try:
        produce(three, flow.topic, records(100))
        second.kill()
        produce(three, flow.topic, records(100, 100))  # when the second is no longer in sync
        assert flow.run().is_verified
        produce(three, flow.topic, records(10, 200))
        [row] = flow.run(elect).rows
        assert type(row.error) is SourceDiverged and "ends at offset 100 now" in str(row.error)
        assert row.copied == 0
        values = [record.value for record in read_all(west, flow.remote_topic)[0]]
        assert values == [record.value for record in records(200)]
    finally:
        bring_back(first, second)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("windows", ["one", "two"])
def test_a_leader_with_a_suffix_that_nobody_else_had(
    three: BrokerCluster, west: Broker, tmp_path: Path, windows: str
) -> None:
    """The old leader comes back with more of its epoch than was copied: the logs part before that epoch ends (KIP-595)."""
    flow = mirror(three, west, tmp_path)
    make_unclean(three, flow.topic)
    first, second = three.brokers[0], three.brokers[1]
    try:
        produce(three, flow.topic, records(100))
        if windows == "two":
            assert flow.run().is_verified
        take_over(three, flow.topic, second, first, lambda: produce(three, flow.topic, records(20, 100)))
        produce(three, flow.topic, records(50, 200))
        assert flow.run().is_verified
        assert len(read_all(west, flow.remote_topic)[0]) == 150
        take_over(three, flow.topic, first, second, lambda: None)
        assert end_offsets(three, flow.topic) == {0: 120}
        produce(three, flow.topic, records(40, 300))
        [row] = flow.run().rows
        assert type(row.error) is SourceDiverged and "ends at offset 120 now" in str(row.error)
        [reset] = carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test"))
        assert (reset.start, reset.lost) == (100, 0)
        result = flow.run()
        assert result.is_verified and result.copied == 60
        values = [record.value for record in read_all(west, flow.remote_topic)[0]]
        assert values == [
            each.value for each in [*records(100), *records(50, 200), *records(20, 100), *records(40, 300)]
        ]
        [row] = compare_all(flow.opened, [])
        assert (row.records, row.error) == (160, None)
    finally:
        bring_back(first, second)
