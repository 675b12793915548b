"""Topics and partitions created on a cluster: in requests of bounded size, waited for until they can be written to. And topics
deleted from it, on a person's explicit order."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewPartitions as KafkaNewPartitions
from confluent_kafka.admin import NewTopic as KafkaNewTopic

from airmirror.clusters.admin.client import Admin, code_of, connect, existing, said
from airmirror.clusters.admin.description import NewPartitions, NewTopic
from airmirror.clusters.looking import look_again
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError

REQUEST_RECORDS = 2_000
"""The most metadata records one request makes: a KRaft controller takes 10,000 in one go (KAFKA-19327)."""

log = logging.getLogger(__name__)


class TopicCreationRefused(AirmirrorError):
    """A topic, or its partitions, that can't be created. An operator must change something first."""

    says = "cluster {0.alias!r}: topic {0.topic!r} can't be created or grown: {0.reason}"
    alias: str
    topic: str
    reason: str


class TopicCreationFailed(TopicCreationRefused, transient=True):
    """The same for now: the cluster was too busy, or not all there."""


@dataclass(frozen=True)
class Created:
    """The results of a request: the topics that exist now, and for each of the others the refusal."""

    topics: tuple[str, ...]
    refused: tuple[TopicCreationRefused, ...]


def create_topics(admin: Admin, topics: Sequence[NewTopic], timeout: float = 60.0) -> Created:
    """Create topics and wait, ``timeout`` seconds at most, until all partitions have leaders.

    A topic that is there already counts as created: another process was faster. Raises what describe() raises.
    """

    def request(batch: list[NewTopic]) -> dict[str, Future[None]]:
        new = [
            KafkaNewTopic(topic.name, topic.partitions, topic.replication_factor, config=dict(topic.configs))
            for topic in batch
        ]
        return admin.client.create_topics(new, operation_timeout=timeout, request_timeout=timeout)

    return _ask(admin, topics, request, timeout, KafkaError.TOPIC_ALREADY_EXISTS)


def ensure_topic(
    cluster: Cluster, topic: str, replicas: int, configs: Mapping[str, str], factor_key: str, timeout: float = 30.0
) -> None:
    """Make a topic of one partition where it is missing, as MirrorMaker 2 does. ``factor_key``: the key that ``replicas`` come
    from. Raises TopicCreationRefused."""
    admin = connect(cluster)
    if topic not in existing(admin, [topic], timeout):
        for refused in create_topics(admin, [NewTopic(topic, 1, replicas, configs, factor_key)], timeout).refused:
            raise refused


def create_partitions(admin: Admin, topics: Sequence[NewPartitions], timeout: float = 60.0) -> Created:
    """Give topics more partitions, and wait for them as create_topics() does."""

    def request(batch: list[NewPartitions]) -> dict[str, Future[None]]:
        new = [KafkaNewPartitions(topic.name, topic.partitions) for topic in batch]
        return admin.client.create_partitions(new, operation_timeout=timeout, request_timeout=timeout)

    return _ask(admin, topics, request, timeout, KafkaError.INVALID_PARTITIONS)


_New = TypeVar("_New", NewTopic, NewPartitions)


def _ask(
    admin: Admin,
    topics: Sequence[_New],
    request: Callable[[list[_New]], dict[str, Future[None]]],
    timeout: float,
    done_already: int,
) -> Created:
    refused: list[TopicCreationRefused] = []
    accepted: dict[str, int] = {}
    for batch in _batches(topics):
        answers = request(batch)
        for topic in batch:
            error = answers[topic.name].exception()
            if error is None or code_of(error) == done_already:
                accepted[topic.name] = topic.partitions
            else:
                passes = code_of(error) in _PASSING or _lacks_a_node(admin, topic, error, timeout)
                kind = TopicCreationFailed if passes else TopicCreationRefused
                refused.append(kind(admin.cluster.alias, topic.name, _reason(topic, error)))
    late = _wait_until_usable(admin, accepted, timeout)
    refused += [TopicCreationFailed(admin.cluster.alias, name, f"has no leaders after {timeout:g} s") for name in late]
    return Created(tuple(name for name in accepted if name not in late), tuple(refused))


