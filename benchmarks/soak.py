"""``python -m benchmarks.soak``: the memory of a slot that copies gigabytes, what a thousand windows in a row leave behind, and
an hour of everything at once (benchmarks.everything).

Starts brokers and Spark of its own, writes SOAK.md and soak.png, stops everything. Ends with status 1 where a limit is not kept.
"""

from __future__ import annotations

import argparse
import gc
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka import Producer
from rich.console import Console

from airmirror.flows.prepare import open_flow, prepare
from airmirror.local import LOCAL
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.window import WindowOrder
from airmirror.windows.window import run_window as run_in_this_process
from airmirror_local.brokers import KAFKA_DEFAULTS, Broker, start_broker
from airmirror_local.spark_connect import start_connect_server
from benchmarks import everything
from benchmarks.data import DENSE, TEN_A_BATCH, Data, create_topic, delete_topics, fill
from benchmarks.windows import CONFIGURATION, Sites, run_window

RESULTS = Path(__file__).with_name("SOAK.md")
PLOT = Path(__file__).with_name("soak.png")
MIB = 1 << 20
SLOT_LIMIT = 256 * MIB
# What 1,000 windows may add to what 100 have taken.
GROWTH_LIMIT = 16 * MIB
WARM = 100
RECORD_BYTES = 1_000
RECORDS_A_WINDOW = 20
BROKER = {"log.segment.delete.delay.ms": "1000", "log.retention.check.interval.ms": "1000"}


@dataclass(frozen=True)
class LargeWindow:
    """A window of one slot; ``peak`` is the high-water mark of its process's resident memory, in bytes."""

    label: str
    bytes: int
    seconds: float
    peak: int


@dataclass(frozen=True)
class Usage:
    """What this process holds after so many windows; sizes in bytes."""

    windows: int
    resident: int
    sockets: int
    descriptors: int
    threads: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=5.0, help="what one slot copies in one window")
    parser.add_argument("--windows", type=int, default=1_000, help="how many windows follow each other")
    parser.add_argument("--minutes", type=float, default=30, help="begin no window after that time")
    parser.add_argument("--everything", type=float, default=60, help="how many minutes of everything at once")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the Markdown file to write")
    parser.add_argument("--plot", type=Path, default=PLOT)
    chosen = parser.parse_args()
    console = Console()
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="soak-", dir=LOCAL))
    begun, load = time.monotonic(), os.getloadavg()[2]
    usages, hour, large = list[Usage](), everything.Hour(), list[LargeWindow]()
    try:
        with ExitStack() as stack:
            source = start_broker(directory, "east", BROKER, java_options=KAFKA_DEFAULTS)
            stack.callback(source.kill)
            target = start_broker(directory, "west", BROKER, java_options=KAFKA_DEFAULTS)
            stack.callback(target.kill)
            hour = everything.everything(console, directory, source, target, chosen.everything * 60)
            everything.draw(hour, chosen.plot)
            until = time.monotonic() + chosen.minutes * 60
            usages += many_windows(
                console=console, directory=directory, source=source, target=target, windows=chosen.windows, until=until
            )
            large += large_windows(console, directory, source, target, chosen.gigabytes)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        if hour.samples:  # what fails later takes nothing of it away
            chosen.results.write_text(report(large, usages, hour, chosen.windows, time.monotonic() - begun, load))
            console.print(f"Written to {chosen.results}.")
    sys.exit(1 if any(window.peak > SLOT_LIMIT for window in large) or leaks(usages) or hour.wrong() else 0)


