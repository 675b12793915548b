"""The cut of a slot's work into transactions and windows, and the record of each transaction (invariants A and G)."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from unittest.mock import Mock

import pytest
from tenacity import Retrying, stop_after_attempt

from airmirror.clusters.protocol import transactions
from airmirror.clusters.protocol.throttle import ConnectionThrottle
from airmirror.clusters.protocol.transactions import TransactionalId, TransactionBusy
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot import attempts
from airmirror.slot import source as source_module
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.slot.copy import begin_another, commit
from airmirror.slot.errors import PartitionError, TopicRecreated
from airmirror.slot.intake import Intake
from airmirror.slot.limit import Limit
from airmirror.slot.outbox import ANSWER_SECONDS
from airmirror.slot.pace import Pace
from airmirror.slot.refusals import WriteRefused
from airmirror.slot.source import Source
from airmirror.wire.requests import PRODUCE
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Proxy, pass_on
from support.answers import Withheld
from support.faults import records
from support.flows import in_this_process, mirror
from support.intakes import intake
from support.topics import await_settled, create_topic, delete_topic, end_offsets, produce, read_all


@pytest.fixture
def small_fetches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "FETCH_BYTES", 4096)
    monkeypatch.setattr(source_module, "LEAST_PARTITION_BYTES", 2048)
    monkeypatch.setattr(source_module, "MOST_LANES", 1)  # to a busy machine the way is as long as to a far one


@pytest.mark.parametrize(
    ("settings", "commits"),
    [({}, range(1, 2)), ({"window.commit.bytes": "10000"}, range(6, 20)), ({"window.commit.ms": "1"}, range(6, 200))],
    ids=["default", "bytes", "ms"],
)
def test_the_number_of_transactions(
    east: Broker, west: Broker, tmp_path: Path, small_fetches: None, settings: dict[str, str], commits: range
) -> None:
    """About 100 kB, fetched 4 kB at a time: one transaction, one for each 10 kB, one for each fetch."""
    flow = mirror(east, west, tmp_path, settings=settings)
    produce(east, flow.topic, records(5000), records_per_batch=50)
    assert flow.run().is_verified
    mappings = list(flow.opened.ledger.mappings(flow.topic, 0))
    assert len(mappings) in commits
    # each transaction ends with a marker, and nothing else lies between the records
    assert end_offsets(west, flow.remote_topic)[0] == 5000 + len(mappings)
    assert flow.assert_equal() == 5000


def test_a_window_ends_after_its_time(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_fetches: None
) -> None:
    monkeypatch.setattr(source_module, "LOOK_SECONDS", 60.0)  # else an answer that takes a second is taken for none
    flow = mirror(east, west, tmp_path, settings={"window.max.ms": "1"})
    produce(east, flow.topic, records(1000), records_per_batch=50)
    result = flow.run()
    assert result.is_cut and 0 < result.copied < 1000 and result.rows[0].error is None
    windows = 1
    while result.is_cut:
        result, windows = flow.run(), windows + 1
    assert windows > 3 and flow.assert_equal() == 1000


@pytest.mark.parametrize("ahead", [-600, 600])
def test_an_executor_whose_clock_is_apart_copies_as_long_as_others(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_fetches: None, ahead: int
) -> None:
    flow = mirror(east, west, tmp_path, settings={"window.max.ms": "60000"})
    produce(east, flow.topic, records(1000), records_per_batch=50)
    now = time.time

    def elsewhere(slots: Sequence[Slot]) -> list[SlotResult]:
        with monkeypatch.context() as patch:
            patch.setattr(time, "time", lambda: now() + ahead)
            return in_this_process(slots)

    result = flow.run(elsewhere)
    assert result.is_verified and not result.is_cut and result.copied == 1000, [str(row.error) for row in result.rows]


def test_a_last_transaction_that_copies_nothing_says_where_the_target_ends(
    east: Broker, west: Broker, tmp_path: Path, small_fetches: None
) -> None:
    """As when a bulk load was aborted at the log's end: the next window must not take its own records for foreign ones."""
    flow = mirror(east, west, tmp_path, settings={"window.commit.bytes": "4000"})
    produce(east, flow.topic, records(1000), records_per_batch=50)
    produce(east, flow.topic, records(1000, 1000), records_per_batch=50, transactional="abort")
    await_settled(east, flow.topic)
    assert flow.run().is_verified
    mappings = list(flow.opened.ledger.mappings(flow.topic, 0))
    last = mappings[-1]
    assert last.copied == 0 and last.aborted > 0, "the last transaction is of the aborted records alone"
    copied = [mapping for mapping in mappings if mapping.copied]
    assert last.target_start == last.target_end == copied[-1].target_end
    produce(east, flow.topic, records(10, 2000))
    result = flow.run()
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 1010


