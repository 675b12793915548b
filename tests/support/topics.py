"""Topics of a test: created, and filled and read with confluent-kafka, independently of the code under test."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal
from uuid import uuid4

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror_local.brokers import Broker, BrokerCluster

Cluster = Broker | BrokerCluster | str
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
SECONDS = 120.0
# To all nodes at once: else a client looks every 50 ms whether a connection that it wants has come about. Not for what
# fetches, which then waits for seconds at times.
AT_ONCE: dict[str, str | int | bool] = {"enable.sparse.connections": False, "log_level": 0}
SETTLE_SECONDS = 60.0
ANSWER_SECONDS = 10.0  # after which a client that asks a node that is not there any more is replaced


@dataclass(frozen=True, slots=True)
class Record:
    """A record, to be produced or as it was read. ``timestamp`` is in ms; 0 is the producer's present when produced."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0
    timestamp_type: int = 1  # 1 CreateTime, 2 LogAppendTime (confluent-kafka's numbers)
    offset: int = -1

    @property
    def content(self) -> tuple[bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]:
        """What must be equal on both sides (invariant D)."""
        return self.key, self.value, self.headers, self.timestamp


class NotSettled(AssertionError):
    """A partition whose last stable offset stays below its high watermark: a transaction is open."""


def bootstrap(cluster: Cluster) -> str:
    return cluster if isinstance(cluster, str) else cluster.bootstrap


def admin(cluster: Cluster) -> AdminClient:
    return _admin(bootstrap(cluster))


@lru_cache(maxsize=8)
def _admin(servers: str) -> AdminClient:
    # Kept, since a new one takes 50 ms to connect; short backoffs, since brokers restart in tests.
    return AdminClient({"bootstrap.servers": servers, "reconnect.backoff.max.ms": 100, "log_level": 0})


def forget_clients() -> None:
    """Make new admin clients from now on: those of a node that was killed may wait in vain for its coordinators."""
    _admin.cache_clear()


def create_topic(
    cluster: Cluster, name: str, partitions: int = 1, config: Mapping[str, str] | None = None, replicas: int = 1
) -> str:
    """Create a topic, wait until every partition has a leader that serves it, and return its name.

    A leader may be named before it serves: librdkafka then tries its first batches again, and not always in order.
    """
    client = admin(cluster)
    new = NewTopic(name, partitions, replicas, config=dict(config or {}))
    try:
        client.create_topics([new])[name].result(SECONDS)
    except KafkaException as dropped:
        if dropped.args[0].code() != KafkaError._DESTROY_BROKER:
            raise
        try:  # librdkafka drops questions where a node comes back: it may have been done
            client.create_topics([new])[name].result(SECONDS)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    for attempt in _patiently(AssertionError):
        with attempt:
            found = client.list_topics(name, timeout=SECONDS).topics[name]
            assert len(found.partitions) == partitions
            assert all(partition.leader >= 0 for partition in found.partitions.values())
    end_offsets(cluster, name)
    return name


def place_on_node(cluster: BrokerCluster, name: str, partitions: int, node: Broker) -> str:
    """Create a topic whose only replicas lie on one node, wait for its leaders, and return its name."""
    number = cluster.brokers.index(node) + 1
    new = NewTopic(name, partitions, replica_assignment=[[number]] * partitions)
    admin(cluster).create_topics([new])[name].result(SECONDS)
    for attempt in _patiently(AssertionError):
        with attempt:
            found = admin(cluster).list_topics(name, timeout=SECONDS).topics[name].partitions.values()
            assert [partition.leader for partition in found] == [number] * partitions
    end_offsets(cluster, name)
    return name


