"""The declarations for single topics, by their own configuration or the flow's, that permit what else is an error."""

from __future__ import annotations

from collections.abc import Collection

from airmirror.clusters.protocol.topic_configs import compacted_now
from airmirror.config import Flow
from airmirror.naming import TopicFilter, is_purged
from airmirror.windows.mirror import Mirror


def may_lack(flow: Flow, topic: str) -> bool:
    """Return whether missing offsets are declared to be no loss (invariant E): by ``topics.compacted``, or as purged ones."""
    return TopicFilter(flow.settings.topics_compacted, ()).matches(topic) or may_be_purged(flow, topic)


def may_be_purged(flow: Flow, topic: str) -> bool:
    """Return whether records that are gone from a log's beginning were handled: ``streams.applications`` deletes them."""
    return is_purged(flow.settings.streams_applications, topic)


def compacted_topics(mirror: Mirror, topics: Collection[str]) -> dict[str, bool]:
    """Return whether holes are allowed, by topic: it is compacted, or the user says so (invariant E)."""
    compacted = compacted_now(mirror.source, topics)
    return {topic: topic in compacted or may_lack(mirror.flow, topic) for topic in topics}


def times_replaced(flow: Flow) -> TopicFilter:
    """Source topics whose remote topics may stamp records with their own time (against D): ``topics.log.append.time``."""
    return TopicFilter(flow.settings.topics_log_append_time, ())
