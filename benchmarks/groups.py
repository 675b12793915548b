"""``python -m benchmarks.groups``: how long one run of ``emit_checkpoints`` and ``sync_group_offsets`` takes.

1,000 groups with positions in 20 partitions each, with a ledger that knows five windows. Writes the section "Groups" of
RESULTS.md.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

from confluent_kafka import Producer
from rich.console import Console

from airmirror.clusters.protocol.groups import Committed, commit_offsets, committed_offsets
from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.post_window import CHECKPOINTS, GROUP_OFFSETS, do_task
from airmirror.flows.prepare import Opened, open_flow, prepare
from airmirror.local import LOCAL
from airmirror.partitions import TopicPartition
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.window import WindowOrder, run_window
from benchmarks import sections
from benchmarks.data import create_topic
from benchmarks.report import Grid
from benchmarks.topics import two_clusters

TO_REACH = 10.0
TOPIC = "bench"
RECORDS, WINDOWS = 500, 5  # of a partition in a window
CONFIGURATION = f"""
clusters = east, west
east.bootstrap.servers = {{east}}
west.bootstrap.servers = {{west}}
east->west.enabled = true
east->west.topics = {TOPIC}
replication.factor = 1
offset.storage.replication.factor = 1
checkpoints.topic.replication.factor = 1
emit.checkpoints.interval.seconds = 0
sync.group.offsets.enabled = true
sync.group.offsets.interval.seconds = 0.5
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.groups", description=__doc__)
    parser.add_argument("--groups", type=int, default=1000)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console = Console()
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-groups-", dir=LOCAL))
    try:
        with two_clusters(directory) as (east, west):
            config = directory / "mirror.properties"
            config.write_text(CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap))
            create_topic(east.bootstrap, TOPIC, partitions=chosen.partitions)
            with open_flow(config, "east->west", f"sqlite:///{directory}/ledger.db") as opened:
                for _ in range(WINDOWS):
                    produce(east.bootstrap, chosen.partitions)
                    run_window(
                        opened.flow,
                        opened.ledger,
                        prepare(opened).topics,
                        in_this_process,
                        WindowOrder(uuid.uuid4().hex, slots=lambda _: 1),
                    )
                grid = measure(opened, chosen.groups, chosen.partitions)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


def produce(bootstrap: str, partitions: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000})
    for number in range(RECORDS * partitions):
        producer.produce(TOPIC, value=b"%d" % number, partition=number % partitions)
    producer.flush()


def in_this_process(slots: Sequence[Slot]) -> list[SlotResult]:
    return [result for slot in slots for result in run_slot(slot)]


def measure(opened: Opened, groups: int, partitions: int) -> Grid:
    """A first run, one after every group has moved, and one with nothing to do; each is checked."""
    note = (
        f"{groups:,} consumer groups with positions in {partitions} partitions each, anywhere in what {WINDOWS} windows have "
        "replicated, on two clusters of one node on this machine: one run reads all groups of the source, translates "
        "every position, and writes a checkpoint and a group offset for each that has moved."
    )
    grid = Grid("Groups", note, ("what", "emit_checkpoints", "sync_group_offsets", "both", "to reach", ""))
    chance = random.Random(1)
    for what, low, high in (("first run", 0, 1000), ("every group has moved", 1001, 2500), ("nothing to do", 0, 0)):
        moved = groups * partitions if high else 0
        if high:
            commit(opened, groups, partitions, lambda low=low, high=high: chance.randint(low, high))  # type: ignore[misc]
        begun = time.monotonic()
        written = do_task(opened, CHECKPOINTS, uuid.uuid4().hex)
        middle = time.monotonic()
        synced = do_task(opened, GROUP_OFFSETS, uuid.uuid4().hex)
        end = time.monotonic()
        right = f"{moved} checkpoints written, {groups * partitions} positions of groups written, 0 left as they are"
        if (said := f"{written}, {synced}") != right:
            raise RuntimeError(f"{what}: {said}, not {right}")
        seconds = end - begun
        verdict = "met" if seconds < TO_REACH else "missed"
        cells = (f"{middle - begun:.1f} s", f"{end - middle:.1f} s", f"{seconds:.1f} s", f"< {TO_REACH:.0f} s", verdict)
        grid.rows.append((what, *cells))
    with Routes(opened.flow.target, "bench") as target:
        there = committed_offsets(target, [f"bench-{number}" for number in range(groups)])
    if any(len(offsets) != partitions for offsets in there.values()):
        raise RuntimeError("groups are missing on the target")
    return grid


def commit(opened: Opened, groups: int, partitions: int, position: Callable[[], int]) -> None:
    offsets = {
        f"bench-{number}": {TopicPartition(TOPIC, partition): Committed(position()) for partition in range(partitions)}
        for number in range(groups)
    }
    with Routes(opened.flow.source, "bench") as source:
        if errors := commit_offsets(source, offsets):
            raise RuntimeError(f"positions of groups were refused: {errors}")


if __name__ == "__main__":
    main()
