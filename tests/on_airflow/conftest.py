"""A real Airflow for the whole run, with a flow of its own for every test that runs: each from an alias of ``east``."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sql
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from airmirror_local.airflow_client import PATIENCE_SECONDS, AirflowClient
from airmirror_local.airflow_stack import USER, AirflowStack, start_airflow
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.spark_connect import ConnectServer, start_connect_server
from airmirror_local.stack import airflow_environment
from support import ROOT
from support.databases import new_database
from support.schedules import daily
from support.servers import keep
from support.topics import assert_mirrored, create_topic

SECRET = "planted-8c1f0e"
VIEWER = "vera"  # a user who may look, and start nothing
WAITING = ("awaiting_input", "deferred")  # an answer to a task in another state fails it, or wakes nobody
NAMES = (
    "scheduled",
    "gate",
    "form",
    "terminated",
    "killed",
    "scheduler",
    "spark",
    "cut",
    "alerted",
    "heart",
    "audited",
    "repeated",
    "backfilled",
    "replayed",
    "paused",
    "continuous",
    "growing",
    "decided",
    "lineage",
    "evident",
    "following",
    "failing",
    "burning",
    "rehearsed",
    "moving",
    "walked",
    "returning",
    "shown",
    "submitted",
)
SOON_TAKEN_FOR_DEAD = {  # a task or scheduler that a test kills; else a slow machine would lose some that live
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_SEC": "2",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "15",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "3",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "10",
}
REPORT_KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))  # of these tests only
SCRAPER = f"{SECRET}-prometheus"
RECEIVERS = {"alertmanager": f"{SECRET}-alertmanager", "grafana": f"{SECRET}-grafana"}  # connections and their tokens
KAFKA = {  # the extra of a connection for a cluster
    "ssl.keystore.type": "PEM",
    "ssl.keystore.key": f"-----BEGIN PRIVATE KEY-----\n{SECRET}-pem\n-----END PRIVATE KEY-----",
    "ssl.truststore.password": f"{SECRET}-connection",
}
HEAD = f"""
replication.factor = 1
offset.storage.replication.factor = 1
offset.storage.partitions = 3
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset-syncs.topic.location = target
# One run when the DAG is switched on, no other for half a day but those that are triggered.
window.schedule = {daily()}
window.commit.bytes = 300000
scheduled->west.window.schedule = 5 s
continuous->west.window.schedule = @continuous
growing->west.window.trigger.records = 50
continuous->west.window.idle.ms = 3000
# A run of it is late as soon as it takes longer than the last ten on average, which does it no harm.
continuous->west.window.deadline.ms = 1
failing->west.groups = failing-billing
burning->west.groups = burning-billing
rehearsed->west.groups = rehearsed-billing
moving->west.move.shop.topics = moving-.*
moving->west.move.shop.groups = moving-billing
moving->west.move.quiet.ms = 500
moving->west.move.soak.ms = 0
walked->west.move.shop.topics = walked-.*
walked->west.move.shop.groups = walked-billing
walked->west.move.quiet.ms = 500
walked->west.move.soak.ms = 0
returning->west.groups = returning-billing
# The reverse flow of what is failed over. All aliases but west's are names of one cluster here.
west->returning.enabled = true
west->returning.topics = nothing-of-its-own
west->returning.groups = returning-billing
west->returning.target.cluster.other.aliases = .*
following->west.window.follow.ms = 60000
following->west.verify.interval.ms = 500
following->west.groups = following-billing
following->west.sync.group.offsets.enabled = true
following->west.sync.group.offsets.interval.seconds = 0.5
# Only into the cluster of `heart`: its DAG is heartbeats.heart.
emit.heartbeats.enabled = false
west->heart.emit.heartbeats.enabled = true
heartbeats.topic.replication.factor = 1
cut->west.window.max.bytes = 60000
# What evident->west copies is compared by DAG compare.evident too.
compare.evident.source = evident
compare.evident.target = west
compare.evident.topics = evident-.*
compare.evident.rename = evident.{{topic}}
# Their audits run when they are triggered.
evident->west.audit.schedule =
replayed->west.audit.schedule =
# It begins at the end; what was before goes into a topic of its own.
backfilled->west.consumer.auto.offset.reset = latest
backfilled->west.backfill.into.suffix = .history
spark->proxied.spark.conn.id = spark_restarted
submitted->west.spark.conn.id = spark_submit
scheduled.airflow.conn.id = secret_kafka
scheduled.ssl.key.password = {SECRET}-key
scheduled.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required password="{SECRET}-jaas";
"""
FROM_PROXY = ("burning",)  # whose source can be gone
THROUGH_PROXY = ("paused", "terminated", "killed", "scheduler", "spark")


def configured(flows: set[str]) -> list[str]:
    """HEAD without the lines of flows that no test of this run uses."""
    assert flows <= set(NAMES), f"name it in NAMES: {flows - set(NAMES)}"
    others = "|".join(name for name in NAMES if name not in flows)
    theirs = re.compile(rf"(west->|compare\.)?({others})(->|\.)")
    lines = [line for line in HEAD.splitlines() if not others or not theirs.match(line)]
    return [f"clusters = {', '.join(sorted(flows))}, west, proxied", *lines]


@dataclass
class AirflowUnderTest:
    """Airflow, the Spark Connect servers, of which a test may restart one, and where files lie."""

    stack: AirflowStack
    client: AirflowClient
    expectations: Path
    ledger: Path
    directory: Path
    spark: dict[str, ConnectServer]
    restart_spark: Callable[[], None]

    def alert(self, body: Any, receiver: str = "alertmanager") -> httpx.Response:
        """Tell of alerts as a receiver, with its token."""
        headers = {"Authorization": f"Bearer {RECEIVERS[receiver]}"}
        url = f"{self.stack.url}/airmirror/alerts"
        return httpx.post(url, json=body, headers=headers, trust_env=False, timeout=120)

    def database(self) -> str:
        """Return every value of Airflow's database as text."""
        engine = sql.create_engine(self.stack.environment["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
        tables = sql.MetaData()
        try:
            tables.reflect(engine)
            with engine.connect() as connection:
                rows = [row for table in tables.sorted_tables for row in connection.execute(sql.select(table))]
        finally:
            engine.dispose()
        return "\n".join(str(value) for row in rows for value in row)


@dataclass(frozen=True)
class AirflowFlow:
    """A flow of the configuration with a topic of its own."""

    under_test: AirflowUnderTest
    east: Broker
    west: Broker
    source: str
    target: str
    topic: str
    kind: str = "replicate"

    @property
    def dag_id(self) -> str:
        return f"{self.kind}.{self.source}.{self.target}"

    @property
    def client(self) -> AirflowClient:
        return self.under_test.client

    def ended(self) -> list[dict[str, Any]]:
        """The runs that have ended, the first one first."""
        return [run for run in reversed(self.client.runs(self.dag_id)) if run["state"] in ("success", "failed")]

    def first_run(self, seconds: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """Switch the DAG on and wait for the run that this begins."""
        self.client.unpause(self.dag_id)
        return self.client.wait(self.ended, seconds)[0]

    def run(self, conf: dict[str, Any] | None = None, seconds: float = PATIENCE_SECONDS) -> tuple[str, str]:
        """Trigger a run and wait for its end: its id and state."""
        run_id = self.client.trigger(self.dag_id, conf)
        return run_id, self.client.wait_for_run(self.dag_id, run_id, seconds)

    def states(self, run_id: str) -> dict[str, str | None]:
        return {name: task["state"] for name, task in self.client.tasks(self.dag_id, run_id).items()}

    def log(self, run_id: str, task: str) -> str:
        """A task's log, of all its attempts."""
        tries = self.client.tasks(self.dag_id, run_id)[task]["try_number"]
        return "\n".join(self.client.log(self.dag_id, run_id, task, attempt) for attempt in range(1, tries + 1))

    def started(self, run_id: str) -> int:
        """How many windows the run has begun."""
        return self.log(run_id, "replicate_window").count(f"Window {run_id}#")

    def page(self, run_id: str, task: str, key: str) -> httpx.Response:
        """The page that a task's button leads to, by its link relative to Airflow's base path."""
        link = self.client.xcom(self.dag_id, run_id, task, key)
        assert not link.startswith("/")
        headers = {"Authorization": self.client._http.headers["Authorization"]}
        return httpx.get(f"{self.under_test.stack.url}/{link}", headers=headers, trust_env=False, timeout=120)

    def question(self, run_id: str) -> dict[str, Any]:
        """What a run of ``decide.…`` asks, as soon as it does and nobody has answered."""
        return self.asked(f"decide.{self.source}.{self.target}", run_id, "ask")

    def asked(self, dag_id: str, run_id: str, task: str) -> dict[str, Any]:
        """What a task of a run asks, as soon as it does and nobody has answered."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/-1/hitlDetails"

        def asked() -> dict[str, Any] | None:
            try:
                found: dict[str, Any] = self.client.request("GET", path)
            except httpx.HTTPStatusError as error:
                assert error.response.status_code == 404
                return None
            return found if not found["response_received"] and self._waits(dag_id, run_id, task) else None

        found = self.client.wait(asked)
        assert found is not None
        return found

    def answer(self, dag_id: str, run_id: str, task: str, option: str, **given: str) -> dict[str, Any]:
        """Answer what a task of a run asks; the question. On a busy machine an attempt may be taken for dead, and ask again."""
        question = self.asked(dag_id, run_id, task)
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task}/-1/hitlDetails"

        def answered() -> bool:
            if self._waits(dag_id, run_id, task):
                with suppress(httpx.HTTPStatusError):  # it is answered, or asks no more
                    self.client.request("PATCH", path, {"chosen_options": [option], "params_input": given})
            return bool(self.client.tasks(dag_id, run_id)[task]["state"] == "success")

        with self.client.telling_what_waits(dag_id, run_id):
            self.client.wait(answered)
        return question

    def _waits(self, dag_id: str, run_id: str, task: str) -> bool:
        """Whether a task waits for an answer, and the scheduler has heard that the process that asked has ended: if it hears
        so when an answer has already begun the next process, it takes the end for that one's, and fails the attempt."""
        found = self.client.tasks(dag_id, run_id)[task]
        process = f"task_id='{task}', run_id='{run_id}', try_number={found['try_number']},"
        heard = self.under_test.stack.processes["scheduler"].log.read_text(errors="replace").splitlines()
        return found["state"] in WAITING and any(
            "Received executor event" in line and process in line for line in heard
        )

    def wait_until_running(self, run_id: str, task: str = "replicate_window", dag_id: str = "") -> dict[str, Any]:
        def running() -> dict[str, Any] | None:
            found = self.client.tasks(dag_id or self.dag_id, run_id)[task]
            return found if found["state"] == "running" and found["pid"] else None

        found = self.client.wait(running)
        assert found is not None
        return found

    def metrics(self) -> dict[str, float]:
        """What Prometheus is told of the flow, by name and labels as they are written."""
        answer = httpx.get(
            f"{self.under_test.stack.url}/airmirror/metrics",
            headers={"Authorization": f"Bearer {SCRAPER}"},
            trust_env=False,
            timeout=120,
        )
        answer.raise_for_status()
        lines = [line.rsplit(" ", 1) for line in answer.text.splitlines() if f"{self.source}->{self.target}" in line]
        return {name: float(value) for name, value in lines}

    def assert_equal(self) -> int:
        return assert_mirrored(self.east, self.topic, self.west, f"{self.source}.{self.topic}")

    def verified(self) -> int:
        """How many partitions have a verified offset in the ledger."""
        with sqlite3.connect(self.under_test.ledger) as connection:
            query = "select count(*) from verified where flow = ?"
            return int(connection.execute(query, (f"{self.source}->{self.target}",)).fetchone()[0])


@pytest.fixture(scope="package")
def airflow(
    east: Broker,
    west: Broker,
    connect_server: ConnectServer,
    stack_directory: Path,
    postgresql: str,
    request: pytest.FixtureRequest,
) -> Iterator[AirflowUnderTest]:
    """Airflow with the flows of the tests that run, switched off.

    One flow has a dozen DAGs, and the parsing of them all takes longer than a test.
    Its database is PostgreSQL, as in production: SQLite has one writer, and a scheduler that finds it locked ends.
    """
    directory = stack_directory / "airflow"
    directory.mkdir()
    flows = {mark.args[0] for item in request.session.items for mark in item.iter_markers("flow")}
    lines = [*configured(flows), f"west.bootstrap.servers = {west.bootstrap}"]
    lines.append(f"proxied.bootstrap.servers = {LOOPBACK}:{west.proxy_port}")
    east_proxied = f"{LOOPBACK}:{east.proxy_port}"
    sources = {name: east_proxied for name in FROM_PROXY}
    if "heart" in flows:
        sources["heart"] = request.getfixturevalue("apart").east.bootstrap
    for name in sorted(flows):
        target = "proxied" if name in THROUGH_PROXY else "west"
        lines += [
            f"{name}.bootstrap.servers = {sources.get(name, east.bootstrap)}",
            f"{name}->{target}.enabled = true",
            f"{name}->{target}.topics = {name}-.*",
        ]
        if (
            target == "proxied"
        ):  # by its own name the reverse flow of `returning` may have brought records to these sources
            lines.append(f"{name}->proxied.target.cluster.other.aliases = west")
    configuration = directory / "mirror.properties"
    if "gate" in flows:
        lines.append("gate->west.decide.users = admin, ann")
        lines.append(
            f'gate->west.on.failure.notifier = support.notifier.FileNotifier {{"path": "{directory}/notified"}}'
        )
    configuration.write_text("\n".join(lines))
    expectations = directory / "expectations"
    expectations.mkdir()
    ledger = directory / "ledger.db"
    port = free_port()
    spark = {"shared": connect_server}
    if "spark" in flows:  # whose test restarts it
        spark["restarted"] = start_connect_server(directory / "spark", port=port)

    def restart_spark() -> None:
        spark["restarted"].process.kill()
        spark["restarted"] = start_connect_server(directory / "spark", port=port)
        keep(spark["restarted"].process)

    pem = REPORT_KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    environment = dict(airflow_environment(configuration, f"sqlite:///{ledger}", connect_server))
    environment |= {
        "AIRMIRROR_EXPECTATIONS": str(expectations),
        "PYTHONPATH": f"{ROOT / 'include'}:{ROOT / 'tests'}",  # with the tests' notifier
        "AIRMIRROR_ALERT_RECEIVERS": ",".join(RECEIVERS),
        **{
            f"AIRFLOW_CONN_{name.upper()}": json.dumps({"conn_type": "generic", "password": token})
            for name, token in (RECEIVERS | {"airmirror_metrics": SCRAPER, "report_key": pem.decode()}).items()
        },
        "AIRMIRROR_REPORT_CONNECTION": "report_key",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin,{VIEWER}:viewer",
        "AIRFLOW_CONN_SECRET_KAFKA": json.dumps({"conn_type": "airmirror_kafka", "extra": json.dumps(KAFKA)}),
        "AIRFLOW_CONN_SPARK_SUBMIT": json.dumps({"conn_type": "spark", "host": "local[2,4]"}),
        "AIRFLOW_CONN_SPARK_RESTARTED": json.dumps(spark.get("restarted", connect_server).connection),
        # The files do not change, whatever hours the tests take; parsing all DAGs again every 15 s takes a quarter of a core. If
        # that takes more than 50 s on a busy machine, no DAG is left until the next time.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "86400",
        "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "600",
        **(SOON_TAKEN_FOR_DEAD if flows & {"terminated", "killed", "scheduler"} else {}),
    }
    assert "airmirror" in {each.name for each in entry_points(group="airflow.plugins")}, (
        "the plugin is not installed: make install"
    )
    try:
        stack = start_airflow(
            directory / "airflow",
            dags=ROOT / "dags",
            environment=environment,
            database=new_database(postgresql, "airflow"),
        )
        try:
            with stack.client() as client:
                made = {f"replicate.{name}.{'proxied' if name in THROUGH_PROXY else 'west'}" for name in flows}
                client.wait(lambda: made <= set(client.dag_ids()) or client.import_errors())
                assert client.import_errors() == []
                yield AirflowUnderTest(
                    stack=stack,
                    client=client,
                    expectations=expectations,
                    ledger=ledger,
                    directory=directory,
                    spark=spark,
                    restart_spark=restart_spark,
                )
        finally:
            for component in list(stack.processes):  # their own end takes up to five seconds each
                stack.kill(component)
    finally:
        if "restarted" in spark:
            spark["restarted"].stop()


@pytest.fixture
def flow(
    airflow: AirflowUnderTest, east: Broker, west: Broker, request: pytest.FixtureRequest
) -> Iterator[AirflowFlow]:
    """The flow that the test names with ``@pytest.mark.flow("name")``, with a topic of two partitions."""
    marker = request.node.get_closest_marker("flow")
    assert marker is not None, "mark the test with the flow that it uses"
    name = marker.args[0]
    target = "proxied" if name in THROUGH_PROXY else "west"
    source = request.getfixturevalue("apart").east if name == "heart" else east
    topic = create_topic(source, f"{name}-orders", 2)
    found = AirflowFlow(under_test=airflow, east=source, west=west, source=name, target=target, topic=topic)
    yield found
    airflow.client.pause(found.dag_id)
    for suite in airflow.expectations.iterdir():  # of a test that failed: all flows would be judged by it
        suite.unlink()
