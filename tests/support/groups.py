"""Consumer groups of a test: real consumers that read and commit, and what a group has committed, by confluent-kafka."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal
from uuid import uuid4

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)

from support.topics import AT_ONCE, SECONDS, Cluster, Record, _patiently, _record, admin, bootstrap, end_offsets

Protocol = Literal["classic", "consumer"]


def a_group() -> str:
    """A name that no other test uses."""
    return f"g-{uuid4().hex[:8]}"


@contextmanager
def member(cluster: Cluster, group: str, topic: str, protocol: Protocol = "classic") -> Iterator[Consumer]:
    """A consumer that has joined the group and was given partitions."""
    settings = {
        "bootstrap.servers": bootstrap(cluster),
        "group.id": group,
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 5,
        "log_level": 0,
    }
    consumer = Consumer(settings if protocol == "consumer" else settings | {"session.timeout.ms": 20_000})
    assigned: list[TopicPartition] = []
    try:
        consumer.subscribe([topic], on_assign=lambda _consumer, given: assigned.extend(given))
        first = []
        while not assigned:
            message = consumer.poll(0.01)  # which returns late where partitions were given and no message is there
            if message is not None:
                first.append(message)
        for message in first:  # read while it joined: from there again
            consumer.seek(TopicPartition(topic, message.partition(), message.offset()))
        yield consumer
    finally:
        consumer.close()


def read_with_group(
    cluster: Cluster,
    group: str,
    topic: str,
    most: Mapping[int, int] | None = None,
    protocol: Protocol = "classic",
) -> dict[int, list[Record]]:
    """Read as a member of the group from its positions on, commit what was read, leave.

    ``most``: so many records of each partition; the rest is left. None: to the end.
    """
    partitions = end_offsets(cluster, topic)
    found: dict[int, list[Record]] = {number: [] for number in partitions}
    with member(cluster, group, topic, protocol) as consumer:
        reading = {number for number in partitions if most is None or most.get(number, 0) > 0}
        positions: dict[int, int] = {}
        while reading:
            message = consumer.poll(SECONDS)
            assert message is not None, f"{topic}: nothing in {SECONDS} s, still reading {sorted(reading)}"
            number = int(message.partition() or 0)
            if message.error():
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                reading.discard(number)
                if number in found and most is None:
                    positions[number] = max(positions.get(number, 0), int(message.offset() or 0))
            elif number in reading:
                found[number].append(_record(message))
                positions[number] = int(message.offset() or 0) + 1
                if most is not None and len(found[number]) >= most[number]:
                    reading.discard(number)
        commits = [TopicPartition(topic, number, offset) for number, offset in positions.items()]
        if commits:
            consumer.commit(offsets=commits, asynchronous=False)
    return found


def commit(cluster: Cluster, group: str, offsets: Mapping[tuple[str, int], int], note: str = "") -> None:
    """Commit offsets for a group without members, as a tool does. ``note``: their metadata."""
    asked = [TopicPartition(topic, number, offset, note) for (topic, number), offset in offsets.items()]
    client = admin(cluster)
    for attempt in _patiently(AssertionError):  # a coordinator that has just begun is still loading
        with attempt:
            answer = client.alter_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group, asked)], request_timeout=SECONDS
            )
            for partition in answer[group].result(SECONDS).topic_partitions:
                assert partition.error is None, partition.error


def committed(cluster: Cluster, group: str) -> dict[tuple[str, int], int]:
    """What the group has committed."""
    return {(item.topic, item.partition): item.offset for item in _positions(cluster, group)}


def committed_by_all(cluster: Cluster, groups: Iterable[str]) -> dict[str, dict[tuple[str, int], int]]:
    """What many groups have committed, soon: of a cluster whose coordinators have long begun (see ``_positions``)."""
    client, found = admin(cluster), {}
    for group in groups:
        items = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(SECONDS)
        found[group] = {(item.topic, item.partition): item.offset for item in items.topic_partitions}
    return found


def notes(cluster: Cluster, group: str) -> dict[tuple[str, int], str]:
    """The metadata of what the group has committed, where there is some."""
    return {(item.topic, item.partition): item.metadata for item in _positions(cluster, group) if item.metadata}


def _positions(cluster: Cluster, group: str) -> list[TopicPartition]:
    """What the group has committed in any partition of the cluster.

    By a consumer: librdkafka's admin client ends the process where the group's coordinator has just begun (its issue 5040).
    """
    consumer = Consumer(AT_ONCE | {"bootstrap.servers": bootstrap(cluster), "group.id": group})
    try:
        for attempt in _patiently(KafkaException):
            with attempt:
                topics = consumer.list_topics(timeout=SECONDS).topics
                asked = [TopicPartition(name, number) for name, each in topics.items() for number in each.partitions]
                found = consumer.committed(asked, timeout=SECONDS)
                for item in found:
                    if item.error is not None:
                        raise KafkaException(item.error)
    finally:
        consumer.close()
    return [item for item in found if item.offset >= 0]


def forget_group(cluster: Cluster, group: str) -> None:
    """Make a cluster forget a group without members, as it does when its offsets have expired."""
    admin(cluster).delete_consumer_groups([group])[group].result(SECONDS)


@contextmanager
def held(cluster: Cluster, group: str, offsets: Mapping[tuple[str, int], int], name: str) -> Iterator[Producer]:
    """Offsets of a group that the open transaction ``name`` holds; committed when the block ends."""
    settings = AT_ONCE | {"bootstrap.servers": bootstrap(cluster)}
    consumer, producer = Consumer(settings | {"group.id": group}), Producer(settings | {"transactional.id": name})
    try:
        producer.init_transactions(SECONDS)
        producer.begin_transaction()
        asked = [TopicPartition(topic, number, offset) for (topic, number), offset in offsets.items()]
        producer.send_offsets_to_transaction(asked, consumer.consumer_group_metadata(), SECONDS)
        yield producer
        producer.commit_transaction(SECONDS)
    finally:
        consumer.close()


def await_committed(
    cluster: Cluster, group: str, expected: Mapping[tuple[str, int], int], seconds: float = SECONDS
) -> None:
    """Wait until this is what the group has committed in these partitions.

    By a consumer, as ``_positions``.
    """
    consumer = Consumer({"bootstrap.servers": bootstrap(cluster), "group.id": group})
    try:
        for attempt in _patiently(AssertionError, KafkaException, seconds=seconds):
            with attempt:
                found = consumer.committed([TopicPartition(*key) for key in expected], timeout=SECONDS)
                assert {(each.topic, each.partition): each.offset for each in found} == expected
    finally:
        consumer.close()
