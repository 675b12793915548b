"""A flow's internal topics on the target: made when missing, refused when they would lose what they must keep."""

from __future__ import annotations

from airmirror.clusters.admin import connect, describe
from airmirror.clusters.creation import create_topics
from airmirror.clusters.description import NewTopic
from airmirror.clusters.routes import Routes, TopicNotFound, patiently
from airmirror.clusters.topic_configs import topic_configs
from airmirror.config import Flow
from airmirror.naming import progress_topic, segment_topic
from airmirror.windows.errors import InternalTopicUnfit

HOUR_MS = 3_600_000
READY_SECONDS = 30.0
# Claims must not be compacted away while they could still decide who writes (invariant B).
SEGMENT_CONFIG = {
    "cleanup.policy": "compact",
    "message.timestamp.type": "LogAppendTime",
    "min.compaction.lag.ms": str(24 * HOUR_MS),
    "segment.ms": str(24 * HOUR_MS),
}
PROGRESS_CONFIG = {"cleanup.policy": "compact", "segment.ms": str(HOUR_MS)}


def ensure_internal_topics(flow: Flow) -> None:
    """Make the segment topic and ``mm2-offsets`` when they are missing. Raises InternalTopicUnfit, TopicCreationRefused."""
    admin = connect(flow.target)
    there = describe(admin).topics
    settings = flow.settings
    replicas = int(settings.get("offset.storage.replication.factor", "3"))
    partitions = int(settings.get("offset.storage.partitions", "25"))
    segments, progress = segment_topic(flow.source.alias), progress_topic(flow.source.alias)
    missing = [
        NewTopic(name, count, replicas, config)
        for name, count, config in ((segments, 1, SEGMENT_CONFIG), (progress, partitions, PROGRESS_CONFIG))
        if name not in there
    ]
    for refused in create_topics(admin, missing, READY_SECONDS).refused if missing else ():
        raise refused
    with Routes(flow.target, f"airmirror|{flow.name}|topics") as routes:
        for attempt in patiently(READY_SECONDS, _NotYet):
            with attempt:
                try:
                    routes.refresh([segments, progress])
                except TopicNotFound as error:
                    raise _NotYet(error.cluster, error.topic) from error
        _check(routes, segments, progress)


class _NotYet(TopicNotFound):
    """A topic that was created a moment ago and is not known everywhere."""


def _check(routes: Routes, segments: str, progress: str) -> None:
    configs = topic_configs(routes, [segments, progress], ["cleanup.policy", "message.timestamp.type"])
    for topic in (segments, progress):
        policy = configs[topic]["cleanup.policy"]
        if policy != "compact":
            reason = f"has cleanup.policy={policy}, which deletes what must be kept; set it to compact"
            raise InternalTopicUnfit(routes.alias, topic, reason)
    if configs[segments]["message.timestamp.type"] != "LogAppendTime":
        reason = "must have message.timestamp.type=LogAppendTime: claims are judged by the broker's clock"
        raise InternalTopicUnfit(routes.alias, segments, reason)
    if routes.partitions(segments) != 1:
        reason = f"has {routes.partitions(segments)} partitions and must have one: the order of claims decides"
        raise InternalTopicUnfit(routes.alias, segments, reason)
