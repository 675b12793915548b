"""A newcomer's path in a clean container without this checkout: the README's commands with the wheel in place of a clone.

They compare two clusters, run a window by hand, then by a DAG of two lines. The clusters are containers in their network, at the
README's addresses. Once with the newest versions that the package index has, once with those that are tested.
"""

from __future__ import annotations

import re
import subprocess
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from support import ROOT
from support.containers import is_to_be_had, run
from support.needs import docker
from support.wheels import build, copy_sources, lock_of_commands

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

README = (ROOT / "README.md").read_text()
DEPLOY = (ROOT / "docs" / "deploy.md").read_text()
CLUSTERS = {"east-kafka": "127.0.0.2", "west-kafka": "127.0.0.3"}  # as the README names them, on one port
HOME = "/home/newcomer"
JAVA = "apt-get update && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps"
# One broker each.
FACTORS = ("", "offset.storage.", "offset-syncs.topic.", "checkpoints.topic.", "heartbeats.topic.")
ONE_NODE = "".join(f"{name}replication.factor = 1\n" for name in FACTORS)
# The server is Spark of the task itself, as docs/deploy.md has it for one machine.
SPARK = "spark.conn.id = spark_here\n"
AIRFLOW = {
    "AIRFLOW_HOME": f"{HOME}/airflow",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW_CONN_SPARK_HERE": '{"conn_type": "spark", "host": "local[2,4]"}',
}
DAG = "replicate.east.west"
PATIENCE = 900.0  # seconds
RECORDS = 2_000
PRODUCE = """
import sys
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
admin, producer = (kind({"bootstrap.servers": "east-kafka:9092"}) for kind in (AdminClient, Producer))
missing = {"orders", "payments"} - admin.list_topics(timeout=30).topics.keys()
for made in admin.create_topics([NewTopic(topic, 2, 1) for topic in missing]).values() if missing else ():
    made.result()
for topic in ("orders", "payments"):
    for number in range(int(sys.argv[1])):
        producer.produce(topic, key=str(number), value=f"{number} of {topic}")
assert producer.flush(60) == 0
"""
BEGUN = """
for second in {1..120}; do
  if (exec 3<> /dev/tcp/east-kafka/9092 && exec 3<> /dev/tcp/west-kafka/9092) 2> /dev/null; then exit 0; fi
  sleep 1
done
exit 1
"""
KAFKA = {
    "CLUSTER_ID": "{cluster}",
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@{address}:9093",
    "KAFKA_LISTENERS": "PLAINTEXT://{address}:9092,CONTROLLER://{address}:9093",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://{name}:9092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_HEAP_OPTS": "-Xmx512m",
}


