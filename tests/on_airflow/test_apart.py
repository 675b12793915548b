"""Airflow's services as different machines: each a user of its own, no common disk. What a task shows, every one reaches."""

from __future__ import annotations

import json
import shutil
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy.engine import make_url

from airmirror_local.airflow_client import AirflowClient
from airmirror_local.airflow_stack import AirflowStack, start_airflow
from airmirror_local.brokers import Broker
from airmirror_local.spark_connect import ConnectServer
from airmirror_local.stack import DAGS
from support.apart import Users, users
from support.databases import new_database
from support.links import links, opened
from support.redis import running_redis
from support.schedules import daily
from support.topics import Record, assert_mirrored, create_topic, produce

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]

SOURCE = "apart"
DAG = f"replicate.{SOURCE}.west"
NOTES = "No window of this test has a thousand records."
SUITE = f"""
name: apart
expectations:
  - {{type: expect_column_max_to_be_between, kwargs: {{column: copied, max_value: 999}}, notes: {NOTES}}}
"""
CONFIGURATION = """
clusters = apart, west
apart.bootstrap.servers = {east}
west.bootstrap.servers = {west}
apart->west.enabled = true
apart->west.topics = {topic}
window.schedule = {schedule}
audit.schedule =
replication.factor = 1
offset.storage.replication.factor = 1
offset.storage.partitions = 3
emit.heartbeats.enabled = false
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.location = target
"""


@pytest.fixture(scope="module")
def topic(east: Broker) -> str:
    return create_topic(east, f"apart-{uuid.uuid4().hex[:8]}", 2)


@pytest.fixture(scope="module")
def directory() -> Iterator[Path]:
    """A directory that every user may pass through; pytest closes its own."""
    found = Path(tempfile.mkdtemp(prefix="airmirror-apart-"))
    found.chmod(0o755)
    yield found
    shutil.rmtree(found)


@pytest.fixture(scope="module")
def homes(directory: Path) -> Users:
    return users(directory / "homes")


@pytest.fixture(scope="module")
def airflow(
    homes: Users,
    directory: Path,
    topic: str,
    east: Broker,
    west: Broker,
    connect_server: ConnectServer,
    postgresql: str,
    stack_directory: Path,
) -> Iterator[AirflowStack]:
    """Airflow with CeleryExecutor; all that its services have in common is to be read: the package and the DAGs folder."""
    dags = directory / "dags"
    (dags / "include" / "expectations").mkdir(parents=True)
    (dags / "airmirror_dags.py").write_text(DAGS)
    text = CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap, topic=topic, schedule=daily())
    (dags / "include" / "mirror.properties").write_text(text)
    (dags / "include" / "expectations" / "apart.yaml").write_text(SUITE)
    # The server listens on a socket in a directory of its own user, through which others pass until the test ends.
    socket = Path(str(make_url(postgresql).query["host"]))
    socket.chmod(0o711)
    environment = {
        "AIRMIRROR_LEDGER": new_database(postgresql, f"ledger_{uuid.uuid4().hex[:8]}"),
        "AIRFLOW_CONN_SPARK_CONNECT_DEFAULT": json.dumps(connect_server.connection),
    }
    root = directory / "airflow"

    def apart(component: str) -> tuple[Sequence[str], Mapping[str, str]]:
        passwords = (root / "passwords.json").read_bytes()
        homes.add(component, {"passwords.json": passwords} if component == "API server" else {})
        home = homes.home(component)
        own = {
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(home / "plugins"),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
            "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        }
        return homes.command(component), homes.environment(component) | own

    try:
        with running_redis(stack_directory) as redis:
            stack = start_airflow(
                root,
                dags=dags,
                environment=environment,
                database=new_database(postgresql, f"airflow_{uuid.uuid4().hex[:8]}"),
                celery_broker=redis,
                apart=apart,
            )
            try:
                yield stack
            finally:
                stack.stop()
    finally:
        socket.chmod(0o700)


def ran(client: AirflowClient, dag_id: str, conf: dict[str, Any], homes: Users) -> str:
    """Trigger a run, which must be green; its id."""
    run_id = client.trigger(dag_id, conf)
    assert client.wait_for_run(dag_id, run_id) == "success", logs(homes, run_id)
    return run_id


def logs(homes: Users, run_id: str) -> str:
    """What the worker has logged of a run: no other service can show it here."""
    found = homes.home("Celery worker").glob(f"logs/*/run_id={run_id}/**/*.log")
    return "\n".join(path.read_text(errors="replace")[-4000:] for path in found)


def test_every_link_of_a_run_opens_where_nothing_is_shared_but_kafka_and_a_database(
    airflow: AirflowStack, homes: Users, topic: str, east: Broker, west: Broker
) -> None:
    for partition in (0, 1):
        produce(east, topic, [Record(b"v%d" % n, b"k%d" % n) for n in range(200)], partition=partition)
    owners = {name: psutil.Process(process.pid).uids().effective for name, process in airflow.processes.items()}
    assert owners == {name: homes.number(name) for name in owners} and len(set(owners.values())) == len(owners) == 6
    assert all(homes.home(name).stat().st_mode & 0o777 == 0o700 for name in owners)
    with airflow.client() as client:
        client.wait(lambda: DAG in client.dag_ids(), 180)
        assert client.import_errors() == []
        client.unpause(DAG)
        run = client.wait(lambda: client.runs(DAG))[0]["dag_run_id"]
        assert client.wait_for_run(DAG, run) == "success", logs(homes, run)
        assert assert_mirrored(east, topic, west, f"{SOURCE}.{topic}") == 400
        shown = links(client, DAG, run)
        assert shown.keys() == {"verify_window: Data Docs"}
        assert "all 2 partitions passed" in (text := shown.popitem()[1])
        assert NOTES in text, "the expectations in the DAGs folder count"

        operate, audit = f"operate.{SOURCE}.west", f"audit.{SOURCE}.west"
        form = {"runbook": "failover", "verb": "plan", "way": "disaster", "reason": "INC-7"}
        shown = links(client, operate, ran(client, operate, form, homes))
        assert shown.keys() == {"failover.plan: Report"} and topic in shown.popitem()[1]
        shown = links(client, audit, ran(client, audit, {"what": "report"}, homes))
        assert shown.keys() == {"report: Report"} and f"{SOURCE}.{topic}" in shown.popitem()[1]

        # The console, in a service that has read no file of a task, leads to all three.
        page = opened(client, f"airmirror/console/api/flows/{DAG}").json()
        leads = [row["page"] for row in page["windows"] if row["page"]] + [each["page"] for each in page["reports"]]
        assert [each["kind"] for each in page["reports"]] == ["reports", "failover-plans"] and len(leads) == 3
        assert [opened(client, lead).status_code for lead in leads] == [200, 200, 200]
    assert not list(homes.directory.rglob("*.html")), "no page lies in a file"
