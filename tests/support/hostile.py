"""Topics as bad as a source's log can be: what each kind needs of its topic, what is put in, and what must be counted.

Batches are made with kafka-python's encoder and appended over the hot path's own connection, because no client's producer
writes them as they are wanted here; what only a broker makes (markers, compaction, append times) the broker makes.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import crc32c
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from kafka.record.default_records import DefaultRecordBatchBuilder
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.clusters.protocol.connection import Connection
from airmirror.clusters.protocol.log import MOVED
from airmirror.partitions import TopicPartition
from airmirror.wire.requests import PRODUCE, decode_produce, encode_produce
from support.topics import (
    SECONDS,
    Cluster,
    Record,
    admin,
    await_settled,
    bootstrap,
    open_transaction,
    produce,
    read_all,
    start_offsets,
)

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
LIMIT = 1_048_588  # Kafka's default of max.message.bytes
LONGEST = str(2**63 - 1)
NOON = 1_700_000_000_000
HOUR = 3_600_000
LATE = 2**42  # later than anybody's present, markers' too
# Producers' times: none, 24.8 days apart (2^31 ms) and more, before 1970, in microseconds, at both ends of 64 bits.
TIMES = (
    *(0, -1, NOON, 2**62, 1, NOON - 1, -1, 2**63 - 1, 0, NOON + HOUR, NOON - 2**31, NOON + 2**31, NOON + 2**32 + 1),
    *(-(2**63), NOON, 1000 * NOON, -NOON, -2, 2**63 - 1, -(2**63), -(2**62), NOON),
)


@dataclass(frozen=True)
class Counted:
    """What lies in partition 0 beside the records to be copied; everything else that is not there is a hole."""

    control: int = 0
    aborted: int = 0
    has_holes: bool = False


@dataclass(frozen=True)
class Kind:
    """A kind of log. ``fill`` is given the cluster and a new topic with ``config`` and ``partitions``."""

    name: str
    fill: Callable[[Cluster, str], Counted]
    config: Mapping[str, str] = field(default_factory=dict)
    partitions: int = 1

    def __str__(self) -> str:
        return self.name


def batch(
    records: Sequence[Record], codec: str = "none", *, offsets: Sequence[int] | None = None, **producer: int
) -> bytearray:
    """One batch of the records, whatever their timestamps; ``offsets`` are relative to its first."""
    first = records[0].timestamp if records else 0
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=CODECS[codec],
        is_transactional=False,
        producer_id=producer.get("producer_id", -1),
        producer_epoch=producer.get("producer_epoch", -1),
        base_sequence=producer.get("base_sequence", -1),
        batch_size=1 << 30,
    )
    numbers = range(len(records)) if offsets is None else offsets
    for number, record in zip(numbers, records, strict=True):
        time = first + wrapped(record.timestamp - first)
        assert builder.append(number, time, record.key, record.value, list(record.headers)) is not None
    if records:
        builder._max_timestamp = max(record.timestamp for record in records)
    return bytearray(builder.build())


def wrapped(number: int) -> int:
    """A sum, or a difference, as Java's 64 bits have it: so are times kept in a batch."""
    return (number + 2**63) % 2**64 - 2**63


def reaching(one: bytearray, last: int, count: int | None = None) -> bytearray:
    """The batch with another last offset, relative to its first, and ``count``: as the cleaner leaves one that it took from."""
    struct.pack_into(">i", one, 23, last)
    if count is not None:
        struct.pack_into(">i", one, 57, count)
    struct.pack_into(">I", one, 17, crc32c.crc32c(bytes(one[21:])))
    return one


def append(
    cluster: Cluster,
    topic: str,
    batches: Iterable[bytes | bytearray],
    partition: int = 0,
    transactional_id: str | None = None,
) -> None:
    """Append batches as they are, one after the other; the cluster has one node.

    With ``transactional_id`` a broker takes batches of a transaction, which it is not told of.
    """
    host, _, port = bootstrap(cluster).rpartition(":")
    where = TopicPartition(topic, partition)
    with Connection("test", host, int(port), "hostile") as connection:
        version = connection.version(PRODUCE, 9, 11, "Produce")
        for one in batches:
            for attempt in _patiently():  # a broker may learn a little later that it leads a new partition
                with attempt:
                    number = connection.next_correlation_id()
                    connection.send(
                        encode_produce(
                            version=version,
                            correlation_id=number,
                            client_id=connection.client_id,
                            transactional_id=transactional_id,
                            batches={where: [one]},
                            topic_ids={},
                            timeout_ms=30_000,
                        )
                    )
                    answer = decode_produce(version, connection.receive(), {})[1][where]
                    assert answer.error not in MOVED
            assert answer.error == 0, f"{where}: error {answer.error}, {answer.message}"


