"""Topics to be replicated, filled with Kafka's own producer tool (ProducerPerformance)."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from airmirror.wire.batch import Batch
from airmirror.wire.batches import parse
from airmirror_local.brokers import KAFKA_DEFAULTS, LOGGING, Broker
from airmirror_local.jars import classpath
from airmirror_local.java import find_java

PARTITIONS = 4
SAMPLE_BYTES = 4 << 20
DENSE = {"batch.size": "131072", "linger.ms": "50", "buffer.memory": "134217728"}


@dataclass(frozen=True)
class Data:
    """A topic of ``records`` records of ``record_bytes`` bytes, and how its producer batches them."""

    topic: str
    label: str
    records: int
    record_bytes: int
    producer: tuple[tuple[str, str], ...]

    def scaled(self, scale: float) -> Data:
        return replace(self, records=max(10_000, int(self.records * scale)))


def _data(topic: str, label: str, records: int, record_bytes: int, producer: dict[str, str]) -> Data:
    return Data(topic, label, records, record_bytes, tuple(producer.items()))


# A batch takes a record while its bytes and the record's upper bound fit: 1150 bytes hold ten of 100 bytes.
TEN = DENSE | {"batch.size": "1150", "linger.ms": "5"}
ONE = DENSE | {"batch.size": "1", "linger.ms": "0"}
DENSE_100 = _data("dense-100", "100-byte records", 50_000_000, 100, DENSE)
DENSE_1000 = _data("dense-1000", "1,000-byte records", 5_000_000, 1_000, DENSE)
TEN_A_BATCH = _data("ten-a-batch", "100-byte records, 10 a batch", 12_000_000, 100, TEN)
ONE_A_BATCH = _data("one-a-batch", "100-byte records, 1 a batch", 3_000_000, 100, ONE)
OVERSIZED = _data("oversized", "100-byte records, slow path", 5_000_000, 100, DENSE)
THREE_BROKERS = _data("three-brokers", "100-byte records, 3 brokers", 10_000_000, 100, DENSE)


def create_topic(
    bootstrap: str, topic: str, *, partitions: int = PARTITIONS, replicas: int = 1, config: dict[str, str] | None = None
) -> None:
    new = NewTopic(topic, partitions, replicas, config=config or {})
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})  # its futures fail when it is gone
    admin.create_topics([new])[topic].result()


def delete_topics(bootstrap: str, *topics: str) -> None:
    """Delete what is there of ``topics``."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    for future in admin.delete_topics(list(topics)).values():
        try:
            future.result()
        except KafkaException as error:
            if error.args[0].name() != "UNKNOWN_TOPIC_OR_PART":
                raise


def fill(bootstrap: str, data: Data, partitions: int = PARTITIONS) -> None:
    """Create the topic and produce its records. Raises CalledProcessError or ValueError with what the tool said."""
    create_topic(bootstrap, data.topic, partitions=partitions)
    settings = {"bootstrap.servers": bootstrap, **dict(data.producer)}
    command = [
        str(find_java()),
        *KAFKA_DEFAULTS,
        *LOGGING,
        "-cp",
        classpath(),
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic",
        data.topic,
        "--num-records",
        str(data.records),
        "--record-size",
        str(data.record_bytes),
        "--throughput",
        "-1",
        "--producer-props",
        *(f"{key}={value}" for key, value in settings.items()),
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    there = sum(latest(AdminClient({"bootstrap.servers": bootstrap, "log_level": 0}), data.topic, partitions))
    if there != data.records:  # the tool ends well where records have expired in its buffer
        raise ValueError(f"{there:,} of {data.records:,} records were produced: {done.stdout[-300:]}")


def latest(admin: AdminClient, topic: str, partitions: int) -> list[int]:
    """The end offset of each partition."""
    asked = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}  # type: ignore[no-untyped-call]
    return [future.result().offset for future in admin.list_offsets(asked).values()]


def largest_batch(broker: Broker, topic: str) -> tuple[Batch, bytes]:
    """The largest batch in the samples of all partitions (some may be empty), and its bytes as they are in the log."""
    found = [
        (batch, sample)
        for sample, batches in (_sample(broker, topic, number) for number in range(PARTITIONS))
        for batch in batches
    ]
    batch, sample = max(found, key=lambda pair: pair[0].size)
    return batch, bytes(sample[batch.position : batch.position + batch.size])


def shape(broker: Broker, topic: str) -> tuple[float, float]:
    """Mean records and mean bytes of a batch in the sample."""
    _, batches = _sample(broker, topic)
    return sum(batch.count for batch in batches) / len(batches), sum(batch.size for batch in batches) / len(batches)


def _sample(broker: Broker, topic: str, partition: int = 0) -> tuple[memoryview, list[Batch]]:
    """The batches in the first megabytes of one partition."""
    with (broker.directory / "data" / f"{topic}-{partition}" / f"{0:020}.log").open("rb") as log:
        sample = memoryview(log.read(SAMPLE_BYTES))
    return sample, list(parse(sample, 0, len(sample)))
