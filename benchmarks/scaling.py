"""``python -m benchmarks.scaling``: what ``tasks.max = auto`` does in a burst, beside a number of slots that is fixed.

A standalone Spark cluster allocates executors of one core by need. The source is far away and a connection's window is small, so
that a slot carries little, whatever this machine could copy: more slots carry more, as on a large cluster. Windows run one after
the other. Writes the section "Scaling" of RESULTS.md and the plot benchmarks/scaling.png.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from rich.console import Console

from airmirror.config import parse
from airmirror.flows.prepare import Opened, prepare
from airmirror.ledger import Ledger
from airmirror.local import LOCAL
from airmirror.on_spark.windows import on_spark
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.source import lanes_for
from airmirror.windows.progress import CopyProgress
from airmirror.windows.window import WindowOrder, run_window
from airmirror_local.brokers import KAFKA_DEFAULTS, start_broker
from airmirror_local.line import start_line
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.spark_cluster import SparkCluster, start_spark_cluster
from airmirror_local.spark_connect import start_connect_server
from benchmarks import sections
from benchmarks.data import create_topic, latest
from benchmarks.report import Grid
from benchmarks.steady import alongside

PLOT = Path(__file__).with_name("scaling.png")
PARTITIONS, RECORD_BYTES, MOST_EXECUTORS = 16, 10_000, 6
DELAY, LINE_WINDOW = 0.025, 40_000  # seconds each way, bytes under way: 1.6 MB/s a connection
FIXED = "1"  # MirrorMaker 2's default
LOW_SECONDS = 15
SPARK = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(MOST_EXECUTORS),
    "spark.dynamicAllocation.executorIdleTimeout": "15s",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
}
CONFIGURATION = """
clusters = {alias}, west
{alias}.bootstrap.servers = {east}
west.bootstrap.servers = {west}
{alias}->west.enabled = true
{alias}->west.topics = {topic}
replication.factor = 1
offset.storage.replication.factor = 1
window.slot.bytes = 8388608
window.commit.ms = 2000
window.max.ms = {max_ms}
tasks.max = {tasks}
"""


@dataclass(frozen=True)
class Load:
    """Bytes a second: ``base``, and ``burst`` from one second after the beginning to another; ``seconds`` in all."""

    base: float
    burst: float
    begin: float
    end: float
    seconds: float

    def rate(self, second: float) -> float:
        return self.burst if self.begin <= second < self.end else self.base


@dataclass
class Running:
    """What the windows do now: slots that run, records that earlier ones have copied, and those of this one."""

    slots: int = 0
    done: int = 0
    copied: int = 0

    def report(self, progress: CopyProgress) -> None:
        self.copied = progress.records


@dataclass
class Samples:
    """What was seen, second by second: bytes that are not yet on the target, slots of the window that runs, executors."""

    seconds: list[float] = field(default_factory=list)
    lag: list[float] = field(default_factory=list)
    slots: list[int] = field(default_factory=list)
    executors: list[int] = field(default_factory=list)

    def caught_up(self, load: Load) -> float | None:
        """The seconds from the burst's end until no more waits than comes in ``LOW_SECONDS``; None: that was not reached."""
        low = LOW_SECONDS * load.base
        return next(
            (at - load.end for at, lag in zip(self.seconds, self.lag, strict=True) if at >= load.end and lag <= low),
            None,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scaling", description=__doc__)
    parser.add_argument("--burst", type=float, default=16, help="MB/s")
    parser.add_argument("--seconds", type=float, default=60, help="of the burst")
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    parser.add_argument("--plot", type=Path, default=PLOT)
    chosen = parser.parse_args()
    load = Load(1e6, chosen.burst * 1e6, 40, 40 + chosen.seconds, 40 + 4 * chosen.seconds)
    console, busy = Console(), os.getloadavg()[2]
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-scaling-", dir=LOCAL))
    found: dict[str, Samples] = {}
    try:
        for tasks in ("auto", FIXED):
            with console.status(f"tasks.max = {tasks}: {load.seconds:.0f} s"):
                found[tasks] = measure(directory / tasks, tasks, load)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    grid = table("Scaling", explained(load, busy), found, load)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)
    draw(found, load, chosen.plot)


