"""The demo's records: rows of the tables that the vega_datasets package holds, as a source of topics.

One JSON record a row, with a key, two headers and the row's own time as timestamp; every topic with another codec.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

FLUSH_EVERY = 5_000


@dataclass(frozen=True)
class Table:
    """A table of vega_datasets: the column with a row's time, the one that makes its key, and the topic's settings."""

    name: str
    time: str
    key: str
    codec: str
    partitions: int


TABLES = (
    Table("seattle_temps", "date", "date", "lz4", 4),
    Table("sf_temps", "date", "date", "zstd", 4),
    Table("seattle_weather", "date", "weather", "snappy", 2),
    Table("stocks", "date", "symbol", "gzip", 2),
    Table("cars", "Year", "Origin", "none", 1),
)


@dataclass(frozen=True)
class Record:
    """A record to be produced; ``timestamp`` in epoch milliseconds."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


def rows(table: Table) -> list[Record]:
    """Every row of a table, as a record."""
    from vega_datasets import local_data

    frame: Any = getattr(local_data, table.name)()
    records = []
    for number, row in enumerate(frame.to_dict("records")):
        time = row[table.time]
        value = {name: item.isoformat() if hasattr(item, "isoformat") else item for name, item in row.items()}
        headers = (("table", table.name.encode()), ("row", str(number).encode()))
        records.append(
            Record(str(value[table.key]).encode(), json.dumps(value).encode(), headers, int(time.timestamp() * 1000))
        )
    return records


def create_topics(bootstrap: str) -> None:
    """A topic for every table; their old records are kept for ever."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [NewTopic(table.name, table.partitions, 1, config={"retention.ms": "-1"}) for table in TABLES]
    for future in admin.create_topics(new).values():
        future.result()


def load(bootstrap: str, tables: Sequence[Table] = TABLES, tell: Callable[[int], None] = lambda count: None) -> int:
    """Produce every row of ``tables`` once; how many. ``tell`` is told how many more there are."""
    total = 0
    for table in tables:
        producer = _producer(bootstrap, table)
        records = rows(table)
        for start in range(0, len(records), FLUSH_EVERY):
            part = records[start : start + FLUSH_EVERY]
            for record in part:
                _produce(producer, table, record)
            producer.flush()
            tell(len(part))
        total += len(records)
    return total


class Arrivals:
    """Rows that go on arriving, a few hundred a second, in a thread; a context manager that waits for the last one."""

    def __init__(self, bootstrap: str, pause: float = 0.05, each: int = 20) -> None:
        self.count = 0
        self._bootstrap, self._pause, self._each = bootstrap, pause, each
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="arrivals", daemon=True)

    def __enter__(self) -> Arrivals:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def wait(self, seconds: float) -> None:
        """Let records arrive for so long."""
        self._ended.wait(seconds)

    def _run(self) -> None:
        sources = [(_producer(self._bootstrap, table), table, _again(rows(table))) for table in TABLES]
        while not self._ended.wait(self._pause):
            for producer, table, records in sources:
                for _ in range(self._each):
                    _produce(producer, table, next(records))
                    self.count += 1
                producer.poll(0)
        for producer, _, _ in sources:
            producer.flush()


def _again(records: Sequence[Record]) -> Iterator[Record]:
    while True:
        yield from records


def _producer(bootstrap: str, table: Table) -> Producer:
    return Producer({"bootstrap.servers": bootstrap, "compression.type": table.codec, "linger.ms": 20})


def _produce(producer: Producer, table: Table, record: Record) -> None:
    producer.produce(
        table.name, key=record.key, value=record.value, headers=list(record.headers), timestamp=record.timestamp
    )
