"""The common tools of fault tests: a flow in many small commits with work before it, and slots that die in a transaction."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from airmirror.clusters.protocol.transactions import TransactionalId, TransactionBusy, TransactionStuck
from airmirror.config import Configuration, Flow
from airmirror.flows.prepare import Opened, prepare
from airmirror.ledger import Ledger
from airmirror.slot import source as source_module
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import PartitionUnavailable
from airmirror.windows import driver, fence, window
from airmirror.windows.plan import Planned
from airmirror.windows.window import WindowOrder, run_window
from support.flows import Mirror, in_this_process, mirror
from support.forked import processes
from support.topics import Cluster, Record, produce


def records(count: int, start: int = 0) -> list[Record]:
    return [Record(b"v%d" % n, b"k%d" % (n % 50), (), 1_700_000_000_000 + n) for n in range(start, start + count)]


def filled(
    east: Cluster,
    west: Cluster,
    directory: Path,
    count: int = 800,
    *,
    settings: dict[str, str] | None = None,
    through: str | None = None,
    access: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> Mirror:
    """A flow with one verified window of 100 records behind it, and ``count`` more to copy, in many small commits."""
    many = {"window.commit.bytes": "2000"} | (settings or {})
    flow = mirror(east, west, directory, partitions=2, settings=many, through=through, access=access)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    produce(east, flow.topic, records(count, 100), records_per_batch=50)
    return flow


def fenced_without_a_lease(mine: TransactionalId) -> None:
    """As by who slept, and has lost its lease: its one request has only aborted so far."""
    with pytest.raises((TransactionBusy, TransactionStuck)):
        TransactionalId(mine.routes, mine.name, mine.timeout_ms).initialise(patience=0)


def before_a_commit(
    monkeypatch: pytest.MonkeyPatch, meanwhile: Callable[[TransactionalId], object] = fenced_without_a_lease
) -> None:
    """The driver's next commit ends its transaction after ``meanwhile``."""

    class Late(TransactionalId):
        def end(self, commit: bool) -> None:
            monkeypatch.setattr(driver, "TransactionalId", TransactionalId)
            meanwhile(self)
            super().end(commit)

    monkeypatch.setattr(driver, "TransactionalId", Late)


def in_a_process_that_dies(slots: Sequence[Slot], commits: int) -> list[SlotResult]:
    """Run the slots in a process that kills itself with SIGKILL in its transaction after some ``commits``."""
    await_killed(a_process(die_after, slots, commits))
    return []


def a_process(run: Callable[..., None], *its: object) -> BaseProcess:
    """A process of its own. It is no fork of this one: a copy of a process with threads has their locks and clients, and none
    of them."""
    process = processes.Process(target=run, args=its)
    process.start()
    return process


def await_killed(process: BaseProcess) -> None:
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"its exit code is {process.exitcode}"


def die_after(slots: Sequence[Slot], commits: int) -> None:
    die_in_a_transaction(commits)
    raise AssertionError(f"it was not killed: {in_this_process(slots)}")


def die_with_the_driver(configuration: Configuration, flow: Flow, ledger_url: str, duration_ms: int) -> None:
    """Run a window whose driver dies with its slot; its ledger is its own, read from Kafka."""
    die_in_a_transaction(1)
    fence.LEASE_MS = duration_ms
    opened = Opened(configuration, flow, Ledger(ledger_url).flow(flow.name))
    result = run_window(
        flow, opened.ledger, prepare(opened).topics, in_this_process, WindowOrder("killed", slots=lambda _: 2)
    )
    raise AssertionError(f"it was not killed: {result}")


def die_in_a_transaction(commits: int) -> None:
    """After some ``commits``, small ones, the process kills itself: everything is written, nothing of it committed."""
    left = [commits]
    end = TransactionalId.end

    def die(self: TransactionalId, commit: bool) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        end(self, commit)

    TransactionalId.end = die  # type: ignore[method-assign]
    source_module.FETCH_BYTES = 4096
    source_module.LEAST_PARTITION_BYTES = 2048


def unseen_before_the_starts(monkeypatch: pytest.MonkeyPatch, flow: Mirror, partition: int) -> list[bool]:
    """A partition without a leader until windows commit where partitions begin; whether one has."""
    begun: list[bool] = []
    make, begin = window.make_plan, window.commit_starts

    def make_plan(*given: Any) -> list[Planned]:
        gone = PartitionUnavailable(flow.flow.source.alias, flow.topic, partition, "it has no leader")
        return [
            replace(item, error=gone if not begun and item.partition == partition else None) for item in make(*given)
        ]

    def commit_starts(*given: Any) -> object:
        begun.append(True)
        return begin(*given)

    monkeypatch.setattr(window, "make_plan", make_plan)
    monkeypatch.setattr(window, "commit_starts", commit_starts)
    return begun


def at_the_last_moment(
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    name: str,
    *,
    before: Callable[[], object] = lambda: None,
    after: Callable[[], object] = lambda: None,
) -> None:
    """Let something happen right before, or right after, a function that ``module`` knows by ``name``."""
    function = getattr(module, name)

    def surrounded(*given: Any, **named: Any) -> Any:
        before()
        found = function(*given, **named)
        after()
        return found

    monkeypatch.setattr(module, name, surrounded)
