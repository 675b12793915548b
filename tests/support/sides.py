"""Clusters ``east`` and ``west``, a node each: a process of pytest has one pair for all of its tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from airmirror_local.ports import free_port
from support.topics import delete_all_topics

# A node that is resumed must not be taken for gone, whose session has ended meanwhile: nothing is created there then. Its
# heartbeats are as rare as Kafka's own: those of IMPATIENT are a quarter of the work of a node that has nothing to do.
PAUSED = {"broker.session.timeout.ms": "3600000", "broker.heartbeat.interval.ms": "2000"}
# How soon producers are forgotten, in tests of that: a task a partition, half of what nodes with many do that have nothing to do.
FORGETTING = {"producer.id.expiration.check.interval.ms": "3000"}


@dataclass(frozen=True)
class Sides:
    """Two clusters of one node each."""

    east: Broker
    west: Broker

    def empty(self) -> None:
        """Delete all topics but Kafka's own."""
        for broker in (self.east, self.west):
            delete_all_topics(broker)


@contextmanager
def own_sides(directory: Path, properties: Mapping[str, str] = FORGETTING) -> Iterator[Sides]:
    """Clusters whose files lie in ``directory``; on exit they have ended."""
    started: list[Broker] = []
    try:
        for name in ("east", "west"):
            started.append(start_broker(directory, name, IMPATIENT | properties, proxy_port=free_port()))
        yield Sides(*started)
    finally:
        for broker in started:
            broker.kill()