@dataclass(frozen=True)
class Newcomer:
    """A container with the wheel in ``dist``."""

    name: str
    wheel: str

    def does(self, script: str, *arguments: str, status: int = 0, **environment: str) -> str:
        """What a shell's script says at its standard output, which must end with that status."""
        path = f"{HOME}/try/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        given = [f"--env={name}={value}" for name, value in {"PATH": path, **environment}.items()]
        command = ["docker", "exec", "--workdir", HOME, *given, self.name, "bash", "-ec", script, "bash", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == status, f"{script}: {done.returncode}\n{done.stdout[-8000:]}\n{done.stderr[-8000:]}"
        return done.stdout

    def installs(self, extras: str) -> str:
        """The README's command for a clone, for the wheel."""
        return f"pip install 'dist/{self.wheel}{extras}'"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    docker()
    return build("wheel", copy_sources(tmp_path_factory.mktemp("sources")), tmp_path_factory.mktemp("wheel"))


@pytest.fixture(params=["newest", "tested"])
def newcomer(request: pytest.FixtureRequest, wheel: Path, tmp_path: Path) -> Iterator[Newcomer]:
    """A Python without anything, in whose network are two clusters; ``tested``: pip takes the versions of the lock alone."""
    (python,) = re.findall(r"^ARG PYTHON=(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    clean, name = f"python:{python}-slim-bookworm", f"airmirror-newcomer-{uuid.uuid4().hex[:8]}"
    services = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
    kafka = services["east"]["image"]
    for image in (clean, kafka):
        if not is_to_be_had(image):
            pytest.skip(f"containers are started from images, and {image} is not here: docker pull {image}")
    hosts = [f"--add-host={host}:{address}" for host, address in CLUSTERS.items()]
    limits = [f"--env=PIP_CONSTRAINT={HOME}/requirements.txt"] if request.param == "tested" else []
    started = [name, *(f"{name}-{host}" for host in CLUSTERS)]
    try:
        run("docker", "run", "--detach", "--name", name, *hosts, *limits, clean, "sleep", "infinity")
        for host, address in CLUSTERS.items():
            cluster = services[host.partition("-")[0]]["environment"]["CLUSTER_ID"]
            own = {"cluster": cluster, "address": address, "name": host}
            given = [f"--env={key}={value.format(**own)}" for key, value in KAFKA.items()]
            inside = f"--network=container:{name}"
            run("docker", "run", "--detach", "--name", f"{name}-{host}", inside, *given, kafka)
        run("docker", "exec", name, "mkdir", "-p", f"{HOME}/dist", f"{HOME}/airflow/dags/include")
        run("docker", "cp", str(wheel), f"{name}:{HOME}/dist/")
        (lock := tmp_path / "requirements.txt").write_text(lock_of_commands())
        run("docker", "cp", str(lock), f"{name}:{HOME}/")
        yield Newcomer(name, wheel.name)
    finally:
        subprocess.run(["docker", "rm", "--force", "--volumes", *started], capture_output=True)


def part(title: str) -> str:
    """A part of the README."""
    (text,) = re.findall(rf"^## {title}$(.*?)(?=^## )", README, re.MULTILINE | re.DOTALL)
    return str(text)


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def await_result(look: Callable[[], bool]) -> None:
    Retrying(retry=retry_if_not_result(bool), wait=wait_fixed(3), stop=stop_after_delay(PATIENCE))(look)


def test_a_newcomer_compares_runs_a_window_and_makes_a_dag_of_two_lines(newcomer: Newcomer) -> None:
    (trying,) = blocks(part("Try it without trusting it"))
    install, compare = trying.strip().splitlines()
    clone = re.search(r"pip install '\.(\[\w+\])'$", install)
    assert clone is not None
    newcomer.does(install.replace(clone[0], newcomer.installs(clone[1])))
    newcomer.does(BEGUN)
    newcomer.does("python - 100 <<'END'\n" + PRODUCE + "END")
    assert "0 of 1 partitions are equal" in newcomer.does(compare, status=1)

    properties, commands, two_lines = blocks(part("On your own clusters"))
    more = re.search(r"install `'\.(\[[\w,]+\])'`", part("On your own clusters"))
    assert more is not None
    newcomer.does(JAVA)
    newcomer.does(newcomer.installs(more[1]))
    newcomer.does("printf '%s' \"$1\" > mirror.properties", properties + ONE_NODE)
    newcomer.does(f"python - {RECORDS} <<'END'\n" + PRODUCE + "END")
    assert "--local" in commands
    newcomer.does(commands)
    assert f"2 of 2 partitions are equal: {100 + RECORDS:,} records." in newcomer.does(compare)

    (install,) = re.findall(r"^pip install \"\$\(echo dist/.*\[airflow\]\"", DEPLOY, re.MULTILINE)
    newcomer.does(install)
    newcomer.does("printf '%s' \"$1\" > airflow/dags/include/mirror.properties", properties + ONE_NODE + SPARK)
    newcomer.does("printf '%s' \"$1\" > airflow/dags/airmirror_dags.py", two_lines)
    newcomer.does(f"python - {RECORDS} <<'END'\n" + PRODUCE + "END")
    newcomer.does("airflow standalone > standalone.log 2>&1 &", **AIRFLOW)
    await_result(lambda: DAG in newcomer.does("airflow dags list --output json 2>/dev/null || true", **AIRFLOW))
    newcomer.does(f"airflow dags unpause {DAG}", **AIRFLOW)
    await_result(lambda: has_succeeded(newcomer))
    assert f"2 of 2 partitions are equal: {100 + 2 * RECORDS:,} records." in newcomer.does(compare)


def has_succeeded(newcomer: Newcomer) -> bool:
    """Whether a run of the DAG has; fails with the tasks' logs where one has failed."""
    runs = newcomer.does(f"airflow dags list-runs {DAG} --output json", **AIRFLOW)
    if '"failed"' in runs:
        pytest.fail(newcomer.does("tail --lines 60 standalone.log $(find airflow/logs -name '*.log' -path '*run_id*')"))
    return '"success"' in runs
