"""The rule of replicated topics: MirrorSourceConnector's, with trunk's cycle rule (KAFKA-9914); and the internal topics of
Kafka Streams applications, by the names that Kafka's own StreamsResetter goes by."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

from airmirror.naming.internal import is_mapping_topic
from airmirror.naming.patterns import TopicFilter
from airmirror.naming.policies import IdentityReplicationPolicy, ReplicationPolicy


def replicated(
    topic: str,
    topic_filter: TopicFilter,
    policy: ReplicationPolicy,
    source: str,
    target: str,
    heartbeats_replication_enabled: bool = True,
    applications: Collection[str] = (),
) -> bool:
    """Return whether the flow source->target (aliases) replicates a topic of the source: named, not internal, not a cycle.

    ``applications``: the Kafka Streams applications whose topics are wanted whatever the filter says of them.
    """
    named = (
        topic_filter.matches(topic)
        or (heartbeats_replication_enabled and policy.is_heartbeats_topic(topic))
        or is_internal_of_any(applications, topic)
    )
    internal = policy.is_internal_topic(topic) or is_mapping_topic(topic)
    return named and not internal and not is_cycle(topic, policy, source, target)


def is_cycle(topic: str, policy: ReplicationPolicy, source: str, target: str) -> bool:
    """Return whether a topic came from the target, or from the source itself, on any of its hops.

    IdentityReplicationPolicy takes every topic for the source's own, so it asks for the target only.
    """
    ends = {target} if isinstance(policy, IdentityReplicationPolicy) else {source, target}
    return any(alias in ends for alias in hops(topic, policy))


def hops(topic: str, policy: ReplicationPolicy) -> Iterator[str]:
    """The aliases of the clusters that a topic came from, as its name tells them, the last one first; up to a name that repeats,
    as a policy of one's own may go round."""
    upstream: str | None = topic
    seen = set[str]()
    while upstream is not None and upstream not in seen and (came_from := policy.topic_source(upstream)) is not None:
        yield came_from
        seen.add(upstream)
        upstream = policy.upstream_topic(upstream)


CHANGELOG = "-changelog"
# Records of these were handled when they are gone: Streams deletes them after the application has read them.
_PURGED = re.compile(
    r".*-(?:repartition|subscription-registration-topic|subscription-response-topic"
    r"|KTABLE-FK-JOIN-SUBSCRIPTION-(?:REGISTRATION|RESPONSE)-[0-9]+-topic)"
)


def is_internal_of(application: str, topic: str) -> bool:
    """Return whether a topic's name is that of an internal one of an ``application.id``: a changelog, a repartition topic."""
    name = topic.removeprefix(f"{application}-")
    return name != topic and (f"-{name}".endswith(CHANGELOG) or _PURGED.fullmatch(f"-{name}") is not None)


def is_internal_of_any(applications: Iterable[str], topic: str) -> bool:
    return any(is_internal_of(application, topic) for application in applications)


def is_purged(applications: Iterable[str], topic: str) -> bool:
    """Return whether it is an internal topic of any of them from which Streams deletes what the application has read."""
    return is_internal_of_any(applications, topic) and not topic.endswith(CHANGELOG)