def large_windows(
    console: Console, directory: Path, source: Broker, target: Broker, gigabytes: float
) -> Iterator[LargeWindow]:
    """One window each that reads back, that trusts acknowledgements, and whose every record is decoded and written anew."""
    data = Data("large", "", int(gigabytes * 1e9 / RECORD_BYTES), RECORD_BYTES, tuple(DENSE.items()))
    small = TEN_A_BATCH.scaled(gigabytes / 5)
    console.print(f"filling a topic with {gigabytes:g} GB")
    fill(source.bootstrap, data)
    fill(source.bootstrap, small)
    # Every batch is larger than this remote topic takes, so none goes whole.
    too_small = {"max.message.bytes": "65536"}
    for label, verify, copied, config in (
        ("whole batches, readback", "readback", data, None),
        ("whole batches, acks", "acks", data, None),
        ("slow path, readback", "readback", data, too_small),
        ("small batches merged, readback", "readback", small, None),
    ):
        alias = label.replace(" ", "-").replace(",", "")
        create_topic(target.bootstrap, f"{alias}.{copied.topic}", config=config)
        spark = start_connect_server(directory / alias)  # a worker's high-water mark is then this window's own
        try:
            sites = Sites(directory, source.bootstrap, target.bootstrap, spark)
            own = "tasks.max = 1\nsync.topic.configs.enabled = false\n"
            window = run_window(sites, verify, copied.topic, alias=alias, settings=own)
        finally:
            spark.stop()
        delete_topics(target.bootstrap, f"{alias}.{copied.topic}")
        found = LargeWindow(label, window.bytes, window.seconds, window.slot_peak)
        console.print(f"{label}: {found.bytes / 1e9:.2f} GB in {found.seconds:.0f} s, {found.peak / MIB:.0f} MiB")
        yield found


def many_windows(
    console: Console, directory: Path, source: Broker, target: Broker, windows: int, until: float
) -> Iterator[Usage]:
    """What this process holds after every hundredth window, each with new records, slots and gate included."""
    topics = ("plain", "append-time")
    create_topic(source.bootstrap, topics[0])
    create_topic(source.bootstrap, topics[1], config={"message.timestamp.type": "LogAppendTime"})  # the slow path
    file = directory / "many.properties"
    file.write_text(
        CONFIGURATION.format(
            alias="many",
            source=source.bootstrap,
            target=target.bootstrap,
            topics=", ".join(topics),
            replicas=1,
            verify="readback",
        )
        + "window.slot.bytes = 1\n"  # two slots, however little each window copies
    )
    producer = Producer({"bootstrap.servers": source.bootstrap, "linger.ms": 0})
    for number in range(1, windows + 1):
        if time.monotonic() > until:
            console.print(f"[red]out of time after {number - 1} windows[/]")
            return
        for topic in topics:
            for record in range(RECORDS_A_WINDOW):
                producer.produce(topic, b"x" * 100, b"%d" % record)
        producer.flush()
        with open_flow(file, "many->west", f"sqlite:///{directory / 'many.db'}") as opened:
            result = run_in_this_process(
                opened.flow,
                opened.ledger,
                prepare(opened).topics,
                in_this_process,
                WindowOrder(f"w{number}", slots=lambda _: 2),
            )
        if not result.is_verified or result.copied != len(topics) * RECORDS_A_WINDOW:
            raise RuntimeError(f"window {number}: {result}")
        if number % WARM == 0:
            usage = measure(number)
            console.print(
                f"{number} windows: {usage.resident / MIB:.1f} MiB, {usage.sockets} sockets, "
                f"{usage.descriptors} descriptors, {usage.threads} threads"
            )
            yield usage


def in_this_process(slots: Sequence[Slot]) -> list[SlotResult]:
    return [result for slot in slots for result in run_slot(slot)]


def measure(windows: int) -> Usage:
    gc.collect()
    process = psutil.Process()
    return Usage(
        windows, process.memory_info().rss, len(process.net_connections()), process.num_fds(), threading.active_count()
    )


def leaks(usages: Sequence[Usage]) -> list[str]:
    """What has grown between the first and the last measurement."""
    if len(usages) < 2:
        return []
    first, last = usages[0], usages[-1]
    found = [name for name in ("sockets", "descriptors", "threads") if getattr(last, name) > getattr(first, name)]
    return found + (["memory"] if last.resident - first.resident > GROWTH_LIMIT else [])


