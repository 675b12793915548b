"""What has cost users of other tools records this year: a log that is cut under a reader, controllers and proxies that change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from airmirror.clusters.admin.creation import TopicCreationFailed
from airmirror.errors import AirmirrorError
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.slot import source as source_module
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import SourceTruncated
from airmirror.slot.intake import Intake
from airmirror.windows.resets import Choice
from airmirror.wire.requests import FETCH, PRODUCE
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy, pass_on
from support.answers import NotController, Resets
from support.faults import filled, records
from support.flows import in_this_process, mirror
from support.hostile import delete_records
from support.topics import end_offsets, produce, read_all

LIST_OFFSETS, METADATA, INIT_PRODUCER_ID, END_TXN = 2, 3, 22, 26
RESET_SECONDS = 7.0  # longer than any pause between two attempts of a slot


@pytest.mark.parametrize("when", ["before the first fetch", "between two fetches"])
def test_records_deleted_between_the_plan_and_a_fetch(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """OFFSET_OUT_OF_RANGE is answered to a fetch of what was there when it was planned: the lost offsets are named."""
    flow = filled(east, west, tmp_path)
    end = end_offsets(east, flow.topic)[0]
    take, deleted = Intake.take, list[int]()

    def delete() -> None:
        if not deleted:
            deleted.append(end - 10)
            delete_records(east, flow.topic, end - 10)

    def after_some(self: Intake, *given: object) -> None:
        take(self, *given)  # type: ignore[arg-type]
        if self.partition.partition == 0 and self.position > self.partition.start:
            delete()

    def late(slots: Sequence[Slot]) -> list[SlotResult]:
        if when == "before the first fetch":
            delete()
        return in_this_process(slots)

    with monkeypatch.context() as patch:
        if when == "between two fetches":
            patch.setattr(Intake, "take", after_some)
        patch.setattr(source_module, "FETCH_BYTES", 4096)
        patch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
        result = flow.run(late)
    (error,) = (row.error for row in result.rows if row.error is not None)
    assert deleted and isinstance(error, SourceTruncated) and error.partition == 0
    assert f"offsets {error.position} to {end - 11} were deleted" in str(error)
    assert next(row for row in result.rows if row.partition == 1).verified
    there = read_all(west, flow.remote_topic)[0]
    carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test"))
    assert flow.run().is_verified
    left = read_all(east, flow.topic)[0]
    after = read_all(west, flow.remote_topic)[0]
    assert [each.content for each in after] == [each.content for each in (*there, *left)] and len(left) == 10


def test_a_controller_that_is_one_no_longer(east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path) -> None:
    """Topics that it refuses to make (NOT_CONTROLLER) are asked for again: by the next window, where it says so for long."""
    flow = mirror(east, west, tmp_path, partitions=2, through=west_proxy.bootstrap)
    produce(east, flow.topic, records(50))
    west_proxy.on_request, west_proxy.on_answer = (refusing := NotController()).on_request, refusing.on_answer
    with pytest.raises(TopicCreationFailed, match="controller") as caught:
        flow.run()
    assert caught.value.transient and refusing.happened
    refusing.is_over = True
    assert flow.run().is_verified
    assert flow.assert_equal() == 50


@pytest.mark.parametrize(
    ("side", "api_key"),
    [
        ("source", FETCH),
        pytest.param("target", PRODUCE, marks=pytest.mark.long),
        pytest.param("target", END_TXN, marks=pytest.mark.long),
        pytest.param("target", INIT_PRODUCER_ID, marks=pytest.mark.long),
        pytest.param("source", LIST_OFFSETS, marks=pytest.mark.long),
    ],
)
def test_a_proxy_that_resets_connections_for_longer_than_a_retry(
    east: Broker, west: Broker, east_proxy: Proxy, west_proxy: Proxy, tmp_path: Path, side: str, api_key: int
) -> None:
    """Whatever the window is at, at the source or at the target: it gets over it."""
    flow = filled(east_proxy.bootstrap, west, tmp_path, through=west_proxy.bootstrap)  # type: ignore[arg-type]
    proxy = east_proxy if side == "source" else west_proxy
    proxy.on_request = resets = Resets(api_key, RESET_SECONDS)
    result = flow.run()
    assert resets.happened > 3 and result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 900


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_proxy_that_resets_connections_before_the_window_begins(
    east: Broker, west: Broker, east_proxy: Proxy, west_proxy: Proxy, tmp_path: Path, side: str
) -> None:
    """There is nothing to be saved yet: it ends at once, to be tried again."""
    flow = filled(east_proxy.bootstrap, west, tmp_path, through=west_proxy.bootstrap)  # type: ignore[arg-type]
    proxy = east_proxy if side == "source" else west_proxy
    proxy.on_request = Resets(METADATA, 1.0)
    with pytest.raises(AirmirrorError) as caught:
        flow.run()
    assert caught.value.transient and proxy.bootstrap in str(caught.value)
    proxy.on_request = pass_on
    assert flow.run().is_verified
    assert flow.assert_equal() == 900
