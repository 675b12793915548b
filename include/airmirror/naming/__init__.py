"""Names: replication policies, topic and group filters, cycles, internal topics, by MirrorMaker 2's rules."""

from __future__ import annotations

from airmirror.naming.filters import TopicFilter
from airmirror.naming.internal import progress_topic, segment_topic
from airmirror.naming.patterns import InvalidPattern
from airmirror.naming.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    UnknownReplicationPolicy,
    policy,
)
from airmirror.naming.replicated import is_cycle, replicated

__all__ = [
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "InvalidPattern",
    "ReplicationPolicy",
    "TopicFilter",
    "UnknownReplicationPolicy",
    "is_cycle",
    "policy",
    "progress_topic",
    "replicated",
    "segment_topic",
]
