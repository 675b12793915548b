"""Appending single records to an internal topic, outside transactions and acknowledged one by one."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar

from confluent_kafka import KafkaError, KafkaException, Message

from airmirror.clusters.admin.client import AccessDenied, is_denial, producer
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError

DELIVERY_SECONDS = 30
STEP_SECONDS = 0.2


@dataclass(eq=False)
class AppendFailed(AirmirrorError):
    """A record that a cluster did not take."""

    transient: ClassVar[bool] = True

    cluster: str
    topic: str
    reason: str

    def __str__(self) -> str:
        return f"cluster {self.cluster!r}: a record for {self.topic!r} was not taken: {self.reason}"


class Appender:
    """A producer for one partition of one topic; a context manager. Thread-safe, as the producer is."""

    def __init__(self, cluster: Cluster, topic: str, partition: int = 0) -> None:
        self._cluster, self._topic, self._partition = cluster, topic, partition
        self._complaints: list[KafkaError] = []
        self._producer = producer(
            cluster,
            # Not idempotent, which takes half a second to begin: a record that comes twice says the same twice.
            {
                "acks": "all",
                "enable.idempotence": False,
                "linger.ms": 0,
                "delivery.timeout.ms": DELIVERY_SECONDS * 1000,
                "error_cb": self._complaints.append,
            },
        )

    def append(self, records: Sequence[tuple[bytes, bytes | None]]) -> list[int]:
        """Append (key, value) records, wait until all are taken, return their offsets. Raises AppendFailed, AccessDenied."""
        offsets: list[int] = []
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is not None:
                errors.append(error)
            else:
                offsets.append(int(message.offset() or 0))

        self._producer.poll(0)
        self._complaints.clear()  # what was wrong before may be mended
        arguments: dict[str, Any] = {"partition": self._partition, "on_delivery": delivered}
        try:
            for key, value in records:
                self._producer.produce(self._topic, key=key, value=value, **arguments)
                self._producer.poll(0)
            until = time.monotonic() + DELIVERY_SECONDS
            while (left := self._producer.flush(STEP_SECONDS)) and time.monotonic() < until:
                if any(map(is_denial, self._complaints)):
                    self._producer.purge()  # librdkafka would keep trying to log in
                    self._producer.flush(STEP_SECONDS)
                    break
        except (KafkaException, BufferError) as error:
            raise AppendFailed(self._cluster.alias, self._topic, str(error)) from error
        denied = next(filter(is_denial, (*errors, *self._complaints)), None)
        if not errors and not left:
            return offsets
        if denied is not None:
            servers = ",".join(self._cluster.bootstrap_servers)
            raise AccessDenied(self._cluster.alias, servers, f"{denied.str()}: a record for {self._topic!r}")
        reason = str(errors[0]) if errors else f"no answer within {DELIVERY_SECONDS} s"
        raise AppendFailed(self._cluster.alias, self._topic, reason)

    def __enter__(self) -> Appender:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._producer.flush(1)
