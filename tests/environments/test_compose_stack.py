"""docker-compose.yaml started for real: what it costs, a worker killed in mid-window, three workers, stopped and started again.

A copy of the checkout is what is built and mounted, under a project name and ports of its own. Images that the engine does not
have are pulled.
"""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tenacity import RetryError, Retrying, retry_if_exception_type, retry_if_not_result, stop_after_delay, wait_fixed

from airmirror_local.airflow_client import AirflowClient
from airmirror_local.ports import free_port
from support import ROOT
from support.containers import engine, is_to_be_had, of_container, processor_seconds, run
from support.hostile import numbered
from support.needs import docker
from support.topics import assert_mirrored, create_topic, end_offsets, produce, topics_of

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

DAG = "replicate.east.west"
OURS = {"airmirror-spark": 1.3e9, "airmirror-airflow": 1.8e9}  # the most bytes of each; Airflow has Java and Spark too
BASE_BYTES = 130e6  # of python:3.11-slim-bookworm itself: an engine may have another one in its place
CHECKS, ANSWERS = 10, 50  # of each container, and of the API server, to measure what one costs
OPTIONAL = "grafana"  # nothing here asks it
RECORDS, BYTES = 400_000, 250
KEPT = {"retention.ms": "-1"}  # the records are of a day long ago
READY_SECONDS, RUN_SECONDS = 600.0, 900.0


@dataclass(frozen=True)
class Check:
    """How the engine asks a container whether it is well, and every how many seconds."""

    command: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Stack:
    """The started services of a copy of the checkout."""

    directory: Path
    services: tuple[str, ...]
    ports: dict[str, int] = field(hash=False)
    project: str = field(default_factory=lambda: f"airmirror-test-{uuid.uuid4().hex[:6]}")

    def compose(self, *words: str) -> str:
        files = ["--file", "docker-compose.yaml", "--file", "ports.yaml"]
        return run("docker", "compose", "--project-name", self.project, *files, *words, directory=self.directory)

    def start(self, *words: str) -> None:
        """Start the services, and wait until each says that it is well."""
        try:
            self.compose("up", "--detach", *words, *self.services)
            await_result(self.are_well, READY_SECONDS)
        except (AssertionError, RetryError):
            print(self.compose("ps", "--all"), self.compose("logs", "--tail", "40"))
            raise

    def add_setting(self, line: str) -> None:
        """Add a line to the configuration that is mounted."""
        mounted = self.directory / "include" / "compose" / "mirror.properties"
        mounted.write_text(f"{mounted.read_text()}\n{line}\n")

    def are_well(self) -> bool:
        states = [json.loads(line) for line in self.compose("ps", "--format", "json").splitlines()]
        return {each["Health"] for each in states} == {"healthy"} and {each["Service"] for each in states} == {
            *self.services
        } - {"airflow-init"}

    def watched(self) -> dict[str, Check]:
        """The checks of the containers that run, by their ids."""
        found = {}
        for container in json.loads(run("docker", "inspect", *self.compose("ps", "--quiet").split())):
            kind, *words = container["Config"]["Healthcheck"]["Test"]
            command = tuple(words) if kind == "CMD" else ("sh", "-c", *words)
            found[container["Id"]] = Check(command, container["Config"]["Healthcheck"]["Interval"] / 1e9)
        return found

    def cluster(self, name: str) -> str:
        return f"localhost:{self.ports[name]}"

    def airflow(self) -> AirflowClient:
        password = dict(line.split("=", 1) for line in (self.directory / ".env").read_text().splitlines())
        return AirflowClient(self.url("airflow-api-server"), "admin", password["AIRFLOW_ADMIN_PASSWORD"])

    def url(self, service: str) -> str:
        return f"http://localhost:{self.ports[service]}"

    def master(self) -> dict[str, Any]:
        """What Spark's master says of its workers and applications."""
        return dict(httpx.get(f"{self.url('spark-master')}/json/", trust_env=False).json())

    def assert_equal(self, topic: str, count: int) -> None:
        """Airmirror's own comparison, in its container, and one that knows nothing of it."""
        self.compose("exec", "-T", "airflow-scheduler", "airmirror", "verify", "--flow", "east->west")
        assert assert_mirrored(self.cluster("east"), topic, self.cluster("west"), f"east.{topic}") == count


