"""The driver's own commits, and windows that are ended from outside: who has lost the lease writes nothing (invariant B)."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.flows import reset as reset_module
from airmirror.flows.freezing import freeze, owners_now
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.ledger import Ledger
from airmirror.naming import mapping_topic
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import SlotFenced
from airmirror.slot.outbox import Outbox
from airmirror.windows import driver, fence, starts
from airmirror.windows.fence import Renewal, end_window
from airmirror.windows.judging import no_objection
from airmirror.windows.resets import Choice
from airmirror.windows.window import verify_window
from airmirror.wire.mappings import GATE, Hold
from airmirror_local.brokers import Broker
from support.faults import before_a_commit, fenced_without_a_lease, filled, in_a_process_that_dies, records
from support.flows import Mirror, as_mirrormaker, in_this_process, mirror
from support.hostile import delete_records
from support.topics import await_settled, end_offsets, produce, read_all


class Frozen(Renewal):
    """A process that was stopped renews nothing."""

    def __enter__(self) -> Renewal:
        return self

    def __exit__(self, *_arguments: object) -> None:
        pass


def another_process(flow: Mirror, directory: Path) -> Mirror:
    ledger = Ledger(f"sqlite:///{directory / 'other.db'}").flow(flow.flow.name)
    return replace(flow, opened=replace(flow.opened, ledger=ledger))


@contextmanager
def asleep_before(monkeypatch: pytest.MonkeyPatch, place: Any, name: str, meanwhile: Any) -> Iterator[None]:
    """The first call of a function is put off until its lease is over and ``meanwhile`` was done."""
    real, done = getattr(place, name), threading.Event()

    def sleeps(*arguments: Any, **named: Any) -> Any:
        if not done.is_set():
            done.set()
            meanwhile()
        return real(*arguments, **named)

    monkeypatch.setattr(fence, "LEASE_MS", 0)  # over as soon as the broker's clock has moved on
    monkeypatch.setattr(fence, "Renewal", Frozen)
    monkeypatch.setattr(place, name, sleeps)
    yield
    assert done.is_set()


@pytest.mark.parametrize("aggregate", ["false", pytest.param("true", marks=pytest.mark.long)])
def test_a_reset_that_wakes_up_late_commits_nothing(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregate: str
) -> None:
    flow = mirror(east, west, tmp_path, settings={"aggregate": aggregate})
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    produce(east, flow.topic, records(100, 100))
    delete_records(east, flow.topic, 150)
    flow.run()
    order = ResetOrder((flow.topic,), (), Choice.ACCEPT_LOSS, by="me", reason="a test")
    other = another_process(flow, tmp_path)

    def meanwhile() -> None:
        assert carry_out(other.opened, order)
        assert other.run().is_verified
        produce(east, flow.topic, records(50, 200))
        assert other.run().is_verified

    with asleep_before(monkeypatch, reset_module, "commit", meanwhile), pytest.raises(SlotFenced):
        carry_out(flow.opened, order)
    assert flow.run().is_verified
    assert flow.opened.ledger.state().positions == {(flow.topic, 0): 250}
    values = [record.value for record in read_all(west, flow.remote_topic)[0]]
    assert values == [record.value for record in records(100) + records(100, 150)]


@pytest.mark.parametrize("kind", [pytest.param("latest", marks=pytest.mark.long), "take-over"])
def test_a_driver_that_wakes_up_late_commits_no_starts(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    settings = {"consumer.auto.offset.reset": "latest"} if kind == "latest" else {}
    flow = mirror(east, west, tmp_path, settings=settings)
    produce(east, flow.topic, records(30))
    if kind == "take-over":
        as_mirrormaker(flow, 20, 9)
    other = another_process(flow, tmp_path)

    def meanwhile() -> None:
        for start in (30, 35):
            assert other.run().is_verified
            produce(east, flow.topic, records(5, start))
        assert other.run().is_verified

    with asleep_before(monkeypatch, starts, "commit", meanwhile), pytest.raises(SlotFenced):
        flow.run()
    assert flow.run().is_verified
    first = 30 if kind == "latest" else 0
    values = [record.value for record in read_all(west, flow.remote_topic)[0]]
    assert values == [record.value for record in records(40 - first, first)]


@pytest.mark.parametrize("leased", [True, False])
def test_a_commit_that_is_fenced_before_its_end_is_the_lease_holders(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leased: bool
) -> None:
    """Who took the lease has fenced it: it ends. Who slept and lost his lease has: it is done again, under the lease."""
    flow = filled(east, west, tmp_path, 100)
    other = another_process(flow, tmp_path)

    def freezes(_: TransactionalId) -> None:
        freeze(other.opened, (), reason="an order of another", by="ada")

    before_a_commit(monkeypatch, freezes if leased else fenced_without_a_lease)
    monkeypatch.setattr(fence, "LEASE_MS", 0)
    monkeypatch.setattr(fence, "Renewal", Frozen)
    with pytest.raises(SlotFenced) if leased else nullcontext():
        freeze(flow.opened, (), reason="to end", by="ada")
    frozen = owners_now(flow.opened).frozen.values()
    assert [each.reason for each in frozen] == ["an order of another" if leased else "to end"]


def test_a_commit_that_fails_leaves_no_transaction_open(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads the mapping topic next would wait for its time-out."""

    class Failing(Outbox):
        def drain(self) -> None:
            super().drain()
            raise BrokerUnreachable("west", west.bootstrap, "planted")

    flow = filled(east, west, tmp_path, 10)
    assert flow.run().is_verified
    order = ResetOrder(topics=(flow.topic,), partitions=(), choice=Choice.START_AGAIN)
    with monkeypatch.context() as faulty, pytest.raises(BrokerUnreachable, match="planted"):
        faulty.setattr(driver, "Outbox", Failing)
        carry_out(flow.opened, order)
    await_settled(west, mapping_topic(flow.flow.source.alias))
    assert not flow.opened.ledger.resets()
    assert carry_out(flow.opened, order)


