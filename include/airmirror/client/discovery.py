"""Facts about replication that topic names alone give, by the rules of MirrorClient.java.

The one difference: Airmirror's mapping topics are internal here. MirrorClient, which takes every dotted name for a
remote topic, lists them among its remote topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

from airmirror.client.connection import consumer_of, policy_of, topics_of
from airmirror.naming import ReplicationPolicy, hops
from airmirror.naming.internal import is_mapping_topic

SECONDS = 30.0


def heartbeat_topics(properties: Mapping[str, Any], *, timeout: float = SECONDS) -> set[str]:
    """The heartbeat topics on this cluster: its own, and those replicated from others. Raises ClusterNotAnswering."""
    policy = policy_of(properties)
    return {topic for topic in _topics(properties, timeout) if policy.is_heartbeats_topic(topic)}


def checkpoint_topics(properties: Mapping[str, Any], *, timeout: float = SECONDS) -> set[str]:
    """The checkpoint topics on this cluster, one for each source with checkpoints. Raises ClusterNotAnswering."""
    policy = policy_of(properties)
    return {topic for topic in _topics(properties, timeout) if policy.is_checkpoints_topic(topic)}


def remote_topics(properties: Mapping[str, Any], source: str | None = None, *, timeout: float = SECONDS) -> set[str]:
    """The topics replicated to this cluster, or those that came directly from ``source``. Raises ClusterNotAnswering.

    Internal topics are not among them. The name alone decides: with DefaultReplicationPolicy every topic whose name has
    the separator in it counts.
    """
    policy = policy_of(properties)
    return {
        topic
        for topic in _topics(properties, timeout)
        if not policy.is_internal_topic(topic)
        and not is_mapping_topic(topic)
        and (came_from := policy.topic_source(topic)) is not None
        and source in (None, came_from)
    }


def upstream_clusters(properties: Mapping[str, Any], *, timeout: float = SECONDS) -> set[str]:
    """The aliases of the clusters whose heartbeats arrive here, over any number of hops. Raises ClusterNotAnswering."""
    policy = policy_of(properties)
    return {source for topic in heartbeat_topics(properties, timeout=timeout) for source in _sources(topic, policy)}


def replication_hops(properties: Mapping[str, Any], upstream_cluster: str, *, timeout: float = SECONDS) -> int:
    """Over how many flows, at least, records of ``upstream_cluster`` come here; -1: not at all. Raises ClusterNotAnswering."""
    policy = policy_of(properties)
    found = []
    for topic in heartbeat_topics(properties, timeout=timeout):
        for flows, source in enumerate(_sources(topic, policy), start=1):
            if source == upstream_cluster:
                found.append(flows)
    return min(found, default=-1)


def _sources(topic: str, policy: ReplicationPolicy) -> Iterator[str]:
    """Yield the clusters a topic came from, the nearest first; end before one repeats (some policies see no cycles)."""
    seen: set[str] = set()
    for source in hops(topic, policy):
        if source in seen:
            return
        yield source
        seen.add(source)


def _topics(properties: Mapping[str, Any], timeout: float) -> frozenset[str]:
    with closing(consumer_of(properties)) as consumer:
        return topics_of(consumer, properties, timeout)
