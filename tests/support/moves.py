"""What operators do to a cluster that runs: replicas and leaders move, its brokers are configured anew."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager

from confluent_kafka import KafkaException
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka.admin import KafkaAdminClient
from kafka.errors import ElectionNotNeededError
from kafka.errors import KafkaError as Refused
from kafka.structs import TopicPartition
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror_local.brokers import BrokerCluster
from support.topics import SECONDS, Cluster, admin, bootstrap

PREFERRED = 0  # of elections
Replicas = Mapping[TopicPartition, Sequence[int]]


def replicas_of(cluster: BrokerCluster, topics: Sequence[str]) -> dict[TopicPartition, list[int]]:
    """Where partitions with several replicas lie, of those of ``topics`` that are there; the preferred leader first."""
    there = admin(cluster).list_topics(timeout=SECONDS).topics
    return {
        TopicPartition(name, number): list(partition.replicas)
        for name in topics
        if name in there
        for number, partition in there[name].partitions.items()
        if len(partition.replicas) > 1
    }


def reassign(cluster: BrokerCluster, replicas: Replicas) -> None:
    """Let partitions lie on these nodes and no others; returns when they do."""
    wanted = {key: list(nodes) for key, nodes in replicas.items()}
    for attempt in _patiently(Refused):
        with attempt, _client(cluster) as client:
            for error in filter(None, client.alter_partition_reassignments(wanted).values()):
                raise error
    for attempt in _patiently(AssertionError, Refused):
        with attempt, _client(cluster) as client:
            assert not client.list_partition_reassignments(list(replicas))


def lead(cluster: BrokerCluster, partitions: Collection[TopicPartition]) -> None:
    """Let the preferred replica of each of them lead it."""
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    for attempt in _patiently(AssertionError, Refused):
        with attempt, _client(cluster) as client:
            answer = client.elect_leaders(PREFERRED, numbers, raise_errors=False)
            results = [each for topic in answer.replica_election_results for each in topic.partition_result]
            assert {each.error_code for each in results} <= {0, ElectionNotNeededError.errno}, results


def await_whole(cluster: BrokerCluster) -> None:
    """Wait until every replica of every partition is in sync: before an operator ends another node."""
    for attempt in _patiently(AssertionError, KafkaException):
        with attempt:
            topics = admin(cluster).list_topics(timeout=SECONDS).topics.values()
            partitions = [each for topic in topics for each in topic.partitions.values()]
            assert partitions and all(set(each.isrs) == set(each.replicas) for each in partitions)


def set_broker_config(cluster: Cluster, key: str, value: str | None) -> None:
    """Set a config of all brokers while they run, or with None take its default again."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(key, value or "", incremental_operation=operation)
    client = admin(cluster)
    for node in client.list_topics(timeout=SECONDS).brokers:
        resource = ConfigResource(ResourceType.BROKER, str(node), incremental_configs=[entry])
        for future in client.incremental_alter_configs([resource]).values():
            future.result(SECONDS)


@contextmanager
def forgetting(cluster: Cluster) -> Iterator[None]:
    """Brokers forget what they know of a producer as soon as it has no transaction open (KIP-360)."""
    set_broker_config(cluster, "producer.id.expiration.ms", "1")
    try:
        yield
    finally:
        set_broker_config(cluster, "producer.id.expiration.ms", None)


def partitions_of(cluster: Cluster, topics: Collection[str]) -> list[TopicPartition]:
    """The partitions of those of the topics that are there."""
    there = admin(cluster).list_topics(timeout=SECONDS).topics
    return [TopicPartition(name, number) for name in topics if name in there for number in there[name].partitions]


def producers_of(cluster: Cluster, partitions: Collection[TopicPartition]) -> dict[TopicPartition, set[int]]:
    """The ids of the producers of which the leader of each partition knows. Raises Refused."""
    with _client(cluster) as client:
        found = client.describe_producers(list(partitions))
    return {key: {each.producer_id for each in its.active_producers} for key, its in found.items()}


def known_producers(cluster: Cluster, topics: Collection[str]) -> dict[TopicPartition, set[int]]:
    """The same of the partitions of topics, if their leaders answer; else nothing."""
    try:
        return producers_of(cluster, partitions_of(cluster, topics))
    except (Refused, KafkaException):
        return {}


def await_forgotten(cluster: Cluster, topic: str, partitions: Sequence[int]) -> None:
    """Wait until the leaders of these partitions know of no producer."""
    with _client(cluster) as client:
        for attempt in _patiently(AssertionError):
            with attempt:
                found = client.describe_producers([TopicPartition(topic, number) for number in partitions])
                assert not any(each.active_producers for each in found.values()), found


def raise_features(cluster: Cluster, features: Mapping[str, int]) -> None:
    """Raise levels of features of a cluster all of whose nodes know them: ``metadata.version`` to the highest, then these."""
    with _client(cluster) as client:
        _, newest = client.describe_features()["metadata.version"]["supported"]
        for levels in ({"metadata.version": newest}, features):
            answer = client.update_features(dict(levels))
            assert set(answer.values()) <= {"OK"}, answer


@contextmanager
def _client(cluster: Cluster) -> Iterator[KafkaAdminClient]:
    nodes = cluster.brokers if isinstance(cluster, BrokerCluster) else ()
    servers = [node.bootstrap for node in nodes if node.process.running] or [bootstrap(cluster)]
    client = KafkaAdminClient(bootstrap_servers=servers, client_id="moves")
    try:
        yield client
    finally:
        client.close()


def _patiently(*errors: type[BaseException]) -> Retrying:
    """A node that has just begun may not be a leader yet, nor the controller know it."""
    return Retrying(
        retry=retry_if_exception_type(errors), stop=stop_after_delay(SECONDS), wait=wait_fixed(0.1), reraise=True
    )