def await_result(look: Callable[[], Any], seconds: float, every: float = 3.0) -> Any:
    """Look until the result is true, and return it."""
    waiting = Retrying(
        retry=retry_if_not_result(bool) | retry_if_exception_type(httpx.TransportError),
        wait=wait_fixed(every),
        stop=stop_after_delay(seconds),
    )
    return waiting(look)


def images() -> set[str]:
    return set(run("docker", "image", "ls", "--no-trunc", "--quiet").split())


def volumes() -> set[str]:
    return set(run("docker", "volume", "ls", "--quiet").split())


def image_ids() -> list[str]:
    return run("docker", "image", "inspect", "--format", "{{.Id}}", *sorted(OURS)).split()


def bytes_of(image: str) -> int:
    return int(run("docker", "image", "inspect", "--format", "{{.Size}}", image))


def startable(services: dict[str, Any]) -> tuple[str, ...]:
    """The services whose images the engine has, or is given by a registry; only Grafana may be missing."""
    found = []
    for name, service in services.items():
        image = service["image"]
        if image in OURS or is_to_be_had(image):
            found.append(name)
        elif name != OPTIONAL:
            pytest.skip(f"containers are started from images, and {image} is not here: docker pull {image}")
    return tuple(found)


def checkout(directory: Path) -> dict[str, Any]:
    """Copy what Compose reads into a directory, with secrets as the documents tell; the services."""
    left_out = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "dist", "build", "tests", "docs")
    shutil.copytree(ROOT, directory, ignore=left_out)
    for name in (".dockerignore", ".env.example"):
        shutil.copy(ROOT / name, directory / name)
    (line,) = re.findall(r"^\(umask .*>\.env\)$", (ROOT / "docs" / "deploy.md").read_text(), re.MULTILINE)
    run("sh", "-ec", line, directory=directory)
    return dict(yaml.safe_load((directory / "docker-compose.yaml").read_text())["services"])


def ports_of_its_own(directory: Path, services: dict[str, Any]) -> dict[str, int]:
    """Publish each port under a free one, which clusters advertise, in a file beside the project's; return them by service."""
    ports, lines = {}, ["services:"]
    for name, service in services.items():
        for published in service.get("ports", ()):
            _, port, inner = published.split(":")
            ports[name] = free_port()
            lines += [f"  {name}:", f'    ports: !override ["127.0.0.1:{ports[name]}:{inner}"]']
            if advertised := service.get("environment", {}).get("KAFKA_ADVERTISED_LISTENERS"):
                lines.append(
                    f"    environment: {{KAFKA_ADVERTISED_LISTENERS: '{advertised.replace(port, str(ports[name]))}'}}"
                )
    (directory / "ports.yaml").write_text("\n".join(lines))
    return ports


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    docker()
    directory = tmp_path_factory.mktemp("containers") / "checkout"
    services = checkout(directory)
    started = Stack(directory, startable(services), ports_of_its_own(directory, services))
    before = volumes()
    try:
        started.compose("build")
        started.start()
        yield started
    finally:
        started.compose("down", "--volumes", "--remove-orphans")
    assert volumes() <= before, "what `down --volumes` leaves behind has no name"


def test_images_are_built_once_and_what_is_mounted_is_no_part_of_them(stack: Stack) -> None:
    before, ids = images(), image_ids()
    stack.add_setting("# A line more.")
    stack.compose("build")
    assert image_ids() == ids and images() == before
    made = run(
        "docker",
        "ps",
        "--no-trunc",
        "--format",
        "{{.Image}}",
        "--filter",
        f"label=com.docker.compose.project={stack.project}",
    )
    assert {image for image in made.split() if image.startswith("airmirror")} == OURS.keys()


def test_images_are_no_larger_than_what_is_in_them(stack: Stack) -> None:
    (python,) = re.findall(r"^ARG PYTHON=(.+)$", (stack.directory / "Dockerfile").read_text(), re.MULTILINE)
    base = f"python:{python}-slim-bookworm"
    more = (bytes_of(base) if is_to_be_had(base) else BASE_BYTES) - BASE_BYTES
    sizes = {image: bytes_of(image) - more for image in OURS}
    assert all(sizes[image] <= most for image, most in OURS.items()), sizes


