"""``python -m benchmarks.failover``: how long a failover takes while a window follows the log, planned and after a disaster.

From the order to the report with the names to start applications with: the source's time to be quiet, and its time-outs, are in
it. Then everything is compared. Writes the section "Failover" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.clusters.protocol.groups import Committed, commit_offsets, committed_offsets
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.flows.post_window import CHECKPOINTS, do_task
from airmirror.flows.prepare import Opened, catch_up_ledger, open_flow, prepare
from airmirror.flows.verification import compare_all
from airmirror.local import LOCAL
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failover.order import FailoverOrder, Way
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.failover.shown import FailoverOutcome, outcome_of, shown_outcome
from airmirror.runbooks.failover.undo import undo
from airmirror.runbooks.run import run
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.following import Follow
from airmirror.windows.judging import no_objection
from airmirror.windows.window import WindowOrder, run_window
from benchmarks import sections
from benchmarks.report import Grid
from benchmarks.topics import two_clusters

LIMITS: dict[Way, float] = {"planned": 30.0, "disaster": 60.0}
RECORDS = 500  # of a partition, before
TOPICS_OF_A_GROUP = 2
CONFIGURATION = """
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = bench-.*
west->east.enabled = false
replication.factor = 1
offset.storage.replication.factor = 1
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
emit.checkpoints.interval.seconds = 0
window.follow.ms = 3600000
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.failover", description=__doc__)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=10, help="of each topic")
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console, load = Console(), os.getloadavg()[0]
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-failover-", dir=LOCAL))
    note = (
        f"{chosen.topics} topics of {chosen.partitions} partitions and {chosen.groups} groups, each with positions in "
        f"{TOPICS_OF_A_GROUP} topics; a window follows the log and producers write until the order is given. Two clusters of one "
        "node and all else on this machine. From the order to the report; planned: 5 s in which nobody writes are in it; "
        f"disaster: the source's broker was killed with SIGKILL. Load average before: {load:.1f}."
    )
    grid = Grid("Failover", note, ("way", "failed over", "with the report", "positions moved", "to reach", ""))
    try:
        with two_clusters(directory) as (east, west):
            config = directory / "mirror.properties"
            config.write_text(CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap))
            with open_flow(config, "east->west", f"sqlite:///{directory}/ledger.db") as opened:
                topics = [f"bench-{number:02}" for number in range(chosen.topics)]
                fill(opened, topics, chosen.partitions, chosen.groups)
                for way in LIMITS:
                    with following(config, directory, opened), producing(east.bootstrap, topics) as stop:
                        if way == "disaster":
                            east.kill()
                        stop()
                        grid.rows.append(measure(opened, way, chosen.groups * chosen.partitions * TOPICS_OF_A_GROUP))
                    console.print(grid.rows[-1])
                    if way == "planned":
                        compared = compare_all(opened, ())
                        if any(row.error for row in compared):
                            raise RuntimeError(f"not equal: {[row for row in compared if row.error][:3]}")
                        undo(opened, FailoverOrder(reason="a bench", by="bench"))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


def fill(opened: Opened, topics: Sequence[str], partitions: int, groups: int) -> None:
    """Topics with records, copied and verified, and groups with positions in the middle of them; checkpoints tell of these."""
    refused = create_topics(
        connect(opened.flow.source), [NewTopic(topic, partitions, 1) for topic in topics], 120
    ).refused
    if refused:
        raise refused[0]
    producer = Producer({"bootstrap.servers": ",".join(opened.flow.source.bootstrap_servers)})
    for number in range(RECORDS):
        for topic in topics:
            for partition in range(partitions):
                producer.produce(topic, value=b"%d" % number, partition=partition)
        producer.flush()
    run_window(
        opened.flow, opened.ledger, prepare(opened).topics, at_once, WindowOrder(uuid.uuid4().hex, slots=lambda _: 2)
    )
    offsets = {
        f"bench-{number}": {
            TopicPartition(topics[(number + step) % len(topics)], partition): Committed(RECORDS // 2 + number % 100)
            for step in range(TOPICS_OF_A_GROUP)
            for partition in range(partitions)
        }
        for number in range(groups)
    }
    with Routes(opened.flow.source, "bench") as source:
        source.refresh([])
        if errors := commit_offsets(source, offsets):
            raise RuntimeError(f"positions of groups were refused: {errors}")
    do_task(opened, CHECKPOINTS, uuid.uuid4().hex)


def at_once(slots: Sequence[Slot]) -> list[SlotResult]:
    with ThreadPoolExecutor(len(slots), "slot") as pool:
        return [result for results in pool.map(run_slot, slots) for result in results]


def follow(config: Path, directory: Path) -> None:
    """A window that follows until it is ended: the work of another process, with a ledger of its own."""
    with open_flow(config, "east->west", f"sqlite:///{directory}/following.db") as opened, suppress(AirmirrorError):
        topics = prepare(opened).topics
        run_window(
            opened.flow,
            opened.ledger,
            topics,
            at_once,
            WindowOrder(uuid.uuid4().hex, slots=lambda _: 2, following=Follow(no_objection)),
        )


@contextmanager
def following(config: Path, directory: Path, opened: Opened) -> Iterator[None]:
    """A window follows in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=follow, args=(config, directory))
    process.start()
    try:
        before = len(opened.ledger.windows(1000))
        while len(opened.ledger.windows(1000)) == before:
            with suppress(AirmirrorError):
                catch_up_ledger(opened)
            produce_one(opened)
        yield
    finally:
        process.kill()
        process.join()


def produce_one(opened: Opened) -> None:
    """Something that a window which follows has to commit."""
    producer = Producer({"bootstrap.servers": ",".join(opened.flow.source.bootstrap_servers)})
    producer.produce("bench-00", value=b"one", partition=0)
    producer.flush()


@contextmanager
def producing(bootstrap: str, topics: Sequence[str]) -> Iterator[Callable[[], None]]:
    """Some thousand records go to all topics; the block gets what stops them."""
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 5000, "log_level": 0})
    for number in range(2000):
        producer.produce(topics[number % len(topics)], value=b"%d" % number)
        producer.poll(0.001)

    def stop() -> None:
        producer.purge()
        producer.flush(5)

    yield stop


def measure(opened: Opened, way: Way, positions: int) -> tuple[str, ...]:
    """One failover, checked: nothing missing where it was planned, every position moved."""
    order = FailoverOrder(way=way, reason="a bench", by="bench")
    begun = time.monotonic()
    ran = run(FAILOVER, opened, order)
    left, moved, seconds = ran.gave.get("judge", []), ran.gave["move_groups"], ran.seconds
    made: FailoverOutcome = outcome_of(opened, order, left, moved, seconds)
    taken = time.monotonic() - begun
    if left or made.left or len(moved) != positions or (way == "planned" and not made.is_good):
        raise RuntimeError(f"{way}: {left[:3]} {made.left[:3]} {len(moved)} {shown_outcome(made).headline}")
    with Routes(opened.flow.target, "bench") as target:
        target.refresh([])
        there = committed_offsets(target, {row.group for row in moved})
    if sum(map(len, there.values())) < positions:
        raise RuntimeError("groups are missing on the target")
    verdict = "met" if taken <= LIMITS[way] else "missed"
    return way, f"{seconds:.1f} s", f"{taken:.1f} s", f"{len(moved):,}", f"≤ {LIMITS[way]:.0f} s", verdict


if __name__ == "__main__":
    main()
