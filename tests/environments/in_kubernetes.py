"""Windows on a Kubernetes cluster, which KUBECONFIG names: `make kubernetes-test`; pytest does not find this file by itself.

Its nodes have (or pull) airmirror-spark and airmirror-airflow-kubernetes of this checkout, apache/kafka:4.2.0 and postgres:17.
Everything is in a namespace of its own, which is deleted in the end; nodes are cordoned, and two of them drained of Airmirror's
pods. This machine needs kubectl, and helm where CHART names Airflow's chart.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from airmirror.on_spark.library import digest
from benchmarks import scaling, sections
from support import ROOT
from support.pod_scripts import AGAIN, COPIED, ENDED, PAGES, PRODUCE, RUN_WINDOW, SUBMIT, WAITING, WINDOWS

NAMESPACE = f"airmirror-{uuid.uuid4().hex[:8]}"
MANIFESTS = ROOT / "include" / "kubernetes"
MASTER = "k8s://https://kubernetes.default.svc"
LEDGER = "postgresql+psycopg2://airmirror:airmirror@postgres/airmirror"
SECRET = {
    "AIRMIRROR_LEDGER": LEDGER,
    "AIRMIRROR_SPARK_SECRET": uuid.uuid4().hex,
    "AIRFLOW_CONN_SPARK_CONNECT_DEFAULT": json.dumps(
        {"conn_type": "spark_connect", "host": "spark-connect", "port": 15002}
    ),
}
OURS = "app.kubernetes.io/name=airmirror"
WINDOW = "app.kubernetes.io/component=window"  # the label of a window's secret and driver
EXECUTORS = "app.kubernetes.io/component=executor"  # of the Spark Connect server
SERVER = "app.kubernetes.io/component=spark-connect"
TASKS = "kubernetes_executor=True"  # of Airflow's pods
DRAIN = ("--ignore-daemonsets", "--delete-emptydir-data")  # docs/kubernetes.md: of a node with Spark's pods
PATIENCE = 900  # seconds
# Records: the most of them keep a window at work for longer than a look at it and a drain take. And partitions of a topic.
COUNT, MANY, MOST, PARTITIONS = 20_000, 400_000, 1_200_000, 8
CORES = 4  # of the two executors that are always there
RECORD_BYTES = 410  # about
PLOT = ROOT / "benchmarks" / "scaling-kubernetes.png"
# Windows of some MB take a slot for each of them.
CONFIGURATION = "tasks.max = auto\nwindow.slot.bytes = 1000000\n"

pytestmark = pytest.mark.timeout(3 * PATIENCE)


def kubectl(*arguments: str, given: str | None = None, namespace: str = NAMESPACE) -> str:
    command = ["kubectl", "--namespace", namespace, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout[-5000:]}{done.stderr[-5000:]}"
    return done.stdout


def names(kind: str, label: str) -> list[str]:
    return kubectl("get", kind, "--selector", label, "--output", "name").split()


def pods(label: str) -> list[dict[str, Any]]:
    """Those that run and are not about to end."""
    items = json.loads(kubectl("get", "pods", "--selector", label, "--output", "json"))["items"]
    return [pod for pod in items if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]]


def executors() -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(EXECUTORS)]


def places(label: str) -> list[str]:
    """The node of each pod."""
    return [pod["spec"]["nodeName"] for pod in pods(label)]


def in_worker(*command: str, given: str | None = None) -> str:
    return kubectl("exec", "--stdin", "worker", "--", *command, given=given)


def until(found: Callable[[], bool], what: str) -> None:
    """Ask the cluster every second, as `kubectl wait` does, which knows no counts."""
    end = time.monotonic() + PATIENCE
    while not found():
        assert time.monotonic() < end, f"{what}: not in {PATIENCE} s\n{kubectl('get', 'pods', '--output', 'wide')}"
        time.sleep(1)


def two_executors() -> None:
    until(lambda: len(executors()) == 2, "two executors")


@pytest.fixture(scope="module", autouse=True)
def namespace() -> Iterator[None]:
    """Two clusters, PostgreSQL, Spark Connect, and a pod that is as one of Airflow's workers."""
    kubectl("create", "namespace", NAMESPACE)
    try:
        config = (ROOT / "include" / "compose" / "mirror.properties").read_text() + CONFIGURATION
        kubectl("create", "configmap", "airmirror", f"--from-literal=mirror.properties={config}")
        kubectl("create", "secret", "generic", "airmirror", *(f"--from-literal={k}={v}" for k, v in SECRET.items()))
        for manifest in ("rights", "spark-submit", "spark-connect"):
            asked = (MANIFESTS / f"{manifest}.yaml").read_text()  # of processors, less than of a node of two
            asked = asked.replace("500m", "100m").replace("250m", "100m")
            # Executors that have nothing to do go soon.
            asked = asked.replace("executorIdleTimeout         120s", "executorIdleTimeout         10s")
            kubectl("apply", "--filename", "-", given=asked)
        assert "executorIdleTimeout         10s" in kubectl("get", "configmap", "spark-connect", "--output", "yaml")
        kubectl("apply", "--filename", str(ROOT / "tests" / "environments" / "kubernetes.yaml"))
        kubectl("wait", "--for=condition=Available", "deployment", "--all", f"--timeout={PATIENCE}s")
        kubectl("wait", "--for=condition=Ready", "pod/worker", f"--timeout={PATIENCE}s")
        own = in_worker("python", "-c", "from airmirror.on_spark.library import digest; print(digest())").strip()
        assert own == digest(), "the nodes have images of another Airmirror than this checkout: build them again"
        yield
    finally:
        if not os.environ.get("KEEP"):
            kubectl("delete", "namespace", NAMESPACE)


