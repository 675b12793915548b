"""A flow's internal topics on the target: made when missing, refused when they would lose what they must keep."""

from __future__ import annotations

from collections.abc import Collection

from airmirror.clusters.admin.client import Admin, connect, existing
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.clusters.protocol.routes import Routes, TopicNotFound, patiently
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.config import Flow
from airmirror.naming import mapping_topic, progress_topic
from airmirror.slot.dead_letters import dead_letter_topic
from airmirror.slot.errors import InternalTopicUnfit

HOUR_MS = 3_600_000
READY_SECONDS = 30.0
# Leases must not be compacted away while they could still decide who writes (invariant B).
MAPPING_CONFIG = {
    "cleanup.policy": "compact",
    "message.timestamp.type": "LogAppendTime",
    "min.compaction.lag.ms": str(24 * HOUR_MS),
    "segment.ms": str(24 * HOUR_MS),
}
# It takes what remote topics do not: any size that a request can have, and, from Kafka 3.6 on, any time.
DEAD_LETTER_CONFIG = {"max.message.bytes": str(100 << 20)}
ANY_TIME = {name: str(2**63 - 1) for name in ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms")}
PROGRESS_CONFIG = {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)}


def ensure_internal_topics(flow: Flow) -> None:
    """Make the mapping topic and ``mm2-offsets`` when they are missing.

    One that is deleted meanwhile is made again. Raises InternalTopicUnfit, TopicCreationRefused, TopicNotFound.
    """
    admin = connect(flow.target)
    mappings, progress = mapping_topic(flow.source.alias), progress_topic(flow.source.alias)
    with Routes(flow.target, f"airmirror|{flow.name}|topics") as routes:
        for attempt in patiently(READY_SECONDS, TopicNotFound):  # a topic is not known everywhere as soon as it is made
            with attempt:
                there = _make_missing(flow, admin, mappings, progress)
                routes.refresh([mappings, progress])
                _check(routes, mappings, progress)
        _ensure_dead_letter_topic(flow, admin, routes, mappings, there)


def _make_missing(flow: Flow, admin: Admin, mappings: str, progress: str) -> Collection[str]:
    """Create what is not there of the two topics; return which of the flow's internal topics were there before."""
    there = existing(admin, [name for name in (mappings, progress, dead_letter_topic(flow)) if name])
    replicas = flow.settings.offset_storage_replication_factor
    partitions = flow.settings.offset_storage_partitions
    missing = [
        NewTopic(name, count, replicas, config, "offset.storage.replication.factor")
        for name, count, config in ((mappings, 1, MAPPING_CONFIG), (progress, partitions, PROGRESS_CONFIG))
        if name not in there
    ]
    for refused in create_topics(admin, missing, READY_SECONDS).refused if missing else ():
        raise refused
    return there


def _ensure_dead_letter_topic(flow: Flow, admin: Admin, routes: Routes, mappings: str, there: Collection[str]) -> None:
    name = dead_letter_topic(flow)
    if name is None or name in there:
        return
    known = topic_configs(routes, [mappings], list(ANY_TIME))[mappings]
    config = DEAD_LETTER_CONFIG | {key: value for key, value in ANY_TIME.items() if key in known}
    for refused in create_topics(admin, [NewTopic(name, 1, flow.replication_factor, config)], READY_SECONDS).refused:
        raise refused


def _check(routes: Routes, mappings: str, progress: str) -> None:
    configs = topic_configs(routes, [mappings, progress], ["cleanup.policy", "message.timestamp.type"])
    for topic in (mappings, progress):
        if topic not in configs:  # deleted a moment ago
            raise TopicNotFound(routes.alias, topic)
        policy = configs[topic]["cleanup.policy"]
        if policy != "compact":
            reason = f"has cleanup.policy={policy}, which deletes what must be kept; set it to compact"
            raise InternalTopicUnfit(routes.alias, topic, reason)
    if configs[mappings]["message.timestamp.type"] != "LogAppendTime":
        reason = "must have message.timestamp.type=LogAppendTime: leases are judged by the broker's clock"
        raise InternalTopicUnfit(routes.alias, mappings, reason)
    if routes.partitions(mappings) != 1:
        reason = f"has {routes.partitions(mappings)} partitions and must have one: the order of leases decides"
        raise InternalTopicUnfit(routes.alias, mappings, reason)
