"""A slot's transactions on the target under faults: ends that are not known, that come too early, or that can't come."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror.clusters.protocol.routes import CoordinatorNotAvailable
from airmirror.clusters.protocol.transactions import TransactionRefused
from airmirror.slot import source as source_module
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.intake import Intake
from airmirror.windows import fence
from airmirror.wire import merging
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.proxy import Exchange, Loss, Proxy
from support.faults import filled
from support.flows import in_this_process, mirror
from support.topics import Record, await_settled, end_offsets, produce

PRODUCE, INIT_PRODUCER_ID, END_TXN = 0, 22, 26


@pytest.fixture
def small_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "FETCH_BYTES", 4096)
    monkeypatch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
    monkeypatch.setattr(source_module, "MOST_LANES", 1)  # to a busy machine the way is as long as to a far one


@pytest.mark.parametrize(
    ("api_key", "lost"),
    [
        (INIT_PRODUCER_ID, "request"),
        (END_TXN, "answer"),
        pytest.param(INIT_PRODUCER_ID, "answer", marks=pytest.mark.long),
        pytest.param(END_TXN, "request", marks=pytest.mark.long),
    ],
)
def test_whether_a_commit_was_done_is_found_out(
    east: Broker,
    west: Broker,
    west_proxy: Proxy,
    tmp_path: Path,
    small_fetches: None,
    lost: Literal["request", "answer"],
    api_key: int,
) -> None:
    """A lost request was not done, a lost answer was: neither is guessed, the next attempt reads the progress."""
    flow = filled(east, west, tmp_path, through=west_proxy.bootstrap)
    losses: list[Loss] = []

    def losing(slots: Sequence[Slot]) -> list[SlotResult]:
        losses.append(Loss(api_key, west_proxy.requests[api_key] + 1))
        if lost == "request":
            west_proxy.on_request = losses[0]
        else:
            west_proxy.on_answer = losses[0]
        return in_this_process(slots)

    result = flow.run(losing)
    assert losses[0].happened.is_set()
    assert result.is_verified and result.copied == 800
    assert flow.assert_equal() == 900


def test_a_transaction_that_times_out_in_mid_window(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_fetches: None
) -> None:
    """The slot sleeps while the coordinator aborts its transaction and fences it: it begins again from its progress."""
    flow = filled(east, west, tmp_path, settings={"producer.transaction.timeout.ms": "1000"})
    take = Intake.take
    before = sum(await_settled(west, flow.remote_topic).values())
    slept = []

    def sleep_in_the_transaction(self: Intake, *args: object) -> None:
        take(self, *args)  # type: ignore[arg-type]
        if not slept and sum(end_offsets(west, flow.remote_topic).values()) > before:
            slept.append(True)
            for attempt in Retrying(stop=stop_after_delay(20), wait=wait_fixed(0.1), reraise=True):
                with attempt:
                    stable = end_offsets(west, flow.remote_topic, "read_committed")
                    assert stable == end_offsets(west, flow.remote_topic)

    monkeypatch.setattr(Intake, "take", sleep_in_the_transaction)
    result = flow.run()
    assert slept
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 900


def test_a_target_that_takes_longer_for_a_fetch_than_a_transaction_may_last(
    east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by chaos: what was fetched at once took longer to write than the transaction's time, again and again."""
    # Every batch is a request, also where a busy machine makes the target look far.
    for many in ("MERGED_FROM", "FAR_FROM"):
        monkeypatch.setattr(merging, many, 1_000_000)
    settings = {"producer.transaction.timeout.ms": "1000", "window.commit.bytes": "1000000"}
    flow = filled(east, west, tmp_path, 0, settings=settings, through=west_proxy.bootstrap)
    produce(east, flow.topic, [Record(b"v%d" % n, b"k%d" % (n % 50)) for n in range(230)], records_per_batch=1)

    def slowly(slots: Sequence[Slot]) -> list[SlotResult]:
        def slow(exchange: Exchange, frame: bytes) -> bytes:
            if exchange.api_key == PRODUCE:
                time.sleep(0.01)  # a third of a request's way to a cluster far away
            return frame

        west_proxy.on_answer = slow
        return in_this_process(slots)

    result = flow.run(slowly)
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert result.phases["copy"] > 2 * 1.0, "it was not slow"
    assert flow.assert_equal() == 330


def test_a_target_that_allows_shorter_transactions_only(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Kafka's own limit is a quarter of an hour."""
    flow = mirror(east, west, tmp_path, settings={"producer.transaction.timeout.ms": "900001"})
    produce(east, flow.topic, [Record(b"v")] * 10)
    with pytest.raises(TransactionRefused, match=r"900001 ms.*west\.producer\.transaction\.timeout\.ms") as caught:
        flow.run()
    assert not caught.value.transient
    assert end_offsets(west, flow.remote_topic) == {0: 0}
    longest = mirror(east, west, tmp_path, topic=flow.topic, settings={"producer.transaction.timeout.ms": "900000"})
    assert longest.run().is_verified
    assert longest.assert_equal() == 10


def test_a_target_without_room_for_the_state_of_transactions(
    east: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One broker, where __transaction_state asks for three: no transactional id has a coordinator."""
    monkeypatch.setattr(fence, "FENCE_SECONDS", 1.0)
    small = start_broker(tmp_path, "small", IMPATIENT | {"transaction.state.log.replication.factor": "3"})
    try:
        flow = mirror(east, small, tmp_path)
        produce(east, flow.topic, [Record(b"v")] * 10)
        with pytest.raises(CoordinatorNotAvailable, match=r"transaction\.state\.log\.replication\.factor") as caught:
            flow.run()
        assert caught.value.transient
        assert end_offsets(small, flow.remote_topic) == {0: 0}
    finally:
        small.kill()
