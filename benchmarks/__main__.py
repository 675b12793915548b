"""``python -m benchmarks``: start own brokers and Spark, measure, print the tables, write RESULTS.md, stop everything."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError

import psutil
from confluent_kafka import KafkaException, Producer
from rich.console import Console

from airmirror.errors import AirmirrorError
from airmirror.local import LOCAL
from airmirror_local.brokers import KAFKA_DEFAULTS, Broker, start_broker, start_cluster
from airmirror_local.spark_connect import start_connect_server
from benchmarks import append_limit, mirrormaker, relay_limit, sections
from benchmarks.data import (
    DENSE_100,
    DENSE_1000,
    ONE_A_BATCH,
    OVERSIZED,
    TEN_A_BATCH,
    THREE_BROKERS,
    Data,
    create_topic,
    delete_topics,
    fill,
    shape,
)
from benchmarks.measurements import (
    ACKS,
    APPEND_LIMIT,
    APPEND_LIMIT_LARGE,
    DEFAULTS,
    READBACK,
    RELAY_LIMIT,
    TUNED,
    Measurement,
)
from benchmarks.report import Findings, grids, results_md
from benchmarks.usage import machine_seconds, processor_seconds
from benchmarks.windows import Sites, WindowFailed, run_window

WARM_UP = "warm-up"
RUNS = 3
PAUSE_SECONDS = 2.0  # after what was written before is on the disk
VERIFY = {ACKS: "acks", READBACK: "readback"}
# Deleted topics free the disk at once; everything else is the broker's default.
BROKER = {"log.segment.delete.delay.ms": "1000"}
GROWTH_BYTES = (250_000_000, 1_000_000_000, 2_000_000_000)
PARTITION_COUNTS = (4, 100, 1000)
BUSY_PARTITIONS = 4
OVERSIZED_LIMIT = {"max.message.bytes": "65536"}


@dataclass
class Bench:
    """What measurements need, and where they go."""

    console: Console
    scale: float
    directory: Path
    source: Broker
    sites: Sites
    runs: int = RUNS
    found: Findings = field(default_factory=Findings)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Tell what goes on; an error of one measurement is noted and the others go on."""
        self.console.print(f"[dim]{time.strftime('%H:%M:%S')}[/] {name}", highlight=False)
        try:
            yield
        except (
            AirmirrorError,
            WindowFailed,
            KafkaException,
            CalledProcessError,
            RuntimeError,
            ValueError,
            OSError,
        ) as error:
            said = f"{error} {error.stderr[-500:]}" if isinstance(error, CalledProcessError) else str(error)
            self.found.problems.append(f"{name}: {said}")
            self.console.print(f"[red]failed[/] {name}: {said}", highlight=False)

    def note(self, data: Data, what: str, measured: Measurement) -> None:
        self.found.runs.setdefault(data.label, {}).setdefault(what, []).append(measured)
        used = measured.processor_microseconds
        processor = "" if used is None else f", {used:.2f} µs of processor time a record"
        self.console.print(f"         {data.label}: {what}: {measured.rate:,.0f} records/s{processor}", highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    default = float(os.environ.get("BENCH_SCALE", "1"))
    parser.add_argument(
        "--scale", type=float, default=default, help="1 is 50 million small and 5 million large records"
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="of each side; RESULTS.md has the median and the spread")
    parser.add_argument("--minutes", type=float, default=60, help="begin no part after that time")
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console = Console()
    if not console.is_terminal:
        console.width = max(console.width, 150)
    begun, busy, own = time.monotonic(), machine_seconds(), processor_seconds(psutil.Process())
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=LOCAL))
    try:
        with ExitStack() as stack:
            found = measure_all(stack, console, chosen, directory)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    found.seconds = time.monotonic() - begun
    others = machine_seconds() - busy - (processor_seconds(psutil.Process()) - own)
    found.others = max(0.0, others / found.seconds / (os.cpu_count() or 1))
    for grid in grids(found):
        console.print(grid.on_terminal())
    kept = sections.kept(chosen.results.read_text()) if chosen.results.exists() else ""
    chosen.results.write_text(results_md(found, chosen.scale) + kept)
    console.print(f"Written to {chosen.results} after {found.seconds:.0f} s.", highlight=False)


