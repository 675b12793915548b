"""Windows whose slots are Spark tasks: over Spark Connect, in one re-joined session a flow, retried by Spark."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from airmirror.on_spark import execute as on_spark
from airmirror.on_spark import sessions
from airmirror.on_spark.execute import execute
from airmirror.on_spark.library import digest
from airmirror.on_spark.sessions import capacity, close, connect
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.demand import at_most
from airmirror.windows.following import Follow
from airmirror.windows.judging import no_objection
from airmirror_local.brokers import Broker
from airmirror_local.spark_connect import TOKEN, ConnectServer, start_connect_server
from support.flows import Mirror, a_flow, mirror
from support.topics import Record, produce

ONE_WINDOW = r"""
import sys
from airmirror.config import parse
from airmirror.on_spark.sessions import close, connect
flow = parse("clusters = a, b\na.bootstrap.servers = a:1\nb.bootstrap.servers = b:1\na->b.enabled = true\n", "f").flow("a->b")
spark = connect(sys.argv[1], flow)
spark.range(4).repartition(2).mapInArrow(lambda batches: batches, "id long").collect()
close(spark)
"""


def records(count: int, start: int = 0) -> list[Record]:
    return [
        Record(b"v%d" % n + b"x" * 100, b"k%d" % n, (("h", b"1"),), 1_700_000_000_000 + n)
        for n in range(start, start + count)
    ]


@pytest.fixture
def spark_of(connect_server: ConnectServer) -> Iterator[Callable[[Mirror], SparkSession]]:
    sessions: list[SparkSession] = []

    def join(flow: Mirror) -> SparkSession:
        sessions.append(connect(connect_server.url, flow.flow))
        return sessions[-1]

    yield join
    for session in sessions:
        close(session)


def python_daemons(server: ConnectServer) -> int:
    """How many Python daemons the server has; each forks its workers."""
    found = 0
    for child in psutil.Process(server.process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            parent = child.parent()
            found += _is_daemon(child) and not (parent and _is_daemon(parent))
    return found


def _is_daemon(process: psutil.Process) -> bool:
    return any("pyspark.daemon" in argument for argument in process.cmdline())


def test_two_windows_over_spark_connect(
    east: Broker,
    west: Broker,
    tmp_path: Path,
    connect_server: ConnectServer,
    spark_of: Callable[[Mirror], SparkSession],
) -> None:
    """Each joins the flow's session anew, and finds the Python that it has."""
    flow, daemons = mirror(east, west, tmp_path, partitions=4), list[int]()
    for start in (0, 300):
        spark = spark_of(flow)
        assert capacity(spark) == at_most(2)
        produce(east, flow.topic, records(300, start))
        result = flow.run(functools.partial(execute, spark))
        assert result.is_verified
        daemons.append(python_daemons(connect_server))
    assert flow.assert_equal() == 600 and daemons[0] >= daemons[1] > 0


