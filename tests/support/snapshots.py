"""All that a test has on a cluster, to be compared before and after: topics, their configs and ends, groups and their offsets.

The clusters are shared: other processes write there at the same time, and what other tests have left resumes by itself
(transactions time out, groups are forgotten).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from confluent_kafka import ConsumerGroupType, TopicCollection
from confluent_kafka.admin import ConfigResource, ResourceType

from support.groups import committed_by_all
from support.topics import SECONDS, Cluster, admin, end_offsets, start_offsets

KAFKAS = {"__consumer_offsets", "__transaction_state", "__share_group_state"}  # made for the first that needs one


def snapshot(cluster: Cluster, *own: str, alone: bool = False) -> dict[str, Any]:
    """The test's topics, with ids, partitions, configs, beginnings and ends; its groups, with what they have committed.

    ``own``: a topic or group is the test's whose name has one of these in it. ``alone``: the
    cluster is this process's, and the names of others' topics are told too.
    """
    client = admin(cluster)
    every = client.list_topics(timeout=SECONDS).topics.keys() - KAFKAS
    names = sorted(each for each in every if _has(each, own))
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
    kinds = ConsumerGroupType.CLASSIC, ConsumerGroupType.CONSUMER
    groups = [each.group_id for each in listed if each.type in kinds and _has(each.group_id, own)]
    return {"topics": topics, "names": every if alone else names, "groups": committed_by_all(cluster, groups)}


def _has(name: str, parts: Collection[str]) -> bool:
    return any(part in name for part in parts)
