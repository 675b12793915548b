"""The remote topics of a flow, brought about: both clusters are looked at, and what the plan says is created."""

from __future__ import annotations

import logging
from dataclasses import replace

from airmirror.clusters.admin import TIMEOUT, Admin, connect, describe, topic_configs
from airmirror.clusters.creation import TopicCreationRefused, create_partitions, create_topics
from airmirror.clusters.description import ClusterDescription, ConfigValue
from airmirror.config import Flow
from airmirror.topics.names import select
from airmirror.topics.remote import Topic, TopicPlan, plan

log = logging.getLogger(__name__)


def look(flow: Flow, source: Admin | None = None, target: Admin | None = None, timeout: float = TIMEOUT) -> TopicPlan:
    """What the flow's remote topics need now. Raises what describe() raises, for either cluster."""
    source, target = source or connect(flow.source), target or connect(flow.target)
    here, there = describe(source, timeout), describe(target, timeout)
    remote = select(flow, here.topics)
    new = [topic for topic, name in remote.items() if name not in there.topics]
    old = [name for name in remote.values() if name in there.topics]
    return plan(flow, _topics(here, topic_configs(source, new)), _topics(there, topic_configs(target, old)))


def apply(flow: Flow, planned: TopicPlan, target: Admin | None = None) -> tuple[TopicPlan, list[TopicCreationRefused]]:
    """Create what the plan says, and wait until it can be written to; at most ``admin.timeout.ms`` for each kind.

    Returns the plan with only the topics that are ready, and what the target refused (one topic refused holds up no
    other). Raises what describe() raises.
    """
    if not planned.create and not planned.grow:
        return planned, []
    target = target or connect(flow.target)
    timeout = int(flow.settings["admin.timeout.ms"]) / 1000
    created = create_topics(target, planned.create, timeout)
    grown = create_partitions(target, planned.grow, timeout)
    for topic in planned.create:
        if topic.name in created.topics:
            log.info("created topic %s on %s with %s partitions", topic.name, target.cluster.alias, topic.partitions)
    for more in planned.grow:
        if more.name in grown.topics:
            log.info("topic %s on %s now has %s partitions", more.name, target.cluster.alias, more.partitions)
    refused = [*created.refused, *grown.refused]
    not_ready = {error.topic for error in refused}
    ready = {topic: remote for topic, remote in planned.topics.items() if remote not in not_ready}
    return replace(planned, topics=ready), refused


def _topics(cluster: ClusterDescription, configs: dict[str, dict[str, ConfigValue]]) -> dict[str, Topic]:
    return {name: Topic(partitions, configs.get(name, {})) for name, partitions in cluster.topics.items()}
