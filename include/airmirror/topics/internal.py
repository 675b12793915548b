"""A flow's internal topics on the target: made when missing, refused when they would lose what they must keep."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from airmirror.clusters.admin import Admin, connect, describe
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
    """Make the segment topic and ``mm2-offsets`` when they are missing. Raises InternalTopicUnfit, ClusterUnreachable."""
    admin = connect(flow.target)
    there = describe(admin).topics
    settings = flow.settings
    replicas = int(settings.get("offset.storage.replication.factor", "3"))
    partitions = int(settings.get("offset.storage.partitions", "25"))
    segments, progress = segment_topic(flow.source.alias), progress_topic(flow.source.alias)
    missing = [
        NewTopic(name, count, replicas, config=config)
        for name, count, config in ((segments, 1, SEGMENT_CONFIG), (progress, partitions, PROGRESS_CONFIG))
        if name not in there
    ]
    if missing:
        _create(admin, missing)
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


def _create(admin: Admin, topics: list[NewTopic]) -> None:
    for name, future in admin.client.create_topics(topics).items():
        try:
            future.result()
        except KafkaException as error:
            code = error.args[0].code()
            if code == KafkaError.TOPIC_ALREADY_EXISTS:
                continue
            if code in (KafkaError.INVALID_REPLICATION_FACTOR, KafkaError.POLICY_VIOLATION, KafkaError.INVALID_CONFIG):
                reason = f"can't be created: {error.args[0].str()} (see offset.storage.replication.factor)"
                raise InternalTopicUnfit(admin.cluster.alias, name, reason) from error
            if code == KafkaError.TOPIC_AUTHORIZATION_FAILED or code == KafkaError.CLUSTER_AUTHORIZATION_FAILED:
                reason = "can't be created: this user may not; create it, or give the user Create on it"
                raise InternalTopicUnfit(admin.cluster.alias, name, reason) from error
            raise admin.failed(error) from error


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
