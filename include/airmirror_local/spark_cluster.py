"""A standalone Spark cluster on loopback: a master and workers as plain processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from airmirror_local.ports import LOOPBACK, answers, free_port
from airmirror_local.processes import Process, start_process, wait_until_ready
from airmirror_local.spark_connect import find_spark_home, spark_environment

START_SECONDS = 60


@dataclass(frozen=True)
class SparkCluster:
    """A running cluster; ``url`` is what ``--master`` takes, ``page`` the port of the master's page."""

    url: str
    page: int
    master: Process
    workers: tuple[Process, ...]

    @property
    def cores_used(self) -> int:
        """The cores of all executors that there are now."""
        return sum(worker["coresused"] for worker in _workers(self.page))

    def stop(self) -> None:
        for process in (*self.workers, self.master):
            process.stop()


def start_spark_cluster(
    directory: Path,
    workers: int = 2,
    *,
    cores: int = 1,
    memory: str = "1g",
    environment: Mapping[str, str] | None = None,
) -> SparkCluster:
    """Start a master and ``workers`` of ``cores`` each, their files in ``directory``; returns when all have registered.

    ``environment`` is added to the workers', and so to their executors'. Raises ProcessFailed.
    """
    directory = directory.resolve()
    directory.mkdir(parents=True, exist_ok=True)
    port, page = free_port(), free_port()
    url = f"spark://{LOOPBACK}:{port}"
    started: list[Process] = []
    try:
        where = ("--host", LOOPBACK, "--port", str(port), "--webui-port", str(page))
        started.append(_start(directory, "master", "master.Master", *where))
        wait_until_ready(started[0], lambda: answers(port) and answers(page), START_SECONDS)
        for number in range(workers):
            where = ("--host", LOOPBACK, "--port", str(free_port()), "--webui-port", str(free_port()))
            size = ("--cores", str(cores), "--memory", memory, "--work-dir", str(directory / f"worker-{number}"))
            started.append(
                _start(directory, f"worker {number}", "worker.Worker", *where, *size, url, environment=environment)
            )
        for process in started[1:]:
            wait_until_ready(process, lambda: len(_workers(page)) == workers, START_SECONDS)
    except BaseException:
        for process in reversed(started):
            process.kill()
        raise
    return SparkCluster(url, page, started[0], tuple(started[1:]))


def _start(
    directory: Path, name: str, main: str, *arguments: str, environment: Mapping[str, str] | None = None
) -> Process:
    spark_home = find_spark_home()
    command = [str(spark_home / "bin" / "spark-class"), f"org.apache.spark.deploy.{main}", *arguments]
    return start_process(
        f"Spark {name}",
        command,
        directory / f"{name.replace(' ', '-')}.log",
        environment=spark_environment(spark_home) | dict(environment or {}),
        directory=directory,
    )


def _workers(page: int) -> list[dict[str, Any]]:
    """Return the workers that the master's page lists as alive."""
    try:
        found = httpx.get(f"http://{LOOPBACK}:{page}/json/", timeout=5, trust_env=False).json()
    except (httpx.HTTPError, ValueError):
        return []
    return [worker for worker in found.get("workers", ()) if worker.get("state") == "ALIVE"]