def delete_topic(cluster: Cluster, *names: str) -> None:
    """Delete topics and wait until the cluster does not know them any more."""
    client = admin(cluster)
    there = client.list_topics(timeout=SECONDS).topics
    for name, deleted in client.delete_topics(list(names)).items():
        try:
            deleted.result(SECONDS)
        except KafkaException as error:  # librdkafka asks again where a node comes back: it may have been done
            if name not in there or error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    for attempt in _patiently(AssertionError):
        with attempt:
            assert not client.list_topics(timeout=SECONDS).topics.keys() & set(names)


def topics_of(cluster: Cluster) -> set[str]:
    """All topics but Kafka's own."""
    return {name for name in admin(cluster).list_topics(timeout=SECONDS).topics if not name.startswith("__")}


def delete_all_topics(cluster: Cluster) -> None:
    if names := topics_of(cluster):
        delete_topic(cluster, *names)


def set_config(cluster: Cluster, topic: str, key: str, value: str | None) -> None:
    """Set a topic's config, or with None take the cluster's default again."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(key, value or "", incremental_operation=operation)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = admin(cluster)
    for future in client.incremental_alter_configs([resource]).values():
        future.result(SECONDS)


def leader(cluster: Cluster, topic: str, partition: int = 0) -> int:
    """The node that leads a partition; -1 for none."""
    return int(admin(cluster).list_topics(topic, timeout=SECONDS).topics[topic].partitions[partition].leader)


def await_nodes(cluster: Cluster, count: int) -> None:
    """Wait until the cluster names so many nodes: one that was killed is named for its session's time."""
    for attempt in _patiently(AssertionError, KafkaException):
        with attempt:
            try:
                nodes = admin(cluster).list_topics(timeout=ANSWER_SECONDS).brokers
            except KafkaException:
                forget_clients()
                raise
            assert len(nodes) == count


def await_in_sync(cluster: Cluster, topic: str, counts: Mapping[int, int]) -> None:
    """Wait until every node that lives says that these partitions have so many replicas in sync.

    On a busy machine a node that lives may miss heartbeats, and a leader learn later than others that a follower has gone.
    """
    nodes = cluster.brokers if isinstance(cluster, BrokerCluster) else ()
    for server in [node.bootstrap for node in nodes if node.process.running] or [bootstrap(cluster)]:
        for attempt in _patiently(AssertionError, KafkaException):
            with attempt:
                client = AdminClient({"bootstrap.servers": server, "log_level": 0})  # it asks the one that it knows
                found = client.list_topics(topic, timeout=SECONDS).topics[topic].partitions
                assert {number: len(found[number].isrs) for number in counts} == counts


