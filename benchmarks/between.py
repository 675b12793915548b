"""``python -m benchmarks.between``: how long nothing is committed between two windows that follow, and what takes the time.

Windows by a shell's loop, in a row by one command, and (``--airflow``) under ``@continuous``. Everything is read from the segment
topic when all is over. Writes the section "Between windows that follow" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from rich.console import Console

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.local import LOCAL
from airmirror.naming import segment_topic
from airmirror.partitions import TopicPartition
from airmirror.wire.segments import Claim, ClaimEvent, SegmentRecord, decode
from airmirror_local.spark_connect import TOKEN, start_connect_server
from airmirror_local.stack import DAG_ID, running_stack
from benchmarks import sections
from benchmarks.continuous import records_of
from benchmarks.data import create_topic
from benchmarks.report import Grid
from benchmarks.steady import alongside, producing
from benchmarks.topics import two_clusters
from benchmarks.windows import CONFIGURATION, Sites

PARTITIONS, LIMIT = 10, 1.0
START_SECONDS = 300  # a command that takes as much longer than its windows hangs
PHASES = ("last commit → release", "→ claim", "→ fenced", "→ first commit")


@dataclass
class Seen:
    """The moments of a window, in epoch milliseconds by the machine's one clock."""

    commits: list[int] = field(default_factory=list)
    claimed: int = 0
    fenced: int = 0  # go; where there is none: the slots' first commit counts from the claim
    released: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.between", description=__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="that a window follows")
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--rate", type=int, default=1_000, help="records a second")
    parser.add_argument("--commands", action=argparse.BooleanOptionalAction, default=True, help="windows by commands")
    parser.add_argument("--expectations", action="store_true", help="judge by Great Expectations too")
    parser.add_argument(
        "--airflow", type=int, default=0, help="seconds under @continuous, with and without windows in a row"
    )
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console, load = Console(), os.getloadavg()[2]
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-between-", dir=LOCAL))
    rows: list[tuple[str, ...]] = []

    def measured(what: str, gaps: Sequence[tuple[float, ...]]) -> None:
        rows.append(_row(what, gaps))
        console.print(rows[-1], *gaps, sep="\n")
        sections.write(_grid(chosen, load, rows), chosen.results)  # what fails later takes nothing of it away

    try:
        with two_clusters(directory) as (east, west):
            spark = start_connect_server(directory / "spark")
            try:
                sites = Sites(directory, east.bootstrap, west.bootstrap, spark)
                for what, alias, repeat in (
                    ()
                    if not chosen.commands
                    else (
                        ("airmirror run-window --follow --windows", "row", False),
                        ("airmirror run-window --follow, in a shell's loop", "loop", True),
                    )
                ):
                    measured(what, _commands(sites, alias, chosen, repeat=repeat))
            finally:
                spark.stop()
        for windows in (1, 0) if chosen.airflow else ():
            gaps = _in_airflow(directory / f"airflow-{windows}", chosen, windows)
            measured(f"@continuous, window.follow.windows = {windows}", gaps)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(_grid(chosen, load, rows).on_terminal())


def _grid(chosen: argparse.Namespace, load: float, rows: list[tuple[str, ...]]) -> Grid:
    note = (
        f"{chosen.rate:,} records a second of 100 bytes over {PARTITIONS} partitions, windows of {chosen.seconds} s, two "
        "clusters, Spark Connect and all else on this machine. From the last commit of a window to the first one of the next, "
        "and its parts in the median, in seconds; within a window commits are 0.25 s apart (window.follow.commit.ms). "
        f"Load average before: {load:.1f}."
    )
    return Grid("Between windows that follow", note, ("what", "to reach", "median", "most", "gaps", *PHASES, ""), rows)


def _row(what: str, gaps: Sequence[tuple[float, ...]]) -> tuple[str, ...]:
    if not gaps:
        return what, f"≤ {LIMIT:g}", "", "", "0", *("" for _ in PHASES), "not measured: there were no two windows"
    whole = sorted(sum(each) for each in gaps)
    parts = (f"{statistics.median(each):.2f}" for each in zip(*gaps, strict=True))
    verdict = "met" if whole[-1] <= LIMIT else "missed"
    return what, f"≤ {LIMIT:g}", f"{statistics.median(whole):.2f}", f"{whole[-1]:.2f}", str(len(whole)), *parts, verdict


