"""The whole embedded stack: two clusters with real records, Spark Connect, and Airflow with the flow between them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from airmirror_local.airflow_client import AirflowClient
from airmirror_local.airflow_stack import AirflowStack, start_airflow
from airmirror_local.brokers import Broker, start_broker
from airmirror_local.processes import Process
from airmirror_local.records import create_topics, load
from airmirror_local.spark_connect import ConnectServer, start_connect_server

FLOW = "east->west"
DAG_ID = "replicate.east.west"
START_SECONDS = 120
CONFIGURATION = """
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = .*
east->west.window.schedule = {schedule}
replication.factor = 1
offset.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
"""

DAGS = "from airmirror.airflow import dags\n\nglobals().update(dags())\n"

Step = Callable[[str], AbstractContextManager[object]]


@dataclass(frozen=True)
class Stack:
    """The running stack. ``ledger`` is its SQLAlchemy URL; ``loaded``: how many records of each topic were produced into east."""

    east: Broker
    west: Broker
    spark: ConnectServer
    airflow: AirflowStack
    configuration: Path
    ledger: str
    loaded: Mapping[str, int]

    def client(self) -> AirflowClient:
        return self.airflow.client()

    def stop(self) -> None:
        """End everything, Airflow first, and wait for it."""
        self.airflow.stop()
        self.spark.stop()
        self.west.kill()
        self.east.kill()


def start_stack(
    directory: Path,
    *,
    schedule: str,
    share: float = 1.0,
    follow_ms: int = 0,
    step: Step = nullcontext,
    started: Callable[[Process], None] = lambda process: None,
) -> Stack:
    """Start everything, its files in ``directory``; the flow's DAG is there and paused.

    ``share`` of the real records is loaded; windows follow the log for ``follow_ms``. ``step`` shows what goes on, ``started``
    is told of every process. Whatever was started is ended when something fails.
    """
    running: list[Process] = []

    def note(process: Process) -> None:
        running.append(process)
        started(process)

    try:
        brokers = {}
        for name in ("east", "west"):
            with step(f"starting cluster {name}"):
                brokers[name] = start_broker(directory, name)
            note(brokers[name].process)
        east, west = brokers["east"], brokers["west"]
        with step("loading real records into east"):
            create_topics(east.bootstrap)
            loaded = load(east.bootstrap, share=share)
        with step("starting Spark Connect"):
            spark = start_connect_server(directory / "spark")
        note(spark.process)
        configuration = directory / "mirror.properties"
        text = CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap, schedule=schedule)
        configuration.write_text(f"{text}window.follow.ms = {follow_ms}\n" if follow_ms else text)
        dags = directory / "dags"
        dags.mkdir(exist_ok=True)
        (dags / "airmirror_dags.py").write_text(DAGS)
        link_expectations(directory)
        ledger = f"sqlite:///{directory / 'ledger.db'}"
        with step("starting Airflow"):
            airflow = start_airflow(
                directory / "airflow",
                dags=dags,
                environment=airflow_environment(configuration, ledger, spark),
                on_start=note,
            )
        stack = Stack(
            east=east,
            west=west,
            spark=spark,
            airflow=airflow,
            configuration=configuration,
            ledger=ledger,
            loaded=loaded,
        )
        with step("waiting for the flow's DAG"), stack.client() as client:
            client.wait(lambda: DAG_ID in client.dag_ids(), START_SECONDS)
    except BaseException:
        for process in reversed(running):
            process.kill()
        raise
    return stack


def link_expectations(directory: Path, home: Path = Path()) -> None:
    """Let a stack have the expectations of where it was started: its Airflow and the commands that talk to it look there."""
    found, link = (home / "include" / "expectations").resolve(), directory / "include" / "expectations"
    if found.is_dir() and not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(found)


def airflow_environment(configuration: Path, ledger: str, spark: ConnectServer) -> Mapping[str, str]:
    """Return a deployment's settings for Airflow's components."""
    return {
        "AIRMIRROR_CONFIG": str(configuration),
        "AIRMIRROR_LEDGER": ledger,
        "AIRFLOW_CONN_SPARK_CONNECT_DEFAULT": json.dumps(spark.connection),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


@contextmanager
def running_stack(directory: Path, *, schedule: str, share: float, step: Step, follow_ms: int = 0) -> Iterator[Stack]:
    """A stack that is stopped at the end, however it comes."""
    stack = start_stack(directory, schedule=schedule, share=share, follow_ms=follow_ms, step=step)
    try:
        yield stack
    finally:
        with step("stopping everything"):
            stack.stop()