def _patiently() -> Retrying:
    return Retrying(
        retry=retry_if_exception_type(AssertionError),
        stop=stop_after_delay(SECONDS),
        wait=wait_fixed(0.1),
        reraise=True,
    )


def alter_configs(cluster: Cluster, topic: str, config: Mapping[str, str]) -> None:
    """Set configs of a topic that is there, and wait until its broker shows them: the answer is the controller's."""
    entries = [ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET) for name, value in config.items()]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=entries)
    client, shown = admin(cluster), ConfigResource(ResourceType.TOPIC, topic)
    for future in client.incremental_alter_configs([resource]).values():
        future.result(SECONDS)
    for attempt in _patiently():
        with attempt:
            (now,) = (future.result(SECONDS) for future in client.describe_configs([shown]).values())
            assert {name: now[name].value for name in config} == dict(config)


def delete_records(cluster: Cluster, topic: str, before: int, partition: int = 0) -> None:
    """Move a partition's log start."""
    client = admin(cluster)
    for future in client.delete_records([Position(topic, partition, before)]).values():
        future.result(SECONDS)


def numbered(count: int, start: int = 0, size: int = 20, time: int = NOON) -> list[Record]:
    """Plain records with keys, values and times of their own."""
    return [
        Record(b"v%d" % number + b"x" * size, b"k%d" % number, (("n", b"%d" % number),), time + number)
        for number in range(start, start + count)
    ]


def sized(size: int, codec: str = "none", time: int = NOON) -> bytearray:
    """A batch of one record that is ``size`` bytes, exactly so without a codec; hardly compressible."""
    noise = random.Random(size).randbytes(size)
    tail = b"\0" * (0 if codec == "none" else 2000)  # else kafka-python would leave out the compression
    length = size - len(batch([Record(noise, b"key", (), time)])) + size
    one = batch([Record(noise[: length - len(tail)] + tail, b"key", (), time)], codec)
    return one if codec != "none" or len(one) == size else sized_by_hand(noise, size, time)


def sized_by_hand(noise: bytes, size: int, time: int) -> bytearray:
    """As ``sized`` where the value's length changes the size of its own length."""
    for length in range(size - 100, size):
        one = batch([Record(noise[:length], b"key", (), time)])
        if len(one) == size:
            return one
    raise AssertionError(f"no record makes a batch of {size} bytes")


def _codecs_and_sizes(cluster: Cluster, topic: str) -> Counted:
    for codec in CODECS:
        sizes = [1, 2, 300, 1]
        append(cluster, topic, [batch(numbered(size), codec) for size in sizes])
        append(cluster, topic, [batch(numbered(1_500, size=850), codec)] if codec != "none" else [])
    return Counted()


def _nulls_and_bytes(cluster: Cluster, topic: str) -> Counted:
    every = [None, b"", b"\0", bytes(range(256)), "größe".encode(), b"x" * 200]
    records = [Record(value, key, (), NOON + number) for number, key in enumerate(every) for value in every]
    for codec in CODECS:
        append(cluster, topic, [batch(records, codec), batch(records[:1], codec), batch(records[-1:], codec)])
    return Counted()


def _headers(cluster: Cluster, topic: str) -> Counted:
    many = tuple((f"h{number % 7}", None if number % 3 == 0 else b"%d" % number) for number in range(2000))
    odd: tuple[tuple[str, bytes | None], ...] = (
        ("", b""),
        ("", None),
        ("same", b"1"),
        ("same", b"1"),
        ("größe", b"\0\xff"),
    )
    records = [Record(b"v", b"k", headers, NOON) for headers in ((), many, odd, (("one", None),), many[::-1], ())]
    for codec in CODECS:
        append(cluster, topic, [batch(records, codec), *(batch([record], codec) for record in records)])
    return Counted()


