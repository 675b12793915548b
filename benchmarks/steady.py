"""A steady rate of records, and what becomes of it: when each can be read on the target, and where a consumer group stands there.

All on one machine, so on one clock: a record's value says when it was made, and its number in its partition of the source.
"""

from __future__ import annotations

import struct
import threading
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

RECORD_BYTES, BURSTS = 100, 20  # bursts a second
COMMIT_SECONDS, SAMPLE_SECONDS = 0.5, 0.2
COMMITTED = {"isolation.level": "read_committed"}
NO_COORDINATOR = (KafkaError.NOT_COORDINATOR, KafkaError._WAIT_COORD, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
_stamp = struct.Struct(">dq")


@dataclass(frozen=True)
class Spread:
    """Seconds: the median, 99 of 100, and the most; of so many values."""

    median: float
    p99: float
    most: float
    values: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Raises ValueError where there is none."""
        if not values:
            raise ValueError("nothing was measured")
        found = sorted(values)
        return cls(found[len(found) // 2], found[min(len(found) - 1, int(len(found) * 0.99))], found[-1], len(found))


@dataclass
class Arrived:
    """A partition's records on the target, in order: offsets there, their numbers, when they were made and could be read."""

    offsets: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    made: list[float] = field(default_factory=list)
    readable: list[float] = field(default_factory=list)


@dataclass
class Committed:
    """The commits of a group on the source, by partition: when, and up to which number."""

    times: list[float] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def passed(self, number: int) -> float | None:
        """When the group committed more than ``number``; None: it has not."""
        place = bisect_right(self.numbers, number)
        return self.times[place] if place < len(self.times) else None


@contextmanager
def alongside(*works: Callable[[threading.Event], None]) -> Iterator[None]:
    """Do each of ``works`` in a thread of its own until the block ends, which sets the event that it is given."""
    ended = threading.Event()
    threads = [threading.Thread(target=work, args=(ended,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def producing(bootstrap: str, topic: str, partitions: int, rate: int) -> Callable[[threading.Event], None]:
    """So many records a second, in bursts, spread over the partitions."""

    def work(ended: threading.Event) -> None:
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 0, "enable.idempotence": True}
        producer, numbers, due = Producer(settings), [0] * partitions, time.monotonic()
        while not ended.wait(max(0.0, due - time.monotonic())):
            for count in range(rate // BURSTS):
                partition = count % partitions
                value = _stamp.pack(time.time(), numbers[partition]).ljust(RECORD_BYTES, b"x")
                producer.produce(topic, value, partition=partition)
                numbers[partition] += 1
            producer.poll(0)
            due += 1 / BURSTS
        producer.flush(30)

    return work


def reading(bootstrap: str, topic: str, into: dict[int, Arrived]) -> Callable[[threading.Event], None]:
    """Everything of a topic, as a consumer with read_committed gets it."""

    def work(ended: threading.Event) -> None:
        with closing_consumer(bootstrap, "bench-reader", COMMITTED) as consumer:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in into])
            while not ended.is_set():
                for message in consumer.consume(1_000, 0.05):
                    value, partition, offset = message.value(), message.partition(), message.offset()
                    if message.error() is None and value and partition is not None and offset is not None:
                        made, number = _stamp.unpack_from(value)
                        arrived = into[partition]
                        arrived.offsets.append(offset)
                        arrived.numbers.append(number)
                        arrived.made.append(made)
                        arrived.readable.append(time.time())

    return work


def consuming(bootstrap: str, topic: str, group: str, into: dict[int, Committed]) -> Callable[[threading.Event], None]:
    """A group that reads the source as records come and commits twice a second."""

    def work(ended: threading.Event) -> None:
        with closing_consumer(bootstrap, group) as consumer:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in into])
            due, positions = 0.0, dict.fromkeys(into, 0)
            while not ended.is_set():
                for message in consumer.consume(1_000, 0.05):
                    partition, offset = message.partition(), message.offset()
                    if message.error() is None and partition is not None and offset is not None:
                        positions[partition] = offset + 1
                if time.monotonic() >= due:
                    due = time.monotonic() + COMMIT_SECONDS
                    offsets = [TopicPartition(topic, partition, offset) for partition, offset in positions.items()]
                    consumer.commit(offsets=offsets, asynchronous=False)
                    for partition, offset in positions.items():
                        into[partition].times.append(time.time())
                        into[partition].numbers.append(offset)

    return work


def sampling(
    bootstrap: str, topic: str, group: str, partitions: int, into: list[tuple[float, dict[int, int]]]
) -> Callable[[threading.Event], None]:
    """Where the group stands on the target, several times a second."""

    def work(ended: threading.Event) -> None:
        with closing_consumer(bootstrap, group) as consumer:
            asked = [TopicPartition(topic, partition) for partition in range(partitions)]
            while not ended.wait(SAMPLE_SECONDS):
                try:
                    found = {each.partition: max(0, each.offset) for each in consumer.committed(asked, timeout=10)}
                except KafkaException as error:
                    if error.args[0].code() not in NO_COORDINATOR:
                        raise
                    continue  # the broker has just made the topic of all groups: the next sample is soon
                into.append((time.time(), found))

    return work


def behind(
    samples: Sequence[tuple[float, dict[int, int]]], arrived: dict[int, Arrived], committed: dict[int, Committed]
) -> list[float]:
    """Of each sample, the most seconds since a group that stands there has committed more on the source than it has here."""
    found = []
    for moment, positions in samples:
        late = [0.0]
        for partition, offset in positions.items():
            records = arrived[partition]
            place = bisect_left(records.offsets, offset)  # the first record that it has not read here
            number = records.numbers[place] if place < len(records.numbers) else len(records.numbers)
            passed = committed[partition].passed(number)
            if passed is not None and passed <= moment:
                late.append(moment - passed)
        found.append(max(late))
    return found


@contextmanager
def closing_consumer(
    bootstrap: str, group: str, more: Mapping[str, str | int | bool] | None = None
) -> Iterator[Consumer]:
    """A consumer that reads from the beginning and commits nothing by itself, unless ``more`` of its settings say otherwise."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
            "fetch.wait.max.ms": 50,
            "log_level": 0,
            **(more or {}),
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()
