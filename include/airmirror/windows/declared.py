"""The declarations for single topics, by their own configuration or the flow's, that permit what else is an error."""

from __future__ import annotations

from collections.abc import Collection

from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.config import Flow
from airmirror.naming import TopicFilter
from airmirror.windows.mirror import Mirror


def compacted_once(flow: Flow) -> TopicFilter:
    """Source topics in which missing offsets count as compacted (invariant E): ``topics.compacted``."""
    return TopicFilter(flow.settings.topics_compacted, ())


def compacted_topics(mirror: Mirror, topics: Collection[str]) -> dict[str, bool]:
    """Return whether holes are allowed, by topic: it is compacted, or the user says that it once was (invariant E)."""
    declared = compacted_once(mirror.flow)
    configs = topic_configs(mirror.source, topics, ["cleanup.policy"])
    return {
        topic: "compact" in configs.get(topic, {}).get("cleanup.policy", "") or declared.matches(topic)
        for topic in topics
    }


def times_replaced(flow: Flow) -> TopicFilter:
    """Source topics whose remote topics may stamp records with their own time (against D): ``topics.log.append.time``."""
    return TopicFilter(flow.settings.topics_log_append_time, ())
