"""``tasks.max = auto`` before a cluster with dynamic allocation: windows and executors grow and shrink with the lag."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from airmirror.flows.prepare import prepare
from airmirror.on_spark import execute as on_spark
from airmirror.on_spark.windows import run
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Proxy
from airmirror_local.spark_cluster import SparkCluster, start_spark_cluster
from airmirror_local.spark_connect import ConnectServer, start_connect_server
from support.flows import mirror
from support.topics import Record, produce

PRODUCE, PARTITIONS, MOST = 0, 8, 4
GROWS = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(MOST),
    "spark.dynamicAllocation.executorIdleTimeout": "3s",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
}

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    started = start_spark_cluster(tmp_path / "cluster", workers=2, cores=2, memory="2g")
    try:
        yield started
    finally:
        started.stop()


@pytest.fixture
def server(cluster: SparkCluster, tmp_path: Path) -> Iterator[ConnectServer]:
    started = start_connect_server(tmp_path / "connect", settings=GROWS, master=cluster.url)
    try:
        yield started
    finally:
        started.stop()


def until(holds: Callable[[], bool], what: str, seconds: float = 180) -> None:
    """Wait for what only the master's page tells."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_a_window_takes_more_slots_where_its_lag_is_old_and_executors_come_and_go(
    cluster: SparkCluster,
    server: ConnectServer,
    east: Broker,
    west: Broker,
    west_proxy: Proxy,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"window.slot.bytes": "100000", "tasks.max": "auto"}
    flow = mirror(east, west, tmp_path, partitions=PARTITIONS, settings=settings, through=west_proxy.bootstrap)
    taken, execute, opened = list[int](), on_spark.execute, threading.Event()
    own = f"airmirror|{flow.flow.name}|".encode()  # the client id of slots begins so

    def counted(spark: SparkSession, slots: Sequence[Slot], owner: str = "") -> list[SlotResult]:
        taken.append(len(slots))
        return execute(spark, slots, owner)

    def hold_slots(exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key == PRODUCE and own in frame[:100]:
            opened.wait()
        return frame

    def window() -> WindowResult:
        return run(prepare(flow.opened), server.url, WindowOrder(f"w-{uuid.uuid4().hex[:6]}"))

    def put(count: int, time_ms: int) -> None:
        for partition in range(PARTITIONS):
            records = [Record(b"x" * 500, b"%d" % number, (), time_ms) for number in range(count)]
            produce(east, flow.topic, records, partition=partition)

    monkeypatch.setattr(on_spark, "execute", counted)
    now_ms = int(time.time() * 1000)
    put(300, now_ms - 3_600_000)
    assert window().is_verified and taken == [2]  # what runs now: Spark names two where there is none yet
    put(300, now_ms)
    west_proxy.on_request = hold_slots
    try:
        with ThreadPoolExecutor(1) as pool:
            late = pool.submit(window)  # what it has copied so far is an hour old
            until(lambda: cluster.cores_used == MOST or late.done(), "no executor has come for the slots that wait")
            used = cluster.cores_used
            opened.set()
            assert late.result().is_verified
    finally:
        opened.set()
    assert (taken, used) == ([2, MOST], MOST)
    put(1, now_ms)
    assert window().is_verified and taken == [2, MOST, 1]
    until(lambda: cluster.cores_used == 1, "executors that have nothing to do were kept")
    assert flow.assert_equal() == 601 * PARTITIONS
