"""The time from stopped groups' last commits to their positions on the target, and that of an undo, while the flow follows."""

from __future__ import annotations

import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.flows.freezing import owners_now
from airmirror.runbooks.migration.consumers import cut_over_groups
from airmirror.runbooks.migration.undo import undo_move
from airmirror_local.brokers import Broker
from support.following import await_copied, await_verified, ended_by_event, follow, numbered
from support.groups import commit, committed
from support.migrations import ORDER, move_of, moving
from support.topics import produce
from support.waiting import BUSY

GROUPS, PARTITIONS, EACH = 100, 20, 100  # records of a partition, twice
CUT_OVER_SECONDS, UNDO_SECONDS = 5.0, 10.0


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_hundred_groups_are_cut_over_while_the_flow_follows(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prefix = f"many-{uuid.uuid4().hex[:8]}"
    flow, _ = moving(
        east,
        west,
        tmp_path,
        partitions=PARTITIONS,
        groups=f"{prefix}-.*",
        window_follow_ms="300000",
        window_follow_commit_ms="250",
        verify_interval_ms="1000",
    )
    is_up = ended_by_event(monkeypatch)

    def fill(start: int) -> None:
        for number in range(PARTITIONS):
            produce(east, flow.topic, numbered(EACH, start), partition=number)

    fill(0)
    ends = {(flow.topic, number): 2 * EACH for number in range(PARTITIONS)}
    took: dict[str, float] = {}

    def cut_over() -> None:
        await_copied(flow, PARTITIONS * EACH)
        await_verified(flow)
        fill(EACH)  # groups stop at records that came just now
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda number: commit(east, f"{prefix}-{number}", ends), range(GROUPS)))
        begun = time.monotonic()
        found = cut_over_groups(flow.opened, move_of(flow.opened), replace(ORDER, wait=60.0), lambda phase: None)
        took["cut_over"] = time.monotonic() - begun
        assert len(found.left) == GROUPS * PARTITIONS
        begun = time.monotonic()
        undo_move(flow.opened, move_of(flow.opened), ORDER, lambda phase: None)
        took["undo"] = time.monotonic() - begun

    follow(flow, cut_over, is_up, slots=2)
    with capsys.disabled():
        print({name: round(seconds, 2) for name, seconds in took.items()})
    assert committed(west, f"{prefix}-7") == {} and owners_now(flow.opened).frozen == {}
    assert took["cut_over"] < BUSY * CUT_OVER_SECONDS and took["undo"] < BUSY * UNDO_SECONDS