def test_a_topic_created_again_while_the_connection_is_lost(
    east: Broker, west: Broker, east_proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_fetches: None
) -> None:
    """Metadata is read anew with the connection: the topic of that name is another one, and nothing of it is fetched."""
    flow = mirror(east_proxy.bootstrap, west, tmp_path)
    produce(east, flow.topic, records(400), records_per_batch=20)
    take = Intake.take
    created: list[int] = []

    def create_again(self: Intake, *args: object) -> None:
        take(self, *args)  # type: ignore[arg-type]
        if not created:
            created.append(self.position)
            delete_topic(east, flow.topic)
            create_topic(east, flow.topic, 1)
            produce(east, flow.topic, records(800, 10_000), records_per_batch=20)
            east_proxy.cut()

    monkeypatch.setattr(Intake, "take", create_again)
    [row] = flow.run(slots=1).rows
    assert 0 < created[0] < 400
    assert type(row.error) is TopicRecreated
    old = {record.content for record in records(400)}
    assert all(record.content in old for record in read_all(west, flow.remote_topic)[0])


def test_a_partition_is_in_one_fetch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its leader moves while the old one's answer is under way: the new one is asked when that was taken."""
    asked: list[str] = []
    monkeypatch.setattr(
        source_module, "send_fetch", lambda routes, connection, positions, **_: asked.append(connection.name)
    )
    taker, _ = intake(30)

    class Moving:
        alias = "east"
        node = 1

        def leader(self, _partition: object) -> object:
            return type("Leader", (), {"node": self.node, "epoch": 0})

        def round_trip(self, _node: int) -> float:
            return 0.1  # several fetches are under way, of other partitions

        def connection(self, node: int, _purpose: str) -> object:
            return type("Connection", (), {"name": f"node {node}", "throttle": ConnectionThrottle(print)})

    routes = Moving()
    source = Source(routes, taker.context.slot, [taker], Pace(60_000), Limit.of(taker.context.slot))  # type: ignore[arg-type]
    source.ask()
    routes.node = 3
    source.ask()
    assert asked == ["node 1"]
    source._under_way.clear()  # the answer was taken
    source.ask()
    assert asked == ["node 1", "node 3"]


