"""An application's properties taken apart: a consumer that belongs to no group, and the replication policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException

from airmirror.client.errors import ClusterNotAnswering
from airmirror.naming import ReplicationPolicy, policy

_POLICY = {
    "replication.policy.class": "DefaultReplicationPolicy",
    "replication.policy.separator": ".",
    "replication.policy.internal.topic.separator.enabled": "true",
    "source.cluster.alias": "",
}


def consumer_of(properties: Mapping[str, Any]) -> Consumer:
    """A consumer that commits nothing; ``consumer.x`` wins over ``x``. Raises KafkaException for settings it does not know."""
    settings: dict[str, Any] = {}
    for name, value in properties.items():
        if name not in _POLICY and not name.startswith(("admin.", "producer.", "consumer.")):
            settings[name] = value
    for name, value in properties.items():
        if name.startswith("consumer."):
            settings[name.removeprefix("consumer.")] = value
    # No group is joined, but librdkafka wants its name.
    fixed = {"enable.auto.commit": False, "enable.partition.eof": True, "auto.offset.reset": "earliest"}
    return Consumer({"group.id": "airmirror-client", "isolation.level": "read_committed"} | settings | fixed)


def policy_of(properties: Mapping[str, Any]) -> ReplicationPolicy:
    """The policy that the properties name, MirrorMaker 2's default without them. Raises UnknownReplicationPolicy."""
    given = {name: str(properties.get(name, default)) for name, default in _POLICY.items()}
    return policy(
        given["replication.policy.class"],
        given["replication.policy.separator"],
        given["replication.policy.internal.topic.separator.enabled"].lower() == "true",
        given["source.cluster.alias"] or None,
    )


def topics_of(consumer: Consumer, properties: Mapping[str, Any], timeout: float) -> frozenset[str]:
    """The names of a cluster's topics. Raises ClusterNotAnswering."""
    try:
        return frozenset(consumer.list_topics(timeout=timeout).topics)
    except KafkaException as error:
        raise ClusterNotAnswering(bootstrap_of(properties), error.args[0].str()) from error


def bootstrap_of(properties: Mapping[str, Any]) -> str:
    """The address that the properties name, for messages."""
    names = ("consumer.bootstrap.servers", "bootstrap.servers", "metadata.broker.list")
    return next((str(properties[name]) for name in names if name in properties), "(no bootstrap.servers)")
