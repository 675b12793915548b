"""Offsets on this cluster for a consumer group of another, from the checkpoints (MirrorClient.remoteConsumerOffsets).

Unlike the Java client, a topic that could not be read to its end in time is an error and not a part of the answer, and a
deleted checkpoint (a null value) is gone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from airmirror.client.connection import bootstrap_of, consumer_of, policy_of, topics_of
from airmirror.client.errors import CheckpointsNotRead, NoCheckpoints
from airmirror.wire.checkpoints import Checkpoint, without_nul
from airmirror.wire.primitives import MalformedRecord

SECONDS = 60.0
AT_ONCE = 10_000
WAIT_SECONDS = 0.1

_PASSING = (KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._RESOLVE)

log = logging.getLogger(__name__)


def translate_offsets(
    properties: Mapping[str, Any], remote_cluster: str, group: str, *, timeout: float = SECONDS
) -> list[TopicPartition]:
    """The group's positions on this cluster, in order of topic and partition, each with offset and metadata.

    Fit for ``Consumer.assign`` and ``Consumer.commit(offsets=…)``. ``remote_cluster`` is the alias of the cluster where the
    group has consumed; topics are named as they are here. Empty where the group has no checkpoints. Raises
    ClusterNotAnswering and CheckpointsNotRead (transient), NoCheckpoints.
    """
    policy = policy_of(properties)
    with closing(consumer_of(properties)) as consumer:
        until = time.monotonic() + timeout
        topic = policy.checkpoints_topic(remote_cluster)
        names = topics_of(consumer, properties, timeout)
        if topic not in names:
            others = tuple(sorted(filter(policy.is_checkpoints_topic, names)))
            raise NoCheckpoints(bootstrap_of(properties), topic, others)
        found = _read(consumer, topic, group, until, bootstrap_of(properties))
    return [
        TopicPartition(point.topic, point.partition, point.downstream, metadata=without_nul(point.metadata))
        for point in sorted(found.values(), key=lambda point: point.key)
    ]


def _read(consumer: Consumer, topic: str, group: str, until: float, bootstrap: str) -> dict[bytes, Checkpoint]:
    """The group's last checkpoints by key; MirrorMaker 2 writes all to partition 0."""
    found: dict[bytes, Checkpoint] = {}
    position, ended, said = 0, False, "the time is up"
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while not ended:
        if time.monotonic() > until:
            raise CheckpointsNotRead(bootstrap, topic, position, said)
        try:
            messages = consumer.consume(AT_ONCE, WAIT_SECONDS)
        except KafkaException as error:
            raise CheckpointsNotRead(bootstrap, topic, position, error.args[0].str()) from error
        for message in messages:
            failure = message.error()
            if failure is None:
                position = (message.offset() or 0) + 1
                _take(message, group, found)
            elif failure.code() == KafkaError._PARTITION_EOF:
                ended = True
            elif failure.code() in _PASSING:
                said = failure.str()  # librdkafka keeps trying
            else:
                raise CheckpointsNotRead(bootstrap, topic, position, failure.str())
    return found


def _take(message: Message, group: str, found: dict[bytes, Checkpoint]) -> None:
    key, value = message.key() or b"", message.value()
    if value is None:
        found.pop(key, None)
        return
    try:
        checkpoint = Checkpoint.decode(key, value)
    except MalformedRecord as error:
        log.info("%s-0 offset %s is skipped: %s", message.topic(), message.offset(), error)
        return
    if checkpoint.group == group:
        found[key] = checkpoint