def test_a_worker_killed_in_its_transaction_is_replaced_by_spark(
    east: Broker,
    west: Broker,
    tmp_path: Path,
    spark_of: Callable[[Mirror], SparkSession],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    flow = mirror(east, west, tmp_path, partitions=2)
    spark = spark_of(flow)
    produce(east, flow.topic, records(2_000), records_per_batch=200)

    in_tasks = on_spark.in_tasks

    def die_at_the_first_commit(settings: bytes) -> Callable[[Any], Iterator[Any]]:
        run = in_tasks(settings)

        def dying(batches: Any) -> Iterator[Any]:
            import os
            import signal

            from pyspark import TaskContext

            from airmirror.clusters.protocol.transactions import TransactionalId

            if TaskContext.get().attemptNumber() == 0:
                TransactionalId.end = lambda self, commit: os.kill(os.getpid(), signal.SIGKILL)
            yield from run(batches)

        return dying

    monkeypatch.setattr(on_spark, "in_tasks", die_at_the_first_commit)
    result = flow.run(lambda slots: execute(spark, slots))
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == 2_000


@pytest.mark.long
def test_a_worker_killed_while_its_slot_follows_is_replaced_by_spark(
    east: Broker,
    west: Broker,
    tmp_path: Path,
    spark_of: Callable[[Mirror], SparkSession],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = {"window.follow.ms": "30000", "window.follow.commit.ms": "100", "verify.interval.ms": "500"}
    flow = mirror(east, west, tmp_path, partitions=2, settings=settings)
    spark = spark_of(flow)
    produce(east, flow.topic, records(200))
    in_tasks = on_spark.in_tasks

    def die_at_the_third_commit(settings: bytes) -> Callable[[Any], Iterator[Any]]:
        run = in_tasks(settings)

        def dying(batches: Any) -> Iterator[Any]:
            import os
            import signal

            from pyspark import TaskContext

            from airmirror.clusters.protocol.transactions import TransactionalId

            end, commits = TransactionalId.end, []

            def die(self: TransactionalId, commit: bool) -> None:
                commits.append(commit)
                if len(commits) == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                end(self, commit)

            if TaskContext.get().attemptNumber() == 0:
                TransactionalId.end = die
            yield from run(batches)

        return dying

    monkeypatch.setattr(on_spark, "in_tasks", die_at_the_third_commit)
    ended = threading.Event()

    def work() -> int:
        turn = 1
        while not ended.wait(0.2):
            produce(east, flow.topic, records(20, 200 * turn))
            turn += 1
        return 200 + 20 * (turn - 1)

    def run(slots: Sequence[Slot]) -> list[SlotResult]:
        try:
            return execute(spark, slots)
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            result = flow.run(run, slots=2, following=Follow(no_objection))
        finally:
            ended.set()
        count = working.result()
    assert result.is_verified, [str(row.error) for row in result.rows]
    assert result.followed is not None and result.followed.records > 200
    assert flow.run().is_verified  # what came after its end
    assert flow.assert_equal() == count


@pytest.mark.long  # the windows above leave one
@pytest.mark.timeout(600)
@pytest.mark.parametrize("more", [1, 7])
def test_processes_leave_one_python_daemon(connect_server: ConnectServer, more: int) -> None:
    command = [sys.executable, "-c", ONE_WINDOW, connect_server.address]
    environment = {**os.environ, TOKEN: connect_server.token}

    def run(count: int) -> int:
        for _ in range(count):
            subprocess.run(command, env=environment, check=True)
        return python_daemons(connect_server)

    first = run(1)
    assert first >= 1
    assert run(more) <= first


def test_a_server_that_is_away_is_not_waited_for_long(connect_server: ConnectServer) -> None:
    """Spark's client would try again for ten minutes, and a window would stand still (chaos seed 50)."""
    spark = connect(connect_server.url, a_flow("patience"))
    try:
        [policy] = spark.client._retry_policies  # type: ignore[attr-defined]
        state, waits = policy.to_state(), []
        while (wait := state.next_attempt()) is not None:
            waits.append(wait)
        assert 30_000 < sum(waits) < 60_000
        assert sessions.KEEPALIVE in spark.client._builder._channel_options  # type: ignore[attr-defined]
    finally:
        close(spark)


@pytest.mark.long
def test_a_server_that_is_started_anew_gets_the_library_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lost the library after it had got it; its session would be taken for the same one (chaos seed 50)."""

    def where_the_library_is(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        import airmirror

        for _ in batches:
            yield pyarrow.RecordBatch.from_pydict({"place": [airmirror.__file__]})

    servers = [start_connect_server(tmp_path / "spark")]
    add = sessions._add_library

    def add_and_restart(spark: SparkSession, library: str) -> None:
        add(spark, library)
        if len(servers) == 1:
            servers[0].process.kill()
            servers.append(start_connect_server(tmp_path / "spark", port=servers[0].port))

    monkeypatch.setattr(sessions, "_add_library", add_and_restart)
    try:
        spark = connect(servers[0].url, a_flow("restarted"))
        frame = spark.range(1).mapInArrow(where_the_library_is, "place string")
        assert [f"airmirror-{digest()}.zip" in row.place for row in frame.collect()] == [True]
        close(spark)
    finally:
        for server in servers:
            server.process.kill()
