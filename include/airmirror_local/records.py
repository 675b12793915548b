"""The demo's records: rows of the tables that the vega_datasets package holds, as a source of topics.

One JSON record a row, with a key, two headers and the row's own time as timestamp (what goes on arriving: the present);
every topic with another codec.
Only tables with times after 1970: a timestamp can't be negative, and 0 is the present.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import cycle, islice
from typing import Any

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from airmirror.errors import AirmirrorError

DELIVERY_SECONDS = 10
THE_PRESENT = 0  # librdkafka's timestamp for it
LOG_LEVEL = 4  # warnings: librdkafka tells on standard error what it purges when it ends


class RecordsNotProduced(AirmirrorError):
    """Records that a cluster did not take."""

    topic: str
    count: int
    reason: str
    says = "{0.count} records of {0.topic} were not produced: {0.reason}"


@dataclass(frozen=True)
class Table:
    """A table of vega_datasets, which becomes a topic: the column with a row's time, and the one that makes its key."""

    name: str
    time: str
    key: str
    codec: str
    partitions: int


TABLES = (
    Table("seattle-temps", "date", "date", "lz4", 4),
    Table("sf-temps", "date", "date", "zstd", 4),
    Table("seattle-weather", "date", "weather", "snappy", 2),
    Table("stocks", "date", "symbol", "gzip", 2),
    Table("iowa-electricity", "year", "source", "none", 1),
)


@dataclass(frozen=True)
class Row:
    """A record to be produced; ``timestamp`` in epoch milliseconds."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int


@dataclass
class Arrivals:
    """The number of records of each table sent so far."""

    sent: dict[str, int] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def count(self) -> int:
        return sum(self.sent.values())

    def wait(self, seconds: float) -> None:
        """Let records arrive for so long."""
        self.ended.wait(seconds)


@cache
def read_table(table: Table) -> tuple[Row, ...]:
    """Every row of a table, as a record."""
    from vega_datasets import local_data  # type: ignore[import-untyped]

    frame: Any = getattr(local_data, table.name.replace("-", "_"))()
    rows = []
    for number, row in enumerate(frame.to_dict("records")):
        value = {name: item.isoformat() if hasattr(item, "isoformat") else item for name, item in row.items()}
        headers = (("table", table.name.encode()), ("row", str(number).encode()))
        timestamp = int(row[table.time].timestamp() * 1000)
        rows.append(
            Row(str(value[table.key]).encode(), json.dumps(value, allow_nan=False).encode(), headers, timestamp)
        )
    return tuple(rows)


def create_topics(bootstrap: str) -> None:
    """A topic for every table; their old records are kept for ever."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": LOG_LEVEL})
    new = [NewTopic(table.name, table.partitions, 1, config={"retention.ms": "-1"}) for table in TABLES]
    for future in admin.create_topics(new).values():
        future.result()


def load(
    bootstrap: str,
    tables: Sequence[Table] = TABLES,
    share: float = 1.0,
    tell: Callable[[int], None] = lambda count: None,
) -> dict[str, int]:
    """Produce the first ``share`` of each table's rows; how many. Raises RecordsNotProduced."""
    counts = {}
    for table in tables:
        rows = read_table(table)[: int(len(read_table(table)) * share)]
        with closing(_Sender(bootstrap, table)) as sender:
            for row in rows:
                sender.send(row)
            sender.finish()
        counts[table.name] = len(rows)
        tell(len(rows))
    return counts


@contextmanager
def keep_producing(bootstrap: str, share: float = 1.0, pause: float = 0.05, each: int = 20) -> Iterator[Arrivals]:
    """While the block runs, the rows after the first ``share`` go on arriving, over and over: ``each`` a ``pause`` (s), with
    the present as their timestamp.

    When the block ends all are sent. Raises RecordsNotProduced then.
    """
    arrivals = Arrivals()
    with ThreadPoolExecutor(1) as pool:
        producing = pool.submit(_keep_producing, bootstrap, share, pause, each, arrivals)
        try:
            yield arrivals
        finally:
            arrivals.ended.set()
        producing.result()


def _keep_producing(bootstrap: str, share: float, pause: float, each: int, arrivals: Arrivals) -> None:
    with ExitStack() as stack:
        senders = []
        for table in TABLES:
            rows, sender = read_table(table), stack.enter_context(closing(_Sender(bootstrap, table)))
            senders.append((sender, islice(cycle(rows), int(len(rows) * share), None)))
        while not arrivals.ended.wait(pause):
            for sender, rows_left in senders:
                for row in islice(rows_left, each):
                    sender.send(replace(row, timestamp=THE_PRESENT))
                arrivals.sent[sender.table.name] = arrivals.sent.get(sender.table.name, 0) + each
        for sender, _ in senders:
            sender.finish()


class _Sender:
    """A producer for one table, which remembers what was refused."""

    def __init__(self, bootstrap: str, table: Table) -> None:
        self.table = table
        self._errors: list[KafkaError] = []
        settings = {
            "bootstrap.servers": bootstrap,
            "compression.type": table.codec,
            "linger.ms": 20,
            "delivery.timeout.ms": DELIVERY_SECONDS * 1000,
            "topic.metadata.propagation.max.ms": 1000,
            "log_level": LOG_LEVEL,
        }
        self._producer = Producer(settings)

    def send(self, row: Row) -> None:
        def delivered(error: KafkaError | None, _message: Message) -> None:
            if error is not None:
                self._errors.append(error)

        while True:
            try:
                self._producer.produce(
                    self.table.name,
                    key=row.key,
                    value=row.value,
                    headers=list(row.headers),
                    timestamp=row.timestamp,
                    on_delivery=delivered,
                )
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def finish(self) -> None:
        """Wait until everything is taken. Raises RecordsNotProduced."""
        left = self._producer.flush(DELIVERY_SECONDS + 1)
        if left or self._errors:
            reason = str(self._errors[0]) if self._errors else f"no answer within {DELIVERY_SECONDS} s"
            raise RecordsNotProduced(self.table.name, left + len(self._errors), reason)

    def close(self) -> None:
        """Let go of the cluster: an error would keep the client, and it would tell of a cluster that has ended."""
        self._producer.close()
