"""``python -m benchmarks.flows``: twenty flows in one deployment: how long its DAG files take to parse, and what runs cost.

Every flow mirrors a topic of ten partitions, on a schedule, with nothing new after its first window. Writes the section
"Flows" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil
from rich.console import Console

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.config import parse
from airmirror.local import LOCAL
from airmirror_local.airflow_client import AirflowClient
from airmirror_local.airflow_stack import AirflowStack, start_airflow
from airmirror_local.spark_connect import start_connect_server
from airmirror_local.stack import airflow_environment
from benchmarks import sections
from benchmarks.report import Grid
from benchmarks.topics import two_clusters
from benchmarks.usage import machine_seconds, processor_seconds

ROOT = Path(__file__).resolve().parents[1]
PARTITIONS = 10
QUIET_SECONDS = 30
TASKS_AT_ONCE = 4
PARSE = """
import sys, time
import airflow.sdk
from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
begun = time.process_time()
for path in sys.argv[1:]:
    exec(compile(open(path).read(), path, "exec"), {"__name__": "dag", "__file__": path})
print(time.process_time() - begun)
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flows", description=__doc__)
    parser.add_argument("--flows", type=int, default=20)
    parser.add_argument("--minutes", type=int, default=5, help="between two runs of a flow")
    parser.add_argument("--rounds", type=int, default=2, help="how many of them are watched")
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console = Console()
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-flows-", dir=LOCAL))
    try:
        with two_clusters(directory) as (east, west):
            configuration = directory / "mirror.properties"
            configuration.write_text(text(chosen.flows, chosen.minutes, east.bootstrap, west.bootstrap))
            create(configuration.read_text(), chosen.flows)
            spark = start_connect_server(directory / "spark")
            try:
                environment = airflow_environment(configuration, f"sqlite:///{directory / 'ledger.db'}", spark)
                airflow = start_airflow(
                    directory / "airflow",
                    dags=ROOT / "dags",
                    environment=environment,
                    parallelism=TASKS_AT_ONCE,
                )
                try:
                    grid = measure(airflow, chosen.flows, chosen.minutes, chosen.rounds, console)
                finally:
                    airflow.stop()
            finally:
                spark.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


def text(flows: int, minutes: int, east: str, west: str) -> str:
    """Flows from ``flows`` aliases of one cluster, each with a topic of its own."""
    aliases = [f"east{number:02}" for number in range(flows)]
    lines = [f"clusters = {', '.join(aliases)}, west", f"west.bootstrap.servers = {west}"]
    for alias in aliases:
        lines += [
            f"{alias}.bootstrap.servers = {east}",
            f"{alias}->west.enabled = true",
            f"{alias}->west.topics = {alias}-orders",
        ]
    lines += [
        f"window.schedule = {minutes} minutes",
        "replication.factor = 1",
        "offset.storage.replication.factor = 1",
        "offset-syncs.topic.replication.factor = 1",
        "checkpoints.topic.replication.factor = 1",
        "heartbeats.topic.replication.factor = 1",
        "offset-syncs.topic.location = target",
    ]
    return "\n".join(lines)


def create(configuration: str, flows: int) -> None:
    source = parse(configuration, "bench").clusters["east00"]
    topics = [NewTopic(f"east{number:02}-orders", PARTITIONS, 1, {}) for number in range(flows)]
    refused = create_topics(connect(source), topics, 300).refused
    if refused:
        raise refused[0]


@dataclass(frozen=True)
class Load:
    """Processor seconds used since the components began: by component, by all of the bench, by the whole machine."""

    at: float
    components: dict[str, float]
    own: float
    machine: float

    def shares(self, before: Load) -> dict[str, float]:
        """Each component's part of one core since ``before``."""
        seconds = self.at - before.at
        return {name: (used - before.components[name]) / seconds for name, used in self.components.items()}


def load(airflow: AirflowStack) -> Load:
    components = {name: processor_seconds(process.handle) for name, process in airflow.processes.items()}
    return Load(time.monotonic(), components, processor_seconds(psutil.Process()), machine_seconds())


def measure(airflow: AirflowStack, flows: int, minutes: int, rounds: int, console: Console) -> Grid:
    """Parse time; then ``rounds`` of scheduled runs after a first one that creates everything."""
    parse_seconds = min(_parse(airflow) for _ in range(3))
    with airflow.client() as client:
        dag_ids = [f"replicate.east{number:02}.west" for number in range(flows)]
        client.wait(lambda: set(dag_ids) <= set(client.dag_ids()), 180)
        dags = len(client.dag_ids())
        first = load(airflow)
        time.sleep(QUIET_SECONDS)
        paused = load(airflow)
        for dag_id in dag_ids:
            client.unpause(dag_id)
        with console.status("first runs"):
            client.wait(lambda: all(_ended(client, dag_id) for dag_id in dag_ids), 60 * minutes + 600, every=5)
        begun, before = datetime.now().astimezone(), load(airflow)
        with console.status(f"{rounds} rounds"):
            time.sleep(60 * minutes * rounds)
        after = load(airflow)
        runs = [
            run
            for dag_id in dag_ids
            for run in client.runs(dag_id)
            if run["end_date"] and datetime.fromisoformat(run["end_date"]) > begun
        ]
    failed = [run["dag_run_id"] for run in runs if run["state"] != "success"]
    if failed or not runs:
        raise RuntimeError(f"runs failed: {failed or 'all'}")
    seconds = [
        (datetime.fromisoformat(run["end_date"]) - datetime.fromisoformat(run["queued_at"])).total_seconds()
        for run in runs
    ]
    idle, busy = paused.shares(first), after.shares(before)
    cores = psutil.cpu_count() or 1
    others = (after.machine - before.machine - (after.own - before.own)) / (after.at - before.at) / cores
    note = (
        f"{flows} flows of {PARTITIONS} partitions ({dags} DAGs), each a run every {minutes} minutes with nothing new, "
        f"{minutes * rounds} minutes watched, on {cores} cores that two clusters, Spark and Airflow (SQLite, LocalExecutor, "
        f"{TASKS_AT_ONCE} tasks at once) share; other programs took {max(0.0, others):.0%} of the machine beside them."
    )
    grid = Grid("Flows", note, ("what", ""))
    grid.rows.extend(
        [
            ("parsing all DAG files, after Airflow's own import, processor time", f"{parse_seconds:.2f} s"),
            ("runs that ended, of runs due", f"{len(runs)} of {flows * rounds}"),
            ("a run, queued to done: median, largest", f"{statistics.median(seconds):.0f} s, {max(seconds):.0f} s"),
            *(
                (f"{_shown(name)}, of a core: all paused, runs going on", f"{idle[name]:.0%}, {busy[name]:.0%}")
                for name in busy
            ),
            (
                "processor time of a run, in all of Airflow",
                f"{sum(busy[name] - idle[name] for name in busy) * (after.at - before.at) / len(runs):.1f} s",
            ),
        ]
    )
    return grid


def _shown(component: str) -> str:
    return "scheduler and the tasks" if component == "scheduler" else component


def _parse(airflow: AirflowStack) -> float:
    files = sorted(str(path) for path in (ROOT / "dags").glob("*.py"))
    done = subprocess.run(
        [sys.executable, "-c", PARSE, *files],
        env={**os.environ, **airflow.environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


def _ended(client: AirflowClient, dag_id: str) -> bool:
    return any(run["state"] in ("success", "failed") for run in client.runs(dag_id))


if __name__ == "__main__":
    main()
