"""Appending single records to an internal topic, outside transactions and acknowledged one by one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message

from airmirror.clusters.admin.client import AccessDenied, is_denial, producer
from airmirror.clusters.admin.librdkafka import librdkafka_config
from airmirror.clusters.admin.shared import drop, shared
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError

DELIVERY_SECONDS = 30
STEP_SECONDS = 0.2
# Not idempotent, which takes half a second to begin: a record that comes twice says the same twice.
SETTINGS: dict[str, Any] = {
    "acks": "all",
    "enable.idempotence": False,
    "linger.ms": 0,
    "delivery.timeout.ms": DELIVERY_SECONDS * 1000,
}


class AppendFailed(AirmirrorError, transient=True):
    """A record that a cluster did not take."""

    says = "cluster {0.cluster!r}: a record for {0.topic!r} was not taken: {0.reason}"
    cluster: str
    topic: str
    reason: str


class Appender(AbstractContextManager["Appender"]):
    """A producer for one partition of one topic; a context manager. Thread-safe, as the producer is.

    The producer is shared: a new one takes a tenth of a second to find the leader.
    """

    def __init__(self, cluster: Cluster, topic: str, partition: int = 0) -> None:
        self._cluster, self._topic, self._partition = cluster, topic, partition
        found = shared(
            librdkafka_config(cluster, "producer") | SETTINGS,
            lambda complain: producer(cluster, SETTINGS | {"error_cb": complain}),
        )
        self._producer, self._complaints = found.client, found.complaints

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> list[int]:
        """Append (key, value) records, wait until all are taken, return their offsets. Raises AppendFailed, AccessDenied."""
        offsets: dict[int, int] = {}
        errors: list[KafkaError] = []

        def delivered(number: int, error: KafkaError | None, message: Message) -> None:
            """Called in whichever thread polls."""
            if error is not None:
                errors.append(error)
            else:
                offsets[number] = int(message.offset() or 0)

        self._producer.poll(0)
        self._complaints.clear()  # what was wrong before may be mended
        where: dict[str, Any] = {"topic": self._topic, "partition": self._partition}
        try:
            for number, (key, value) in enumerate(records):
                self._producer.produce(key=key, value=value, on_delivery=partial(delivered, number), **where)
                self._producer.poll(0)
            until = time.monotonic() + DELIVERY_SECONDS
            while (left := len(records) - len(offsets) - len(errors)) and time.monotonic() < until:
                self._producer.poll(STEP_SECONDS)  # not flush(), which waits for what others append too
                if any(map(is_denial, self._complaints)):
                    self._producer.purge()  # librdkafka would keep trying to log in
                    self._producer.flush(STEP_SECONDS)
                    break
        except (KafkaException, BufferError) as error:
            drop(self._producer)
            raise AppendFailed(self._cluster.alias, self._topic, str(error)) from error
        denied = next(filter(is_denial, (*errors, *self._complaints)), None)
        if not errors and not left:
            return [offsets[number] for number in range(len(records))]
        drop(self._producer)
        if denied is not None:
            servers = ",".join(self._cluster.bootstrap_servers)
            raise AccessDenied(self._cluster.alias, servers, f"{denied.str()}: a record for {self._topic!r}")
        reason = str(errors[0]) if errors else f"no answer within {DELIVERY_SECONDS} s"
        raise AppendFailed(self._cluster.alias, self._topic, reason)

    def __exit__(self, *_: object) -> None:
        """Leave the producer to others: each append has waited for its own records."""