def _lacks_a_node(admin: Admin, topic: NewTopic | NewPartitions, error: BaseException, timeout: float) -> bool:
    """Return whether there are brokers enough for the replicas, and some are away: replicas of other topics name them."""
    if code_of(error) != KafkaError.INVALID_REPLICATION_FACTOR:
        return False
    found = admin.metadata(timeout)
    partitions = (partition for each in found.topics.values() for partition in each.partitions.values())
    nodes = set(found.brokers).union(*(partition.replicas for partition in partitions))
    return not isinstance(topic, NewTopic) or 0 < topic.replication_factor <= len(nodes)


def _batches(topics: Sequence[_New]) -> Iterator[list[_New]]:
    """Topics in the order given, as many at a time as have room for their records; a larger topic is alone."""
    batch: list[_New] = []
    records = 0
    for topic in topics:
        more = _records(topic)
        if batch and records + more > REQUEST_RECORDS:
            yield batch
            batch, records = [], 0
        batch.append(topic)
        records += more
    if batch:
        yield batch


def _records(topic: NewTopic | NewPartitions) -> int:
    """A topic makes one metadata record for itself, one for each partition and one for each config."""
    if isinstance(topic, NewTopic):
        return 1 + topic.partitions + len(topic.configs)
    return topic.partitions - topic.before


def _wait_until_usable(admin: Admin, topics: Mapping[str, int], timeout: float) -> set[str]:
    """The topics that after ``timeout`` seconds still lack a partition or a leader."""

    def unusable() -> set[str]:
        usable = {
            name
            for name, topic in admin.metadata(timeout).topics.items()
            if len(topic.partitions) >= topics.get(name, 0) and all(p.leader >= 0 for p in topic.partitions.values())
        }
        return topics.keys() - usable

    return look_again(unusable, timeout) if topics else set()


_PASSING = {
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.THROTTLING_QUOTA_EXCEEDED,
    KafkaError.REASSIGNMENT_IN_PROGRESS,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}


def _reason(topic: NewTopic | NewPartitions, error: BaseException) -> str:
    reason = said(error)
    way_out = _WAYS_OUT.get(code_of(error))
    if isinstance(topic, NewTopic) and code_of(error) == KafkaError.INVALID_REPLICATION_FACTOR:
        way_out = f"set {topic.factor_key} to the number of brokers at most"
    elif isinstance(topic, NewPartitions) and code_of(error) == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        way_out = "the user of the target needs ALTER on the topic"
    return f"{reason}; {way_out}" if way_out else reason


_WAYS_OUT = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the user of the target needs CREATE and DESCRIBE on the topic",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the user of the target needs CREATE on the cluster",
    KafkaError.INVALID_CONFIG: "name the config in config.properties.exclude",
    KafkaError.POLICY_VIOLATION: "create the topic by hand as the cluster's policy wants it, or exclude it",
}


class TopicDeletionRefused(AirmirrorError):
    """A topic that can't be deleted."""

    says = "cluster {0.cluster!r}: topic {0.topic!r} can't be deleted: {0.reason}"
    cluster: str
    topic: str
    reason: str


class TopicDeletionFailed(TopicDeletionRefused, transient=True):
    """The same for now: the cluster was too busy, or not all there."""


def delete_topics(admin: Admin, names: Collection[str], timeout: float = 60.0) -> None:
    """Delete topics and wait until the cluster does not list them any more; one that is not there is no error.

    Raises TopicDeletionRefused, TopicDeletionFailed, and what describe() raises.
    """
    if not names:
        return
    for name, future in admin.client.delete_topics(list(names), request_timeout=timeout).items():
        try:
            future.result()
        except KafkaException as error:
            cause = error.args[0]
            if cause.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                kind = TopicDeletionFailed if cause.code() in _PASSING else TopicDeletionRefused
                raise kind(admin.cluster.alias, name, cause.str()) from error

    def left() -> set[str]:
        return set(names).intersection(admin.topic_names(timeout))

    for name in sorted(look_again(left, timeout)):
        raise TopicDeletionFailed(admin.cluster.alias, name, f"it is still there after {timeout:g} s")