@pytest.fixture
def nodes() -> Iterator[list[str]]:
    """The nodes that take pods, which take them again in the end."""
    items = json.loads(kubectl("get", "nodes", "--output", "json"))["items"]
    found = [node["metadata"]["name"] for node in items if not node["spec"].get("taints")]
    yield found
    take_pods(found, found)


def take_pods(wanted: Collection[str], nodes: Sequence[str]) -> None:
    """Of the nodes only those that are wanted take new pods."""
    for node in nodes:
        kubectl("uncordon" if node in wanted else "cordon", node)


def produce(topic: str, count: int, partitions: int = PARTITIONS, age: int = 0) -> None:
    """Records that are so many seconds old, to a topic that is made where it is not there."""
    in_worker("python", "-", topic, str(partitions), str(count), str(age), given=PRODUCE)


def new_topic(name: str) -> str:
    return f"{name}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def orders() -> str:
    """A topic of its own with COUNT records."""
    produce(topic := new_topic("orders"), COUNT, partitions=4)
    return topic


def submitted(topic: str, library: str = "", **extra: str) -> str:
    connection = json.dumps({"conn_type": "spark", "host": MASTER, "extra": {"namespace": NAMESPACE, **extra}})
    return in_worker("python", "-", f"w-{uuid.uuid4().hex[:8]}", topic, connection, library, given=SUBMIT)


@contextmanager
def windows(log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Windows on Spark Connect, one after the other, until one has copied what is left."""
    command = ["kubectl", "--namespace", NAMESPACE, "exec", "worker", "--", "bash", "-c", WINDOWS, RUN_WINDOW]
    with log.open("wb") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.kill()


def said_by(process: subprocess.Popen[bytes], log: Path) -> str:
    """What windows have said that have ended well."""
    assert process.wait(PATIENCE) == 0, log.read_text()
    return log.read_text()


def slots(said: str) -> list[int]:
    """How many each of these windows has taken."""
    return [int(count) for count in re.findall(r"\b(\d+) slots for ", said)]


@contextmanager
def watched(topic: str, logs: Sequence[Path], begun: float) -> Iterator[scaling.Samples]:
    """The bytes that wait, the slots of the window that runs, and the executors, every other second."""
    seen = scaling.Samples()

    def note(lines: Iterable[str]) -> None:
        for waiting in lines:
            running = [log.read_text().rpartition(ENDED)[2] for log in logs if log.exists()]
            seen.seconds.append(time.monotonic() - begun)
            seen.lag.append(int(waiting) * RECORD_BYTES)
            seen.slots.append(sum(sum(slots(said)) for said in running))
            seen.executors.append(len(executors()))

    command = ["kubectl", "--namespace", NAMESPACE, "exec", "worker", "--", "python", "-c", WAITING, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process, ThreadPoolExecutor(1) as threads:
        assert process.stdout is not None
        noted = threads.submit(note, process.stdout)
        try:
            yield seen
        finally:
            process.kill()
            noted.result()


def draw(seen: scaling.Samples, burst: tuple[float, float]) -> None:
    """The plot of a burst, which came in these seconds, and its section of RESULTS.md."""
    load = scaling.Load(0, 0, *burst, seen.seconds[-1])
    note = (
        f"`make kubernetes-test PLOT=yes`, on the cluster that docs/kubernetes.md names: Spark Connect as a deployment, its "
        f"executors of two cores are pods, two of them at least. {COUNT:,} records that are an hour old; then {MANY:,} in "
        f"{burst[1] - burst[0]:.0f} s, over {PARTITIONS} partitions, and an executor's pod is deleted in mid-window; "
        f"then {PARTITIONS} records. *Caught up*: from the burst's end until no record waits."
        f"\n\n![lag, slots and executors over a burst]({PLOT.name})"
    )
    sections.write(scaling.table("Scaling on Kubernetes", note, {"auto": seen}, load))
    scaling.draw({"auto": seen}, load, PLOT)


def await_records(topic: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a window copies the topic's MOST records, and is not done with them."""
    copied = 0

    def has_begun() -> bool:
        nonlocal copied
        copied = int(in_worker("python", "-", topic, given=COPIED))
        return copied > 0 or process.poll() is not None

    until(has_begun, "the first records")
    assert 0 < copied < MOST and process.poll() is None, log.read_text()


def evicted(pod: str) -> bool:
    """Ask for a pod's eviction, as a drain does; whether its disruption budget has allowed it."""
    asked = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{pod}/eviction"
    command = ["kubectl", "create", "--raw", path, "--filename", "-"]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True)
    assert done.returncode == 0 or "disruption budget" in done.stderr, done.stderr
    return done.returncode == 0


