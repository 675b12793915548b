"""The client library for applications: the origin of topics, and a consumer group's offsets on this cluster.

MirrorMaker 2's RemoteClusterUtils and MirrorClient (Kafka 4.2) for Python, on topics of Airmirror and of MirrorMaker 2
alike. Nothing but confluent-kafka is imported, and nothing is written or committed. ``properties`` are confluent-kafka's
own settings; MirrorMaker 2's ``replication.policy.…`` keys may stand among them.
"""

from airmirror.client.discovery import (
    checkpoint_topics,
    heartbeat_topics,
    remote_topics,
    replication_hops,
    upstream_clusters,
)
from airmirror.client.errors import CheckpointsNotRead, ClusterNotAnswering, NoCheckpoints
from airmirror.client.translation import translate_offsets

__all__ = [
    "CheckpointsNotRead",
    "ClusterNotAnswering",
    "NoCheckpoints",
    "checkpoint_topics",
    "heartbeat_topics",
    "remote_topics",
    "replication_hops",
    "translate_offsets",
    "upstream_clusters",
]