def test_reading_back_ends_with_the_window(
    east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target gives nothing of what it was given, as under a quota: nothing is committed that was not compared."""
    monkeypatch.setattr(attempts, "GRACE_SECONDS", 1.0)
    flow = mirror(east, west, tmp_path, through=west_proxy.bootstrap, settings={"window.max.ms": "2500"})
    produce(east, flow.topic, records(370), records_per_batch=37)
    west_proxy.on_answer = kept = Withheld(wanted=lambda batch: batch.count in (37, 370))  # merged on a slow line
    [row] = flow.run().rows
    assert kept.happened
    assert row.error is not None and row.error.transient and "were not read back in the window's time" in str(row.error)
    assert read_all(west, flow.remote_topic)[0] == []
    west_proxy.on_answer = pass_on
    assert flow.run().is_verified
    assert flow.assert_equal() == 370


def test_a_commit_ends_with_the_window(
    east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target does not answer writes: it is given up as soon as the window's time is over, not a request's."""
    monkeypatch.setattr(attempts, "GRACE_SECONDS", 1.0)
    flow = mirror(east, west, tmp_path, through=west_proxy.bootstrap, settings={"window.max.ms": "2500"})
    produce(east, flow.topic, records(100))
    over = threading.Event()

    def hold(exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key == PRODUCE:
            over.wait(120)
        return frame

    def held(slots: Sequence[Slot]) -> list[SlotResult]:
        west_proxy.on_answer = hold
        try:
            return in_this_process(slots)
        finally:
            over.set()
            west_proxy.on_answer = pass_on

    [row] = flow.run(held).rows
    assert row.error is not None and row.error.transient
    assert "no answer to a write" in str(row.error) and f"for {ANSWER_SECONDS:g} s" not in str(row.error)
    assert flow.run().is_verified
    assert flow.assert_equal() == 100


def test_the_end_of_a_transaction_is_awaited_as_long_as_the_window_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The coordinator says again and again that it is busy."""
    asked: list[float] = []

    def once(seconds: float, *errors: type[Exception]) -> Retrying:
        asked.append(seconds)
        return Retrying(stop=stop_after_attempt(1), reraise=True)

    def busy(*_: object) -> None:
        raise TransactionBusy("west", "id")

    monkeypatch.setattr(transactions, "patiently", once)
    monkeypatch.setattr(TransactionalId, "_connection", busy)
    transaction = TransactionalId(None, "id", 60_000, until=time.monotonic() + 2)  # type: ignore[arg-type]
    transaction.second_protocol = True
    transaction.add([TopicPartition("orders", 0)])
    with pytest.raises(TransactionBusy):
        transaction.end(commit=True)
    assert len(asked) == 1 and asked[0] <= 2


@pytest.mark.parametrize(
    ("codes", "error"),
    [
        ([-1, 0], ""),
        ([-1, 90], "was taken over by a later producer"),
        ([-1] * 99, r"failed: UNKNOWN_SERVER_ERROR \(-1\)"),
        ([15, 90], r"no coordinator .* \(error 15"),
        ([90], "was taken over by a later producer"),
    ],
    ids=[
        "it was ended",
        "it was fenced",
        "it goes on",
        "it has moved, and may have committed",
        "it was fenced at once",
    ],
)
def test_a_coordinator_that_stumbles_over_an_end_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, codes: list[int], error: str
) -> None:
    """Kafka 4.2 does where another producer's InitProducerId has just come; then it says who was fenced."""
    answers = [Mock(error_code=code, producer_id=1, producer_epoch=2) for code in codes]
    monkeypatch.setattr(TransactionalId, "_connection", Mock())
    monkeypatch.setattr(TransactionalId, "_ask", Mock(side_effect=answers))
    transaction = TransactionalId(Mock(alias="west"), "id", 400)
    transaction.second_protocol = True
    transaction.add([TopicPartition("orders", 0)])
    with pytest.raises(AirmirrorError, match=error) if error else nullcontext():
        transaction.end(commit=True)


def test_refusals_end_with_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """One attempt for each refused batch, but none begins long after the window's end; what is final is told all the same."""
    taker, _ = intake(30)
    slot = taker.context.slot
    tried: list[object] = []
    refused = WriteRefused(
        cluster="east",
        topic="orders",
        partition=0,
        target="west",
        remote_topic="east.orders",
        first=7,
        last=9,
        code=10,
        error="too large",
    )

    def refuse(**given: object) -> bool:
        tried.append(given)
        raise refused

    monkeypatch.setattr(attempts, "_attempt", refuse)
    monkeypatch.setattr(attempts, "GRACE_SECONDS", 0.0)
    [result] = run_slot(slot)
    assert (
        len(tried) == 1 and result.outcome is Outcome.CUT and result.error is None
    )  # it would be written otherwise now
    monkeypatch.setattr(attempts, "GRACE_SECONDS", 1.0)
    [result] = run_slot(slot)
    assert len(tried) > 2 and result.outcome is Outcome.FAILED and isinstance(result.error, PartitionError)


def test_every_further_transaction_is_initialised_before_the_lease_is_looked_at() -> None:
    """Whoever takes the lease after the look fences the producer that was initialised before it (invariant B)."""
    done = Mock()
    begin_another(done.context, done.lease)
    assert [name for name, *_ in done.mock_calls] == [
        "context.transaction.initialise",
        "context.outbox.start_sequences_anew",
        "lease.check",
    ]


def test_nothing_is_committed_of_a_topic_that_is_another_one_now() -> None:
    """A broker before Kafka 3.1 is asked for topics by their names."""
    done = Mock()
    done.intake.account.is_empty = False
    done.source.check_topics.side_effect = TopicRecreated("east", "orders", 0, was="a", now="b")
    with pytest.raises(TopicRecreated):
        commit(done.context, done.source, [done.intake], done.lease)
    assert not done.context.transaction.end.called