def all_equal(topic: str, records: int) -> None:
    """Compare both logs, which fails where they differ; and no record is missing."""
    compared = json.loads(in_worker("airmirror", "verify", "--json", "--flow", "east->west", "--topics", topic))
    assert sum(row["records"] for row in compared) == records, compared


def test_spark_submit_in_client_mode(orders: str) -> None:
    assert f"copied: {COUNT}" in (said := submitted(orders)), said
    all_equal(orders, COUNT)


def test_spark_submit_in_cluster_mode_leaves_nothing(orders: str) -> None:
    cluster = {"deploy-mode": "cluster"}
    said = submitted(orders, **cluster)
    assert f"copied: {COUNT}" in said and "airmirror: window" in said, said
    all_equal(orders, COUNT)
    assert names("secrets", WINDOW) == names("pods", WINDOW) == []
    # The driver's exit status says that an operator must decide; its pod stays, to be read.
    said = submitted(orders, library="0" * 32, **cluster)
    assert "failed for good: True" in said and "has another Airmirror" in said, said
    assert names("secrets", WINDOW) == []
    (driver,) = names("pods", WINDOW)
    kubectl("delete", driver)


def test_slots_and_executors_of_spark_connect_come_go_and_die(tmp_path: Path) -> None:
    """With tasks.max = auto: as many as run now, more in a burst after a quiet hour, one for what is little."""
    two_executors()
    topic, logs = new_topic("burst"), [tmp_path / name for name in ("before", "burst", "after")]
    begun = time.monotonic()
    with watched(topic, logs, begun) as seen:
        produce(topic, COUNT, age=3600)
        with windows(logs[0]) as process:
            said_by(process, logs[0])
        begins = time.monotonic() - begun
        produce(topic, MANY)
        ends = time.monotonic() - begun
        with windows(logs[1]) as process:
            until(lambda: process.poll() is not None or len(executors()) > 2, "a third executor")
            assert process.poll() is None, logs[1].read_text()
            kubectl("delete", "pod", executors()[0], "--force", "--grace-period=0")
            said_by(process, logs[1])
        produce(topic, PARTITIONS)  # one a partition
        with windows(logs[2]) as process:
            said_by(process, logs[2])
        taken = [slots(log.read_text()) for log in logs]
        assert max(taken[0]) <= CORES < taken[1][0] == PARTITIONS and taken[2] == [1], taken
        all_equal(topic, COUNT + MANY + PARTITIONS)
        two_executors()
    assert max(seen.slots) == PARTITIONS and max(seen.lag) > seen.lag[-1] == 0, seen
    if os.environ.get("PLOT"):
        draw(seen, (begins, ends))


def test_the_last_executor_is_evicted_only_when_another_one_runs(nodes: list[str]) -> None:
    two_executors()
    first, last = executors()
    take_pods([], nodes)  # one that is started in its place waits
    until(lambda: evicted(first), "the eviction of one of two executors")
    assert not evicted(last), "no executor is left"
    take_pods(nodes, nodes)
    until(lambda: evicted(last), "the eviction of the last executor, when another one runs")
    two_executors()


def test_nodes_are_drained_in_mid_window(nodes: list[str], tmp_path: Path) -> None:
    """Of executors: the window is done by others. Of the server: the window fails, and the next one continues."""
    if len(nodes) < 2:
        pytest.skip("a node is drained while another one takes its pods: a cluster of two nodes is needed")
    of_server, of_executors = nodes[:2]
    take_pods([of_server], nodes)
    kubectl("rollout", "restart", "deployment/spark-connect")
    kubectl("rollout", "status", "deployment/spark-connect", f"--timeout={PATIENCE}s")
    take_pods([of_executors], nodes)
    kubectl("delete", "pods", "--selector", EXECUTORS)
    until(lambda: places(EXECUTORS) == 2 * [of_executors], "two executors, away from the server")
    assert places(SERVER) == [of_server]
    take_pods(nodes[:2], nodes)

    topic, log = new_topic("executors"), tmp_path / "executors"
    produce(topic, MOST)
    with windows(log) as process:
        await_records(topic, process, log)
        with drained(of_executors) as draining:
            while draining.poll() is None:
                assert executors(), "the drain has left no executor"
        assert draining.returncode == 0
        said = said_by(process, log)
    assert AGAIN not in said, said  # no window has failed
    assert of_executors not in places(EXECUTORS)
    all_equal(topic, MOST)

    topic, log = new_topic("server"), tmp_path / "server"
    take_pods(nodes[:2], nodes)
    produce(topic, MOST)
    with windows(log) as process:
        await_records(topic, process, log)
        with drained(of_server) as draining:
            assert draining.wait(PATIENCE) == 0
        said = said_by(process, log)
    assert AGAIN in said, said  # a window has failed, and the last one is done
    assert places(SERVER) == [of_executors]
    all_equal(topic, MOST)


