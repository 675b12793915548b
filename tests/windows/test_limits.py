"""What keeps a flow back: its own limit, shared by its slots, the brokers' quotas, and the number of slots that it takes."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.cli import show
from airmirror.clusters.protocol import log
from airmirror.clusters.protocol.connection import Connection
from airmirror.clusters.protocol.throttle import MOST_SECONDS, ConnectionThrottle
from airmirror.flows.measure import measure_window
from airmirror.flows.status import throttle_of
from airmirror.slot import limit as limit_module
from airmirror.slot import outbox, readback
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.lease import LeaseLog
from airmirror.slot.limit import BURST_SECONDS, SAMPLE_MS, Commits, Limit, fair_share
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.plain import LogRecord
from airmirror_local.brokers import Broker
from support.flows import Mirror, at_once, in_this_process, mirror
from support.quotas import set_quota
from support.topics import Record, produce

RATES = st.floats(0, 1e9)


@given(st.floats(1, 1e9), st.lists(RATES, min_size=1, max_size=8))
def test_the_shares_of_all_slots_are_the_limit(limit: float, rates: list[float]) -> None:
    """Every slot works them out by itself, from the same commits."""
    shares = [fair_share(limit, own, rates[:number] + rates[number + 1 :]) for number, own in enumerate(rates)]
    assert sum(shares) == pytest.approx(limit)
    assert all(share > 0 for share in shares)


def test_an_idle_slot_leaves_its_part_to_the_others_and_busy_ones_share_equally() -> None:
    assert fair_share(100, 0, [0, 0, 0]) == 25
    assert fair_share(100, 90, [0, 0, 0]) > 90
    assert 0 < fair_share(100, 0, [90, 0, 0]) < 4
    assert fair_share(100, 80, [90]) == 50
    assert fair_share(100, 5, [90]) == 10, "and gets it back as it needs it"


def test_what_slots_have_committed_lately() -> None:
    commits = Commits()
    commits.note(0, 1_000, 30_000)
    commits.note(1, 2_000, 15_000)
    assert commits.rates() == {0: 2_000, 1: 1_000}
    commits.note(1, 2_000 + SAMPLE_MS, 15_000)
    assert commits.rates() == {0: 0, 1: 2_000}
    commits.note(2, 1_000, 15_000)  # the target's clock was set right
    assert commits.rates() == {0: 0, 1: 2_000, 2: 0}


def test_commits_are_timed_by_the_targets_clock() -> None:
    """Those of the machines of slots may differ by more than counts as lately."""
    slot: Any = SimpleNamespace(mapping_topic="mappings", lease_offset=0, window="w")
    lease = LeaseLog(slot)
    for number, ahead in enumerate((3_600_000, 0)):
        record = Mock(MappingRecord, window="w", slot=number, key=number, size=30_000, time_ms=1_000 + ahead)
        lease._take(LogRecord(number, 1_000, b"", None), record)
    assert lease.commits.rates() == {0: 2_000, 1: 2_000}


def test_the_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fetched is waited for afterwards; a pause saves up a part of a second only."""
    now = [0.0]
    monkeypatch.setattr(limit_module.time, "monotonic", lambda: now[0])
    limit = Limit(1_000, 0, 1, _filled=0.0)
    assert limit.seconds == 0
    limit.took(500)
    assert limit.seconds == 0.5
    now[0] = 0.4
    assert limit.seconds == pytest.approx(0.1)
    now[0] = 100.0
    assert limit.seconds == 0
    limit.took(1_000)
    assert limit.seconds == pytest.approx(1 - BURST_SECONDS)
    assert Limit(float("inf"), 0, 1).seconds == 0


def test_a_broker_is_believed_for_a_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    throttle = ConnectionThrottle(told.append)
    for milliseconds in (0, -5, 2**31 - 1):
        throttle.note(milliseconds)
    assert told == [MOST_SECONDS] and MOST_SECONDS - 5 < throttle.seconds <= MOST_SECONDS


def test_a_flow_fetches_no_more_than_its_limit(east: Broker, west: Broker, tmp_path: Path) -> None:
    """In two slots at once, one of which has most of it; status and metrics tell."""
    settings = {"throttle.bytes.per.second": "300000"}
    flow = mirror(east, west, tmp_path, partitions=2, settings=settings)
    records = [Record(os.urandom(1_000), b"%d" % number) for number in range(900)]
    produce(east, flow.topic, records[:100], partition=0, records_per_batch=10)
    produce(east, flow.topic, records[100:], partition=1, records_per_batch=10)
    begun, took = time.monotonic(), []

    def timed(given: Sequence[Slot]) -> list[SlotResult]:
        assert [slot.slots for slot in given] == [2, 2]
        results = at_once(given)
        took.append(time.monotonic() - begun)
        return results

    begun = time.monotonic()
    result = flow.run(timed, slots=2)
    assert result.is_verified and result.copied == 900, [str(row.error) for row in result.rows]
    assert took[0] >= result.bytes / 300_000 * 0.8
    assert 0 < result.limited <= took[0] and not result.throttled
    assert flow.assert_equal() == 900
    measure_window(flow.opened, result, lambda _: True)
    told = throttle_of(flow.opened)
    assert (told.bytes_per_second, told.limited) == (300_000, result.limited)
    [said] = map(str, show.throttle(told))
    assert "300.0 kB/s" in said and f"up to {result.limited:.1f} s" in said


