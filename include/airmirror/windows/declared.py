"""What a configuration declares of single topics, which would be an error otherwise."""

from __future__ import annotations

from airmirror.config import Flow
from airmirror.config.values import as_list
from airmirror.naming import TopicFilter


def compacted_once(flow: Flow) -> TopicFilter:
    """Source topics in which missing offsets count as compacted (invariant E): ``topics.compacted``."""
    return _declared(flow, "topics.compacted")


def times_replaced(flow: Flow) -> TopicFilter:
    """Source topics whose remote topics may stamp records with their own time (against D): ``topics.log.append.time``."""
    return _declared(flow, "topics.log.append.time")


def _declared(flow: Flow, key: str) -> TopicFilter:
    return TopicFilter(as_list(flow.settings.get(key, "")), ())