def _commands(sites: Sites, alias: str, chosen: argparse.Namespace, *, repeat: bool) -> list[tuple[float, ...]]:
    """Windows by the command, one each or all of one, with a steady rate of records meanwhile."""
    topic = f"between-{alias}"
    create_topic(sites.source, topic, partitions=PARTITIONS)
    file = sites.directory / f"{alias}.properties"
    text = CONFIGURATION.format(
        alias=alias, source=sites.source, target=sites.target, topics=topic, replicas=1, verify="readback"
    )
    file.write_text(f"{text}offset-syncs.topic.replication.factor = 1\ncheckpoints.topic.replication.factor = 1\n")
    command = [
        sys.executable,
        "-m",
        "airmirror.cli.main",
        "run-window",
        "--config",
        str(file),
        "--flow",
        f"{alias}->west",
    ]
    command += ["--ledger", f"sqlite:///{sites.directory / 'ledger.db'}", "--spark", sites.spark.address]
    command += ["--follow", f"{chosen.seconds}s", "--windows", "1" if repeat else str(chosen.windows)]
    command += [] if chosen.expectations else ["--no-expectations"]
    environment = {**os.environ, TOKEN: sites.spark.token}
    with alongside(producing(sites.source, topic, PARTITIONS, chosen.rate)):
        time.sleep(1.0)  # some records
        for _ in range(chosen.windows if repeat else 1):
            limit = chosen.seconds * chosen.windows + START_SECONDS
            answer = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False, timeout=limit
            )
            if answer.returncode:
                raise RuntimeError(f"{alias}: status {answer.returncode}: {(answer.stdout + answer.stderr)[-3000:]}")
    return _gaps(sites.target, alias)


def _in_airflow(directory: Path, chosen: argparse.Namespace, windows: int) -> list[tuple[float, ...]]:
    """Runs of the flow's DAG by themselves for some seconds."""
    directory.mkdir()
    stack = running_stack(
        directory, schedule="@continuous", share=0.02, step=nullcontext, follow_ms=chosen.seconds * 1000
    )
    with stack as running:
        text = running.configuration.read_text()
        running.configuration.write_text(f"{text}window.follow.windows = {windows}\n")
        create_topic(running.east.bootstrap, "between", partitions=PARTITIONS)
        with (
            alongside(producing(running.east.bootstrap, "between", PARTITIONS, chosen.rate)),
            running.client() as client,
        ):
            client.unpause(DAG_ID)
            time.sleep(chosen.airflow)
            client.pause(DAG_ID)
            time.sleep(10.0)
        return _gaps(running.west.bootstrap, "east")


def _gaps(target: str, alias: str) -> list[tuple[float, ...]]:
    """The parts of each gap, in seconds: to the release, the claim, the fence's end, the first commit."""
    windows: dict[str, Seen] = {}
    with Routes(Cluster("west", (target,), {}), "bench") as routes:
        for time_ms, said in _said(routes, alias):
            if isinstance(said, SegmentRecord):
                windows.setdefault(said.window, Seen()).commits.append(said.time_ms)
                continue
            seen = windows.setdefault(said.window, Seen())
            if said.event is ClaimEvent.CLAIMED:
                seen.claimed = seen.claimed or time_ms  # who judges afterwards claims under the same name
            elif said.event is ClaimEvent.GO:
                seen.fenced = time_ms
            elif said.event is ClaimEvent.RELEASED:
                seen.released = seen.released or time_ms
    copied = sorted(
        (each for each in windows.values() if each.commits and each.released), key=lambda each: each.commits[0]
    )
    found = []
    for before, after in pairwise(copied):
        fenced = after.fenced or after.claimed
        moments = (max(before.commits), before.released, after.claimed, fenced, min(after.commits))
        found.append(tuple((late - early) / 1000 for early, late in pairwise(moments)))
    return found


def _said(routes: Routes, alias: str) -> Iterator[tuple[int, Claim | SegmentRecord]]:
    for record in records_of(routes, TopicPartition(segment_topic(alias), 0)):
        said = decode(record.key or b"", record.value)
        if isinstance(said, Claim | SegmentRecord):
            yield record.timestamp, said


if __name__ == "__main__":
    main()
