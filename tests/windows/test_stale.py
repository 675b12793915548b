"""Windows and slots that were left behind: dead, or asleep when another window took over (invariant B)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.transactions import TransactionalId, TransactionStuck
from airmirror.config import Flow
from airmirror.partitions import TopicPartition
from airmirror.slot import source as source_module
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.slot.intake import Intake
from airmirror.slot.lease import LeaseLog
from airmirror.windows import fence
from airmirror.windows.errors import FlowBusy
from airmirror_local.brokers import Broker
from support.faults import a_process, await_killed, die_with_the_driver, filled
from support.flows import in_this_process
from support.topics import end_offsets


@pytest.mark.parametrize("aggregate", ["false", "true"])
def test_an_attempt_that_is_overtaken_between_its_first_two_steps(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregate: str
) -> None:
    """It initialises, sleeps while a whole window runs, then looks at the leases: in the other order it would copy again.

    Nothing else keeps the data of an aggregate right, where records of others are legal.
    """
    flow = filled(east, west, tmp_path, settings={"aggregate": aggregate})
    stale: list[Slot] = []
    flow.run(lambda slots: stale.extend(slots) or [])  # type: ignore[func-returns-value]
    done: list[str] = []

    def then_another_window(step: Callable[..., object], name: str) -> Callable[..., object]:
        def run(*args: object, **more: object) -> object:
            found = step(*args, **more)
            if not done:
                done.append(name)
                assert flow.run().is_verified
            return found

        return run

    monkeypatch.setattr(TransactionalId, "initialise", then_another_window(TransactionalId.initialise, "initialise"))
    monkeypatch.setattr(LeaseLog, "committed", then_another_window(LeaseLog.committed, "look at the leases"))
    results = in_this_process(stale)
    assert {result.outcome for result in results} == {Outcome.FENCED}
    assert flow.assert_equal() == 900


def test_a_slot_that_sleeps_in_its_transaction_is_fenced_by_a_window_of_fewer_slots(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its id is none of the new window's: the fence alone ends its transaction, so that nobody waits for it."""
    monkeypatch.setattr(source_module, "FETCH_BYTES", 4096)
    monkeypatch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
    flow = filled(east, west, tmp_path, 2000, settings={"window.commit.bytes": "20000"})
    asleep, awake = threading.Event(), threading.Event()
    take, own = Intake.take, threading.current_thread()
    results: list[SlotResult] = []
    threads: list[threading.Thread] = []

    def sleep_in_the_transaction(self: Intake, *args: object) -> None:
        is_first = threading.current_thread() is not own and not asleep.is_set()
        if is_first and end_offsets(west, flow.remote_topic, "read_committed") != end_offsets(west, flow.remote_topic):
            asleep.set()
            assert awake.wait(120)
        take(self, *args)  # type: ignore[arg-type]

    def second_slot_only(slots: Sequence[Slot]) -> list[SlotResult]:
        threads.append(threading.Thread(target=lambda: results.extend(run_slot(slots[1]))))
        threads[0].start()
        assert asleep.wait(120)
        return []

    monkeypatch.setattr(Intake, "take", sleep_in_the_transaction)
    try:
        flow.run(second_slot_only, slots=2)
        assert end_offsets(west, flow.remote_topic, "read_committed") != end_offsets(west, flow.remote_topic)
        result = flow.run(slots=1)
        assert result.is_verified, [str(row.error) for row in result.rows]
    finally:
        awake.set()
        for thread in threads:
            thread.join(120)
    assert {result.outcome for result in results} == {Outcome.FENCED}
    assert flow.assert_equal() == 2100


@pytest.mark.parametrize("when", ["in its transaction", "after its commit"])
def test_a_slot_whose_id_can_not_be_fenced(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """As where a partition does not take the marker of its last commit. In an aggregate nothing on the target shows that
    it copies again: before every commit it looks whether its source offsets follow, after every one at its lease."""
    monkeypatch.setattr(source_module, "FETCH_BYTES", 4096)
    monkeypatch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
    flow = filled(east, west, tmp_path, 2000, settings={"window.commit.bytes": "20000", "aggregate": "true"})
    asleep, awake = threading.Event(), threading.Event()
    own, fence_one = threading.current_thread(), fence._fence
    results: list[SlotResult] = []
    threads: list[threading.Thread] = []

    def and_sleep(step: Callable[..., object]) -> Callable[..., object]:
        def run(*args: object, **more: object) -> object:
            found = step(*args, **more)
            if threading.current_thread() is not own and not asleep.is_set():
                asleep.set()
                assert awake.wait(120)
            return found

        return run

    def in_the_background(slots: Sequence[Slot]) -> list[SlotResult]:
        threads.append(threading.Thread(target=lambda: results.extend(run_slot(slots[0]))))
        threads[0].start()
        assert asleep.wait(120)
        return []

    def first_is_stuck(flow: Flow, target: Routes, number: int) -> TransactionStuck | None:
        elsewhere = {TopicPartition("elsewhere", 0): "it has no leader"}
        return TransactionStuck("west", "id", False, elsewhere) if number == 0 else fence_one(flow, target, number)

    if when == "in its transaction":
        monkeypatch.setattr(Intake, "take", and_sleep(Intake.take))
    else:
        monkeypatch.setattr(TransactionalId, "end", and_sleep(TransactionalId.end))
    try:
        flow.run(in_the_background, slots=1)
        monkeypatch.setattr(fence, "_fence", first_is_stuck)
        result = flow.run(slots=1)
        assert result.is_verified and result.copied, [str(row.error) for row in result.rows]
    finally:
        awake.set()
        for thread in threads:
            thread.join(120)
    assert {result.outcome for result in results} == {Outcome.FENCED}
    assert flow.assert_equal() == 2100


def test_a_driver_that_is_killed_with_its_slot(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It releases nothing: its lease lasts for its duration, then the next window ends its transaction and resumes."""
    monkeypatch.setattr(fence, "LEASE_MS", 2000)
    flow = filled(east, west, tmp_path)
    ledger_url = f"sqlite:///{tmp_path}/killed.db"
    await_killed(a_process(die_with_the_driver, flow.opened.configuration, flow.flow, ledger_url, fence.LEASE_MS))
    until_free = Retrying(
        retry=retry_if_exception_type(FlowBusy), stop=stop_after_delay(60), wait=wait_fixed(0.2), reraise=True
    )
    assert until_free(flow.run).is_verified
    assert flow.assert_equal() == 900
