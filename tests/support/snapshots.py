"""Everything that a cluster has, to be compared before and after: topics, their configs and ends, groups and their offsets."""

from __future__ import annotations

from typing import Any

from confluent_kafka import ConsumerGroupType, TopicCollection
from confluent_kafka.admin import ConfigResource, ResourceType

from support.groups import committed_by_all
from support.topics import SECONDS, Cluster, admin, end_offsets, start_offsets

GROUPS = "__consumer_offsets"  # Kafka's own: made for the first group, and any position adds a record


def snapshot(cluster: Cluster) -> dict[str, Any]:
    """Topics with their ids, partitions, configs, beginnings and ends; groups with what they have committed."""
    client = admin(cluster)
    names = sorted(client.list_topics(timeout=SECONDS).topics.keys() - {GROUPS})
    described = client.describe_topics(TopicCollection(names))
    resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    configs = {resource.name: future.result(SECONDS) for resource, future in client.describe_configs(resources).items()}
    topics = {}
    for name, future in described.items():
        topic = future.result(SECONDS)
        logs = start_offsets(cluster, name), end_offsets(cluster, name)
        its = {key: (each.value, each.source) for key, each in configs[name].items()}
        topics[name] = str(topic.topic_id), len(topic.partitions), its, logs
    listed = client.list_consumer_groups().result(SECONDS).valid
    groups = [each.group_id for each in listed if each.type in (ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER)]
    return {"topics": topics, "groups": committed_by_all(cluster, groups)}