def test_a_window_that_has_released_its_lease_is_fenced_all_the_same(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """As one that was interrupted: a slot of its may live on, in its transaction."""
    flow, living = filled(east, west, tmp_path, 100), list[Producer]()

    def interrupted(slots: Sequence[Slot]) -> list[SlotResult]:
        settings = {"bootstrap.servers": west.bootstrap, "transactional.id": slots[0].transactional_id, "log_level": 0}
        living.append(Producer(settings))
        living[0].init_transactions()
        living[0].begin_transaction()
        living[0].produce(flow.remote_topic, b"lives on", partition=0)
        living[0].flush()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flow.run(interrupted, window="w")
    assert end_offsets(west, flow.remote_topic, "read_committed") != end_offsets(west, flow.remote_topic)
    assert end_window(flow.flow, flow.opened.ledger, "w")
    assert end_offsets(west, flow.remote_topic, "read_committed") == end_offsets(west, flow.remote_topic)
    assert flow.run().is_verified and flow.assert_equal() == 200


@pytest.mark.parametrize("released", [pytest.param(True, marks=pytest.mark.long), False])
def test_a_window_that_is_ended_leaves_no_transaction_open(
    east: Broker, west: Broker, tmp_path: Path, released: bool
) -> None:
    """Its worker died in its transaction; the driver has released its lease before, as one that is interrupted, or not."""
    flow = filled(east, west, tmp_path)

    def interrupted(slots: Sequence[Slot]) -> list[SlotResult]:
        in_a_process_that_dies(slots, 2)
        if not released:
            assert end_window(flow.flow, flow.opened.ledger, "w")
            assert {result.outcome for result in in_this_process(slots)} == {"fenced"}, (
                "under a lease that was released"
            )
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flow.run(interrupted, window="w")
    assert end_window(flow.flow, flow.opened.ledger, "w")
    assert end_offsets(west, flow.remote_topic, "read_committed") == end_offsets(west, flow.remote_topic)
    assert not end_window(flow.flow, flow.opened.ledger, "another")
    assert flow.run().is_verified
    assert flow.assert_equal() == 900


def test_a_slot_that_begins_again_while_its_window_is_ended_writes_nothing(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Right after it was fenced: its lease is released by then."""
    flow = filled(east, west, tmp_path)
    outcomes: list[str] = []

    def interrupted(slots: Sequence[Slot]) -> list[SlotResult]:
        real = fence.fence

        def and_again(*given: Any) -> Any:
            fenced = real(*given)
            outcomes.extend(result.outcome for result in in_this_process(slots))
            return fenced

        with monkeypatch.context() as patched:
            patched.setattr(fence, "fence", and_again)
            assert end_window(flow.flow, flow.opened.ledger, "w")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        flow.run(interrupted, window="w")
    assert set(outcomes) == {"fenced"}
    assert flow.run().is_verified and flow.assert_equal() == 900


def test_a_hold_of_what_is_verified_is_lifted(east: Broker, west: Broker, tmp_path: Path) -> None:
    """A gate that was frozen wakes up and holds what another has let pass meanwhile: the next gate sees that it is."""
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    hold = Hold(topic=flow.topic, partition=0, offset=0, reason="it was frozen", window="stale", by=GATE, time_ms=1)
    with Appender(flow.flow.target, f"airmirror-mappings.{flow.flow.source.alias}.internal") as appender:
        appender.append([(hold.encode_key(), hold.encode_value())])
    ledger = flow.opened.ledger
    verify_window(flow.flow, ledger, None, window="alone", trusted=())
    assert ledger.holds(), "without a gate what is held stays held"
    verify_window(flow.flow, ledger, no_objection, window="gate", trusted=())
    assert not ledger.holds()
    produce(east, flow.topic, records(10, 100))
    assert flow.run().is_verified and flow.assert_equal() == 110
