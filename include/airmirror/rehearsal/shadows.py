"""The shadows of a rehearsal: topics and groups of its own on the target, made for it and removed after it.

Their names begin with two underscores: no flow and no MirrorMaker 2 replicates such a topic or moves such a group. The next
rehearsal removes what one that was killed has left.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message

from airmirror.clusters.admin.client import connect, consumer_config, producer, topic_configs
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.deletion import delete_groups, delete_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.clusters.protocol.groups import list_every_group
from airmirror.clusters.protocol.log import EARLIEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster, Flow
from airmirror.evidence.logs import Log
from airmirror.partitions import TopicPartition
from airmirror.topics.names import LONGEST_NAME
from airmirror.windows.declared import times_replaced
from airmirror.wire.headers import headers_of, parts_of
from airmirror.wire.records import Records

BEGIN, END = "__", ".rehearsal"
MOST_RECORDS, MOST_BYTES = 100, 128 << 10  # of a partition
MOST_PARTITIONS = 200
SECONDS = 60.0
DELIVERY_SECONDS = 30.0
MEMBER_MS = 10_000  # after which a reader that was killed is no member any more
LARGEST = 100 << 20  # of a record, for librdkafka
# Kept for the minutes of a rehearsal, whatever their timestamps and keys are, and on no remote store.
CONFIGS = {"retention.ms": "-1", "retention.bytes": "-1", "min.compaction.lag.ms": "3600000"}
NOT_COPIED = ("remote.", "local.retention.", "follower.replication.", "leader.replication.", "max.compaction.lag.ms")

Header = tuple[str, bytes | None]


@dataclass(frozen=True)
class Sample:
    """A record as an application writes it; ``timestamp`` in epoch milliseconds."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    timestamp: int


PROBE = Sample(b"rehearsal", b"a rehearsal of a failover", (), 0)  # into a partition that has no record
Samples = Mapping[TopicPartition, Sequence[Sample]]


@dataclass(frozen=True)
class Shadowed:
    """A remote topic's shadow: partitions and records that were written to it and read again; ``wrong``: what was not, or ""."""

    remote_topic: str
    shadow: str
    partitions: int
    records: int
    wrong: str


def shadow_topic(remote: str) -> str:
    """The name of a remote topic's shadow."""
    name = f"{BEGIN}{remote}{END}"
    return name if len(name) <= LONGEST_NAME else f"{BEGIN}{hashlib.sha256(remote.encode()).hexdigest()}{END}"


def shadow_group(scope: str, group: str) -> str:
    """The name of a group's shadow; ``scope``: the alias of the flow's source, since flows from others have groups of the same
    name."""
    return f"{BEGIN}{group}.{scope}{END}"


def remove_shadows(flow: Flow, topics: Collection[str], scope: str) -> None:
    """Remove these shadow topics, and the shadows of all groups of ``scope``. Raises TopicDeletionRefused,
    GroupDeletionRefused, or the target's error."""
    admin, end = connect(flow.target), shadow_group(scope, "").removeprefix(BEGIN)
    there = set(admin.topic_names())
    delete_topics(admin, [name for name in sorted(topics) if name in there])
    with Routes(flow.target, f"airmirror|{flow.name}|rehearsal") as target:
        groups = [each.name for each in list_every_group(target)]
    delete_groups(admin, [name for name in groups if name.startswith(BEGIN) and name.endswith(end)])


def write_and_read(flow: Flow, target: Routes, ends: Mapping[TopicPartition, int]) -> list[Shadowed]:
    """Write the newest records of remote partitions (``ends``: of what is verified there) to shadow topics as a producer
    does, and read them there as a member of a group. Of more than MOST_PARTITIONS partitions some topics, chosen by chance.

    Raises what reading and making topics does; what the target refuses is in the answer.
    """
    chosen = _chosen(ends)
    shadows = {topic: shadow_topic(topic) for topic in chosen}
    refused = make_shadows(flow, shadows, {topic: target.partitions(topic) for topic in chosen})
    keys = [
        TopicPartition(topic, each)
        for topic in chosen
        if topic not in refused
        for each in range(target.partitions(topic))
    ]
    starts = offsets_with_patience(target, ends.keys() & set(keys), EARLIEST)
    samples = {
        TopicPartition(shadow_topic(key.topic), key.partition): newest(
            target, key, starts.get(key, 0), ends.get(key, 0)
        )
        for key in keys
    }
    timeless = times_replaced(flow)  # their remote topics may stamp records themselves, and so do their shadows
    wrong = write_shadows(flow.target, samples)
    if samples and not wrong:
        wrong = read_shadows(
            flow.target, shadow_group(flow.source.alias, ""), samples, keeps_times=not timeless.include
        )
    rows = []
    for topic in chosen:
        shadow = shadow_topic(topic)
        its = [each for key, each in samples.items() if key.topic == shadow]
        reason = refused.get(topic) or wrong.get(shadow, "")
        rows.append(Shadowed(topic, shadow, len(its), sum(map(len, its)), reason))
    return rows


