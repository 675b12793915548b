"""Windows of Airmirror, each its own ``airmirror run-window`` against a Spark Connect server that runs already."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from airmirror_local.spark_connect import TOKEN, ConnectServer
from benchmarks.measurements import Measurement
from benchmarks.usage import watch

CONFIGURATION = """
clusters = {alias}, west
{alias}.bootstrap.servers = {source}
west.bootstrap.servers = {target}
{alias}->west.enabled = true
{alias}->west.topics = {topics}
replication.factor = {replicas}
offset.storage.replication.factor = {replicas}
window.max.ms = 900000
window.verify = {verify}
"""


ALONE = ("--no-offset-syncs", "--no-checkpoints", "--no-group-offsets")  # a window, and nothing that follows it


class WindowFailed(Exception):
    """A window that did not copy and verify everything; the text is what the command said."""


@dataclass(frozen=True)
class Sites:
    """Where windows run: both clusters, Spark, and a directory for configuration and ledger."""

    directory: Path
    source: str
    target: str
    spark: ConnectServer
    replicas: int = 1


@dataclass(frozen=True)
class Window:
    """A window's JSON figures, the whole command's time and processor time (Spark's included), in seconds."""

    records: int
    bytes: int
    seconds: float
    command_seconds: float
    processor_seconds: float
    phases: dict[str, float]
    slot_peak: int  # bytes, of the largest Python process under Spark

    @property
    def measurement(self) -> Measurement:
        """Records by the window's time, lease to verified, and all processor time of the command and of Spark."""
        return Measurement(self.records, self.seconds, self.processor_seconds)


def run_window(
    sites: Sites,
    verify: str,
    topic: str,
    *,
    alias: str | None = None,
    max_bytes: int | None = None,
    settings: str = "",
    tasks: bool = False,
) -> Window:
    """Run a window of the flow ``alias->west`` (alias: ``verify`` itself), with more ``settings``, and with its tasks if they
    are wanted. Raises WindowFailed."""
    alias = alias or verify
    text = CONFIGURATION.format(
        alias=alias, source=sites.source, target=sites.target, topics=topic, replicas=sites.replicas, verify=verify
    )
    text += settings
    if max_bytes is not None:
        text += f"window.max.bytes = {max_bytes}\n"
    file = sites.directory / f"{alias}.properties"
    file.write_text(text)
    ledger = f"sqlite:///{sites.directory / 'ledger.db'}"
    command = [
        sys.executable,
        "-m",
        "airmirror.cli.main",
        "run-window",
        "--config",
        str(file),
        "--flow",
        f"{alias}->west",
        "--ledger",
        ledger,
        "--spark",
        sites.spark.address,
        "--no-expectations",
        "--json",
        *(() if tasks else ALONE),
    ]
    server = sites.spark.process.handle
    used = _used()
    with watch(server) as watched:
        begun = time.monotonic()
        token = {**os.environ, TOKEN: sites.spark.token}
        answer = subprocess.run(command, env=token, capture_output=True, text=True, check=False)
        command_seconds = time.monotonic() - begun
    used = _used() - used + watched.processor_seconds
    if answer.returncode != 0:
        raise WindowFailed(
            f"{alias}->west {topic}: status {answer.returncode}: {(answer.stdout + answer.stderr)[-1500:]}"
        )
    told = json.loads(answer.stdout)
    # The source's heartbeats topic, which MirrorMaker 2 makes, is replicated with whatever is asked for.
    rows = [row for row in told["rows"] if row["topic"] == topic]
    records, size = sum(row["copied"] for row in rows), sum(row["bytes"] for row in rows)
    return Window(
        records=records,
        bytes=size,
        seconds=told["seconds"],
        command_seconds=command_seconds,
        processor_seconds=used,
        phases=told["phases"],
        slot_peak=watched.largest_python,
    )


def _used() -> float:
    """Processor time of the children of this process that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
