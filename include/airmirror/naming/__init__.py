"""Names: replication policies, topic and group filters, cycles, internal topics, by MirrorMaker 2's rules."""

from airmirror.naming.internal import is_mapping_topic, mapping_topic, progress_topic
from airmirror.naming.patterns import TopicFilter, is_quick
from airmirror.naming.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    UnknownReplicationPolicy,
    built_in_policy,
    policy,
)
from airmirror.naming.replicated import hops, is_cycle, is_internal_of, is_purged, replicated

__all__ = [
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "ReplicationPolicy",
    "TopicFilter",
    "UnknownReplicationPolicy",
    "built_in_policy",
    "hops",
    "is_cycle",
    "is_internal_of",
    "is_mapping_topic",
    "is_purged",
    "is_quick",
    "mapping_topic",
    "policy",
    "progress_topic",
    "replicated",
]
