"""``python -m benchmarks.tls``: the same topics under TLS on both sides, Airmirror and tuned MirrorMaker 2, read back.

Writes the section "TLS" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from airmirror.local import LOCAL
from airmirror_local.brokers import KAFKA_DEFAULTS, Broker, start_broker
from airmirror_local.certificates import authority
from airmirror_local.ports import LOOPBACK
from airmirror_local.spark_connect import start_connect_server
from benchmarks import mirrormaker, sections
from benchmarks.data import DENSE, Data, delete_topics, fill
from benchmarks.distance import BROKER, settled
from benchmarks.measurements import Measurement
from benchmarks.report import Grid
from benchmarks.windows import Sites, WindowFailed, run_window

LISTENER = "GUARDED"


@dataclass(frozen=True)
class Wanted:
    """Records of a size, and how many times MirrorMaker 2's rate is to be reached."""

    records: int
    record_bytes: int
    times: float


TARGETS = (Wanted(20_000_000, 100, 4), Wanted(2_000_000, 1_000, 2))


@dataclass(frozen=True)
class Site:
    """Two brokers, each with a listener for TLS, and the truststore that knows both."""

    directory: Path
    east: Broker
    west: Broker
    trust: Path

    def settings(self, alias: str) -> str:
        """The properties of a cluster that is reached through TLS."""
        found = {
            "security.protocol": "SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trust),
        }
        return "".join(f"{alias}.{name} = {value}\n" for name, value in found.items())

    @property
    def addresses(self) -> tuple[str, str]:
        return self.east.listeners[LISTENER], self.west.listeners[LISTENER]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tls", description=__doc__)
    parser.add_argument("--scale", type=float, default=1, help="1 is 2 GB of each")
    parser.add_argument("--runs", type=int, default=3, help="of each side; the section has the median and the spread")
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console = Console()
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-tls-", dir=LOCAL))
    grid = Grid(
        "TLS",
        "TLS 1.3 between the clusters and Spark (or MirrorMaker 2), on both sides, batches of 131 kB, 4 partitions, readback. "
        f"Median of {chosen.runs} runs a side, alternated, and in brackets the least and the most. "
        f"Load average before: {os.getloadavg()[2]:.1f}.",
        ("records", "MirrorMaker 2, tuned", "Airmirror", "times", "to reach", "", "µs a record: theirs", "ours"),
    )
    try:
        with ExitStack() as stack:
            site = started(stack, directory)
            spark = start_connect_server(directory / "spark")
            stack.callback(spark.stop)
            sites = Sites(directory, *site.addresses, spark)
            warm_up(site, sites)
            for wanted in TARGETS:
                grid.rows.append(measured(console, site, sites, wanted, chosen.scale, chosen.runs))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


def started(stack: ExitStack, directory: Path) -> Site:
    """Both brokers, until the stack ends."""
    signs = authority()
    own = signs.signs("broker", LOOPBACK)
    trust, keystore = directory / "authority.pem", directory / "broker.pem"
    trust.write_text(signs.pem)
    keystore.write_text(own.key_pem() + own.pem)
    properties = BROKER | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trust),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
    }
    brokers = []
    for name in ("east", "west"):
        broker = start_broker(directory, name, properties, java_options=KAFKA_DEFAULTS, listeners={LISTENER: "SSL"})
        stack.callback(broker.kill)
        brokers.append(broker)
    return Site(directory, brokers[0], brokers[1], trust)


def warm_up(site: Site, sites: Sites) -> None:
    """A window: topics and sessions are made, Python workers forked."""
    data = Data("warm-up", "warm-up", 100_000, 100, tuple(DENSE.items()))
    fill(site.east.bootstrap, data)
    ours(site, sites, data, 0)


def measured(console: Console, site: Site, sites: Sites, wanted: Wanted, scale: float, runs: int) -> tuple[str, ...]:
    """A row: both sides, every other run in the opposite order."""
    records = int(wanted.records * scale)
    data = Data(f"tls-{wanted.record_bytes}", "dense", records, wanted.record_bytes, tuple(DENSE.items()))
    fill(site.east.bootstrap, data)
    found: dict[str, list[Measurement]] = {"theirs": [], "ours": []}
    for number in range(runs):
        for side in ("ours", "theirs") if number % 2 else ("theirs", "ours"):
            measure = partial(theirs, site, data) if side == "theirs" else partial(ours, site, sites, data, number)
            one = settled(measure)
            found[side].append(one)
            console.print(f"{data.topic}: {side}: {one.rate:,.0f} records/s", highlight=False)
    delete_topics(site.east.bootstrap, data.topic)
    rate = {side: statistics.median(each.rate for each in all_of) for side, all_of in found.items()}
    times = rate["ours"] / rate["theirs"]
    verdict = "met" if times >= wanted.times else "missed"
    figures = (_spread(found["theirs"]), _spread(found["ours"]), f"{times:.1f}")
    return f"{wanted.record_bytes:,} bytes", *figures, f"≥ {wanted.times:g}×", verdict, *map(_used, found.values())


def theirs(site: Site, data: Data) -> Measurement:
    east, west = site.addresses
    tuned = mirrormaker.TUNED + site.settings("east") + site.settings("west")
    tuned += f"east.bootstrap.servers = {east}\nwest.bootstrap.servers = {west}\n"  # the last one of a name counts
    return mirrormaker.measure(site.directory, site.east.bootstrap, site.west.bootstrap, data, tuned)


def ours(site: Site, sites: Sites, data: Data, number: int) -> Measurement:
    """A window of a flow of its own, whose first window has everything to copy. Raises WindowFailed."""
    alias = f"tls{number or ''}"
    settings = site.settings(alias) + site.settings("west")
    window = run_window(sites, "readback", data.topic, alias=alias, settings=settings)
    if window.records != data.records:
        raise WindowFailed(f"{window.records:,} of {data.records:,} records copied")
    delete_topics(site.west.bootstrap, f"{alias}.{data.topic}")
    return window.measurement


def _spread(runs: list[Measurement]) -> str:
    rates = sorted(each.rate for each in runs)
    return f"{statistics.median(rates):,.0f}/s ({rates[0]:,.0f} to {rates[-1]:,.0f})"


def _used(runs: list[Measurement]) -> str:
    used = [each.processor_microseconds for each in runs if each.processor_microseconds is not None]
    return f"{statistics.median(used):.2f}" if used else ""


if __name__ == "__main__":
    main()
