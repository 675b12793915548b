"""``python -m benchmarks.mappings``: how fast the mapping topic grows, on a real broker, and what keeps it small.

Windows over partitions that all have new records; the log's size on disk after them, after the cleaner, and after pruning.
Writes the section "Mappings" of RESULTS.md.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import uuid
from pathlib import Path

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from rich.console import Console
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror.flows.prepare import Opened, catch_up_ledger, open_flow, prepare
from airmirror.local import LOCAL
from airmirror.naming import mapping_topic
from airmirror.offsets.pruning import prune_mappings
from airmirror.windows.window import WindowOrder, run_window
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from benchmarks import sections
from benchmarks.data import create_topic
from benchmarks.groups import in_this_process
from benchmarks.groups import produce as produce_to
from benchmarks.report import Grid

YEAR = 525_600  # minutes
FLOW = "east->west"
CONFIGURATION = """
clusters = east, west
east.bootstrap.servers = {east}
west.bootstrap.servers = {west}
east->west.enabled = true
east->west.topics = bench
replication.factor = 1
offset.storage.replication.factor = 1
"""
COMPACT_NOW = {
    "min.compaction.lag.ms": "0",
    "min.cleanable.dirty.ratio": "0.01",
    "segment.ms": "1000",
    "delete.retention.ms": "0",
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mappings", description=__doc__)
    parser.add_argument("--windows", type=int, default=20)
    parser.add_argument("--partitions", type=int, default=100)
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-mappings-", dir=LOCAL))
    started: list[Broker] = []
    try:
        for name in ("east", "west"):
            started.append(start_broker(directory, name, IMPATIENT))
        east, west = started
        config = directory / "mirror.properties"
        config.write_text(CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap))
        create_topic(east.bootstrap, "bench", partitions=chosen.partitions)
        with open_flow(config, FLOW, f"sqlite:///{directory}/ledger.db") as opened:
            grid = measure(opened, east, west, chosen.windows, chosen.partitions)
    finally:
        for broker in started:
            broker.kill()
        shutil.rmtree(directory, ignore_errors=True)
    Console().print(grid.on_terminal())
    sections.write(grid, chosen.results)


def measure(opened: Opened, east: Broker, west: Broker, windows: int, partitions: int) -> Grid:
    """The log after the windows, after its cleaner, and after all but the newest was deleted on the source and pruned."""
    note = (
        f"The log of `{mapping_topic('east')}` on disk after {windows} windows over {partitions} partitions that all have new "
        "records in each, on a real broker; then after the cleaner (its delays set to nothing), and after the source has "
        "deleted all but the newest records and the mappings were pruned. Markers, leases and verified offsets are included. "
        "A year: of one-minute windows on 1,000 partitions, nothing pruned."
    )
    grid = Grid("Mappings", note, ("", "bytes", "mapping records", "bytes a window and partition", "a year"))
    for _ in range(windows):
        run(opened, east, partitions)
    ends, total, written = ends_of(opened), size(west), windows * partitions
    add(grid, f"after {windows} windows", total, written)
    configure(west, COMPACT_NOW)
    run(opened, east, partitions)  # a new segment begins, so that the cleaner takes the one before
    compacted = await_cleaner(west, total)
    add(grid, "after the cleaner", compacted, written)
    admin = AdminClient({"bootstrap.servers": east.bootstrap, "log_level": 0})
    for future in admin.delete_records([TopicPartition("bench", key, end) for key, end in ends.items()]).values():
        future.result()
    catch_up_ledger(opened)
    pruned = prune_mappings(opened.flow, opened.ledger)
    if pruned != written:
        raise RuntimeError(f"{pruned} mapping records were pruned of {written}")
    left = compacted
    for _ in range(2):  # what is deleted leaves a record of its key, which the next turn of the cleaner takes
        run(opened, east, partitions)
        left = await_cleaner(west, left)
    grid.rows.append(
        ("after pruning and the cleaner", f"{left:,}", f"{2 * partitions:,}", f"{left / 2 / partitions:,.0f}", "–")
    )
    return grid


def run(opened: Opened, east: Broker, partitions: int) -> None:
    produce_to(east.bootstrap, partitions)
    result = run_window(
        opened.flow,
        opened.ledger,
        prepare(opened).topics,
        in_this_process,
        WindowOrder(f"scheduled__{uuid.uuid4().hex[:14]}", slots=lambda _: 2),
    )
    if not result.is_verified or len(result.rows) != partitions:
        raise RuntimeError(f"a window of {len(result.rows)} partitions was not verified")


def ends_of(opened: Opened) -> dict[int, int]:
    """Where each partition's newest mapping record ends on the source."""
    return {partition: record.source_end for (_, partition), record in opened.ledger.last_mappings().items()}


def add(grid: Grid, what: str, total: int, records: int) -> None:
    each = total / records
    grid.rows.append((what, f"{total:,}", f"{records:,}", f"{each:,.0f}", f"{each * YEAR * 1000 / 1e9:,.0f} GB"))


def logs(broker: Broker) -> list[Path]:
    return sorted(broker.directory.rglob(f"{mapping_topic('east')}-0/*.log"))


def size(broker: Broker) -> int:
    """Bytes of the log's files that are written no more, or of the one that there is."""
    files = logs(broker)
    return sum(file.stat().st_size for file in (files[:-1] or files))


def configure(broker: Broker, configs: dict[str, str]) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in configs.items()]
    resource = ConfigResource(ResourceType.TOPIC, mapping_topic("east"), incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
    for future in admin.incremental_alter_configs([resource]).values():
        future.result()


def await_cleaner(broker: Broker, before: int) -> int:
    """The size once it is smaller than before and does not change any more."""
    seen = [before]
    for attempt in Retrying(stop=stop_after_delay(120), wait=wait_fixed(3), reraise=True):
        with attempt:
            seen.append(size(broker))
            if not (seen[-1] == seen[-2] < before):
                raise RuntimeError(f"the cleaner has not come: {seen}")
    return seen[-1]


if __name__ == "__main__":
    main()
