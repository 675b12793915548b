"""Answers to applications from names and checkpoints alone, without a cluster: what counts, and what is not told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
from confluent_kafka import KafkaError

from airmirror import client
from airmirror.client import CheckpointsNotRead, connection, translation
from airmirror.wire.checkpoints import Checkpoint

NAMES = (
    "orders",
    "east.orders",
    "east.north.orders",
    "north.orders",
    "heartbeats",
    "east.heartbeats",
    "east.north.heartbeats",
    "north.heartbeats",
    "east.checkpoints.internal",
    "airmirror-mappings.east.internal",
    "mm2-offsets.east.internal",
)


@dataclass(frozen=True)
class Answer:
    """A record, or without a key the end of the partition, as confluent-kafka gives it."""

    offset_: int = 0
    key_: bytes = b""
    value_: bytes | None = None

    def error(self) -> KafkaError | None:
        return None if self.key_ else KafkaError(KafkaError._PARTITION_EOF)

    def offset(self) -> int:
        return self.offset_

    def key(self) -> bytes:
        return self.key_

    def value(self) -> bytes | None:
        return self.value_


@dataclass
class Cluster:
    """A cluster as a consumer sees it; ``settings``: what the consumer was made with."""

    names: Sequence[str] = NAMES
    answers: list[Answer] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, settings: dict[str, Any]) -> Cluster:
        self.settings = settings
        return self

    def list_topics(self, timeout: float) -> Cluster:
        return self

    @property
    def topics(self) -> Sequence[str]:
        return self.names

    def assign(self, partitions: object) -> None:
        pass

    def consume(self, most: int, seconds: float) -> list[Answer]:
        found, self.answers = self.answers, []
        return found

    def close(self) -> None:
        pass


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    found = Cluster()
    monkeypatch.setattr(connection, "Consumer", found)
    yield found


def test_topics_that_came_from_a_source(cluster: Cluster) -> None:
    of_east = {"east.orders", "east.north.orders", "east.heartbeats", "east.north.heartbeats"}
    assert client.remote_topics({}) == of_east | {"north.orders", "north.heartbeats"}
    assert client.remote_topics({}, "east") == of_east
    assert client.checkpoint_topics({}) == {"east.checkpoints.internal"}


def test_the_shortest_way_counts(cluster: Cluster) -> None:
    assert client.upstream_clusters({}) == {"east", "north"}
    assert [client.replication_hops({}, alias) for alias in ("east", "north", "south")] == [1, 1, -1]
    cluster.names = [name for name in NAMES if name != "north.heartbeats"]
    assert client.replication_hops({}, "north") == 2


def test_nothing_is_committed_and_the_consumers_own_settings_win(cluster: Cluster) -> None:
    given = {
        "consumer.bootstrap.servers": "one",
        "bootstrap.servers": "other",
        "enable.auto.commit": True,
        "consumer.enable.auto.commit": True,
        "producer.acks": "all",
        "replication.policy.separator": ".",
    }
    client.remote_topics(given)
    assert cluster.settings == {
        "bootstrap.servers": "one",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "group.id": "airmirror-client",
        "isolation.level": "read_committed",
    }


def checkpoints(*written: Checkpoint | bytes) -> list[Answer]:
    """Records with these checkpoints; of a key alone: that it was deleted."""
    return [
        Answer(offset, each, None)
        if isinstance(each, bytes)
        else Answer(offset, each.encode_key(), each.encode_value())
        for offset, each in enumerate(written)
    ]


def test_positions_are_those_of_the_groups_last_checkpoints(cluster: Cluster) -> None:
    gone = Checkpoint("billing", "east.orders", 2, 5, 6)
    cluster.answers = checkpoints(
        gone,
        Checkpoint("billing", "east.orders", 1, 7, 8),
        Checkpoint("billing", "east.orders", 0, 3, 4),
        Checkpoint("audit", "east.orders", 0, 50, 51),
        Checkpoint("billing", "east.orders", 0, 30, 33),
        gone.encode_key(),
    )
    cluster.answers.append(Answer())
    found = client.translate_offsets({}, "east", "billing")
    assert [(each.topic, each.partition, each.offset) for each in found] == [
        ("east.orders", 0, 33),
        ("east.orders", 1, 8),
    ]


def test_a_part_of_the_checkpoints_is_no_answer(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.answers = checkpoints(Checkpoint("billing", "east.orders", 0, 3, 4))  # and no end
    ticks = count()
    monkeypatch.setattr(translation.time, "monotonic", lambda: float(next(ticks)))
    with pytest.raises(CheckpointsNotRead, match="read to offset 1 only: the time is up"):
        client.translate_offsets({"bootstrap.servers": "b:1"}, "east", "billing", timeout=3)
