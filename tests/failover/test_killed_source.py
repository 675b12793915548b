"""A source that goes in mid-window, while producers write: what was acknowledged is on the target, or on the list."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.errors import AirmirrorError
from airmirror.flows.freezing import unfreeze
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.failback.plan import failback_plan
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.shown import outcome_of
from airmirror.runbooks.failover.undo import undo
from airmirror.slot import source as fetching
from airmirror.windows.errors import FlowFrozen
from airmirror_local.brokers import Broker, start_broker
from airmirror_local.proxy import start_proxy
from support.failovers import DISASTER, at, elsewhere, fail_over, windowed, with_groups
from support.flows import Mirror, at_once, mirror
from support.following import numbered
from support.groups import read_with_group
from support.topics import Cluster, produce, read_all
from support.waiting import BUSY

READ = 200  # of each partition, before
SETTINGS = {"window.commit.bytes": "20000", "window.max.ms": "10000"}


def after_commits(monkeypatch: pytest.MonkeyPatch, count: int, act: Callable[[], None]) -> threading.Event:
    """Do something in mid-window, once: after this number of commits of slots; set when it is done."""
    end, numbers, done = TransactionalId.end, itertools.count(1), threading.Event()

    def counted(self: TransactionalId, commit: bool) -> None:
        end(self, commit)
        if commit and next(numbers) == count:
            act()
            done.set()

    monkeypatch.setattr(TransactionalId, "end", counted)
    return done


def fails_over_in_mid_window(
    flow: Mirror,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    producers: Cluster,
    go: Callable[[], object],
    come_back: Callable[[], object],
    count: int,
) -> None:
    """While a window copies, the source goes and another deployment fails over; then the source is back, and all is compared."""
    group = flow.flow.settings.groups[0]
    produce(flow.source, flow.topic, numbered(1000))
    windowed(flow)
    read_with_group(flow.source, group, flow.topic, {0: READ, 1: READ})
    windowed(flow)  # which sees the group
    produce(flow.source, flow.topic, numbered(count, 1000), records_per_batch=50)

    def write_and_go() -> None:
        produce(producers, flow.topic, numbered(300, 1000 + count))
        go()

    monkeypatch.setattr(fetching, "FETCH_BYTES", 20_000)  # so that a slot commits more than once
    gone = after_commits(monkeypatch, 3, write_and_go)
    with ThreadPoolExecutor(1) as pool:
        window = pool.submit(flow.run, at_once)
        assert gone.wait(120)
        other = elsewhere(flow.opened, directory)
        left, moved, seconds = fail_over(other, DISASTER)
        made = outcome_of(other, DISASTER, left, moved, seconds)
        come_back()
        with suppress(AirmirrorError):  # it was fenced, or its source was gone
            window.result()
    replicated = {point.partition: point.verified_end for point in made.plan.partitions}
    assert left == [] and seconds < BUSY * 60 and all(not row.reason for row in moved) and len(moved) == 2
    rest = read_with_group(flow.target, group, flow.remote_topic)
    plan = failback_plan(flow.opened)
    there, here = read_all(flow.source, flow.topic), read_all(flow.target, flow.remote_topic)
    assert sum(map(len, there.values())) == 1300 + count, "all that was acknowledged"
    for row in plan.partitions:
        records = there[row.partition]
        before = [each.content for each in records if each.offset < replicated[row.partition]]
        assert [each.content for each in here[row.partition]] == before, "what was replicated is there, once, in order"
        assert [each.content for each in rest[row.partition]] == before[READ:], "groups resume at the very next record"
        assert at(there, row.partition, row.never.runs) == [each.value for each in records[len(before) :]]
        assert not row.since.records and not row.problem and not row.lost
    assert 300 <= plan.never < 300 + count, "it went in mid-window"
    with pytest.raises(FlowFrozen):  # the deployment that comes back with the source
        flow.run()


def test_the_source_is_cut_off_in_mid_window_and_producers_continue(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as proxy:
        address = proxy.enter_context(start_proxy(east)).bootstrap
        flow = with_groups(mirror(address, west, tmp_path, partitions=2, settings=SETTINGS), f"g-{uuid4().hex[:8]}")
        fails_over_in_mid_window(
            flow,
            tmp_path,
            monkeypatch,
            producers=east,
            go=proxy.close,
            come_back=lambda: proxy.enter_context(start_proxy(east)),
            count=6000,
        )


@pytest.mark.long
def test_the_source_is_killed_in_mid_window_and_comes_back(
    west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL; and once it is back, with its data, the flow can be unfrozen: nobody has written over there."""
    source = start_broker(tmp_path, "source")
    try:
        flow = with_groups(mirror(source, west, tmp_path, partitions=2, settings=SETTINGS), f"g-{uuid4().hex[:8]}")
        fails_over_in_mid_window(
            flow,
            tmp_path,
            monkeypatch,
            producers=source,
            go=source.kill,
            come_back=source.restart,
            count=20_000,
        )
        with pytest.raises(CannotUndo):
            undo(flow.opened, FailoverOrder(reason="it is back", by="ada"))  # consumers have gone further over there
        unfreeze(flow.opened, (), reason="it is back", by="ada")
        while flow.run(at_once).is_cut:
            pass
        assert flow.assert_equal() == 21_300 and all(each.is_equal for each in failback_plan(flow.opened).partitions)
    finally:
        source.kill()
