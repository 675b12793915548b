"""The most that anybody could relay: the source is read and thrown away as fast as the target takes a hot batch, both at once.

Nothing is copied from one to the other, nothing checked, committed or read back: one connection to each broker in each of two
threads, as many bytes read as are sent.
"""

from __future__ import annotations

import struct
import threading
import time

from airmirror.clusters.protocol.log import receive_fetch, send_fetch
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.partitions import TopicPartition
from airmirror.wire.batches import HEADER_SIZE, build
from airmirror.wire.requests import FetchPosition
from airmirror_local.brokers import Broker
from benchmarks.append_limit import CONNECTIONS, SECONDS, AppendFailed, ready, send_until
from benchmarks.data import PARTITIONS, create_topic, delete_topics, largest_batch
from benchmarks.measurements import Measurement

FETCH_BYTES = 4 << 20
_batch = struct.Struct(">qi11xi")  # base offset, length, what comes up to the last offset's delta


class _Discarded:
    """Reads partitions of a topic of the source from their beginning to their end, again and again; one fetch is under way."""

    def __init__(self, routes: Routes, partitions: list[TopicPartition]) -> None:
        self._routes, self._partitions = routes, partitions
        self._positions = dict.fromkeys(partitions, 0)
        self._buffer = bytearray(2 * FETCH_BYTES)
        self._node = routes.leader(partitions[0]).node
        self._version = self._ask()

    def take(self) -> int:
        """Throw away an answer, ask for the next; how many bytes it had."""
        connection = self._routes.connection(self._node, "fetch")
        buffer, partitions = receive_fetch(self._routes, connection, self._version, self._room)
        for partition, fetched in partitions.items():
            place, position = fetched.start, self._positions[partition]
            while place + HEADER_SIZE <= fetched.end:
                base, length, delta = _batch.unpack_from(buffer, place)
                position, place = base + delta + 1, place + 12 + length
            self._positions[partition] = position if position < fetched.high_watermark else 0
        self._version = self._ask()
        return len(buffer)

    def _room(self, size: int) -> bytearray:
        return self._buffer if size <= len(self._buffer) else bytearray(size)

    def _ask(self) -> int:
        share = FETCH_BYTES // len(self._partitions)
        return send_fetch(
            self._routes,
            self._routes.connection(self._node, "fetch"),
            {
                partition: FetchPosition(position, self._routes.leader(partition).epoch, -1, share)
                for partition, position in self._positions.items()
            },
            max_wait_ms=500,
            max_bytes=FETCH_BYTES,
            read_committed=False,
        )


def measure(source: Broker, target: str, topic: str) -> Measurement:
    """The limit for a topic of the source, with the largest of its batches. Raises AppendFailed."""
    batch, content = largest_batch(source, topic)
    prepared = build(
        content[HEADER_SIZE:], count=batch.count, base_timestamp=batch.base_timestamp, max_timestamp=batch.max_timestamp
    )
    hot = f"relay-limit-{topic}"
    create_topic(target, hot)
    appended = [0] * CONNECTIONS
    try:
        topic_ids = ready(target, hot, prepared)
        deadline = time.monotonic() + SECONDS

        def relay(number: int) -> None:
            numbers = range(number, PARTITIONS, CONNECTIONS)
            with Routes(Cluster("east", (source.bootstrap,), {}), "relay-limit") as routes:
                routes.refresh([topic])
                discarded = _Discarded(routes, [TopicPartition(topic, each) for each in numbers])
                partitions = [TopicPartition(hot, each) for each in numbers]
                owed = 0

                def pull(size: int) -> None:
                    nonlocal owed
                    owed += size
                    while owed > 0:
                        owed -= discarded.take()

                appended[number] = send_until(deadline, target, partitions, prepared, topic_ids, pull)

        begun = time.monotonic()
        threads = [threading.Thread(target=relay, args=(number,)) for number in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begun
    finally:
        delete_topics(target, hot)
    if not all(appended):
        raise AppendFailed("a connection of the relay limit relayed nothing")
    return Measurement(sum(appended) * batch.count, seconds)
