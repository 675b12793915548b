"""MirrorMaker 2's records: its progress, which Kafka Connect keeps in ``mm2-offsets.<source>.internal``, offset syncs and
heartbeats.

Byte for byte as MirrorMaker 2 4.2.0 writes them (MirrorUtils.java, Connect's OffsetStorageWriter, Heartbeat.java). Progress is
JSON without spaces, not ASCII-escaped; Connect looks keys up by their exact bytes. Heartbeats, replicated as any other topic,
tell the latency.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from kafka.partitioner.default import murmur2

from airmirror.partitions import PartitionFacts
from airmirror.wire.fields import INT32, INT64, STRING, Declared, Fields, fields
from airmirror.wire.primitives import MalformedRecord

SOURCE_CONNECTOR = "MirrorSourceConnector"


@dataclass(frozen=True)
class SourceOffset:
    """The last replicated source offset of a partition; None where the key was deleted."""

    connector: str
    cluster: str
    topic: str
    partition: int
    offset: int | None


def source_offset_key(cluster: str, topic: str, partition: int, connector: str = SOURCE_CONNECTOR) -> bytes:
    """The key; its fields are in the order of a Java HashMap with these keys."""
    return _json([connector, {"cluster": cluster, "partition": partition, "topic": topic}])


def source_offset_value(offset: int) -> bytes:
    return _json({"offset": offset})


def decode_source_offset(key: bytes, value: bytes | None, connector: str = "") -> SourceOffset | None:
    """The progress in a record; None for the keys of other connectors. Raises MalformedRecord.

    ``connector``: its name; by default a name as a dedicated MirrorMaker 2, or Strimzi, gives it.
    """
    try:
        name, partition = json.loads(key)
        if (name != connector) if connector else not str(name).endswith(SOURCE_CONNECTOR):
            return None
        cluster, topic, number = partition["cluster"], partition["topic"], partition["partition"]
        offset = None if value is None else (json.loads(value) or {}).get("offset")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise MalformedRecord(f"not a source offset of Kafka Connect: {error}") from error
    if not (isinstance(cluster, str) and isinstance(topic, str) and isinstance(number, int) and number >= 0):
        raise MalformedRecord("not a source offset of MirrorMaker 2: cluster, topic and partition are of other types")
    if offset is not None and (not isinstance(offset, int) or offset < 0):
        offset = None  # MirrorMaker 2 takes it for uncommitted
    return SourceOffset(str(name), cluster, topic, number, offset)


def source_offset_record(
    cluster: str, topic: str, partition: int, offset: int | None, *, partitions: int, connector: str = SOURCE_CONNECTOR
) -> tuple[int, tuple[bytes, bytes | None]]:
    """The record of a partition's progress, None deletes it; and which of the ``partitions`` of its topic it belongs to."""
    key = source_offset_key(cluster, topic, partition, connector)
    return murmur2_partition(key, partitions), (key, None if offset is None else source_offset_value(offset))


def murmur2_partition(key: bytes, partitions: int) -> int:
    """The partition of Kafka's default partitioner."""
    return int((murmur2(key) & 0x7FFFFFFF) % partitions)


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


@dataclass(frozen=True)
class OffsetSync(Declared, PartitionFacts):
    """A record's offset on the source (``upstream``) and on the target. ``topic`` is the source's (OffsetSync.java)."""

    version: ClassVar[int | None] = None
    key_fields: ClassVar[Fields] = fields(topic=STRING, partition=INT32)
    value_fields: ClassVar[Fields] = fields(upstream=INT64, downstream=INT64)

    upstream: int
    downstream: int


@dataclass(frozen=True)
class Heartbeat(Declared):
    """A flow, by the aliases of its clusters, and the time of the heartbeat in epoch milliseconds."""

    key_fields: ClassVar[Fields] = fields(source=STRING, target=STRING)
    value_fields: ClassVar[Fields] = fields(time_ms=INT64)

    source: str
    target: str
    time_ms: int
