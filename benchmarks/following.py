"""``python -m benchmarks.following``: how late records, verdicts and groups are while a window follows the log.

Beside MirrorMaker 2, with and without exactly-once, at the same rate. Writes the section "Following" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from rich.console import Console

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.local import LOCAL
from airmirror.naming import mapping_topic
from airmirror.partitions import TopicPartition
from airmirror.wire.mappings import Verified, decode
from airmirror_local.spark_connect import ConnectServer, start_connect_server
from benchmarks import mirrormaker, sections
from benchmarks.continuous import VerifiedTimes, records_of
from benchmarks.data import create_topic
from benchmarks.report import Grid
from benchmarks.steady import (
    BURSTS,
    Arrived,
    Committed,
    Spread,
    alongside,
    behind,
    consuming,
    producing,
    reading,
    sampling,
)
from benchmarks.topics import two_clusters
from benchmarks.windows import Sites, run_window

TOPIC, GROUP = "followed", "followers"
WARM_SECONDS, SETTLE_SECONDS, START_SECONDS = 10.0, 12.0, 120.0
BEGIN_SECONDS = 10.0  # for slots that take longer than half a minute to begin: a window's time counts from then on
LIMITS = {"readable": (0.5, 1.5), "verified": (5.0, 8.0), "group": (None, 6.0)}
IDLE_LIMIT = 0.02  # of a core
FOLLOW = """
tasks.max = 1
window.follow.ms = {follow_ms}
groups = {group}
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 1
emit.checkpoints.interval.seconds = 5
checkpoints.topic.replication.factor = 1
offset-syncs.topic.replication.factor = 1
"""
EXACTLY_ONCE = """
west.exactly.once.source.support = enabled
dedicated.mode.enable.internal.rest = true
listeners = http://127.0.0.1:0
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.following", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="that are measured, of each")
    parser.add_argument("--rate", type=int, default=1_000, help="records a second")
    parser.add_argument("--partitions", type=int, default=10)
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console, load = Console(), os.getloadavg()[2]
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-following-", dir=LOCAL))
    rows: list[tuple[str, ...]] = []
    try:
        with two_clusters(directory) as (east, west):
            spark = start_connect_server(directory / "spark")
            try:
                bench = Bench(
                    Sites(directory, east.bootstrap, west.bootstrap, spark),
                    chosen.seconds,
                    chosen.rate,
                    chosen.partitions,
                )
                rows += bench.ours()
                rows.append(bench.idle())
            finally:
                spark.stop()
            for name, more in (("MirrorMaker 2", ""), ("MirrorMaker 2, exactly once", EXACTLY_ONCE)):
                rows.append(bench.theirs(name, more))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    load_said = (
        f"{chosen.rate:,} records a second of 100 bytes over {chosen.partitions} partitions for {chosen.seconds:g} s"
    )
    note = (
        f"{load_said}, in {BURSTS} bursts a second; seconds, from the producer's call. *Readable*: a consumer with "
        "`read_committed` on the target has the record. *Group*: since a group on the source has committed more than it has on "
        f"the target. MirrorMaker 2 with its defaults. Load average before: {load:.1f}."
    )
    grid = Grid("Following", note, ("what", "to reach", "median", "p99", "most", "values", ""), rows)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


