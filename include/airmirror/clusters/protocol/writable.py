"""Partitions that take no transaction's records now: they have no leader, or too few of their replicas are in sync."""

from __future__ import annotations

from collections.abc import Collection

from airmirror.clusters.looking import look_again
from airmirror.clusters.protocol.routes import LeaderNotAvailable, Routes
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.partitions import TopicPartition

LEAST_IN_SYNC = "min.insync.replicas"


def unwritable(
    routes: Routes, partitions: Collection[TopicPartition], seconds: float = 0.0
) -> dict[TopicPartition, str]:
    """The reason for each of ``partitions`` (of refreshed topics) that takes no records; asked again for ``seconds``.

    A topic's configuration is asked for only where a replica is missing. Raises TopicNotFound, FetchFailed,
    BrokerUnreachable.
    """

    def again() -> dict[TopicPartition, str]:
        found = _reasons(routes, partitions)
        if found:
            routes.refresh({key.topic for key in found})
        return found

    return look_again(again, seconds)


def _reasons(routes: Routes, partitions: Collection[TopicPartition]) -> dict[TopicPartition, str]:
    reasons: dict[TopicPartition, str] = {}
    short = []
    for key in partitions:
        try:
            leader = routes.leader(key)
        except LeaderNotAvailable:
            reasons[key] = "it has no leader"
            continue
        if leader.in_sync < leader.replicas:
            short.append((key, leader))
    configs = topic_configs(routes, {key.topic for key, _ in short}, [LEAST_IN_SYNC])
    for key, leader in short:
        least = int(configs.get(key.topic, {}).get(LEAST_IN_SYNC) or 1)
        if leader.in_sync < least:
            found = f"{leader.in_sync} of {leader.replicas} replicas in sync"
            reasons[key] = f"it has {found}, {LEAST_IN_SYNC} asks for {least}"
    return reasons