def newest(target: Routes, key: TopicPartition, start: int, end: int) -> list[Sample]:
    """The last records before ``end``, MOST_RECORDS and MOST_BYTES at most; a probe where there is none."""
    found: list[Sample] = []
    for records in Log(target, key, max(start, end - MOST_RECORDS), end).records():
        found += _samples(records)
    size = 0
    for number, each in enumerate(reversed(found)):
        size += len(each.key or b"") + len(each.value or b"")
        if number and size > MOST_BYTES:
            return found[-number:]
    return found or [PROBE]


def _samples(records: Records) -> list[Sample]:
    found = []
    spans = zip(records.starts.tolist(), records.ends.tolist(), records.timestamps.tolist(), strict=True)
    for start, end, timestamp in spans:
        key, value, tail = parts_of(bytes(records.data[start:end]))
        headers = tuple((name.decode("utf-8", "replace"), each) for name, each in headers_of(tail))
        found.append(Sample(key, value, headers, timestamp))
    return found


def _chosen(ends: Mapping[TopicPartition, int]) -> list[str]:
    """Return as many topics as have MOST_PARTITIONS partitions, at least one, each time others."""
    topics = sorted({key.topic for key in ends})
    random.SystemRandom().shuffle(topics)
    chosen, partitions = list[str](), 0
    for topic in topics:
        partitions += sum(1 for key in ends if key.topic == topic)
        if chosen and partitions > MOST_PARTITIONS:
            break
        chosen.append(topic)
    return sorted(chosen)


def make_shadows(flow: Flow, shadows: Mapping[str, str], partitions: Mapping[str, int]) -> dict[str, str]:
    """Make the shadows of remote topics, with these numbers of partitions and their own configs; why some were not, by topic."""
    admin = connect(flow.target)
    configs = topic_configs(admin, shadows)
    new = []
    for topic, shadow in shadows.items():
        own = {
            name: each.value
            for name, each in configs.get(topic, {}).items()
            if each.is_own and each.value is not None and not each.sensitive and not name.startswith(NOT_COPIED)
        }
        new.append(NewTopic(shadow, partitions[topic], flow.replication_factor, own | CONFIGS))
    names = {shadow: topic for topic, shadow in shadows.items()}
    return {names[each.topic]: str(each) for each in create_topics(admin, new, SECONDS).refused}


def write_shadows(cluster: Cluster, samples: Samples) -> dict[str, str]:
    """Write all records, each partition's in order; why some were not taken, by topic."""
    errors: dict[str, str] = {}

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            errors.setdefault(str(message.topic()), f"a record was not taken: {error.str()}")

    settings = {
        "acks": "all",
        "enable.idempotence": True,
        "batch.num.messages": 1,  # together they might be too large for the topic
        "message.max.bytes": LARGEST,
        "delivery.timeout.ms": round(DELIVERY_SECONDS * 1000),
    }
    client = producer(cluster, settings)
    for key, records in samples.items():
        for each in records:
            arguments: dict[str, Any] = {"partition": key.partition, "headers": list(each.headers)}
            if each.timestamp > 0:
                arguments["timestamp"] = each.timestamp
            client.produce(key.topic, key=each.key, value=each.value, on_delivery=delivered, **arguments)
        client.poll(0)
    left = client.flush(SECONDS)
    if left and not errors:
        errors = dict.fromkeys({key.topic for key in samples}, f"{left} records were not taken in {SECONDS:.0f} s")
    return errors


def read_shadows(cluster: Cluster, group: str, samples: Samples, *, keeps_times: bool) -> dict[str, str]:
    """Read all of it as a member of ``group``, in order, and commit; what was not as it was written, by topic."""
    settings = {
        "group.id": group,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "session.timeout.ms": MEMBER_MS,
        "error_cb": lambda _error: None,
    }
    wanted = {key: list(each) for key, each in samples.items()}
    wrong: dict[str, str] = {}
    consumer = Consumer(consumer_config(cluster) | settings)
    try:
        consumer.subscribe(sorted({key.topic for key in samples}))
        until = time.monotonic() + SECONDS
        while any(wanted.values()) and time.monotonic() < until:
            for message in consumer.consume(500, timeout=0.2):
                if message.error() is not None:
                    continue  # it is tried again; what never came is told below
                key = TopicPartition(str(message.topic()), int(message.partition() or 0))
                expected = wanted[key].pop(0) if wanted[key] else None
                if expected is None or not _is_as_written(message, expected, keeps_times=keeps_times):
                    wrong[key.topic] = f"{key} at offset {message.offset()}: what was read is not what was written"
        for key, left in wanted.items():
            if left:
                wrong.setdefault(key.topic, f"{key}: {len(left)} records were not read within {SECONDS:.0f} s")
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        wrong = dict.fromkeys({key.topic for key in samples}, f"group {group!r}: {error.args[0].str()}") | wrong
    finally:
        consumer.close()
    return wrong


def _is_as_written(message: Message, expected: Sample, *, keeps_times: bool) -> bool:
    _, time_ms = message.timestamp()
    same = (message.key(), message.value(), tuple(message.headers() or ())) == (
        expected.key,
        expected.value,
        expected.headers,
    )
    return same and (not keeps_times or expected.timestamp <= 0 or time_ms == expected.timestamp)