def measure_all(stack: ExitStack, console: Console, chosen: argparse.Namespace, directory: Path) -> Findings:
    scale: float = chosen.scale
    console.print("starting two brokers and Spark Connect")
    source = start_broker(directory, "east", BROKER, java_options=KAFKA_DEFAULTS)
    stack.callback(source.kill)
    target = start_broker(directory, "west", BROKER, java_options=KAFKA_DEFAULTS)
    stack.callback(target.kill)
    spark = start_connect_server(directory / "spark")
    stack.callback(spark.stop)
    sites = Sites(directory, source.bootstrap, target.bootstrap, spark)
    bench = Bench(console, scale, directory, source, sites, chosen.runs)
    warm_up(bench, DENSE_100)
    parts: dict[str, Callable[[], None]] = {
        "dense batches, 100-byte records": lambda: dense(bench, DENSE_100.scaled(scale), growth=True),
        "dense batches, 1,000-byte records": lambda: dense(bench, DENSE_1000.scaled(scale)),
        "empty windows and idle partitions": lambda: empty_and_idle(bench),
        "10 records a batch": lambda: small_batches(bench, TEN_A_BATCH.scaled(scale)),
        "1 record a batch": lambda: small_batches(bench, ONE_A_BATCH.scaled(scale)),
        "the slow path": lambda: slow_path(bench, OVERSIZED.scaled(scale)),
        "three brokers": lambda: three_brokers(stack, bench, target, THREE_BROKERS.scaled(scale)),
    }
    begun = time.monotonic()
    for name, measure in parts.items():
        if time.monotonic() - begun > chosen.minutes * 60:
            bench.found.problems.append(f"not measured, the time was up: {name}")
            continue
        measure()
    return bench.found


def alias(what: str, number: int = 0) -> str:
    """The source's alias of a run: a flow of its own, whose first window has everything to copy."""
    return f"{VERIFY[what]}{number or ''}"


def warm_up(bench: Bench, like: Data) -> None:
    """A window of each flow that is measured: topics and sessions are made, Python workers forked."""
    data = Data(f"warm-up-{like.topic}", WARM_UP, 100_000, 100, like.producer)
    with bench.step("warming up"), topic(bench, data):
        for what, verify in VERIFY.items():
            for number in range(bench.runs):
                run_window(bench.sites, verify, data.topic, alias=alias(what, number))


@contextmanager
def topic(bench: Bench, data: Data) -> Iterator[None]:
    """The topic while it is needed: on the source, and all its remote topics."""
    fill(bench.source.bootstrap, data)
    if data.label != WARM_UP:
        bench.found.shapes[data.label] = shape(bench.source, data.topic)
    try:
        yield
    finally:
        delete_topics(bench.source.bootstrap, data.topic)
        flows = [alias(what, number) for what in VERIFY for number in range(bench.runs)]
        delete_topics(bench.sites.target, *(f"{name}.{data.topic}" for name in (*flows, "growth")))


def dense(bench: Bench, data: Data, *, growth: bool = False) -> None:
    with bench.step(f"filling {data.topic} with {data.records:,} records"), topic(bench, data):
        theirs(bench, data, DEFAULTS, mirrormaker.DEFAULTS)
        alternated(bench, data)
        with bench.step("the broker's append limit"):
            for what, size in {APPEND_LIMIT: 131_072, APPEND_LIMIT_LARGE: 1_000_000}.items():
                limit = append_limit.measure(bench.source, bench.sites.target, data.record_bytes, size)
                bench.note(data, what, limit)
        with bench.step("the relay limit"):
            bench.note(data, RELAY_LIMIT, relay_limit.measure(bench.source, bench.sites.target, data.topic))
        if growth:
            with bench.step("windows of several sizes"):
                run_window(bench.sites, "acks", data.topic, alias="growth", max_bytes=1_000_000)
                for size in GROWTH_BYTES:
                    cut = int(size * bench.scale)
                    window = run_window(bench.sites, "acks", data.topic, alias="growth", max_bytes=cut)
                    row = (window.bytes, window.records, window.seconds, window.command_seconds)
                    bench.found.growth_bytes.append(row)


