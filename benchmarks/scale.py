"""``python -m benchmarks.scale``: what many partitions cost: plan, empty window, a window with 1 % busy, ledger, memory.

Every figure is a whole command in a process of its own, on two clusters of one node and a Spark Connect server. Writes the
section "Partitions" of RESULTS.md and the plot benchmarks/partitions.png.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka import Producer
from rich.console import Console

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.config import Flow, parse
from airmirror.local import LOCAL
from airmirror_local.spark_connect import TOKEN, start_connect_server
from benchmarks import sections
from benchmarks.report import Grid
from benchmarks.topics import two_clusters
from benchmarks.usage import machine_seconds, processor_seconds
from benchmarks.windows import ALONE

PLOT = Path(__file__).with_name("partitions.png")
OF_A_TOPIC = 20  # partitions
RECORDS = 100  # of a busy partition
CONFIGURATION = """
clusters = {alias}, west
{alias}.bootstrap.servers = {east}
west.bootstrap.servers = {west}
{alias}->west.enabled = true
{alias}->west.topics = {alias}-.*
replication.factor = 1
offset.storage.replication.factor = 1
emit.heartbeats.enabled = false
admin.timeout.ms = 600000
"""


@dataclass(frozen=True)
class Costs:
    """Seconds by command, its processor seconds, and sizes in bytes, of a flow with so many partitions."""

    partitions: int
    first: float  # everything is created, the first record of every partition copied
    plan: float
    empty: float
    empty_processor: float
    busy: float
    busy_records: int
    ledger: int
    memory: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--partitions", type=int, nargs="+", default=[100, 1_000, 5_000, 10_000])
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    parser.add_argument("--plot", type=Path, default=PLOT)
    chosen = parser.parse_args()
    console = Console()
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-scale-", dir=LOCAL))
    found: list[Costs] = []
    begun, machine, own = time.monotonic(), machine_seconds(), processor_seconds(psutil.Process())
    try:
        with two_clusters(directory) as (east, west):
            spark = start_connect_server(directory / "spark")
            os.environ[TOKEN] = spark.token
            try:
                for partitions in chosen.partitions:
                    with console.status(f"{partitions:,} partitions"):
                        found.append(measure(directory, east.bootstrap, west.bootstrap, spark.address, partitions))
                    console.print(found[-1])
            finally:
                spark.stop()
        used = machine_seconds() - machine - (processor_seconds(psutil.Process()) - own)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    others = max(0.0, used / (time.monotonic() - begun) / (os.cpu_count() or 1))
    grid = table(found, others)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)
    draw(found, chosen.plot)


def measure(directory: Path, east: str, west: str, spark: str, partitions: int) -> Costs:
    """A flow of its own with ``partitions`` partitions, run through all the commands."""
    alias = f"scale{partitions}"
    text = CONFIGURATION.format(alias=alias, east=east, west=west)
    config, ledger = directory / f"{alias}.properties", directory / f"{alias}.db"
    config.write_text(text)
    flow = parse(text, "bench").flow(f"{alias}->west")
    topics = [f"{alias}-{number:04}" for number in range(partitions // OF_A_TOPIC)]
    _create(flow, topics)
    everywhere = [(topic, number) for topic in topics for number in range(OF_A_TOPIC)]
    _produce(east, everywhere, 1)
    place = ("--config", str(config), "--flow", flow.name, "--ledger", f"sqlite:///{ledger}")
    window = ("run-window", *place, "--spark", spark, "--json", *ALONE)
    first = _command(*window)
    _expect(first, partitions)
    _expect(_command(*window), 0)
    empty = _command(*window)
    _expect(empty, 0)
    plan = _command("plan", *place, "--json")
    _produce(east, everywhere[::100], RECORDS)
    busy = _command(*window)
    _expect(busy, len(everywhere[::100]) * RECORDS)
    size = sum(path.stat().st_size for path in directory.glob(f"{ledger.name}*"))
    memory = max(command.memory for command in (first, plan, empty, busy))
    return Costs(
        partitions=partitions,
        first=first.seconds,
        plan=plan.seconds,
        empty=empty.seconds,
        empty_processor=empty.processor,
        busy=busy.seconds,
        busy_records=len(everywhere[::100]) * RECORDS,
        ledger=size,
        memory=memory,
    )


@dataclass(frozen=True)
class Command:
    """What a command printed, and what it took: seconds, processor seconds, peak bytes."""

    output: str
    seconds: float
    processor: float
    memory: int


def _command(*arguments: str) -> Command:
    begun = time.monotonic()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, "-m", "airmirror.cli.main", *arguments], stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - begun
        output.seek(0)
        text = output.read()
    if process.returncode != 0:
        raise RuntimeError(f"airmirror {' '.join(arguments)}: status {process.returncode}\n{text[:2000]}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Command(text, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit)


def _expect(command: Command, records: int) -> None:
    rows = json.loads(command.output)["rows"]
    copied = sum(row["copied"] for row in rows)
    if copied != records or not all(row["verified"] for row in rows):
        raise RuntimeError(f"{copied} records instead of {records}")


def _create(flow: Flow, topics: list[str]) -> None:
    refused = create_topics(connect(flow.source), [NewTopic(name, OF_A_TOPIC, 1, {}) for name in topics], 600).refused
    if refused:
        raise refused[0]


def _produce(bootstrap: str, partitions: list[tuple[str, int]], count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50, "queue.buffering.max.messages": 2_000_000})
    for topic, partition in partitions:
        for number in range(count):
            producer.produce(topic, value=b"%0100d" % number, partition=partition)
        producer.poll(0)
    if producer.flush(300):
        raise RuntimeError("the source did not take all records")


def table(found: list[Costs], others: float) -> Grid:
    """``others``: the share of the machine's processor time that other programs took meanwhile."""
    note = (
        f"A flow with so many partitions, {OF_A_TOPIC} a topic, each figure a whole command in a process of its own (0.7 s of "
        "it is Python and its imports): the first `run-window`, which creates all remote topics and copies a record of every "
        f"partition; `plan`; `run-window` with nothing new; and where every hundredth partition has {RECORDS} new records. "
        "Memory is the peak of the largest command, ledger the size of SQLite's files. Both clusters of one node, Spark and "
        f"the commands share this machine; other programs took {others:.0%} of it "
        f"beside them.\n\n![seconds and sizes by partitions]({PLOT.name})"
    )
    heads = (
        "partitions",
        "first window s",
        "plan s",
        "empty window s",
        "its processor time s",
        "1 % busy s",
        "ledger MB",
        "memory MB",
    )
    rows: list[tuple[str, ...]] = [
        (
            f"{costs.partitions:,}",
            f"{costs.first:.1f}",
            f"{costs.plan:.1f}",
            f"{costs.empty:.1f}",
            f"{costs.empty_processor:.1f}",
            f"{costs.busy:.1f}",
            f"{costs.ledger / 1e6:.1f}",
            f"{costs.memory / 1e6:.0f}",
        )
        for costs in found
    ]
    return Grid("Partitions", note, heads, rows)


def draw(found: list[Costs], path: Path) -> None:
    """Seconds by partitions, and memory and ledger by partitions."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, (times, sizes) = pyplot.subplots(1, 2, figsize=(10, 4), layout="constrained")
    at = [costs.partitions for costs in found]
    for label, values in (
        ("plan", [costs.plan for costs in found]),
        ("empty window", [costs.empty for costs in found]),
        ("window, 1 % busy", [costs.busy for costs in found]),
    ):
        times.plot(at, values, marker="o", label=label)
    for label, amounts in (
        ("memory of the command", [costs.memory / 1e6 for costs in found]),
        ("ledger (SQLite)", [costs.ledger / 1e6 for costs in found]),
    ):
        sizes.plot(at, amounts, marker="o", label=label)
    for axes, unit in ((times, "seconds"), (sizes, "MB")):
        axes.set(xlabel="partitions of the flow", ylabel=unit, ylim=(0, None), xlim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
