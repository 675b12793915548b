"""``python -m benchmarks.compare``: how fast ``airmirror compare`` reads equal copies, and its memory where copies differ.

The rate of equal copies a core is measured against the readback window's that made the copy, in the same run. Each comparison
is the command, in a process of its own. Writes the section "Comparing" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from airmirror.local import LOCAL
from airmirror.wire.batch import Batch
from airmirror_local.brokers import KAFKA_DEFAULTS, Broker, start_broker
from airmirror_local.spark_connect import start_connect_server
from benchmarks import planted, sections
from benchmarks.data import DENSE_100, PARTITIONS, Data, delete_topics, fill
from benchmarks.measurements import READBACK, Measurement, Target
from benchmarks.report import MIB, Grid
from benchmarks.windows import Sites, run_window

BROKER = {"log.segment.delete.delay.ms": "1000"}
COMMAND = """
import sys
from airmirror.cli.main import app
try:
    app()
finally:
    (peak,) = (line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(peak, file=sys.stderr)
"""  # `airmirror`, which tells its own high-water mark at its end (Linux)
LACKED = 1_000_000  # records
EQUAL, ALTERED = "equal copies", "one record altered"
IN_A_ROW, SCATTERED, OWN = (
    "lacks a million in a row",
    "lacks a million, a batch here and there",
    "has a million of its own",
)


@dataclass(frozen=True)
class Compared:
    """One comparison: what the command said and used; ``source_bytes`` and ``target_bytes`` are what the brokers sent."""

    measurement: Measurement
    peak: int  # bytes, VmHWM
    source_bytes: int
    target_bytes: int
    counts: dict[str, int]
    differences: list[dict[str, Any]]


@dataclass
class Bench:
    """What measurements need, and where they go."""

    console: Console
    source: Broker
    target: Broker
    sites: Sites
    found: dict[str, Compared] = field(default_factory=dict)
    window: Measurement | None = None
    sizes: dict[str, int] = field(default_factory=dict)  # records of the source

    def note(self, what: str, data: Data, compared: Compared) -> None:
        self.found[what], self.sizes[what] = compared, data.records
        measured = compared.measurement
        self.console.print(
            f"{what}: {measured.rate:,.0f} records/s, {1 / (measured.processor_microseconds or 1):.2f} million a core, "
            f"{compared.peak / MIB:.0f} MiB, {compared.counts}, load {os.getloadavg()[0]:.1f}",
            highlight=False,
        )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=__doc__)
    default = float(os.environ.get("BENCH_SCALE", "1"))
    parser.add_argument("--scale", type=float, default=default, help="1 is 50 million records")
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console, load = Console(width=150), os.getloadavg()[0]
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-compare-", dir=LOCAL))
    try:
        with ExitStack() as stack:
            brokers = []
            for name in ("east", "west"):
                brokers.append(start_broker(directory, name, BROKER, java_options=KAFKA_DEFAULTS))
                stack.callback(brokers[-1].kill)
            bench = measure_all(stack, console, brokers[0], brokers[1], directory, chosen.scale)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    grid = table(bench, load)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


def measure_all(
    stack: ExitStack, console: Console, source: Broker, target: Broker, directory: Path, scale: float
) -> Bench:
    spark = start_connect_server(directory / "spark")
    stack.callback(spark.stop)
    sites = Sites(directory, source.bootstrap, target.bootstrap, spark)
    bench = Bench(console, source, target, sites)
    warm_up = Data("warm-up", "", 100_000, 100, DENSE_100.producer)
    fill(source.bootstrap, warm_up)
    run_window(sites, "readback", warm_up.topic)
    compare(bench, warm_up.topic, f"readback.{warm_up.topic}")
    large = DENSE_100.scaled(scale)
    console.print(f"filling a topic with {large.records:,} records")
    fill(source.bootstrap, large)
    bench.window = run_window(sites, "readback", large.topic).measurement
    spark.stop()
    bench.note(EQUAL, large, compare(bench, large.topic, f"readback.{large.topic}"))
    delete_topics(target.bootstrap, f"readback.{large.topic}")
    planted_in(bench, ALTERED, large, one_altered(large.records // PARTITIONS // 2))
    delete_topics(source.bootstrap, large.topic)
    small = Data("small", "", max(8 * LACKED, large.records // 5), 100, DENSE_100.producer)
    console.print(f"filling a topic with {small.records:,} records")
    fill(source.bootstrap, small)
    planted_in(bench, IN_A_ROW, small, without_a_run())
    planted_in(bench, SCATTERED, small, without_here_and_there(small.records))
    planted_in(bench, OWN, small, with_others(small.records))
    return bench


def planted_in(bench: Bench, what: str, data: Data, change: planted.Change) -> None:
    """Compare a topic with a copy that was changed."""
    remote = f"planted.{data.topic}"
    planted.copy(bench.source.bootstrap, bench.target.bootstrap, data.topic, remote, change)
    try:
        bench.note(what, data, compare(bench, data.topic, remote))
    finally:
        delete_topics(bench.target.bootstrap, remote)


def one_altered(offset: int) -> planted.Change:
    """One record of partition 2 has another value."""

    def change(partition: int, buffer: memoryview, batch: Batch) -> list[bytes]:
        number = offset - batch.base_offset
        if partition != 2 or not 0 <= number < batch.count:
            return [planted.payload(buffer, batch)]
        return [planted.flipped(buffer, batch, number, number + 1)]

    return change


def without_a_run() -> planted.Change:
    """A million records (whole batches) of partition 1 are left out, after its first 1,000."""
    left = LACKED

    def change(partition: int, buffer: memoryview, batch: Batch) -> list[bytes]:
        nonlocal left
        if partition != 1 or batch.base_offset < 1_000 or left <= 0:
            return [planted.payload(buffer, batch)]
        left -= batch.count
        return []

    return change


def every(records: int) -> Callable[[int], bool]:
    """Whether a batch is one of those that have a million of all records, spread evenly."""
    passed = chosen = 0

    def is_chosen(count: int) -> bool:
        nonlocal passed, chosen
        passed += count
        if chosen * records >= passed * LACKED:
            return False
        chosen += count
        return True

    return is_chosen


def without_here_and_there(records: int) -> planted.Change:
    is_chosen = every(records)
    return lambda _, buffer, batch: [] if is_chosen(batch.count) else [planted.payload(buffer, batch)]


def with_others(records: int) -> planted.Change:
    """After some batches come as many records that the source does not have."""
    is_chosen = every(records)

    def change(_: int, buffer: memoryview, batch: Batch) -> list[bytes]:
        own = planted.payload(buffer, batch)
        return [own, planted.flipped(buffer, batch, 0, batch.count)] if is_chosen(batch.count) else [own]

    return change


def compare(bench: Bench, topic: str, remote: str) -> Compared:
    """``airmirror compare`` of one topic. Raises RuntimeError where it could not be compared."""
    words = ["--source", bench.source.bootstrap, "--target", bench.target.bootstrap, "--topics", topic]
    command = [
        sys.executable,
        "-c",
        COMMAND,
        "compare",
        *words,
        "--rename",
        remote.replace(topic, "{topic}"),
    ]
    sent, used, begun = _sent(bench), _used(), time.monotonic()
    answer = subprocess.run([*command, "--json"], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if answer.returncode not in (0, 1):
        raise RuntimeError(
            f"airmirror compare ended with {answer.returncode}: {(answer.stdout + answer.stderr)[-800:]}"
        )
    rows = json.loads(answer.stdout)["partitions"]
    counts: dict[str, int] = {}
    for row in rows:
        for kind, count in row["records"].items():
            counts[kind] = counts.get(kind, 0) + count
    now = _sent(bench)
    return Compared(
        measurement=Measurement(sum(counts.values()), seconds, _used() - used),
        peak=int(answer.stderr.split()[-1]) * 1024,
        source_bytes=now[0] - sent[0],
        target_bytes=now[1] - sent[1],
        counts={kind: count for kind, count in counts.items() if count},
        differences=[{"partition": row["partition"]} | each for row in rows for each in row["differences"]],
    )


def _used() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _sent(bench: Bench) -> tuple[int, int]:
    """Bytes that each broker has written so far, into sockets and files (sendfile counts, in Linux)."""
    one, other = (broker.process.handle.io_counters().write_chars for broker in (bench.source, bench.target))
    return one, other


def table(bench: Bench, load: float) -> Grid:
    """The figures, and under them the targets."""
    window = bench.window
    assert window is not None
    note = (
        "`airmirror compare` in one process, 100-byte records in 4 partitions, its start included; processor time is that of "
        "the process. Bytes are what each broker has sent, by the kernel's count. The readback window has made the equal "
        f"copy: its processor time is that of command and slots. Load average before it {load:.1f}, at its end "
        f"{os.getloadavg()[0]:.1f}."
    )
    heads = ("what", "records", "seconds", "records/s", "million records a core second", "peak MiB", "source sent MB")
    grid = Grid("Comparing", note, (*heads, "target sent MB", "found"))
    grid.rows.append((f"{READBACK} window", *_figures(window), "", "", "", ""))
    for what, each in bench.found.items():
        sent = f"{each.source_bytes / 1e6:,.0f}", f"{each.target_bytes / 1e6:,.0f}"
        grid.rows.append((what, *_figures(each.measurement), f"{each.peak / MIB:,.0f}", *sent, _found(each)))
    for target in targets(bench.found, window):
        measured = "" if target.measured is None else f"{target.measured:,.2f}"
        wanted = f"{'≥' if target.least else '≤'} {target.wanted:g}"
        grid.rows.append((f"**{target.what}**", *[""] * 6, wanted, f"{measured} {target.verdict}"))
    return grid


def targets(found: Mapping[str, Compared], window: Measurement) -> list[Target]:
    """The figures to reach, against the window that made the equal copy."""
    altered, plain = found[ALTERED], found[EQUAL]
    own, its = plain.measurement.processor_microseconds, window.processor_microseconds
    peak = max(each.peak for each in found.values()) / MIB
    read = max(altered.source_bytes / plain.source_bytes, altered.target_bytes / plain.target_bytes)
    return [
        Target("", "rate a core of equal copies, of the window's", its / own if its and own else None, 0.6),
        Target("", "memory of the comparing process, largest, MiB", peak, 256, least=False),
        Target("", "bytes read where one record differs, of equal copies'", read, 1.1, least=False),
    ]


def _figures(measured: Measurement) -> tuple[str, str, str, str]:
    each = measured.processor_microseconds
    a_core = f"{1 / each:.2f}" if each else ""
    return f"{measured.records:,}", f"{measured.seconds:.1f}", f"{measured.rate:,.0f}", a_core


def _found(compared: Compared) -> str:
    counts = ", ".join(f"{count:,} {kind}" for kind, count in compared.counts.items())
    if len(compared.differences) != 1:
        return counts
    (one,) = compared.differences
    return f"{counts}: partition {one['partition']}, source offset {one['source_first']}, {one.get('differ', '')}"


if __name__ == "__main__":
    main()
