"""Answers without records, although there are some, prove no hole (KIP-405): asked again, then unavailable, never lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.protocol.errors import RecordsWithheld
from airmirror.clusters.protocol.log import read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.throttle import ConnectionThrottle
from airmirror.config import parse
from airmirror.partitions import TopicPartition
from airmirror.slot import source as source_module
from airmirror.slot.limit import Limit
from airmirror.slot.pace import Pace
from airmirror.slot.source import Source
from airmirror.wire.requests import Fetched
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Proxy, pass_on
from support.answers import Withheld
from support.faults import records
from support.flows import mirror
from support.intakes import intake
from support.topics import create_topic, produce

UNKNOWN_SERVER_ERROR = -1


@pytest.mark.parametrize(
    ("error", "declared"),
    [
        (0, False),
        (UNKNOWN_SERVER_ERROR, True),
        pytest.param(0, True, marks=pytest.mark.long),
        pytest.param(UNKNOWN_SERVER_ERROR, False, marks=pytest.mark.long),
    ],
)
def test_a_slow_store_is_asked_again(
    east: Broker, east_proxy: Proxy, west: Broker, tmp_path: Path, error: int, declared: bool
) -> None:
    """Declared in topics.compacted too: what was compacted once is not compacted now, and may be in tiered storage."""
    topic = create_topic(east, f"slow-{tmp_path.name}", 1)
    settings = {"topics.compacted": topic} if declared else {}
    flow = mirror(east_proxy.bootstrap, west, tmp_path, topic=topic, settings=settings)
    produce(east, topic, records(300), records_per_batch=100)
    east_proxy.on_answer = slow = Withheld(times=3, error=error)
    result = flow.run()
    assert slow.happened == 3
    assert result.is_verified and (result.rows[0].copied, result.rows[0].holes) == (300, 0)
    assert flow.assert_equal() == 300


@pytest.mark.parametrize("error", [0, pytest.param(UNKNOWN_SERVER_ERROR, marks=pytest.mark.long)])
def test_a_store_that_never_answers_is_unavailable(
    east: Broker, east_proxy: Proxy, west: Broker, tmp_path: Path, error: int
) -> None:
    """The window ends in time and says so; nothing is skipped, nothing is to be declared, and the next one resumes."""
    flow = mirror(east_proxy.bootstrap, west, tmp_path, settings={"window.max.ms": "4000"})
    produce(east, flow.topic, records(100))
    assert flow.run().is_verified
    produce(east, flow.topic, records(200, 100))
    east_proxy.on_answer = gone = Withheld(error=error)
    [row] = flow.run().rows
    assert gone.happened
    assert type(row.error).__name__ == "PartitionUnavailable" and row.error is not None and row.error.transient
    assert "nothing from offset 100 on, though 300 is the end" in str(row.error)
    assert "topics.compacted" not in str(row.error) and not row.copied and not row.holes
    east_proxy.on_answer = pass_on
    assert flow.run().is_verified
    assert flow.assert_equal() == 300


def test_the_end_of_a_compacted_topic_may_be_holes(
    east: Broker, east_proxy: Proxy, west: Broker, tmp_path: Path
) -> None:
    flow = mirror(east_proxy.bootstrap, west, tmp_path, config={"cleanup.policy": "compact"})
    produce(east, flow.topic, records(100))
    east_proxy.on_answer = Withheld()
    [row] = flow.run().rows
    assert row.error is None and (row.copied, row.holes) == (0, 100)


@pytest.mark.parametrize("policy", ["delete", "compact"])
@pytest.mark.parametrize("error", [0, UNKNOWN_SERVER_ERROR])
def test_whoever_reads_a_log_asks_again(
    east: Broker, east_proxy: Proxy, tmp_path: Path, policy: str, error: int
) -> None:
    """What verify, the gate, take-over and resets read with."""
    topic = create_topic(east, f"read-{policy}{error}-{tmp_path.name}", 1, {"cleanup.policy": policy})
    produce(east, topic, records(50))
    log = TopicPartition(topic, 0)

    def read(patience: float) -> int:
        found = read_batches(routes, log, 0, 50, read_committed=True, patience=patience)
        return sum(batch.count for _, batches in found for batch, _ in batches)

    cluster = parse(f"clusters = east\neast.bootstrap.servers = {east_proxy.bootstrap}\n", "test").clusters["east"]
    with Routes(cluster, "test") as routes:
        routes.refresh([topic])
        east_proxy.on_answer = Withheld()
        if policy == "compact" and error == 0:
            assert read(60) == 0
        else:
            east_proxy.on_answer = Withheld(error=error)
            with pytest.raises(RecordsWithheld, match=r"offset 0 on, though 50 is the end") as caught:
                read(0.2)
            assert caught.value.transient
            east_proxy.on_answer = Withheld(times=2, error=error)
            assert read(60) == 50


def test_a_partition_that_fails_is_not_asked_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answers come at once; those of another one that has nothing either come with them."""
    takers = [intake(30)[0], intake(30)[0]]
    takers[1].partition = replace(takers[1].partition, partition=1)
    paused: list[float] = []
    broken, quiet = (
        Fetched(error=error, high_watermark=30, last_stable_offset=30, log_start_offset=0, aborted=(), start=0, end=0)
        for error in (UNKNOWN_SERVER_ERROR, 0)
    )
    answers = {TopicPartition("orders", 0): broken, TopicPartition("orders", 1): quiet}
    connection = type("Connection", (), {"throttle": ConnectionThrottle(print)})()
    monkeypatch.setattr(source_module.time, "sleep", paused.append)
    monkeypatch.setattr(source_module, "send_fetch", lambda *_, **__: 13)
    monkeypatch.setattr(source_module, "ready", lambda *_: [connection])
    monkeypatch.setattr(source_module, "receive_fetch", lambda *_: (memoryview(b""), answers))

    class OneNode:
        alias = "east"

        def leader(self, _partition: object) -> object:
            return type("Leader", (), {"node": 1, "epoch": 0})

        def connection(self, _node: int, _purpose: str) -> object:
            return connection

        def round_trip(self, _node: int) -> float:
            return 0.0

    source = Source(OneNode(), takers[0].context.slot, takers, Pace(60_000), Limit.of(takers[0].context.slot))  # type: ignore[arg-type]
    for _ in range(3):
        source.ask()
        source.answer()
    assert paused == [0.05, 0.1, 0.2]
    assert [bool(taker.withheld) for taker in takers] == [True, True] and not any(taker.is_done for taker in takers)
