"""One scenario suite, everywhere that a window can run: every kind of log, two windows, a worker that dies."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from airmirror_local.brokers import Broker
from airmirror_local.proxy import Hold, Proxy
from airmirror_local.spark_cluster import SparkCluster, start_spark_cluster
from airmirror_local.spark_connect import ConnectServer, start_connect_server
from support.environments import ROOT, Environment, connect, in_process, submit
from support.flows import Mirror, mirror
from support.hostile import KINDS, numbered
from support.servers import keep
from support.topics import assert_mirrored, create_topic, produce

PRODUCE = 0
# The target must keep what it is given while it is compared: it neither compacts nor expires.
KEEP = {"config.properties.exclude": "cleanup\\.policy, segment\\.ms, retention\\.ms, message\\.timestamp\\.type"}

pytestmark = pytest.mark.timeout(1200)

EVERYWHERE = [
    "submit-local",
    *(
        pytest.param(name, marks=pytest.mark.long)
        for name in ("in-process", "connect", "standalone", "connect-standalone")
    ),
]


@pytest.fixture(scope="session")
def executor_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that has what executors need and nothing else: requirements-executor.txt, and Spark's own pyarrow."""
    home = tmp_path_factory.mktemp("executor") / "venv"
    python = str(home / "bin" / "python")
    pinned = re.search(r"^pyarrow==\S+", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "-r", str(ROOT / "requirements-executor.txt"), pinned[0]], check=True)
    absent = subprocess.run([python, "-c", "import confluent_kafka"], capture_output=True)
    assert absent.returncode != 0
    return python


@pytest.fixture(scope="session")
def spark_cluster(executor_python: str, stack_directory: Path) -> Iterator[SparkCluster]:
    """A standalone cluster of two workers, whose executors run ``executor_python``."""
    # Cores for two applications at once: the Connect server keeps its own.
    variables = {"PYSPARK_PYTHON": executor_python}
    cluster = start_spark_cluster(stack_directory / "spark-cluster", cores=2, memory="2g", environment=variables)
    for process in (cluster.master, *cluster.workers):
        keep(process)  # it is started within the first test that asks for it
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="session")
def connect_of_cluster(
    spark_cluster: SparkCluster, executor_python: str, stack_directory: Path
) -> Iterator[ConnectServer]:
    """A Spark Connect server in front of the standalone cluster."""
    settings = {"spark.cores.max": "2", "spark.executor.memory": "1g"}
    directory = stack_directory / "spark-of-cluster"
    server = start_connect_server(directory, settings=settings, master=spark_cluster.url, python=executor_python)
    keep(server.process)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def environment(request: pytest.FixtureRequest) -> Environment:
    name = str(request.param)
    if name == "in-process":
        return in_process()
    if name == "connect":
        server: ConnectServer = request.getfixturevalue("connect_server")
        keep(server.process)
        return connect(server)
    if name == "submit-local":
        return submit("local[2,4]", name)
    if name == "connect-standalone":
        return connect(request.getfixturevalue("connect_of_cluster"), name)
    cluster, python = request.getfixturevalue("spark_cluster"), request.getfixturevalue("executor_python")
    return submit(cluster.url, name, python)


def ledger_of(kind: str, directory: Path, request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue("postgresql") if kind == "postgresql" else f"sqlite:///{directory / 'shared.db'}"


@pytest.mark.long
@pytest.mark.parametrize("ledger", ["sqlite", "postgresql"])
@pytest.mark.parametrize("environment", EVERYWHERE, indirect=True)
def test_every_kind_of_log_in_two_windows(
    environment: Environment, ledger: str, east: Broker, west: Broker, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = ledger_of(ledger, tmp_path, request)
    prefix = f"any-{uuid.uuid4().hex[:8]}"
    names = [
        create_topic(east, f"{prefix}-{number}", kind.partitions, kind.config) for number, kind in enumerate(KINDS)
    ]
    for kind, name in zip(KINDS, names, strict=True):
        kind.fill(east, name)
    topics = {"topics": f"{prefix}-.*", "tasks.max": "2"}
    flow = mirror(east, west, tmp_path, topic=names[0], settings=KEEP | topics, ledger_url=url)
    environment.run(flow, url, f"{prefix}-first", tmp_path)
    more = [name for name, kind in zip(names, KINDS, strict=True) if not kind.config]
    for name in more:
        produce(east, name, numbered(500, start=10_000), partition=0)
    environment.run(flow, url, f"{prefix}-second", tmp_path)
    for name in names:
        assert_mirrored(east, name, west, f"{flow.flow.source.alias}.{name}")
    assert flow.opened.ledger.unverified() == []
    assert {topic for topic, _ in flow.opened.ledger.verified()} == set(names)
    assert {row.window for row in flow.opened.ledger.windows()} == {f"{prefix}-first", f"{prefix}-second"}


@pytest.mark.long  # tests/on_spark kills a worker in its transaction in `make test`
@pytest.mark.parametrize("environment", EVERYWHERE, indirect=True)
def test_a_worker_is_killed_in_mid_window(
    environment: Environment, east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path
) -> None:
    killed_in_mid_window(environment, east, west, west_proxy, tmp_path)


def killed_in_mid_window(
    environment: Environment, east: Broker, west: Broker, west_proxy: Proxy, tmp_path: Path
) -> Mirror:
    """A flow of one topic whose 4,000 records were copied by a window of which a worker was killed."""
    url = f"sqlite:///{tmp_path / 'shared.db'}"
    settings = {"window.commit.bytes": "20000"}  # and tasks.max = auto: Spark is asked for its cores
    flow = mirror(east, west, tmp_path, settings=settings, ledger_url=url, through=west_proxy.bootstrap)
    produce(east, flow.topic, numbered(4000, size=200), records_per_batch=50)
    hold = Hold(PRODUCE, number=west_proxy.requests[PRODUCE] + 10)  # a busy machine takes larger parts: 20 in all
    west_proxy.on_request = hold
    with environment.started(flow, url, "killed", tmp_path) as process:
        try:
            # A window that has ended will not write; how long one takes to begin is the machine's load.
            while not hold.reached.wait(0.2):
                assert process.running, process.log.read_text()
            worker = worker_of(west_proxy.port)
            if "standalone" in environment.name:  # where more than the worker can die
                worker = executor_of(worker)
            worker.send_signal(signal.SIGKILL)
        finally:
            hold.release.set()
        status = process.handle.wait()
    assert status == 0, process.log.read_text()
    assert flow.assert_equal() == 4000
    return flow


def worker_of(port: int) -> psutil.Process:
    """The Python worker that runs a slot: it alone has a connection to the proxy and is forked by Spark's daemon."""
    for process in psutil.process_iter():
        try:
            is_worker = any("pyspark.daemon" in part for part in process.cmdline())
            if is_worker and any(peer.raddr and peer.raddr.port == port for peer in process.net_connections()):
                return process
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    raise AssertionError("no Python worker of Spark is connected to the target")


def executor_of(worker: psutil.Process) -> psutil.Process:
    """The executor, a JVM of its own in a cluster."""
    return next(parent for parent in worker.parents() if "CoarseGrainedExecutorBackend" in " ".join(parent.cmdline()))
