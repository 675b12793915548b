"""Copies of a topic with planted differences, batch by batch as they lie in the log, at the speed of the brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from uuid import UUID

import numpy as np

from airmirror.clusters.protocol.connection import Connection
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes, TopicNotFound, patiently
from airmirror.config import Cluster
from airmirror.partitions import TopicPartition
from airmirror.wire.batch import Batch
from airmirror.wire.batches import HEADER_SIZE, build
from airmirror.wire.records import index
from airmirror.wire.requests import decode_produce, encode_produce
from benchmarks.data import PARTITIONS, create_topic

IN_FLIGHT = 5
CLIENT = "planted"
Change = Callable[[int, memoryview, Batch], list[bytes]]
"""The payloads to write for a batch of a partition: its own, none, or others too."""


class NotCopied(RuntimeError):
    """The broker did not take a batch; the text is its answer."""


def copy(source: str, target: str, topic: str, remote: str, change: Change) -> None:
    """Create ``remote`` on the target and fill it with what ``change`` makes of each batch. Raises NotCopied."""
    create_topic(target, remote)
    with (
        Routes(Cluster("source", (source,), {}), CLIENT) as here,
        Routes(Cluster("target", (target,), {}), CLIENT) as there,
    ):
        here.refresh([topic])
        for attempt in patiently(30, TopicNotFound):  # until all of the cluster knows it
            with attempt:
                there.refresh([remote])
        for number in range(PARTITIONS):
            wanted = TopicPartition(topic, number)
            end = offsets_with_patience(here, [wanted], LATEST)[wanted]
            to = TopicPartition(remote, number)
            offsets_with_patience(there, [to], LATEST)  # until it has a leader
            _write(target, to, there.topic_ids, _changed(here, wanted, end, change))


def payload(buffer: memoryview, batch: Batch) -> bytes:
    """The records of a batch, as they lie in the log."""
    return bytes(buffer[batch.position + HEADER_SIZE : batch.position + batch.size])


def flipped(buffer: memoryview, batch: Batch, first: int, end: int) -> bytes:
    """The same with the last byte of the values of records ``[first, end)`` flipped; uncompressed, without headers."""
    altered = np.frombuffer(payload(buffer, batch), np.uint8).copy()
    ends = index(buffer, [batch]).ends[first:end]
    altered[ends - 2 - batch.position - HEADER_SIZE] ^= 1  # after the value comes the number of headers
    return altered.tobytes()


def _changed(routes: Routes, partition: TopicPartition, end: int, change: Change) -> Iterator[bytearray]:
    for buffer, batches in read_batches(routes, partition, 0, end, read_committed=False):
        for batch, _ in batches:
            for records in change(partition.partition, buffer, batch):
                yield build(
                    records, count=batch.count, base_timestamp=batch.base_timestamp, max_timestamp=batch.max_timestamp
                )


def _write(target: str, to: TopicPartition, topic_ids: dict[str, UUID], batches: Iterator[bytearray]) -> None:
    """Append batches in their order."""
    names = {topic_id: topic for topic, topic_id in topic_ids.items()}
    host, _, port = target.rpartition(":")
    with Connection("target", host, int(port), CLIENT) as connection:
        version = connection.produce_version

        def acknowledged() -> None:
            (answer,) = decode_produce(version, connection.receive(), names)[1].values()
            if answer.error:
                raise NotCopied(f"{to}: the broker answers with error {answer.error}")

        for batch in batches:
            if connection.waiting >= IN_FLIGHT:
                acknowledged()
            connection.send(
                encode_produce(
                    version=version,
                    correlation_id=connection.next_correlation_id(),
                    client_id=connection.client_id,
                    transactional_id=None,
                    batches={to: [batch]},
                    topic_ids=topic_ids,
                    timeout_ms=30_000,
                )
            )
        while connection.waiting:
            acknowledged()