def test_checks_of_health_cost_less_than_a_twentieth_of_a_core(stack: Stack) -> None:
    """What the engine and what it starts need for each check, and what the API server needs to answer those that ask it."""
    processes, services = engine(), stack.watched()
    if not processes:
        pytest.skip("the engine's processor time is counted, and it runs on another machine")
    share = 0.0
    for identity, check in services.items():
        before = processor_seconds(processes)
        for _ in range(CHECKS):
            run("docker", "exec", identity, *check.command)
        share += (processor_seconds(processes) - before) / CHECKS / check.seconds
    server = of_container(stack.compose("ps", "--quiet", "airflow-api-server").strip())
    before = processor_seconds(server)
    for _ in range(ANSWERS):
        httpx.get(f"{stack.url('airflow-api-server')}/api/v2/monitor/health", trust_env=False).raise_for_status()
    answer = (processor_seconds(server) - before) / ANSWERS
    share += sum(answer / check.seconds for check in services.values() if "/api/v2/" in " ".join(check.command))
    print(f"checks of health: {share:.2%} of a core")
    assert 0 < share < 0.05


def test_a_worker_is_killed_in_mid_window(stack: Stack) -> None:
    east, west = stack.cluster("east"), stack.cluster("west")
    create_topic(east, "orders", 4, KEPT)
    produce(east, "orders", numbered(RECORDS, size=BYTES))
    with stack.airflow() as client:
        client.wait(lambda: DAG in client.dag_ids(), READY_SECONDS)
        assert client.import_errors() == []
        client.unpause(DAG)
        await_result(lambda: "east.orders" in topics_of(west), RUN_SECONDS, 0.2)
        await_result(lambda: sum(end_offsets(west, "east.orders").values()), RUN_SECONDS, 0.2)
        # The first process, tini, ends with the one that it has started, and the container with it.
        stack.compose("exec", "--detach", "spark-worker", "sh", "-c", "kill -9 $(cat /proc/1/task/1/children)")
        copied = sum(end_offsets(west, "east.orders").values())
        assert 0 < copied < RECORDS, "the window was over before its worker was killed"
        first = client.runs(DAG)[-1]["dag_run_id"]
        assert client.wait_for_run(DAG, first, RUN_SECONDS) == "success"
    worker = stack.compose("ps", "--quiet", "spark-worker").strip()
    assert run("docker", "inspect", "--format", "{{.RestartCount}}", worker).strip() == "1"
    stack.assert_equal("orders", RECORDS)
    await_result(stack.are_well, READY_SECONDS)


def test_the_monitoring_sees_airflow(stack: Stack) -> None:
    query = {"query": 'up{job="airmirror"}'}
    answer = await_result(
        lambda: httpx.get(f"{stack.url('prometheus')}/api/v1/query", params=query, trust_env=False).json()["data"][
            "result"
        ],
        READY_SECONDS,
    )
    assert [each["value"][1] for each in answer] == ["1"]


def test_three_workers_copy(stack: Stack) -> None:
    stack.start("--no-recreate", "--scale", "spark-worker=3")
    await_result(lambda: [each["cores"] for each in stack.master()["activeapps"]] == [6], READY_SECONDS)
    (network,) = json.loads(run("docker", "network", "inspect", f"{stack.project}_spark"))
    subnet = ipaddress.ip_network(network["IPAM"]["Config"][0]["Subnet"])
    alive = [each["host"] for each in stack.master()["workers"] if each["state"] == "ALIVE"]
    assert len(alive) == 3
    assert all(ipaddress.ip_address(host) in subnet for host in alive), (
        "of two networks, the one that the driver reaches"
    )
    stack.add_setting("window.slot.bytes = 100000")
    copies_in_one_window(stack, "payments", 30_000)
    workers = stack.compose("ps", "--quiet", "spark-worker").split()
    with_python = [each for each in workers if "pyspark.daemon" in run("docker", "top", each)]
    # A window's first task sees which Python is there. So windows of one slot run it in two of them at most.
    assert len(with_python) == len(workers) == 3, "slots run in each worker"


def test_all_is_there_after_down_and_up(stack: Stack) -> None:
    stack.compose("down")
    stack.start()
    with stack.airflow() as client:
        assert client.request("GET", f"/dags/{DAG}")["is_paused"] is False
        assert client.runs(DAG)
    stack.assert_equal("orders", RECORDS)
    copies_in_one_window(stack, "returns", 1000)


def copies_in_one_window(stack: Stack, topic: str, count: int) -> None:
    """Records of a new topic are there after the first run that begins after them."""
    create_topic(stack.cluster("east"), topic, 6, KEPT)
    produce(stack.cluster("east"), topic, numbered(count))
    with stack.airflow() as client:
        assert client.wait_for_run(DAG, client.trigger(DAG), RUN_SECONDS) == "success"
    stack.assert_equal(topic, count)
