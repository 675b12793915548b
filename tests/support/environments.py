"""The places where windows run: each turns a window into a process, as a person or a program would start it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import javaproperties

from airmirror.on_spark.job import APPLICATION
from airmirror_local.processes import Process, start_process
from airmirror_local.spark_connect import TOKEN, ConnectServer
from support import ROOT
from support.flows import Mirror

AIRMIRROR = ("-m", "airmirror.cli.main", "run-window")
SUBMIT = str(Path(sys.executable).parent / "spark-submit")
JOB = str(APPLICATION)


@dataclass(frozen=True)
class Environment:
    """``command``: what comes before a window's own arguments; ``variables``: what its process gets beside ours."""

    name: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)

    def run(self, flow: Mirror, ledger: str, window: str, directory: Path) -> None:
        """Run one window of the flow to its end; it must verify everything."""
        with self.started(flow, ledger, window, directory) as process:
            status = process.handle.wait()
        assert status == 0, process.log.read_text()

    @contextmanager
    def started(self, flow: Mirror, ledger: str, window: str, directory: Path) -> Iterator[Process]:
        """A window's process, which is ended with the context."""
        config = directory / f"{flow.flow.source.alias}.properties"
        lines = {line.key: line.value for line in flow.opened.configuration.settings}
        config.write_text(javaproperties.dumps(lines, timestamp=None))
        variables = {
            "AIRMIRROR_LEDGER": ledger,
            "PYTHONPATH": str(ROOT / "include"),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        process = start_process(
            f"window {window}",
            [*self.command, "--config", str(config), "--flow", flow.flow.name, "--window", window],
            directory / f"{window}.log",
            environment=variables | dict(self.variables),
        )
        try:
            yield process
        finally:
            process.stop()


def in_process() -> Environment:
    return Environment("in-process", (sys.executable, *AIRMIRROR, "--local"))


def connect(server: ConnectServer, name: str = "connect", python: str = sys.executable) -> Environment:
    return Environment(name, (python, *AIRMIRROR, "--spark", server.address), {TOKEN: server.token})


def submit(master: str, name: str, python: str = sys.executable) -> Environment:
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "1g",
        "spark.cores.max": "2",
        "spark.pyspark.python": python,
        "spark.pyspark.driver.python": sys.executable,
    }
    given = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return Environment(name, (SUBMIT, "--master", master, *given, JOB))
