"""``python -m benchmarks.topics``: how long one ``sync_topics`` takes for many topics, and the next with nothing to do.

Each is what a window begins with, in a process that has just started. Writes the section "Topics" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.config import Flow, parse
from airmirror.local import LOCAL
from airmirror.topics.sync import apply, look
from airmirror_local.brokers import KAFKA_DEFAULTS, Broker, start_broker
from benchmarks import sections
from benchmarks.report import Grid

FIRST_SECONDS, NEXT_SECONDS = 60.0, 5.0
CONFIGS = {"retention.ms": "86400000", "cleanup.policy": "compact,delete", "min.insync.replicas": "1"}
CONFIGURATION = """
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = bench-.*
replication.factor = 1
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.topics", description=__doc__)
    parser.add_argument("--topics", type=int, default=2000)
    parser.add_argument("--partitions", type=int, default=3, help="of each topic")
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console = Console()
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-topics-", dir=LOCAL))
    try:
        with two_clusters(directory) as (east, west):
            flow = parse(CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap), "bench").flow("east->west")
            with console.status(f"creating {chosen.topics} topics on the source"):
                create_source(flow, chosen.topics, chosen.partitions)
            grid = measure(flow, chosen.topics, chosen.partitions)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


@contextmanager
def two_clusters(directory: Path) -> Iterator[tuple[Broker, Broker]]:
    started: list[Broker] = []
    try:
        for name in ("east", "west"):
            started.append(start_broker(directory, name, java_options=KAFKA_DEFAULTS))
        yield started[0], started[1]
    finally:
        for broker in started:
            broker.kill()


def create_source(flow: Flow, topics: int, partitions: int) -> None:
    """The topics to mirror; every other one has configs of its own."""
    new = [NewTopic(f"bench-{number:05}", partitions, 1, CONFIGS if number % 2 else {}) for number in range(topics)]
    refused = create_topics(connect(flow.source), new, 600).refused
    if refused:
        raise refused[0]


def measure(flow: Flow, topics: int, partitions: int) -> Grid:
    """Create, nothing to do, one config changed on every other topic. Checks each time that it did what it should."""
    note = (
        f"One `sync_topics` of a flow with {topics:,} topics of {partitions} partitions each, every other one with three configs "
        "of its own, on two clusters of one node (Kafka's default JVM options) on this machine: both clusters are asked for "
        "topics, configs and ACLs, what differs is written, and everything is waited for."
    )
    grid = Grid("Topics", note, ("what", "seconds", "to reach", ""))

    def timed(what: str, most: float | None, changes: int) -> None:
        begun = time.monotonic()
        report = apply(flow, look(flow))
        seconds = time.monotonic() - begun
        if len(report.changes) != changes or report.refused or len(report.topics) != topics:
            raise RuntimeError(f"{what}: {len(report.changes)} changes instead of {changes}; {report.refused[:3]}")
        verdict = ("met" if seconds < most else "missed") if most else ""
        grid.rows.append((what, f"{seconds:.1f}", f"< {most:.0f}" if most else "", verdict))

    timed(f"{topics:,} remote topics created", FIRST_SECONDS, topics)
    timed("nothing to do", NEXT_SECONDS, 0)
    changed = [topic for number, topic in enumerate(sorted(look(flow).topics)) if number % 2]
    alter(flow, changed)
    timed(f"one config changed on {len(changed):,} remote topics", None, len(changed))
    timed("nothing to do", NEXT_SECONDS, 0)
    return grid


def alter(flow: Flow, topics: list[str]) -> None:
    from airmirror.clusters.admin.alteration import alter_configs
    from airmirror.clusters.admin.description import ConfigChange

    alter_configs(connect(flow.source), [ConfigChange(topic, "retention.ms", None, "90000000") for topic in topics])


if __name__ == "__main__":
    main()
