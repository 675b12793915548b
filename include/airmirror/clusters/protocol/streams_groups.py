"""Streams groups (KIP-1071) on brokers whose coordinator can't load one that was given positions before its first member came.

Positions for a group that does not exist make a classic group without a record of its own. When a Kafka Streams application
then joins, Kafka 4.2.0 writes the group's topology behind these positions; once the log was compacted, whoever loads it finds
them first: "Group X is not a streams group", and no group of that partition of __consumer_offsets is served any more
(KAFKA-20254, mended in 4.2.1).
"""

from __future__ import annotations

from airmirror.clusters.protocol.groups import PURPOSE
from airmirror.clusters.protocol.routes import Routes

# Levels of metadata.version: 4.1-IV0, the first with streams groups, and 4.2-IV1. 4.2.0 and 4.2.1 can't be distinguished.
WITHOUT_MEND = range(26, 29 + 1)


def may_break(routes: Routes) -> bool:
    """Return whether a broker of the cluster may be one that a position written ahead breaks. Raises BrokerUnreachable."""
    routes.refresh([])
    newest = (routes.connection(node, PURPOSE).supported.get("metadata.version", 0) for node in routes.nodes)
    return any(level in WITHOUT_MEND for level in newest)
