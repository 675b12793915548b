"""A Spark Connect server on loopback, in local mode: ``local[cores,4]``, because plain ``local`` never retries a task.

Every user of the machine can reach loopback, and whoever may use the server runs code as the one who started it: it asks
for a token.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airmirror_local.java import java_home
from airmirror_local.ports import LOOPBACK, answers, free_port
from airmirror_local.processes import Process, start_process, wait_until_ready

START_SECONDS = 120
ATTEMPTS = 4  # of a task, as on a real cluster
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # a third less processor time; the work is in Python

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # the environment's name for it, on both sides
HOST = "localhost"  # by this name only PySpark shows a token without TLS


@dataclass(frozen=True)
class ConnectServer:
    """A running server; its token lies in ``token_file``, too."""

    port: int
    token: str = field(repr=False)
    token_file: Path
    process: Process

    @property
    def address(self) -> str:
        """The value for ``--spark``, with the token in the environment (``TOKEN``)."""
        return f"sc://{HOST}:{self.port}"

    @property
    def url(self) -> str:
        """The URL for ``SparkSession.builder.remote``."""
        return f"{self.address}/;token={self.token}"

    @property
    def connection(self) -> dict[str, Any]:
        """An Airflow connection."""
        return {"conn_type": "spark_connect", "host": HOST, "port": self.port, "password": self.token}

    @property
    def log(self) -> Path:
        return self.process.log

    def stop(self) -> None:
        self.process.stop()


def start_connect_server(
    directory: Path,
    cores: int = 2,
    settings: Mapping[str, str] | None = None,
    *,
    driver_memory: str = "1g",
    port: int | None = None,
    master: str | None = None,
    home: Path | None = None,
    python: str = sys.executable,
) -> ConnectServer:
    """Start a server that runs ``cores`` tasks at once, its files in ``directory``; returns when it accepts connections.

    ``master``: a cluster's, in front of which it stands, instead of running the tasks itself. ``settings`` are Spark
    properties that go over those of this module. ``home``: another Spark than the installed one; ``python``: the executors'.
    A server that is started again in its directory has the same token.
    Raises ProcessFailed with the end of its log.
    """
    directory = directory.resolve()
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    token_file = directory / "token"
    token = _token(token_file)
    port = port or free_port()
    properties = {
        "spark.connect.grpc.binding.address": LOOPBACK,
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": LOOPBACK,
        "spark.local.dir": str(directory / "scratch"),
        "spark.scheduler.mode": "FAIR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
    } | dict(settings or {})
    spark_home = home or find_spark_home()
    command = [
        str(spark_home / "bin" / "spark-submit"),
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--name",
        "airmirror",
        "--master",
        master or f"local[{cores},{ATTEMPTS}]",
        "--driver-memory",
        driver_memory,
    ]
    for key, value in properties.items():
        command += ["--conf", f"{key}={value}"]
    process = start_process(
        "Spark Connect server",
        [*command, "spark-internal"],
        directory / "spark-connect.log",
        environment=spark_environment(spark_home, python) | {TOKEN: token},
        directory=directory,  # the server keeps the artifacts of sessions in its working directory
    )
    wait_until_ready(process, lambda: answers(port), START_SECONDS)
    return ConnectServer(port, token, token_file, process)


def _token(file: Path) -> str:
    if not file.exists():
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(secrets.token_urlsafe(24))
    return file.read_text()


def spark_environment(spark_home: Path, python: str = sys.executable) -> dict[str, str]:
    """Return the environment that every Spark process needs; ``python``: the executors', by default this very one."""
    return {
        "JAVA_HOME": str(java_home()),
        "PYSPARK_PYTHON": python,
        "SPARK_HOME": str(spark_home),
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_CONF_DIR": str(spark_home / "conf"),  # not the user's
        "SPARK_DAEMON_JAVA_OPTS": QUICK_START,
        "SPARK_SUBMIT_OPTS": QUICK_START,
        "PYTHONPATH": "",  # what executors import comes with the session, not from the starter
    }


def find_spark_home() -> Path:
    """The PySpark package, which is a whole Spark, found without importing it."""
    pyspark = importlib.util.find_spec("pyspark")
    if pyspark is None or not pyspark.submodule_search_locations:
        raise ModuleNotFoundError("pyspark is not installed: run make install", name="pyspark")
    return Path(pyspark.submodule_search_locations[0])
