"""How long the ledger takes with many partitions: ``python -m benchmarks.ledger sqlite:///new.db --partitions 10000``.

The database must be empty. Times are in milliseconds; statements are counted as they reach the driver.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from uuid import UUID

import sqlalchemy as sql

from airmirror.ledger import FlowLedger, Ledger
from airmirror.partitions import Entry
from airmirror.windows.index import LOADED_AT_ONCE
from airmirror.wire.mappings import MappedRange, MappingRecord, Verified
from airmirror.wire.mirrormaker import source_offset_key, source_offset_value

FLOW, MAPPINGS, PROGRESS = "east->west", "airmirror-mappings.east.internal", "mm2-offsets.east.internal"
TOPIC_ID = UUID(int=1)
RECORDS = 1000  # of a partition in a window


def log(partitions: int, windows: int) -> Iterator[Entry]:
    """The mapping topic after ``windows`` windows, the last of them verified but for every hundredth partition."""
    offset = 0
    for window in range(windows):
        start = window * RECORDS
        for kind in (MappingRecord, Verified):
            for number in range(partitions):
                topic, partition = f"orders-{number % 100}", number // 100
                if kind is Verified and window == windows - 1 and number % 100 == 0:
                    continue
                time_ms = window * 60_000 + number
                if kind is Verified:
                    end = start + RECORDS
                    verified = Verified(
                        topic=topic,
                        partition=partition,
                        source_topic_id=TOPIC_ID,
                        offset=end - 1,
                        target_end=end,
                        window=f"w{window}",
                        time_ms=time_ms,
                        seen=0,
                    )
                    key, value = verified.encode_key(), verified.encode_value()
                else:
                    mapping = _mapping(topic, partition, start, f"w{window}", time_ms)
                    key, value = mapping.encode_key(), mapping.encode_value()
                yield Entry(0, offset, time_ms, key, value)
                offset += 1


def _mapping(topic: str, partition: int, start: int, window: str, time_ms: int) -> MappingRecord:
    runs = tuple(MappedRange(start + first, start + first, 100) for first in range(0, RECORDS, 100))
    return MappingRecord(
        source_topic_id=TOPIC_ID,
        topic=topic,
        partition=partition,
        source_start=start,
        window=window,
        slot=0,
        time_ms=time_ms,
        source_end=start + RECORDS,
        target_topic_id=UUID(int=2),
        remote_topic=f"east.{topic}",
        target_start=start,
        target_end=start + RECORDS,
        copied=RECORDS,
        control=0,
        aborted=0,
        holes=0,
        lost=0,
        size=100 * RECORDS,
        max_timestamp=time_ms,
        leader_epoch=0,
        digest=bytes(16),
        ranges=runs,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--windows", type=int, default=5)
    parser.add_argument("--deep", type=int, default=10_000, help="mappings of the one partition that has many")
    arguments = parser.parse_args()

    started = time.perf_counter()
    Ledger(arguments.url).close()
    print(f"{'a new database':40} {1000 * (time.perf_counter() - started):9.1f} ms")
    started = time.perf_counter()
    ledger = Ledger(arguments.url)
    print(f"{'opened again':40} {1000 * (time.perf_counter() - started):9.1f} ms")

    statements = 0

    def count(*_: object) -> None:
        nonlocal statements
        statements += 1

    sql.event.listen(ledger.engine, "before_cursor_execute", count)

    def measure(name: str, work: Callable[[], object]) -> None:
        nonlocal statements
        statements, started = 0, time.perf_counter()
        found = work()
        milliseconds = 1000 * (time.perf_counter() - started)
        size = f"{len(found)} found" if isinstance(found, (list, dict)) else ""
        print(f"{name:40} {milliseconds:9.1f} ms {statements:7} statements  {size}", flush=True)

    flow = ledger.flow(FLOW)
    entries = list(log(arguments.partitions, arguments.windows))
    measure(f"load {len(entries)} records", lambda: _load(flow, entries))
    progress = [
        Entry(0, number, 0, source_offset_key("east", f"orders-{number % 100}", number // 100), source_offset_value(9))
        for number in range(arguments.partitions)
    ]
    measure(
        f"load {len(progress)} records of progress",
        lambda: flow.load(PROGRESS, TOPIC_ID, progress, {0: len(progress)}),
    )
    measure("scanned", lambda: flow.scanned(MAPPINGS, TOPIC_ID))
    measure("progress", flow.progress)
    measure("verified", flow.verified)
    measure("last_mappings", flow.last_mappings)
    measure("unverified, 1 %", flow.unverified)
    measure("windows", flow.windows)
    measure("of_window", lambda: flow.of_window("w1"))

    deep = ledger.flow("deep->west")
    many = [_mapping("orders", 0, number * RECORDS, f"w{number}", number) for number in range(arguments.deep)]
    _load(deep, [Entry(0, n, 0, found.encode_key(), found.encode_value()) for n, found in enumerate(many)])
    middle = arguments.deep // 2 * RECORDS
    measure(
        "the mapping of one offset, in the middle",
        lambda: list(deep.mappings("orders", 0, TOPIC_ID, middle, middle + 1)),
    )
    measure("windows, where there are many", deep.windows)

    gone = [Entry(0, len(entries) + n, 0, entry.key, None) for n, entry in enumerate(entries[: arguments.partitions])]
    measure(f"load {len(gone)} tombstones", lambda: _load(flow, gone))
    ledger.close()


def _load(flow: FlowLedger, entries: list[Entry]) -> None:
    for first in range(0, len(entries), LOADED_AT_ONCE):
        part = entries[first : first + LOADED_AT_ONCE]
        flow.load(MAPPINGS, TOPIC_ID, part, {0: part[-1].offset + 1})


if __name__ == "__main__":
    main()
