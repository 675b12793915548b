"""``python -m benchmarks.distance``: a flow from a cluster, or to one, that is far away: a delay line lies before it.

First what the line itself carries, then the same topics without it and with it, Airmirror and tuned MirrorMaker 2. Writes the
section "Distance" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from airmirror.local import LOCAL
from airmirror_local.brokers import KAFKA_DEFAULTS, Broker, start_broker
from airmirror_local.line import start_line
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.spark_connect import ConnectServer, start_connect_server
from benchmarks import mirrormaker, sections
from benchmarks.data import DENSE, Data, delete_topics, fill
from benchmarks.report import Grid
from benchmarks.windows import Sites, run_window

Measured = TypeVar("Measured")

RECORDS, RECORD_BYTES = 2_000_000, 1_000
LINE_BYTES = 4 << 30
LINE_WANTED = 1e9  # bytes a second
SETTLE_SECONDS = 5.0  # after a sync, before each measurement
BROKER = {"log.segment.delete.delay.ms": "1000"}


@dataclass(frozen=True)
class Wanted:
    """Of a number of partitions: what is to be reached."""

    partitions: int
    share: float | None  # of the rate without distance
    megabytes: float | None  # a second
    times: float  # MirrorMaker 2's rate


WARM = Data("warm-up", "dense", 50_000, RECORD_BYTES, tuple(DENSE.items()))
TARGETS = (Wanted(8, 0.6, None, 5), Wanted(1, None, 30, 3))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distance", description=__doc__)
    parser.add_argument("--milliseconds", type=float, default=100, help="there and back")
    parser.add_argument("--scale", type=float, default=1, help="1 is two million records of 1,000 bytes")
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console, delay = Console(), chosen.milliseconds / 2000
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-distance-", dir=LOCAL))
    grid = Grid(
        "Distance",
        f"{chosen.milliseconds:g} ms there and back between Spark (or MirrorMaker 2) and one of the clusters, batches of 131 kB, "
        f"1,000-byte records, readback, MB/s. Load average before: {os.getloadavg()[2]:.1f}.",
        ("what is far", "partitions", "near", "far", "share", "MirrorMaker 2, far", "times", "to reach", ""),
    )
    try:
        carried = line_rate(directory, delay, int(LINE_BYTES * min(1, chosen.scale)))
        verdict = "met" if carried >= LINE_WANTED else "missed"
        console.print(f"the line carries {carried / 1e9:.2f} GB/s")
        line = f"{carried / 1e6:,.0f}"
        grid.rows.append(
            ("nothing: the line alone", "", "", line, "", "", "", f"≥ {LINE_WANTED / 1e6:,.0f} MB/s", verdict)
        )
        spark = start_connect_server(directory / "spark")
        try:
            for side in ("source", "target"):
                for wanted in TARGETS:
                    grid.rows.append(_measured(console, directory, spark, delay, chosen.scale, side, wanted))
        finally:
            spark.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


def line_rate(directory: Path, delay: float, size: int) -> float:
    """Bytes a second through the line alone, from a file in memory to a socket that throws away what comes."""
    with socket.create_server((LOOPBACK, 0)) as listener:
        port, begun = free_port(), [0.0, 0.0]

        def discard() -> None:
            with listener.accept()[0] as connection:
                left, nowhere = size, bytearray(4 << 20)
                while left:
                    left -= connection.recv_into(nowhere, 0, socket.MSG_TRUNC)  # which copies nothing
                    begun[0] = begun[0] or time.monotonic()
                begun[1] = time.monotonic()

        discarding = threading.Thread(target=discard)
        discarding.start()
        with start_line(directory, port, listener.getsockname()[1], delay, window=256 << 20):
            memory = os.memfd_create("line")
            os.truncate(memory, 64 << 20)
            with socket.create_connection((LOOPBACK, port)) as connection:
                left = size
                while left:
                    left -= os.sendfile(connection.fileno(), memory, 0, min(left, 64 << 20))
                discarding.join()
            os.close(memory)
    return size / (begun[1] - begun[0])


@contextmanager
def _clusters(directory: Path) -> Iterator[tuple[Broker, Broker]]:
    """Two brokers of one node each, which may be reached through a line."""
    started: list[Broker] = []
    try:
        for name in ("east", "west"):
            started.append(start_broker(directory, name, BROKER, java_options=KAFKA_DEFAULTS, proxy_port=free_port()))
        yield started[0], started[1]
    finally:
        for broker in started:
            broker.kill()


def _measured(
    console: Console, directory: Path, spark: ConnectServer, delay: float, scale: float, side: str, wanted: Wanted
) -> tuple[str, ...]:
    data = Data(f"far-{side}-{wanted.partitions}", "dense", int(RECORDS * scale), RECORD_BYTES, tuple(DENSE.items()))
    home = directory / data.topic
    home.mkdir()
    with _clusters(home) as (east, west):
        fill(east.bootstrap, data, wanted.partitions)
        fill(east.bootstrap, WARM, wanted.partitions)
        far = east if side == "source" else west

        def address(of: Broker, is_far: bool) -> str:
            return f"{LOOPBACK}:{of.proxy_port}" if is_far and of is far else of.bootstrap

        def sites(is_far: bool) -> Sites:
            return Sites(home, address(east, is_far), address(west, is_far), spark)

        def ours(is_far: bool) -> float:
            run_window(sites(is_far), "readback", WARM.topic, alias=f"ours{is_far:d}")  # the session, Python workers
            os.sync()
            window = run_window(sites(is_far), "readback", data.topic, alias=f"ours{is_far:d}")
            delete_topics(west.bootstrap, f"ours{is_far:d}.{data.topic}")
            return window.bytes / window.phases["copy"] / 1e6

        def theirs() -> float:
            at = sites(True)
            found = mirrormaker.measure(
                home, at.source, at.target, data, mirrormaker.TUNED, partitions=wanted.partitions
            )
            return found.rate * RECORD_BYTES / 1e6

        with ExitStack() as stack:
            near = settled(lambda: ours(False))
            assert far.proxy_port is not None and far.proxied_port is not None
            stack.enter_context(start_line(home, far.proxy_port, far.proxied_port, delay))
            rate, other = settled(lambda: ours(True)), settled(theirs)
    reached = [rate / other >= wanted.times]
    texts = [f"{wanted.times:g}×"]
    if wanted.share is not None:
        reached.append(rate / near >= wanted.share)
        texts.append(f"{wanted.share:.0%}")
    if wanted.megabytes is not None:
        reached.append(rate >= wanted.megabytes)
        texts.append(f"{wanted.megabytes:g} MB/s")
    console.print(f"the {side} is far, {wanted.partitions} partitions: {near:.0f}, {rate:.0f}, theirs {other:.0f} MB/s")
    verdict = "met" if all(reached) else "missed"
    figures = f"{near:,.0f}", f"{rate:,.0f}", f"{rate / near:.0%}", f"{other:,.0f}", f"{rate / other:.1f}"
    return f"the {side}", str(wanted.partitions), *figures, "≥ " + ", ".join(texts), verdict


def settled(measure: Callable[[], Measured]) -> Measured:
    """Measure when what was written before is on the disk."""
    os.sync()
    time.sleep(SETTLE_SECONDS)
    return measure()


if __name__ == "__main__":
    main()