class Bench:
    """The same load for everybody, on two clusters."""

    def __init__(self, sites: Sites, seconds: float, rate: int, partitions: int) -> None:
        self._sites, self._seconds, self._rate, self._partitions = sites, seconds, rate, partitions

    def ours(self) -> list[tuple[str, ...]]:
        """A window that follows: until records are readable, until they are verified, and the group."""
        name, alias = "ours", "ours"
        topic, arrived = self._topics(name, alias)
        committed = {partition: Committed() for partition in arrived}
        samples: list[tuple[float, dict[int, int]]] = []
        self._warm_up(alias)
        remote, follow = f"{alias}.{topic}", BEGIN_SECONDS + WARM_SECONDS + self._seconds + SETTLE_SECONDS
        settings = FOLLOW.format(follow_ms=int(follow * 1000), group=GROUP)
        east, west = self._sites.source, self._sites.target
        with ThreadPoolExecutor(1) as pool, alongside(reading(west, remote, arrived)):
            with alongside(
                producing(east, topic, self._partitions, self._rate),
                consuming(east, topic, GROUP, committed),
                sampling(west, remote, GROUP, self._partitions, samples),
            ):
                window = pool.submit(
                    run_window, self._sites, "readback", topic, alias=alias, settings=settings, tasks=True
                )
                begin, end = self._measured(lambda: bool(samples and any(samples[-1][1].values())) or window.done())
            window.result()
        judged = _judged(west, alias, topic, self._partitions)
        seen = [
            (made, readable, judged[partition].time_of(number))
            for partition, each in arrived.items()
            for made, readable, number in zip(each.made, each.readable, each.numbers, strict=True)
            if begin <= made < end
        ]
        verified = [at / 1000 - made for made, _, at in seen if at is not None]
        late = behind([each for each in samples if begin <= each[0] < end], arrived, committed)
        return [
            _row("Airmirror, until readable", Spread.of([at - made for made, at, _ in seen]), LIMITS["readable"]),
            _row("Airmirror, until verified", Spread.of(verified), LIMITS["verified"]),
            _row("Airmirror, group on the target", Spread.of(late), LIMITS["group"]),
        ]

    def idle(self) -> tuple[str, ...]:
        """The processor time of a slot while nothing comes."""
        topic, _ = self._topics("idle", "idle")
        self._warm_up("idle")
        settings = FOLLOW.format(follow_ms=int((WARM_SECONDS + self._seconds) * 1000), group=GROUP)
        with alongside(producing(self._sites.source, topic, self._partitions, self._rate)):
            time.sleep(1.0)  # some records, so that there is a first transaction
        with ThreadPoolExecutor(1) as pool:
            window = pool.submit(
                run_window, self._sites, "readback", topic, alias="idle", settings=settings, tasks=True
            )
            time.sleep(WARM_SECONDS)  # the window has begun, and copied what there was
            before, begun = _python_seconds(self._sites.spark), time.monotonic()
            time.sleep(self._seconds / 2)
            after = _python_seconds(self._sites.spark)
            # Spark ends workers that have had nothing to do: what they used before is not the slot's.
            used = sum(each - before.get(pid, 0.0) for pid, each in after.items()) / (time.monotonic() - begun)
            if not before.keys() & after.keys():
                raise RuntimeError("no Python worker was there all the time: the window did not follow")
            window.result()
        verdict = "met" if used <= IDLE_LIMIT else "missed"
        return "Airmirror, an idle slot's part of a core", f"≤ {IDLE_LIMIT:.0%}", f"{used:.1%}", "", "", "", verdict

    def theirs(self, name: str, more: str) -> tuple[str, ...]:
        """MirrorMaker 2: until records are readable."""
        topic, arrived = self._topics(f"theirs-{len(more)}", "east")
        with (
            alongside(reading(self._sites.target, f"east.{topic}", arrived)),
            mirrormaker.running(self._sites, topic, mirrormaker.DEFAULTS + more),
            alongside(producing(self._sites.source, topic, self._partitions, self._rate)),
        ):
            begin, end = self._measured(lambda: any(each.made for each in arrived.values()))
            time.sleep(SETTLE_SECONDS / 2)  # what was made last arrives
        late = [
            readable - made
            for each in arrived.values()
            for made, readable in zip(each.made, each.readable, strict=True)
            if begin <= made < end
        ]
        return _row(f"{name}, until readable", Spread.of(late), (None, None))

    def _warm_up(self, alias: str) -> None:
        """A window of another topic: the flow's session is made, Python workers forked."""
        topic, _ = self._topics(f"warm-up-{alias}", alias)
        with alongside(producing(self._sites.source, topic, self._partitions, self._rate)):
            time.sleep(1.0)  # some records
        run_window(self._sites, "readback", topic, alias=alias)

    def _topics(self, name: str, alias: str) -> tuple[str, dict[int, Arrived]]:
        topic = f"{TOPIC}-{name}"
        create_topic(self._sites.source, topic, partitions=self._partitions)
        create_topic(self._sites.target, f"{alias}.{topic}", partitions=self._partitions)
        return topic, {partition: Arrived() for partition in range(self._partitions)}

    def _measured(self, has_begun: Callable[[], bool]) -> tuple[float, float]:
        """Wait until all has begun, then some seconds, and then as long as it takes: from when to when is measured."""
        os.sync()
        until = time.monotonic() + START_SECONDS
        while not has_begun():
            if time.monotonic() > until:
                raise RuntimeError(f"nothing has arrived for {START_SECONDS:g} s")
            time.sleep(0.2)
        time.sleep(WARM_SECONDS / 2)
        begin = time.time()
        time.sleep(self._seconds)
        return begin, time.time()


def _row(what: str, found: Spread, limits: tuple[float | None, float | None]) -> tuple[str, ...]:
    wanted = [f"{name} ≤ {limit:g}" for name, limit in zip(("median", "p99"), limits, strict=True) if limit is not None]
    pairs = [
        (value, limit) for value, limit in zip((found.median, found.p99), limits, strict=True) if limit is not None
    ]
    verdict = "" if not pairs else "met" if all(value <= limit for value, limit in pairs) else "missed"
    numbers = (f"{each:.2f}" for each in (found.median, found.p99, found.most))
    return what, ", ".join(wanted), *numbers, f"{found.values:,}", verdict


def _judged(target: str, alias: str, topic: str, partitions: int) -> Sequence[VerifiedTimes]:
    """The gates' verdicts, by partition."""
    found = [VerifiedTimes() for _ in range(partitions)]
    with Routes(Cluster("west", (target,), {}), "bench") as routes:
        for record in records_of(routes, TopicPartition(mapping_topic(alias), 0)):
            said = decode(record.key or b"", record.value)
            if isinstance(said, Verified) and said.topic == topic:
                found[said.partition].offsets.append(said.offset)
                found[said.partition].times.append(said.time_ms)
    return found


def _python_seconds(spark: ConnectServer) -> dict[int, float]:
    """Processor time of Spark's Python workers so far, by process id."""
    found = {}
    for process in spark.process.handle.children(recursive=True):
        try:
            if "python" in process.name():
                times = process.cpu_times()
                found[process.pid] = times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return found


if __name__ == "__main__":
    main()
