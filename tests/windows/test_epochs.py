"""Leader epochs of what no slot has copied: by them a log is known to be another one, though it has grown past the position."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.slot import source as source_module
from airmirror.slot.errors import SourceDiverged
from airmirror.windows.resets import Choice
from airmirror.wire.mappings import MappingRecord
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.faults import records
from support.flows import Mirror, as_mirrormaker, in_this_process, mirror
from support.topics import await_settled, end_offsets, produce

KINDS = ("latest", "take-over", "reset")


def begun(east: Broker, west: Broker, directory: Path, kind: str) -> tuple[Mirror, MappingRecord]:
    """A flow whose driver has committed where its partition resumes, and that has copied nothing since; its newest record."""
    settings = {"consumer.auto.offset.reset": "latest"} if kind == "latest" else {}
    flow = mirror(east, west, directory, settings=settings)
    produce(east, flow.topic, records(30))
    if kind == "take-over":
        as_mirrormaker(flow, 20, 9)
    flow.run((lambda slots: []) if kind == "take-over" else in_this_process)
    if kind == "reset":
        produce(west, flow.remote_topic, records(1), partition=0)
        carry_out(flow.opened, ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test"))
    (last,) = flow.opened.ledger.last_mappings().values()
    return flow, last


@pytest.mark.parametrize("kind", KINDS)
def test_they_are_those_of_the_logs(east: Broker, west: Broker, tmp_path: Path, kind: str) -> None:
    """Each cluster has one node that was never ended: the first epoch of its topics is the only one.

    A copy that has one of the target counts as read back, which MirrorMaker 2's was not.
    """
    flow, last = begun(east, west, tmp_path, kind)
    assert (last.source_end, last.copied) == {"latest": (30, 0), "take-over": (20, 10), "reset": (30, 0)}[kind]
    assert last.target_end == await_settled(west, flow.remote_topic).get(0, 0)
    assert last.leader_epoch == 0 and last.target_epoch == (0 if kind == "reset" else -1)
    assert flow.run().is_verified


def test_a_leader_that_says_where_the_logs_part_is_believed(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every fetch names the epoch of the batch before it, so that a new leader can tell in mid-window (KIP-595)."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    before = await_settled(west, flow.remote_topic)
    produce(east, flow.topic, records(10, 100))
    send, receive, epochs = source_module.send_fetch, source_module.receive_fetch, list[int]()

    def noted(routes: Any, connection: Any, positions: Any, **more: Any) -> int:
        epochs.extend(position.last_fetched_epoch for position in positions.values())
        return send(routes, connection, positions, **more)

    def parted(*given: Any) -> Any:
        buffer, partitions = receive(*given)
        for fetched in partitions.values():
            fetched.diverging_epoch, fetched.diverging_end_offset = 0, 70
        return buffer, partitions

    monkeypatch.setattr(source_module, "send_fetch", noted)
    monkeypatch.setattr(source_module, "receive_fetch", parted)
    [row] = flow.run().rows
    assert type(row.error) is SourceDiverged and "ends at offset 70 now" in str(row.error) and row.copied == 0
    (last,) = flow.opened.ledger.last_mappings().values()
    assert set(epochs) == {last.leader_epoch} == {0}
    assert end_offsets(west, flow.remote_topic) == before


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_log_that_was_cut_and_has_grown_again_before_anything_was_copied(
    west: Broker, tmp_path: Path, kind: str
) -> None:
    """As an unclean election leaves it. Nothing of it is copied."""
    east = start_broker(tmp_path, "cut", IMPATIENT)
    try:
        flow, last = begun(east, west, tmp_path, kind)
        east.kill()
        (log,) = east.directory.rglob(f"{flow.topic}-0")
        shutil.rmtree(log)
        east.restart()
        produce(east, flow.topic, records(last.source_end + 30, 1_000))
        before = await_settled(west, flow.remote_topic)
        assert [type(row.error) for row in flow.run().rows] == [SourceDiverged]
        assert end_offsets(west, flow.remote_topic) == before
    finally:
        east.kill()