def _client(flow: Mirror, purpose: str) -> str:
    return f"airmirror|{flow.flow.name}|0|{purpose}"


@dataclass(frozen=True)
class Sent:
    """What was sent: for how long each time a broker wanted to be left alone yet, and on whose connections one ever did."""

    early: list[float] = field(default_factory=list)
    throttled: set[str] = field(default_factory=set)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    found, send, close = Sent(), Connection._send, Connection.close

    def noted(self: Connection, buffers: Sequence[bytes]) -> None:
        found.early.append(self.throttle.seconds)
        send(self, buffers)

    def closed(self: Connection) -> None:
        if self.throttle._until:
            found.throttled.add(self.client_id.decode().rpartition("|")[2])
        close(self)

    monkeypatch.setattr(Connection, "_send", noted)
    monkeypatch.setattr(Connection, "close", closed)
    return found


@pytest.mark.parametrize(
    ("purpose", "side", "quota"),
    [
        ("fetch", "source", "consumer_byte_rate"),
        pytest.param("produce", "target", "producer_byte_rate", marks=pytest.mark.long),
        pytest.param("read back", "target", "consumer_byte_rate", marks=pytest.mark.long),
    ],
)
def test_quotas_of_the_brokers_are_obeyed(
    east: Broker, west: Broker, tmp_path: Path, sent: Sent, purpose: str, side: str, quota: str
) -> None:
    """Of the fetches, the writes and what is read back: nothing is sent while a broker wants to be left alone.

    One at a time, since each slows the others down; a broker looks at the mean of ten seconds.
    """
    flow = mirror(east, west, tmp_path, settings={"window.commit.bytes": "100000"})
    set_quota(east if side == "source" else west, _client(flow, purpose), quota, 20_000)
    records = [Record(os.urandom(1_000), b"%d" % number) for number in range(300)]
    produce(east, flow.topic, records, records_per_batch=10)
    result = flow.run(in_this_process, slots=1)
    assert result.is_verified and result.copied == 300, [str(row.error) for row in result.rows]
    assert sent.throttled == {purpose} and result.throttled > 0 and not result.limited
    assert max(sent.early) == 0
    assert flow.assert_equal() == 300


@pytest.mark.parametrize(("purpose", "module"), [("produce", outbox), ("read back", readback)])
def test_an_answer_that_asks_to_be_left_alone_is_obeyed(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: Sent, purpose: str, module: Any
) -> None:
    """The same of writes and of what is read back, without a quota: as a broker's first answer would say."""
    flow = mirror(east, west, tmp_path, settings={"window.commit.bytes": "20000"})
    produce(
        east, flow.topic, [Record(os.urandom(1_000), b"%d" % number) for number in range(100)], records_per_batch=10
    )
    real, wishes = (module.decode_produce if module is outbox else log.fetch_throttle), [300]

    def wished(*given: Any) -> Any:
        answer, wish = real(*given), wishes.pop() if wishes else 0
        return (wish, answer[1]) if module is outbox else wish

    if module is outbox:
        monkeypatch.setattr(outbox, "decode_produce", wished)
    else:
        receive = readback.receive_fetch

        def received(*given: Any) -> Any:
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(log, "fetch_throttle", wished)
                return receive(*given)

        monkeypatch.setattr(readback, "receive_fetch", received)
    result = flow.run(in_this_process, slots=1)
    assert result.is_verified and not wishes and sent.throttled == {purpose}
    assert result.throttled == pytest.approx(0.3) and max(sent.early) == 0
    assert flow.assert_equal() == 100


def test_a_window_takes_as_many_slots_as_its_bytes_need(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path, partitions=4, settings={"window.slot.bytes": "200000"})
    taken = []

    def counted(given: Sequence[Slot]) -> list[SlotResult]:
        taken.append(len(given))
        return in_this_process(given)

    def put(count: int) -> None:
        for partition in range(4):
            records = [Record(os.urandom(1_000), b"%d" % number) for number in range(count)]
            produce(east, flow.topic, records, partition=partition)

    for count in (10, 100, 300):  # a record is taken for 1,000 bytes until one was copied
        put(count)
        assert flow.run(counted, slots=4).is_verified
    assert taken == [1, 3, 4]
    assert flow.assert_equal() == 4 * 410
