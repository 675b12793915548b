"""Airflow as it runs in production: PostgreSQL, CeleryExecutor, two schedulers, several flows at once, also by spark-submit."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from airmirror_local.airflow_stack import AirflowStack, start_airflow
from airmirror_local.brokers import Broker
from airmirror_local.spark_connect import ConnectServer
from airmirror_local.stack import airflow_environment
from support import ROOT
from support.databases import new_database
from support.hostile import numbered
from support.redis import running_redis
from support.schedules import daily
from support.topics import assert_mirrored, create_topic, produce

FLOWS = ("first", "second", "submitted")
SECRET = "planted-1d9c4b"

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def redis(stack_directory: Path) -> Iterator[str]:
    """The URL of a running Redis."""
    with running_redis(stack_directory) as url:
        yield url


@pytest.fixture(scope="module")
def topics(brokers: object) -> dict[str, str]:
    return {name: f"{name}-orders-{uuid.uuid4().hex[:6]}" for name in FLOWS}


@pytest.fixture(scope="module")
def airflow(
    topics: dict[str, str],
    redis: str,
    postgresql: str,
    east: Broker,
    west: Broker,
    connect_server: ConnectServer,
    stack_directory: Path,
) -> Iterator[AirflowStack]:
    directory = stack_directory / "celery"
    directory.mkdir()
    lines = [f"clusters = {', '.join(FLOWS)}, west", f"west.bootstrap.servers = {west.bootstrap}"]
    for name in FLOWS:
        create_topic(east, topics[name], 2)
        lines += [
            f"{name}.airflow.conn.id = east_cluster",
            f"{name}->west.enabled = true",
            f"{name}->west.topics = {topics[name]}",
        ]
    lines += [
        "submitted->west.spark.conn.id = spark_submit",
        f"window.schedule = {daily()}",
        "replication.factor = 1",
        "offset.storage.replication.factor = 1",
        "offset.storage.partitions = 3",
        "emit.heartbeats.enabled = false",
        "offset-syncs.topic.replication.factor = 1",
        "checkpoints.topic.replication.factor = 1",
        "offset-syncs.topic.location = target",
    ]
    configuration = directory / "mirror.properties"
    configuration.write_text("\n".join(lines))
    ledger = new_database(postgresql, f"ledger_{uuid.uuid4().hex[:8]}")
    # What is in the connection is in no file: spark-submit must be told, and nobody else.
    east_cluster = {"bootstrap.servers": east.bootstrap, "sasl.username": "nobody", "sasl.password": SECRET}
    environment = dict(airflow_environment(configuration, ledger, connect_server)) | {
        "AIRFLOW_CONN_SPARK_SUBMIT": json.dumps({"conn_type": "spark", "host": "local[2,4]"}),
        "AIRFLOW_CONN_EAST_CLUSTER": json.dumps({"conn_type": "airmirror_kafka", "extra": json.dumps(east_cluster)}),
    }
    stack = start_airflow(
        directory / "airflow",
        dags=ROOT / "dags",
        environment=environment,
        database=new_database(postgresql, f"airflow_{uuid.uuid4().hex[:8]}"),
        celery_broker=redis,
        parallelism=4,
    )
    try:
        yield stack
    finally:
        stack.stop()


def test_flows_run_at_once_and_continue_when_a_scheduler_dies(
    airflow: AirflowStack, topics: dict[str, str], east: Broker, west: Broker
) -> None:
    dag_ids = [f"replicate.{name}.west" for name in FLOWS]
    for name in FLOWS:
        produce(east, topics[name], numbered(3000, size=200), records_per_batch=100)
    with airflow.client() as client:
        client.wait(lambda: set(dag_ids) <= set(client.dag_ids()), 120)
        assert client.import_errors() == []
        for dag_id in dag_ids:
            client.unpause(dag_id)
        for dag_id in dag_ids:
            run = client.wait(lambda dag_id=dag_id: client.runs(dag_id))[0]  # type: ignore[misc]
            assert client.wait_for_run(dag_id, run["dag_run_id"], 300) == "success", dag_id
        log = client.log("replicate.submitted.west", run["dag_run_id"], "replicate_window")
        assert "airmirror: window" in log and "3,000 records" in log

        airflow.kill("scheduler")
        for name in FLOWS:
            produce(east, topics[name], numbered(1000, start=3000, size=200))
        runs = [(dag_id, client.trigger(dag_id)) for dag_id in dag_ids]
        for dag_id, run_id in runs:
            assert client.wait_for_run(dag_id, run_id, 300) == "success", dag_id
    for name in FLOWS:
        assert assert_mirrored(east, topics[name], west, f"{name}.{topics[name]}") == 4000
    written = [path for path in (airflow.directory / "logs").rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if SECRET in path.read_text(errors="replace")]
