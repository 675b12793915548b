"""Effective settings of topics, over the hot path's connections."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest

from airmirror.clusters.protocol.connection import BrokerUnreachable, Connection
from airmirror.clusters.protocol.errors import FetchFailed, error_name
from airmirror.clusters.protocol.routes import OTHERS, UNKNOWN_TOPIC, Routes
from airmirror.partitions import TopicPartition

DESCRIBE_CONFIGS = 32
CLEANUP_POLICY = "cleanup.policy"
TOPIC = 2  # DescribeConfigs' resource type


def topic_configs(routes: Routes, topics: Collection[str], keys: Collection[str]) -> dict[str, dict[str, str]]:
    """The values of ``keys`` for each topic, the cluster's defaults included; a topic that is gone is absent.

    Raises FetchFailed, BrokerUnreachable.
    """
    found: dict[str, dict[str, str]] = {}
    left = set(topics)
    for result in _results(routes, left, keys):
        if result.error_code == UNKNOWN_TOPIC:
            continue
        if result.error_code:
            reason = f"its configuration, for which this user needs DescribeConfigs: {error_name(result.error_code)}"
            raise FetchFailed(routes.alias, TopicPartition(result.resource_name, 0), reason)
        found[result.resource_name] = {config.name: config.value or "" for config in result.configs}
        left.discard(result.resource_name)
    return found


def compacted_now(routes: Routes, topics: Collection[str]) -> set[str]:
    """Those of ``topics`` that are configured as compacted. Raises what ``topic_configs`` does."""
    configs = topic_configs(routes, topics, [CLEANUP_POLICY])
    return {topic for topic, found in configs.items() if "compact" in found.get(CLEANUP_POLICY, "")}


def is_compacted(routes: Routes, topic: str) -> bool:
    """Return whether a topic is configured as compacted now; False if that is unknown."""
    try:
        return topic in compacted_now(routes, [topic])
    except FetchFailed:
        return False


def _results(routes: Routes, topics: Collection[str], keys: Collection[str]) -> Iterator[Any]:
    """What the first node says that gives an answer: metadata names a node that died for a while. As long as ``topics`` has some
    that are not known, what a few others say of them."""
    error = BrokerUnreachable(routes.alias, "of any number", "the cluster names no brokers")
    answered: list[int] = []
    for node in [node for node in routes.nodes for _ in range(2)]:  # a connection that was kept may be closed by now
        if node in answered:
            continue
        if not topics or len(answered) > OTHERS:
            return
        try:
            results = configs_at(routes.connection(node), TOPIC, sorted(topics), keys)
        except BrokerUnreachable as unreachable:
            routes.drop(node)
            error = unreachable
        else:
            answered.append(node)
            yield from results
    if topics and not answered:
        raise error


def configs_at(connection: Connection, kind: int, names: Iterable[str], keys: Collection[str]) -> Any:
    """A broker's results for resources of a kind (DescribeConfigs' number of it), in a list. Raises BrokerUnreachable."""
    of_resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[
            of_resource(resource_type=kind, resource_name=name, configuration_keys=list(keys)) for name in names
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    return connection.request(request, connection.version(DESCRIBE_CONFIGS, 1, 4, "DescribeConfigs")).results