def measure(directory: Path, tasks: str, load: Load) -> Samples:
    """Two clusters, a line before one, and a Spark cluster; the load, and windows one after the other."""
    directory.mkdir()
    stops: list[Callable[[], None]] = []
    try:
        east = start_broker(directory, "east", java_options=KAFKA_DEFAULTS, proxy_port=free_port())
        stops.append(east.kill)
        west = start_broker(directory, "west", java_options=KAFKA_DEFAULTS)
        stops.append(west.kill)
        cluster = start_spark_cluster(directory / "cluster", 2, cores=MOST_EXECUTORS // 2, memory="4g")
        stops.append(cluster.stop)
        spark = start_connect_server(directory / "spark", settings=SPARK, master=cluster.url)
        stops.append(spark.stop)
        alias, topic = f"far{tasks}", "burst"
        create_topic(east.bootstrap, topic, partitions=PARTITIONS)
        create_topic(west.bootstrap, f"{alias}.{topic}", partitions=PARTITIONS)
        assert east.proxy_port is not None and east.proxied_port is not None
        with start_line(directory, east.proxy_port, east.proxied_port, DELAY, LINE_WINDOW):
            text = CONFIGURATION.format(
                alias=alias,
                east=f"{LOOPBACK}:{east.proxy_port}",
                west=west.bootstrap,
                topic=topic,
                tasks=tasks,
                max_ms=15_000,
            )
            configuration = parse(text, "bench")
            flow = configuration.flow(f"{alias}->west")
            opened = Opened(configuration, flow, Ledger(f"sqlite:///{directory / 'ledger.db'}").flow(flow.name))
            samples, running = Samples(), Running()
            one_window(opened, spark.url, running)  # the session and its first executor
            begun = time.monotonic()
            with alongside(
                producing(east.bootstrap, topic, load, begun),
                sampling(east.bootstrap, topic, cluster, running, samples, begun),
            ):
                while time.monotonic() - begun < load.seconds:
                    one_window(opened, spark.url, running)
        return samples
    finally:
        for stop in reversed(stops):
            stop()


def one_window(opened: Opened, url: str, running: Running) -> None:
    """A window, of which ``running`` tells."""
    prepared = prepare(opened)
    with on_spark(opened, url, lambda phase: None) as (slots, execute):

        def noted(given: Sequence[Slot]) -> list[SlotResult]:
            running.slots = len(given)
            try:
                return list(execute(given))
            finally:
                running.slots = 0

        order = WindowOrder(uuid.uuid4().hex, slots=slots, report=running.report)
        result = run_window(opened.flow, opened.ledger, prepared.topics, noted, order)
    running.done, running.copied = running.done + result.copied, 0
    if any(row.failed for row in result.rows):
        raise RuntimeError("; ".join(str(row.error) for row in result.rows if row.error))


def producing(bootstrap: str, topic: str, load: Load, begun: float) -> Callable[[threading.Event], None]:
    """Records at the load's rate, spread over the partitions."""

    def work(ended: threading.Event) -> None:
        producer, value, owed, last = Producer({"bootstrap.servers": bootstrap}), b"x" * RECORD_BYTES, 0.0, begun
        number = 0
        while not ended.wait(0.1):
            now = time.monotonic()
            owed += load.rate(now - begun) * (now - last)
            last = now
            while owed >= RECORD_BYTES:
                owed -= RECORD_BYTES
                number = (number + 1) % PARTITIONS
                producer.produce(topic, value, partition=number)
            producer.poll(0)
        producer.flush(30)

    return work


def sampling(
    bootstrap: str,
    topic: str,
    cluster: SparkCluster,
    running: Running,
    into: Samples,
    begun: float,
) -> Callable[[threading.Event], None]:
    """The bytes on the source that no window has committed yet; the slots that run; the executors, by the master's page."""

    def work(ended: threading.Event) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        while not ended.wait(1.0):
            here = running.done + running.copied
            there = sum(latest(admin, topic, PARTITIONS))
            into.seconds.append(time.monotonic() - begun)
            into.lag.append(max(0, there - here) * RECORD_BYTES)
            into.slots.append(running.slots)
            into.executors.append(cluster.cores_used)

    return work


def table(title: str, note: str, found: dict[str, Samples], load: Load) -> Grid:
    """A row of what was seen with each ``tasks.max``."""
    heads = (
        "tasks.max",
        "most lag MB",
        "caught up s",
        "slots before",
        "slots at most",
        "executors at most",
        "at the end",
    )
    rows: list[tuple[str, ...]] = []
    for tasks, samples in found.items():
        before = [slots for at, slots in zip(samples.seconds, samples.slots, strict=True) if at < load.begin]
        seconds = samples.caught_up(load)
        rows.append(
            (
                tasks,
                f"{max(samples.lag) / 1e6:,.0f}",
                "not in time" if seconds is None else f"{seconds:.0f}",
                str(max(before)),
                str(max(samples.slots)),
                str(max(samples.executors)),
                str(samples.executors[-1]),
            )
        )
    return Grid(title, note, heads, rows)


def explained(load: Load, busy: float) -> str:
    """What is measured here, and on what."""
    return (
        f"{load.base / 1e6:g} MB/s, and {load.burst / 1e6:g} MB/s for {load.end - load.begin:g} s, over {PARTITIONS} partitions; "
        f"windows of 15 s at most, one after the other, on a standalone Spark cluster with dynamic allocation, up to "
        f"{MOST_EXECUTORS} executors of one core. The source is {2000 * DELAY:g} ms away, and a connection carries "
        f"{LINE_WINDOW / DELAY / 1e6:g} MB/s. A slot has {lanes_for(2 * DELAY)} of them and carries no more: this machine is not "
        f"the limit. *Caught up*: from the burst's end until no more waits than comes in {LOW_SECONDS} s. Load average before: "
        f"{busy:.1f}."
        f"\n\n![lag, slots and executors over a burst]({PLOT.name})"
    )


def draw(found: dict[str, Samples], load: Load, path: Path) -> None:
    """Lag, slots and executors over time, one below the other."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, (lag, slots, executors) = pyplot.subplots(3, 1, sharex=True, figsize=(9, 7), layout="constrained")
    for tasks, samples in found.items():
        label = f"tasks.max = {tasks}"
        lag.plot(samples.seconds, [each / 1e6 for each in samples.lag], label=label)
        slots.step(samples.seconds, samples.slots, where="post", label=label)
        executors.step(samples.seconds, samples.executors, where="post", label=label)
    for axes, unit in ((lag, "lag, MB"), (slots, "slots"), (executors, "executors")):
        axes.axvspan(load.begin, load.end, alpha=0.1, color="gray")
        axes.set(ylabel=unit, ylim=(0, None))
        axes.grid(alpha=0.3)
    lag.legend()
    executors.set(xlabel="seconds; the burst is gray", xlim=(0, load.seconds))
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