def drained(node: str) -> subprocess.Popen[bytes]:
    """Evict Airmirror's pods from a node, which takes no more. (The clusters' logs are in their pods.)"""
    return subprocess.Popen(["kubectl", "drain", node, *DRAIN, "--pod-selector", OURS, f"--timeout={PATIENCE}s"])


@pytest.mark.skipif("CHART" not in os.environ or shutil.which("helm") is None, reason="CHART=… and helm are needed")
def test_airflow_by_its_chart_replicates_with_a_pod_a_task(orders: str, tmp_path: Path) -> None:
    in_worker("python", "-c", "import psycopg2, sys; c = psycopg2.connect(sys.argv[1]); c.autocommit = True; "
              "c.cursor().execute('create database airflow')", LEDGER.replace("+psycopg2", ""))  # fmt: skip
    database = LEDGER.rpartition("/")[0] + "/airflow"
    kubectl("create", "secret", "generic", "airflow-metadata", f"--from-literal=connection={database}")
    release = ("meta.helm.sh/release-name=airflow", f"meta.helm.sh/release-namespace={NAMESPACE}")
    kubectl("annotate", "serviceaccount", "airflow-worker", *release)  # the chart's own from now on
    kubectl("label", "serviceaccount", "airflow-worker", "app.kubernetes.io/managed-by=Helm")
    values = tmp_path / "values.yaml"
    values.write_text((MANIFESTS / "airflow-values.yaml").read_text().replace("250m", "100m"))
    subprocess.run(
        ["helm", "install", "airflow", os.environ["CHART"], "--namespace", NAMESPACE, "--values", str(values)],
        check=True, timeout=PATIENCE,
    )  # fmt: skip
    kubectl("wait", "--for=condition=Available", "deployment", "--all", f"--timeout={PATIENCE}s")

    def airflow(*command: str) -> str:
        return kubectl("exec", "deployment/airflow-scheduler", "--container", "scheduler", "--", "airflow", *command)

    dag, seen = "replicate.east.west", tmp_path / "pods"
    until(lambda: dag in airflow("dags", "list", "--output", "json"), "the DAG")
    with pods_of_tasks(seen):
        airflow("dags", "unpause", dag)
        until(lambda: '"success"' in airflow("dags", "list-runs", dag, "--output", "json"), "a run that succeeds")
    all_equal(orders, COUNT)

    password = re.search(r"Password for user 'admin': (\S+)", kubectl("logs", "deployment/airflow-api-server"))
    assert password is not None
    run = json.loads(in_worker("python", "-", password[1], dag, given=PAGES))
    assert run["links"].keys() == {"verify_window: Data Docs"}
    assert re.search(r"all \d+ partitions passed", run["links"].popitem()[1])
    # Airflow itself ends what does nothing; what is skipped was not begun.
    begun = {
        name: task["hostname"]
        for name, task in run["tasks"].items()
        if task["state"] == "success" and task["operator"] != "EmptyOperator"
    }
    assert {"sync_topics", "replicate_window", "verify_window", "emit_offset_syncs"} <= begun.keys()
    assert len(set(begun.values())) == len(begun), begun
    lines = [line.split() for line in seen.read_text().splitlines()]
    own = {line[1]: line[2] for line in lines if line[0] == run["run"] and line[1] in begun}
    assert own.keys() == begun.keys() and len(set(own.values())) == len(own), own


@contextmanager
def pods_of_tasks(file: Path) -> Iterator[None]:
    """Write down the run, the task and the name of each pod that Airflow makes; most of them are gone within seconds."""
    said = 'jsonpath={.metadata.annotations.run_id} {.metadata.annotations.task_id} {.metadata.name}{"\\n"}'
    command = ["kubectl", "--namespace", NAMESPACE, "get", "pods", "--watch", "--selector", TASKS, "--output", said]
    with file.open("wb") as out, subprocess.Popen(command, stdout=out) as process:
        try:
            yield
        finally:
            process.terminate()
