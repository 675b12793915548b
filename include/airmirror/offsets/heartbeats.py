"""Heartbeats as MirrorMaker 2 writes them: for ``source->target`` to the ``heartbeats`` topic of the target.

The flows that leave the target replicate that topic as any other: on the next cluster its records tell that the flow is
alive, how many flows they came over, and how long that took.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager
from typing import Any

from confluent_kafka import KafkaError, Message

from airmirror.clusters.admin.appender import DELIVERY_SECONDS, SETTINGS
from airmirror.clusters.admin.client import TIMEOUT, producer
from airmirror.clusters.admin.creation import ensure_topic
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.topics.names import policy_of
from airmirror.wire.mirrormaker import Heartbeat

log = logging.getLogger(__name__)


class HeartbeatNotWritten(AirmirrorError, transient=True):
    """A heartbeat that the target did not take in time."""

    says = "flow {0.flow!r}: cluster {0.cluster!r} took no heartbeat into {0.topic!r}: {0.reason}"
    flow: str
    cluster: str
    topic: str
    reason: str


class Heartbeats(AbstractContextManager["Heartbeats"]):
    """Emits the heartbeats of one flow, its topic made when it is missing; a context manager.

    ``taken`` and ``failed`` count what the target has answered; ``reason`` is the last failure's. Raises
    TopicCreationRefused, and what ``connect`` and a cluster that is not there raise.
    """

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.topic = policy_of(flow).heartbeats_topic()
        self.taken, self.failed, self.reason = 0, 0, ""
        replicas = flow.settings.heartbeats_topic_replication_factor
        key = "heartbeats.topic.replication.factor"
        ensure_topic(flow.target, self.topic, replicas, {"cleanup.policy": "compact"}, key, TIMEOUT)
        self._producer = producer(flow.target, SETTINGS)

    def emit(self) -> None:
        """Hand a heartbeat of now to the producer, and note what has become of earlier ones. Waits for nothing."""
        now = time.time_ns() // 1_000_000
        heartbeat = Heartbeat(self._flow.source.alias, self._flow.target.alias, now)
        arguments: dict[str, Any] = {"partition": 0, "timestamp": now, "on_delivery": self._delivered}
        try:
            self._producer.produce(self.topic, key=heartbeat.encode_key(), value=heartbeat.encode_value(), **arguments)
        except BufferError as error:
            self._fail(str(error))
        self._producer.poll(0)

    def flush(self, seconds: float) -> None:
        """Wait for the target's answers."""
        self._producer.flush(seconds)

    def __exit__(self, *_: object) -> None:
        self.flush(1)
        self._producer.purge()

    def _delivered(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._fail(error.str())
            return
        self.taken += 1
        if self.reason:
            log.info("%s takes heartbeats again, %d were lost", self._flow.target.alias, self.failed)
            self.reason = ""

    def _fail(self, reason: str) -> None:
        self.failed += 1
        if reason != self.reason:
            log.warning("%s", HeartbeatNotWritten(self._flow.name, self._flow.target.alias, self.topic, reason))
        self.reason = reason


def emit_heartbeat(flow: Flow) -> str:
    """Emit one heartbeat and return its topic. Raises HeartbeatNotWritten, and what Heartbeats raises."""
    with Heartbeats(flow) as heartbeats:
        heartbeats.emit()
        heartbeats.flush(DELIVERY_SECONDS)
        if not heartbeats.taken:
            reason = heartbeats.reason or f"no answer in {DELIVERY_SECONDS} s"
            raise HeartbeatNotWritten(flow.name, flow.target.alias, heartbeats.topic, reason)
        return heartbeats.topic