def produce(
    cluster: Cluster,
    topic: str,
    records: Iterable[Record],
    *,
    codec: Codec = "none",
    records_per_batch: int | None = None,
    transactional: Literal["commit", "abort"] | None = None,
    idempotent: bool = False,
    partition: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> int:
    """Produce the records in order and return how many; the partition is the given one, or the key's.

    ``records_per_batch`` makes every batch of a partition hold exactly that many (the last one: the rest); without it
    each partition's records are one batch, as long as they fit (10,000 records, a megabyte).
    ``transactional`` writes all of them in one transaction, which is committed or aborted. An ``idempotent`` producer
    takes librdkafka half a second to start.
    """
    with _producer(
        cluster, codec, records_per_batch, settings, transactional=transactional is not None, idempotent=idempotent
    ) as producer:
        if transactional:
            producer.begin_transaction()
        count = _send(producer, topic, records, partition)
        if transactional == "commit":
            producer.commit_transaction(SECONDS)
        elif transactional == "abort":
            producer.flush(SECONDS)  # else the records would never reach the log
            producer.abort_transaction(SECONDS)
        return count


@contextmanager
def open_transaction(
    cluster: Cluster, topic: str, records: Iterable[Record], *, partition: int | None = None, codec: Codec = "none"
) -> Iterator[Producer]:
    """A transaction with these records in the log and no end; aborted when the block ends, unless it was ended in it."""
    its = {"transactional.id": f"test-{uuid4()}"}
    with _producer(cluster, codec, None, its, transactional=True) as producer:
        producer.begin_transaction()
        _send(producer, topic, records, partition)
        yield producer
        try:
            producer.abort_transaction(SECONDS)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                # It has looked for its coordinator while a test let nobody see any, and is lost: a new one aborts what is open.
                with _producer(cluster, codec, None, its, transactional=True):
                    return
            if error.args[0].code() != KafkaError._STATE:  # no transaction is open any more
                raise


def end_offsets(
    cluster: Cluster, topic: str, isolation: Literal["read_committed", "read_uncommitted"] = "read_uncommitted"
) -> dict[int, int]:
    """Per partition the high watermark, or the last stable offset under ``read_committed``."""
    return _list_offsets(cluster, topic, OffsetSpec.latest(), isolation)


def start_offsets(cluster: Cluster, topic: str) -> dict[int, int]:
    """Per partition the log start offset."""
    return _list_offsets(cluster, topic, OffsetSpec.earliest(), "read_uncommitted")


def await_settled(cluster: Cluster, topic: str) -> dict[int, int]:
    """Wait until no transaction is open in the topic (a commit is answered before its markers are written).

    Returns the end offsets. Raises NotSettled with the partitions.
    """
    for attempt in _patiently(NotSettled):
        with attempt:
            stable = end_offsets(cluster, topic, "read_committed")
            ends = end_offsets(cluster, topic)
            if stable != ends:
                open_partitions = {p: (stable[p], ends[p]) for p in ends if stable[p] != ends[p]}
                raise NotSettled(f"{topic}: open transactions, partition: (last stable, end) = {open_partitions}")
    return ends


def read_all(
    cluster: Cluster,
    topic: str,
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
    *,
    settled: bool = True,
) -> dict[int, list[Record]]:
    """Every record of every partition, in log order.

    Under ``read_committed`` waits for open transactions to end first; with ``settled=False`` it reads up to the
    last stable offset at once.
    """
    if settled and isolation == "read_committed":
        await_settled(cluster, topic)
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap(cluster),
            "group.id": "read_all",  # librdkafka wants one; nothing is committed
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "check.crcs": True,
            "fetch.wait.max.ms": 5,
            "log_level": 0,
        }
    )
    starts = start_offsets(cluster, topic)
    found: dict[int, list[Record]] = {partition: [] for partition in starts}
    try:
        consumer.assign([TopicPartition(topic, partition, start) for partition, start in starts.items()])
        reading = set(found)
        last_answer = time.monotonic()
        while reading:
            messages = consumer.consume(10_000, timeout=0.01)  # returns early only when it has all 10,000
            if messages:
                last_answer = time.monotonic()
            silent = time.monotonic() - last_answer
            assert silent < SECONDS, f"{topic}: no answer in {SECONDS:g} s, still reading partitions {sorted(reading)}"
            for message in messages:
                error = message.error()
                if error is None:
                    found[message.partition()].append(_record(message))
                elif error.code() == KafkaError._PARTITION_EOF:
                    reading.discard(message.partition())
                else:
                    raise AssertionError(f"{topic} partition {message.partition()}: {error}")
    finally:
        consumer.close()
    return found


def assert_mirrored(
    source: Cluster,
    topic: str,
    target: Cluster,
    remote_topic: str,
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed",
) -> int:
    """Every record of every partition is on both sides with equal key, value, headers and timestamp, in equal order.

    ``isolation`` is how the source is read; the target is always read committed. Returns how many records were equal,
    which a test compares with what it produced.
    """
    expected = read_all(source, topic, isolation)
    actual = read_all(target, remote_topic)
    assert set(actual) == set(expected), f"{remote_topic}: partitions {sorted(actual)}, expected {sorted(expected)}"
    for partition, records in expected.items():
        copies = actual[partition]
        for record, copy in zip(records, copies, strict=False):
            assert copy.content == record.content, (
                f"{topic}-{partition}: source offset {record.offset} {record}, target offset {copy.offset} {copy}"
            )
        assert len(copies) == len(records), (
            f"{topic}-{partition}: {len(records)} records, {len(copies)} copies; "
            f"the first that is missing or too many: {(records[len(copies) :] or copies[len(records) :])[0]}"
        )
    return sum(map(len, expected.values()))