def small_batches(bench: Bench, data: Data) -> None:
    warm_up(bench, data)
    with bench.step(f"filling {data.topic} with {data.records:,} records"), topic(bench, data):
        alternated(bench, data)


def slow_path(bench: Bench, data: Data) -> None:
    """Batches larger than the remote topic takes: every record is decoded and written anew."""
    with bench.step(f"filling {data.topic} with {data.records:,} records"), topic(bench, data):
        for what in VERIFY:
            create_topic(bench.sites.target, f"{alias(what)}.{data.topic}", config=OVERSIZED_LIMIT)
            ours(bench, data, what)


def alternated(bench: Bench, data: Data) -> None:
    """Tuned MirrorMaker 2 and Airmirror, several runs; every other one in the opposite order."""
    for number in range(bench.runs):
        order = (TUNED, *VERIFY)
        for what in reversed(order) if number % 2 else order:
            if what == TUNED:
                theirs(bench, data, what, mirrormaker.TUNED)
            else:
                ours(bench, data, what, number)


def settle() -> None:
    """What was measured or filled before has its bytes on the disk, and the brokers have a moment to delete files."""
    os.sync()
    time.sleep(PAUSE_SECONDS)  # nothing tells when a broker has deleted what it was told to


def theirs(bench: Bench, data: Data, what: str, config: str) -> None:
    settle()
    with bench.step(f"{data.topic}: {what}"):
        sites = bench.sites
        bench.note(
            data,
            what,
            mirrormaker.measure(bench.directory, sites.source, sites.target, data, config, replicas=sites.replicas),
        )


def ours(bench: Bench, data: Data, what: str, number: int = 0) -> None:
    settle()
    with bench.step(f"{data.topic}: {what}"):
        verify, own = VERIFY[what], alias(what, number)
        window = run_window(bench.sites, verify, data.topic, alias=own)
        if window.records != data.records:
            raise WindowFailed(f"{window.records:,} of {data.records:,} records copied")
        bench.note(data, what, window.measurement)
        bench.found.slot_peaks.append((f"{data.label}, {verify}", window.slot_peak))
        delete_topics(bench.sites.target, f"{own}.{data.topic}")


def empty_and_idle(bench: Bench) -> None:
    """Windows with nothing to copy, and windows of many partitions of which few have new records."""
    for partitions in PARTITION_COUNTS:
        name = f"idle-{partitions}"
        with bench.step(f"windows of {partitions:,} partitions"):
            create_topic(bench.source.bootstrap, name, partitions=partitions)
            seconds = []
            for _ in range(3):
                produce_a_few(bench.source.bootstrap, name)
                window = run_window(bench.sites, "readback", name, alias=name)
                seconds.append(window.command_seconds)
            bench.found.growth_partitions.append((partitions, seconds[0], min(seconds[1:])))
            if partitions == BUSY_PARTITIONS:
                bench.found.empty_windows = [
                    run_window(bench.sites, "readback", name, alias=name).command_seconds for _ in range(3)
                ]


def produce_a_few(bootstrap: str, name: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    for number in range(1000 * BUSY_PARTITIONS):
        producer.produce(name, value=b"%100d" % number, partition=number % BUSY_PARTITIONS)
    producer.flush()


def three_brokers(stack: ExitStack, bench: Bench, target: Broker, data: Data) -> None:
    with bench.step("starting a cluster of three brokers, replication factor 3"):
        target.kill()  # memory for three more
        cluster = start_cluster(bench.directory, "three", 3, BROKER, java_options=KAFKA_DEFAULTS)
        stack.callback(cluster.stop)
        home = bench.directory / "to-three"
        home.mkdir()
        sites = Sites(home, bench.source.bootstrap, cluster.bootstrap, bench.sites.spark, 3)
        bench.sites = sites
        small_batches(bench, data)


if __name__ == "__main__":
    main()
