"""Windows on a Kubernetes cluster, which KUBECONFIG names: `make kubernetes-test`; pytest does not find this file by itself.

Its nodes have (or pull) airmirror-spark and airmirror-airflow-kubernetes of this checkout, apache/kafka:4.2.0 and postgres:17.
Everything is in a namespace of its own, which is deleted in the end; this machine needs kubectl, and helm where CHART names
Airflow's chart.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airmirror.on_spark.library import digest
from support import ROOT

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
WINDOW = "app.kubernetes.io/component=window"  # the label of a window's secret and driver
EXECUTORS = "app.kubernetes.io/component=executor"  # of the Spark Connect server
PATIENCE = 900  # seconds
COUNT, MANY = 20_000, 400_000  # records

pytestmark = pytest.mark.timeout(3 * PATIENCE)

PRODUCE = """
import sys
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
topic, partitions, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
admin = AdminClient({"bootstrap.servers": "east:9092"})
admin.create_topics([NewTopic(topic, partitions, 1)])[topic].result()
producer = Producer({"bootstrap.servers": "east:9092", "linger.ms": 20})
for number in range(count):
    producer.produce(topic, key=str(number), value=f"{number}:" + "x" * 400, partition=number % partitions)
    if number % 1000 == 0:
        producer.poll(0)
        producer.flush()
assert producer.flush(60) == 0
"""

# A window as Airflow's task begins it, with an Airflow connection. A library's digest that is given stands for another image.
SUBMIT = """
import logging, os, sys
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import deployment
from airmirror.on_airflow.tasks import submit
from airmirror.on_airflow.tasks.spark import windows_of
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
window, topic, os.environ["AIRFLOW_CONN_SPARK_HERE"], library = sys.argv[1:]
if library:
    submit.digest = lambda: library
place, only = deployment(), Selection((topic,))
windows = windows_of("spark_here", place, flow="east->west", window=window, selection=only, over_connect=print)
try:
    result = windows.replicate()
except submit.SubmittedWindowFailed as error:
    print("failed for good:", not error.transient)
else:
    print("copied:", result.copied)
"""


def kubectl(*arguments: str, given: str | None = None, namespace: str = NAMESPACE) -> str:
    command = ["kubectl", "--namespace", namespace, *arguments]
    done = subprocess.run(command, input=given, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(arguments)}: {done.stdout[-5000:]}{done.stderr[-5000:]}"
    return done.stdout


def names(kind: str, label: str, *more: str) -> list[str]:
    return kubectl("get", kind, "--selector", label, "--output", "name", *more).split()


def running_executors() -> list[str]:
    return names("pods", EXECUTORS, "--field-selector", "status.phase=Running")


def in_worker(*command: str, given: str | None = None) -> str:
    return kubectl("exec", "--stdin", "worker", "--", *command, given=given)


def until(found: Callable[[], bool], what: str) -> bool:
    """Ask the cluster every second, as `kubectl wait` does, which knows no counts."""
    end = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < end, f"{what}: not in {PATIENCE} s\n{kubectl('get', 'pods')}"
        time.sleep(1)
    return value


@pytest.fixture(scope="module", autouse=True)
def namespace() -> Iterator[None]:
    """Two clusters, PostgreSQL, Spark Connect, and a pod that is as one of Airflow's workers."""
    kubectl("create", "namespace", NAMESPACE)
    try:
        config = (ROOT / "include" / "compose" / "mirror.properties").read_text()
        more = "tasks.max = 8\n"  # than two executors run at once
        kubectl("create", "configmap", "airmirror", f"--from-literal=mirror.properties={config}{more}")
        kubectl("create", "secret", "generic", "airmirror", *(f"--from-literal={k}={v}" for k, v in SECRET.items()))
        for manifest in ("rights", "spark-submit", "spark-connect"):
            asked = (MANIFESTS / f"{manifest}.yaml").read_text()  # of processors, less than of a node of two
            kubectl("apply", "--filename", "-", given=asked.replace("500m", "100m").replace("250m", "100m"))
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
def orders() -> str:
    """A topic of its own with COUNT records."""
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    in_worker("python", "-", topic, "4", str(COUNT), given=PRODUCE)
    return topic


def submitted(topic: str, library: str = "", **extra: str) -> str:
    connection = json.dumps({"conn_type": "spark", "host": MASTER, "extra": {"namespace": NAMESPACE, **extra}})
    return in_worker("python", "-", f"w-{uuid.uuid4().hex[:8]}", topic, connection, library, given=SUBMIT)


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


def test_executors_of_spark_connect_come_go_and_die(orders: str) -> None:
    config = kubectl("get", "configmap", "spark-connect", "--output", "json")
    quick = config.replace("executorIdleTimeout         120s", "executorIdleTimeout         10s")
    assert quick != config
    kubectl("apply", "--filename", "-", given=quick)
    kubectl("rollout", "restart", "deployment/spark-connect")
    kubectl("rollout", "status", "deployment/spark-connect", f"--timeout={PATIENCE}s")
    until(lambda: len(running_executors()) == 2, "two executors")
    more = f"more-{uuid.uuid4().hex[:8]}"
    in_worker("python", "-", more, "8", str(MANY), given=PRODUCE)
    window = "airmirror run-window --flow 'east->west' --spark sc://spark-connect:15002"
    windows = (
        f"while {window}; status=$?; [ $status = 75 ]; do :; done; exit $status"  # 75: cut, the next one continues
    )
    command = ["kubectl", "--namespace", NAMESPACE, "exec", "worker", "--", "bash", "-c", windows]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        grown = until(lambda: process.poll() is not None or len(running_executors()) > 2, "a third executor")
        assert grown and process.poll() is None, process.communicate()[0]
        kubectl("delete", running_executors()[0], "--force", "--grace-period=0")
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    all_equal(orders, COUNT)
    all_equal(more, MANY)
    until(lambda: len(running_executors()) == 2, "two executors again")


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

    dag = "replicate.east.west"
    until(lambda: dag in airflow("dags", "list", "--output", "json"), "the DAG")
    airflow("dags", "unpause", dag)
    until(lambda: '"success"' in airflow("dags", "list-runs", dag, "--output", "json"), "a run that succeeds")
    all_equal(orders, COUNT)
