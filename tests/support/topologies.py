"""Arrows between three clusters, as a person draws them: configurations, run window by window in this process."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer

from airmirror.flows.prepare import Opened, Prepared, open_flow, prepare
from airmirror.windows.results import WindowResult
from airmirror.windows.window import WindowOrder, run_window
from airmirror_local.brokers import Broker
from support.flows import in_this_process
from support.topics import SECONDS, Record, bootstrap, read_all


@dataclass(frozen=True)
class Clusters:
    """Clusters by the aliases that the tests' configurations give them."""

    a: Broker
    b: Broker
    c: Broker

    def __getitem__(self, alias: str) -> Broker:
        found: Broker = getattr(self, alias.lower())
        return found

    @property
    def by_alias(self) -> dict[str, Broker]:
        return {"A": self.a, "B": self.b, "C": self.c}


@dataclass(frozen=True)
class Window:
    """What one window of a flow has done."""

    flow: str
    prepared: Prepared
    result: WindowResult


@dataclass(frozen=True)
class Deployment:
    """One configuration file, with a ledger of its own. It is read anew for every window."""

    path: Path
    ledger: str

    @contextmanager
    def opened(self, flow: str) -> Iterator[Opened]:
        with open_flow(self.path, flow, self.ledger) as opened:
            yield opened

    def window(self, flow: str) -> Window:
        """One window of a flow, as ``airmirror run-window`` and Airflow's tasks run it."""
        with self.opened(flow) as opened:
            prepared = prepare(opened)
            result = run_window(
                opened.flow,
                opened.ledger,
                prepared.topics,
                in_this_process,
                WindowOrder(uuid.uuid4().hex[:8], slots=lambda _: 1),
            )
        return Window(flow, prepared, result)

    def windows(self) -> list[Window]:
        """One window of every enabled flow, in the order of the file."""
        from airmirror.config import load

        return [self.window(flow.name) for flow in load(self.path).enabled]


def deploy(
    directory: Path,
    clusters: Mapping[str, Broker | str],
    flows: Mapping[str, str],
    lines: str = "",
    name: str = "mirror",
) -> Deployment:
    """A configuration of flows (name -> their topics) between clusters by alias."""
    path = directory / f"{name}.properties"
    settings = [f"clusters = {', '.join(clusters)}"]
    settings += [f"{alias}.bootstrap.servers = {bootstrap(cluster)}" for alias, cluster in clusters.items()]
    for flow, topics in flows.items():
        settings += [f"{flow}.enabled = true", f"{flow}.topics = {topics}"]
    settings += ["offset-syncs.topic.replication.factor = 1"]
    settings += ["replication.factor = 1", "offset.storage.replication.factor = 1", "offset.storage.partitions = 1"]
    path.write_text("\n".join([*settings, lines]) + "\n")
    return Deployment(path, f"sqlite:///{directory / name}.db")


def internal_topics(*sources: str) -> set[str]:
    """What flows from these clusters keep on their target."""
    return {
        name for alias in sources for name in (f"mm2-offsets.{alias}.internal", f"airmirror-mappings.{alias}.internal")
    }


def fresh_records(mark: str, count: int) -> list[Record]:
    """Records like no others: ``mark`` stands in every value."""
    return [Record(f"{mark}/{number}".encode(), f"key-{number % 7}".encode()) for number in range(count)]


def read_by_pattern(cluster: Broker, pattern: str, count: int) -> list[bytes | None]:
    """The values that a consumer group reads which subscribes to all topics of a pattern, until ``count`` have come and
    every partition was read to its end."""
    values: list[bytes | None] = []
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap(cluster),
            "group.id": f"by-pattern-{uuid.uuid4().hex[:8]}",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "log_level": 0,
        }
    )
    ended: set[tuple[str, int]] = set()
    try:
        consumer.subscribe([pattern])
        while True:
            message = consumer.poll(SECONDS)
            assert message is not None, f"{len(values)} of {count} records came in {SECONDS:g} s"
            where = (str(message.topic()), int(message.partition() or 0))
            if message.error() is None:
                values.append(message.value())
                ended.discard(where)
            else:
                ended.add(where)
            if len(ended) == len(consumer.assignment()) and len(values) >= count:
                return values
    finally:
        consumer.close()


def values_by_partition(cluster: Broker, topic: str) -> dict[int, list[bytes | None]]:
    return {partition: [record.value for record in records] for partition, records in read_all(cluster, topic).items()}