def _near_the_limit(cluster: Cluster, topic: str) -> Counted:
    append(cluster, topic, [sized(LIMIT), sized(LIMIT - 1), batch(numbered(3)), sized(LIMIT // 2)])
    for codec in CODECS:
        append(cluster, topic, [sized(LIMIT - 10_000, codec)])
    return Counted()


def _larger_than_a_fetch(cluster: Cluster, topic: str) -> Counted:
    noise = random.Random(5).randbytes(100_000)
    records = [Record(noise[number : number + 60_000], None, (), NOON) for number in range(100)]
    append(cluster, topic, [batch(numbered(2)), batch(records), batch(numbered(2))])
    return Counted()


def _timestamps(cluster: Cluster, topic: str) -> Counted:
    records = [Record(b"v%d" % number, None, (), time) for number, time in enumerate(TIMES)]
    append(cluster, topic, [batch(records), batch(records[::-1], "lz4"), *(batch([record]) for record in records)])
    append(cluster, topic, [batch(records[1:2] * 5, "zstd"), batch(records[:1] * 5, "gzip")])
    return Counted()


def _log_append_time(cluster: Cluster, topic: str) -> Counted:
    for codec in CODECS:
        append(cluster, topic, [batch(numbered(10), codec), batch(numbered(1), codec)])
    append(cluster, topic, [sized(LIMIT), sized(LIMIT - 10_000, "gzip")])
    alter_configs(cluster, topic, {"message.timestamp.type": "CreateTime"})
    append(cluster, topic, [batch(numbered(10), "lz4"), batch(numbered(1))])
    alter_configs(cluster, topic, {"message.timestamp.type": "LogAppendTime"})
    append(cluster, topic, [batch(numbered(10), "lz4"), batch(numbered(1))])
    return Counted()


def _interleaved_transactions(cluster: Cluster, topic: str) -> Counted:
    with ExitStack() as stack:
        begun = [
            stack.enter_context(open_transaction(cluster, topic, numbered(5, 10 * number), partition=0))
            for number in range(4)
        ]
        produce(cluster, topic, numbered(7, 100), partition=0, records_per_batch=3, idempotent=True)
        for number, producer in enumerate(begun):
            for record in numbered(4, 200 + 10 * number):
                producer.produce(topic, record.value, record.key, 0, timestamp=record.timestamp)
            producer.flush(SECONDS)
        begun[2].commit_transaction(SECONDS)
        begun[0].abort_transaction(SECONDS)
        append(cluster, topic, [batch(numbered(3, 300), "zstd")])
        begun[1].commit_transaction(SECONDS)
        begun[3].abort_transaction(SECONDS)
        begun[0].begin_transaction()  # the producer whose first transaction was aborted commits its second
        begun[0].produce(topic, b"second", b"chance", 0, timestamp=NOON)
        begun[0].commit_transaction(SECONDS)
    produce(cluster, topic, numbered(5, 400), partition=0, transactional="abort", codec="snappy")
    await_settled(cluster, topic)
    return Counted(control=6, aborted=2 * 9 + 5)


def _only_aborted(cluster: Cluster, topic: str) -> Counted:
    for _ in range(3):
        produce(cluster, topic, numbered(4), partition=0, transactional="abort")
    await_settled(cluster, topic)
    return Counted(control=3, aborted=12)


def _log_start_moved(cluster: Cluster, topic: str) -> Counted:
    append(cluster, topic, [batch(numbered(100), "lz4"), batch(numbered(100, 100))])
    delete_records(cluster, topic, 37)
    return Counted()


def _everything_deleted(cluster: Cluster, topic: str) -> Counted:
    append(cluster, topic, [batch(numbered(10))])
    delete_records(cluster, topic, 10)
    return Counted()


def _retention(cluster: Cluster, topic: str) -> Counted:
    append(cluster, topic, [batch(numbered(10)), batch(numbered(10, 10, time=NOON + 2 * HOUR))])  # the second one rolls
    alter_configs(cluster, topic, {"retention.ms": "1000"})
    append(cluster, topic, [batch(numbered(10, 20, time=LATE))])  # far from expiring, and it rolls too
    for attempt in _patiently():
        with attempt:
            assert start_offsets(cluster, topic)[0] == 20
    return Counted()


def _empty_partitions(cluster: Cluster, topic: str) -> Counted:
    append(cluster, topic, [batch(numbered(5))], partition=1)
    return Counted()


def _compacted(cluster: Cluster, topic: str) -> Counted:
    """Holes at the beginning, inside and at the end of batches, whole batches that are gone, and an empty one."""
    ten = numbered(10)
    append(cluster, topic, [batch(ten, "lz4"), batch(numbered(10, 10)), batch(numbered(10, 20), "gzip")])
    produce(cluster, topic, numbered(5, 90), partition=0, idempotent=True)  # its last batch is kept, empty
    again = [ten[number] for number in (0, 1, 4, 5, 8, 9)]
    append(cluster, topic, [batch([*again, *numbered(10, 10)]), batch([*numbered(1, 24), *numbered(5, 90)])])
    kept = {2, 3, 6, 7, *range(20, 24), *range(25, 30), *range(35, 57)}
    _await_compaction(cluster, topic, kept)
    return Counted(has_holes=True)


def _delete_horizon(cluster: Cluster, topic: str) -> Counted:
    """Tombstones that wait for their time: their batches have the horizon in place of the base timestamp."""
    tombstones = [Record(None, record.key, record.headers, record.timestamp + 50) for record in numbered(6)]
    append(cluster, topic, [batch(numbered(8)), batch(tombstones, "zstd"), batch(numbered(1, 7))])
    produce(cluster, topic, numbered(3, 50), partition=0, transactional="commit")
    await_settled(cluster, topic)
    _await_compaction(cluster, topic, {6, *range(8, 18)})
    return Counted(control=1, has_holes=True)


def _compacted_transactions(cluster: Cluster, topic: str) -> Counted:
    """Aborted records and their markers among compacted ones: what the cleaner leaves of them counts as it is found."""
    produce(cluster, topic, numbered(5), partition=0, transactional="commit")
    produce(cluster, topic, numbered(5, 90), partition=0, transactional="abort")
    produce(cluster, topic, numbered(5), partition=0, transactional="commit")
    await_settled(cluster, topic)
    _await_compaction(cluster, topic, {*range(12, 17)})
    return Counted(control=-1, aborted=-1, has_holes=True)


def _await_compaction(cluster: Cluster, topic: str, kept: set[int]) -> None:
    """Roll the active segment by a record of a later time, and wait until the cleaner has left ``kept`` and that."""
    append(cluster, topic, [batch([Record(b"roll", b"roll", (), LATE)])])
    for attempt in _patiently():
        with attempt:
            assert {record.offset for record in read_all(cluster, topic)[0][:-1]} == kept


ROLLED = {"segment.ms": str(HOUR), "message.timestamp.after.max.ms": LONGEST}
COMPACTED = ROLLED | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}

KINDS = (
    Kind("every codec, from one record to more than a megabyte", _codecs_and_sizes),
    Kind("null, empty and binary keys and values", _nulls_and_bytes),
    Kind("none, odd and 2000 headers", _headers),
    Kind("records close to max.message.bytes", _near_the_limit),
    Kind("a batch larger than a fetch", _larger_than_a_fetch, {"max.message.bytes": "10000000"}),
    Kind("timestamps of any 64 bits, out of order", _timestamps, {"message.timestamp.after.max.ms": LONGEST}),
    Kind("LogAppendTime, now and then", _log_append_time, {"message.timestamp.type": "LogAppendTime"}),
    Kind("interleaved transactions", _interleaved_transactions),
    Kind("only aborted transactions", _only_aborted),
    Kind("log start moved into a batch", _log_start_moved),
    Kind("every record deleted", _everything_deleted),
    Kind("log start moved by retention", _retention, ROLLED),
    Kind("empty partitions", _empty_partitions, partitions=3),
    Kind("compacted, with holes everywhere", _compacted, COMPACTED),
    Kind("delete horizons", _delete_horizon, COMPACTED),
    Kind("compacted transactions", _compacted_transactions, COMPACTED),
)