def _growth(usages: Sequence[Usage]) -> str:
    """What was measured, first and last, and how that compares with the limits."""
    if len(usages) < 2:
        return "There are no two lines to compare."
    first, last = usages[0], usages[-1]
    more = {name: getattr(last, name) - getattr(first, name) for name in ("sockets", "descriptors", "threads")}
    counts = ", ".join(f"{name} {change:+d}" for name, change in more.items())
    grown = leaks(usages)
    verdict = f"more than may be: {', '.join(grown)}" if grown else "within the limits"
    resident = last.resident - first.resident
    return (
        f"From {first.windows} to {last.windows} windows: resident {resident / MIB:+.1f} MiB (at most "
        f"{max(each.resident for each in usages) / MIB:.1f} MiB in between; the limit is +{GROWTH_LIMIT // MIB} MiB), {counts} "
        f"(the limit is 0): {verdict}."
    )


def report(
    large: Sequence[LargeWindow],
    usages: Sequence[Usage],
    hour: everything.Hour,
    windows: int,
    seconds: float,
    load_before: float,
) -> str:
    done = usages[-1].windows if usages else 0
    short = f" It ran out of its time after {done} of {windows} windows." if done < windows // WARM * WARM else ""
    return "\n".join(
        [
            "# Memory, sockets and threads over time",
            "",
            f"Written by `make soak` in {seconds / 60:.0f} minutes, on {os.cpu_count()} cores; load average before it "
            f"{load_before:.1f} (other programs), at its end {os.getloadavg()[2]:.1f}. MALLOC_ARENA_MAX is "
            f"{os.environ.get('MALLOC_ARENA_MAX', 'not set')} (2 in the images).{short}",
            "",
            "## One slot, one window",
            "",
            f"The high-water mark of the slot's process, a Spark task; {SLOT_LIMIT // MIB} MiB are its limit.",
            "",
            "| what | GB | seconds | MB/s | peak MiB |  |",
            "| --- | --- | --- | --- | --- | --- |",
            *(
                f"| {each.label} | {each.bytes / 1e9:.2f} | {each.seconds:.1f} | {each.bytes / each.seconds / 1e6:.0f} | "
                f"{each.peak / MIB:.0f} | {'met' if each.peak <= SLOT_LIMIT else 'missed'} |"
                for each in large
            ),
            "",
            "## Windows in a row in one process",
            "",
            f"Each opens its flow and ledger, copies {2 * RECORDS_A_WINDOW} new records of 8 partitions (half of them the "
            "slow way), reads them back and judges them.",
            "",
            "| windows | resident MiB | sockets | descriptors | threads |",
            "| --- | --- | --- | --- | --- |",
            *(
                f"| {each.windows} | {each.resident / MIB:.1f} | {each.sockets} | {each.descriptors} | {each.threads} |"
                for each in usages
            ),
            "",
            _growth(usages),
            "",
            "## An hour of everything",
            "",
            *_hour(hour),
        ]
    )


def _hour(hour: everything.Hour) -> list[str]:
    """What was done, the samples at rest, and how they compare with the limits."""
    minutes = hour.samples[-1].minutes
    least = everything.least_rounds(minutes)
    rates = sum(everything.RATES.values())
    return [
        f"{minutes:.0f} minutes in one process: {hour.windows} windows that follow {rates:,} records a second, with their gate "
        f"and tasks; {hour.migrations} migrations of a move group, each undone; {hour.rehearsals} rehearsals of a failover; "
        f"maintenance after each window. All of {sum(hour.copied.values()):,} records are on the target, and the shop has read "
        "each of its own. At rest, between two windows, after maintenance:",
        "",
        "| minute | resident MiB | descriptors | threads | rows of the ledger |",
        "| --- | --- | --- | --- | --- |",
        *(
            f"| {each.minutes:.1f} | {each.resident / MIB:.1f} | {each.descriptors} | {each.threads} | {each.rows} |"
            for each in hour.samples
            if each.at_rest
        ),
        "",
        f"From the first sixth on: {', '.join(hour.wrong()) or 'nothing'} beyond its limit (memory +5 % at each rest; "
        f"descriptors, threads and rows +0; lag {everything.LAG_LIMIT:.0f} s, the longest was "
        f"{max(each.lag for each in hour.samples):.1f} s; "
        f"at least {least['migrations']} migrations and {least['rehearsals']} rehearsals).",
        "",
        "![Memory, descriptors, threads, lag and rows over the minutes](soak.png)",
        "",
    ]


if __name__ == "__main__":
    main()
