"""The most records that a broker appends a second: one prepared batch, sent again and again, not idempotent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from uuid import UUID

from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.clusters.protocol.connection import Connection
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.config import Cluster
from airmirror.partitions import TopicPartition
from airmirror.wire.batch import Batch
from airmirror.wire.batches import HEADER_SIZE, build
from airmirror.wire.requests import decode_produce, encode_produce
from airmirror_local.brokers import Broker
from benchmarks.data import DENSE, PARTITIONS, Data, create_topic, delete_topics, fill, largest_batch
from benchmarks.measurements import Measurement

TOPIC = "append-limit"
PREPARED = "append-limit-prepared"
CONNECTIONS = 2
IN_FLIGHT = 5
SECONDS = 6.0


class AppendFailed(RuntimeError):
    """The broker did not take the prepared batch; the text is its answer."""


def measure(source: Broker, target: str, record_bytes: int, batch_bytes: int) -> Measurement:
    """The limit for batches of a size; they are Kafka's own producer's, from ``source``'s log."""
    producer = DENSE | {"batch.size": str(batch_bytes), "linger.ms": "1000"}
    records = 40 * batch_bytes // record_bytes
    fill(source.bootstrap, Data(PREPARED, "", records, record_bytes, tuple(producer.items())))
    try:
        batch, content = largest_batch(source, PREPARED)
    finally:
        delete_topics(source.bootstrap, PREPARED)
    topic = f"{TOPIC}-{record_bytes}-{batch_bytes}"
    create_topic(target, topic)
    try:
        return _send(target, topic, batch, content)
    finally:
        delete_topics(target, topic)


def _send(target: str, topic: str, batch: Batch, content: bytes) -> Measurement:
    prepared = build(
        content[HEADER_SIZE:], count=batch.count, base_timestamp=batch.base_timestamp, max_timestamp=batch.max_timestamp
    )
    topic_ids = ready(target, topic, prepared)
    appended = [0] * CONNECTIONS
    deadline = time.monotonic() + SECONDS

    def send(number: int) -> None:
        partitions = [TopicPartition(topic, partition) for partition in range(number, PARTITIONS, CONNECTIONS)]
        appended[number] = send_until(deadline, target, partitions, prepared, topic_ids)

    begun = time.monotonic()
    threads = [threading.Thread(target=send, args=(number,)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    if not all(appended):
        raise AppendFailed("a connection of the append limit appended nothing")
    return Measurement(sum(appended) * batch.count, seconds)


@retry(
    retry=retry_if_exception_type((AppendFailed, TopicNotFound)),
    stop=stop_after_delay(10),
    wait=wait_fixed(0.1),
    reraise=True,
)
def ready(target: str, topic: str, prepared: bytearray) -> dict[str, UUID]:
    """Append one batch to every partition, until all have their leader; the topic's id, by its name."""
    with Routes(Cluster("west", (target,), {}), "append-limit") as routes:
        routes.refresh([topic])
        partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        if not send_until(time.monotonic() + 0.01, target, partitions, prepared, routes.topic_ids):
            # Connecting alone took longer than that: nothing was asked, so nothing is known of the leaders.
            raise AppendFailed("no batch was sent in time")
        return routes.topic_ids


def send_until(
    deadline: float,
    target: str,
    partitions: Sequence[TopicPartition],
    prepared: bytearray,
    topic_ids: dict[str, UUID],
    before: Callable[[int], None] = lambda size: None,
) -> int:
    """How many batches were acknowledged. ``before`` is given the bytes of each request before it is sent."""
    names = {topic_id: topic for topic, topic_id in topic_ids.items()}
    batches = {partition: [prepared] for partition in partitions}
    host, _, port = target.partition(",")[0].rpartition(":")
    done = 0
    with Connection("west", host, int(port), "append-limit") as connection:
        version = connection.produce_version
        while True:
            going_on = time.monotonic() < deadline
            while going_on and connection.waiting < IN_FLIGHT:
                before(len(prepared) * len(partitions))
                connection.send(
                    encode_produce(
                        version=version,
                        correlation_id=connection.next_correlation_id(),
                        client_id=connection.client_id,
                        transactional_id=None,
                        batches=batches,
                        topic_ids=topic_ids,
                        timeout_ms=30_000,
                    )
                )
            if not connection.waiting:
                return done
            for partition, produced in decode_produce(version, connection.receive(), names)[1].items():
                if produced.error:
                    raise AppendFailed(f"{partition}: the broker answers with error {produced.error}")
                done += 1