@contextmanager
def _producer(
    cluster: Cluster,
    codec: Codec,
    records_per_batch: int | None,
    settings: Mapping[str, str] | None,
    *,
    transactional: bool,
    idempotent: bool = False,
) -> Iterator[Producer]:
    configuration = AT_ONCE | {
        "bootstrap.servers": bootstrap(cluster),
        "compression.type": codec,
        "linger.ms": 10_000,  # only full batches leave, however slow the machine is; flush sends the rest
        "enable.idempotence": idempotent or transactional,
        "max.in.flight.requests.per.connection": 5 if idempotent or transactional else 1,  # in order
        "queue.buffering.max.messages": 1_000_000,
    }
    if records_per_batch is not None:
        configuration |= {"batch.num.messages": records_per_batch, "batch.size": 100_000_000}
        configuration |= {"message.max.bytes": 100_000_000}
    if transactional:
        # a test leaves one open as long as it likes
        configuration |= {"transactional.id": f"test-{uuid4()}", "transaction.timeout.ms": 600_000}
    producer = Producer(configuration | dict(settings or {}))
    if transactional:
        producer.init_transactions(SECONDS)
    yield producer


def _send(producer: Producer, topic: str, records: Iterable[Record], partition: int | None) -> int:
    failures: list[KafkaError] = []

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failures.append(error)

    # Records of an unknown topic wait elsewhere, and a flush sends the few that have come from there as a batch.
    producer.list_topics(topic, SECONDS)
    count = 0
    for record in records:
        if count % 10_000 == 0:
            producer.poll(0)
        producer.produce(
            topic,
            record.value,
            record.key,
            -1 if partition is None else partition,
            timestamp=record.timestamp,
            headers=list(record.headers),
            on_delivery=delivered,
        )
        count += 1
    left = producer.flush(SECONDS)
    assert not left and not failures, f"{topic}: {left} records not sent, errors {failures[:3]}"
    return count


def _record(message: Message) -> Record:
    timestamp_type, timestamp = message.timestamp()
    return Record(
        value=message.value(),
        key=message.key(),
        headers=tuple(message.headers() or ()),
        timestamp=timestamp,
        timestamp_type=timestamp_type,
        offset=message.offset(),
    )


def _list_offsets(cluster: Cluster, topic: str, spec: OffsetSpec, isolation: str) -> dict[int, int]:
    level = IsolationLevel.READ_COMMITTED if isolation == "read_committed" else IsolationLevel.READ_UNCOMMITTED
    partitions = admin(cluster).list_topics(topic, timeout=SECONDS).topics[topic].partitions
    asked = {TopicPartition(topic, partition): spec for partition in partitions}
    for attempt in _patiently(AssertionError, KafkaException):  # a node that has just started again may be fenced
        with attempt:
            try:
                answers = admin(cluster).list_offsets(asked, isolation_level=level, request_timeout=ANSWER_SECONDS)
                found = {asked_for.partition: answer.result(SECONDS).offset for asked_for, answer in answers.items()}
                assert all(offset >= 0 for offset in found.values()), f"{topic}: {found}"
                return found
            except (AssertionError, KafkaException):
                _admin.cache_clear()  # one that once found no leaders, or a node that was killed, may find none for ever
                raise
    raise AssertionError("unreachable")


def _patiently(*errors: type[BaseException], seconds: float = SETTLE_SECONDS) -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(errors),
        wait=wait_fixed(0.02),
        stop=stop_after_delay(seconds),
        reraise=True,
    )
