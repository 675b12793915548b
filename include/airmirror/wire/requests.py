"""Requests of the hot path, encoded and decoded by hand: Fetch 12 and 13, Produce 9 to 13 (all of the flexible format).

Format: Kafka's protocol guide; its message definitions are FetchRequest.json, ProduceRequest.json and their responses.
Topics go by id from Fetch 13 and Produce 13 on, by name below. Record bytes are never copied: a response gives where
they lie, a request is a list of buffers to be sent one after the other.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.wire.primitives import unsigned_varint

FETCH, PRODUCE = 1, 0
FETCH_VERSIONS = (12, 13)
PRODUCE_VERSIONS = (9, 13)
IN_FLIGHT = 5  # produce requests: the most for which a broker keeps the order and recognises a batch that it has

Buffer = bytes | bytearray | memoryview

_header = struct.Struct(">hhih")
_fetch_partition = struct.Struct(">iiqiqib")
_fetched_partition = struct.Struct(">ihqqq")
_int32 = struct.Struct(">i")
_aborted = struct.Struct(">qqb")
_produced_partition = struct.Struct(">ihqqq")


class MalformedResponse(AirmirrorError, transient=True):
    """Bytes that are no answer to the request that was sent."""

    says = "a malformed response: {0.reason}"
    reason: str


@contextmanager
def _malformed() -> Iterator[None]:
    """Raise MalformedResponse for an answer that can't be read."""
    try:
        yield
    except (IndexError, ValueError, KeyError, struct.error) as error:
        raise MalformedResponse(str(error) or repr(error)) from error


class FetchPosition(NamedTuple):
    """A position to fetch of one partition: the offset, the leader epoch, and the epoch of the batch before."""

    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    max_bytes: int


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


@dataclass(slots=True)
class Fetched:
    """A partition's part of a fetch response; its batches are ``buffer[start:end]`` of the response."""

    error: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: Sequence[AbortedTransaction]
    start: int
    end: int
    diverging_epoch: int = -1
    diverging_end_offset: int = -1


@dataclass(slots=True)
class Produced:
    """A partition's part of a produce response."""

    error: int
    base_offset: int
    message: str | None
    refused: tuple[int, ...] = ()  # the numbers of the records in the batch for which it was refused, where it tells


def encode_fetch(
    version: int,
    correlation_id: int,
    client_id: bytes,
    positions: Mapping[TopicPartition, FetchPosition],
    topic_ids: Mapping[str, UUID],
    *,
    max_wait_ms: int,
    max_bytes: int,
    read_committed: bool,
) -> bytes:
    """A fetch request without a fetch session, its length prefix included."""
    topics: dict[str, list[bytes]] = {}
    for (topic, partition), position in positions.items():
        topics.setdefault(topic, []).append(
            _fetch_partition.pack(
                partition,
                position.leader_epoch,
                position.offset,
                position.last_fetched_epoch,
                -1,  # log start offset: for followers only
                position.max_bytes,
                0,
            )
        )
    parts = [
        _header.pack(FETCH, version, correlation_id, len(client_id)),
        client_id,
        b"\0",
        struct.pack(">iiiibii", -1, max_wait_ms, 1, max_bytes, int(read_committed), 0, -1),
        unsigned_varint(len(topics) + 1),
    ]
    for topic, partitions in topics.items():
        parts.append(topic_ids[topic].bytes if version >= 13 else _compact_string(topic))
        parts.append(unsigned_varint(len(partitions) + 1))
        parts.extend(partitions)
        parts.append(b"\0")
    parts.append(b"\1\1\0")  # no forgotten topics, an empty rack, no tags
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


@_malformed()
def fetch_throttle(response: memoryview) -> int:
    """The time for which the broker wants to be left alone, in ms; the answer has no partitions then. May be malformed."""
    return int(_int32.unpack_from(response, 4 + 1)[0])  # after correlation id, tags


@_malformed()
def decode_fetch(
    version: int, response: memoryview, topics: Mapping[UUID, str]
) -> tuple[int, dict[TopicPartition, Fetched]]:
    """The response's own error and its partitions. ``topics`` names the topic ids (version 13).

    Raises MalformedResponse.
    """
    position = 4 + 1 + 4  # correlation id, tags, throttle time
    error, _session = struct.unpack_from(">hi", response, position)
    position += 6
    found: dict[TopicPartition, Fetched] = {}
    count, position = read_unsigned_varint(response, position)
    for _ in range(count - 1):
        topic, position = _read_topic(version, response, position, topics)
        partitions, position = read_unsigned_varint(response, position)
        for _ in range(partitions - 1):
            number, code, high, stable, log_start = _fetched_partition.unpack_from(response, position)
            position += _fetched_partition.size
            length, position = read_unsigned_varint(response, position)
            aborted: list[AbortedTransaction] = []
            for _ in range(length - 1):
                producer_id, first, _tags = _aborted.unpack_from(response, position)
                aborted.append(AbortedTransaction(producer_id, first))
                position += _aborted.size
            position += 4  # preferred read replica
            size, position = read_unsigned_varint(response, position)
            start, position = position, _after(response, position, size - 1)
            fetched = Fetched(
                error=code,
                high_watermark=high,
                last_stable_offset=stable,
                log_start_offset=log_start,
                aborted=aborted,
                start=start,
                end=position,
            )
            tags, position = read_unsigned_varint(response, position)
            for _ in range(tags):
                tag, position = read_unsigned_varint(response, position)
                length, position = read_unsigned_varint(response, position)
                if tag == 0:
                    fetched.diverging_epoch, fetched.diverging_end_offset = struct.unpack_from(
                        ">iq", response, position
                    )
                position = _after(response, position, length)
            found[TopicPartition(topic, number)] = fetched
        position = _skip_tags(response, position)
    return error, found


def encode_produce(
    version: int,
    correlation_id: int,
    client_id: bytes,
    transactional_id: str | None,
    batches: Mapping[TopicPartition, Sequence[Buffer]],
    topic_ids: Mapping[str, UUID],
    *,
    timeout_ms: int,
) -> list[Buffer]:
    """A produce request (acks = all) of one batch a partition, as buffers to send; the first is the length prefix's.

    A batch is a sequence of buffers too: its header, restamped, and its payload can lie apart.
    """
    topics: dict[str, list[tuple[int, Sequence[Buffer]]]] = {}
    for (topic, partition), batch in batches.items():
        topics.setdefault(topic, []).append((partition, batch))
    buffers: list[Buffer] = []
    pending = [
        _header.pack(PRODUCE, version, correlation_id, len(client_id)),
        client_id,
        b"\0",
        b"\0" if transactional_id is None else _compact_string(transactional_id),
        struct.pack(">hi", -1, timeout_ms),
        unsigned_varint(len(topics) + 1),
    ]
    size = 0
    for topic, partitions in topics.items():
        pending.append(topic_ids[topic].bytes if version >= 13 else _compact_string(topic))
        pending.append(unsigned_varint(len(partitions) + 1))
        for partition, batch in partitions:
            length = sum(map(len, batch))
            pending.append(struct.pack(">i", partition) + unsigned_varint(length + 1))
            buffers.append(b"".join(pending))
            buffers.extend(batch)
            size += len(buffers[-1 - len(batch)]) + length
            pending = [b"\0"]
        pending.append(b"\0")
    pending.append(b"\0")
    buffers.append(b"".join(pending))
    size += len(buffers[-1])
    buffers[0] = struct.pack(">i", size) + bytes(buffers[0])
    return buffers


@_malformed()
def decode_produce(
    version: int, response: memoryview, topics: Mapping[UUID, str]
) -> tuple[int, dict[TopicPartition, Produced]]:
    """A produce response: the time for which the broker wants to be left alone, in ms, and its partitions.

    ``topics`` names the topic ids (version 13). Raises MalformedResponse.
    """
    position = 4 + 1  # correlation id, tags
    found: dict[TopicPartition, Produced] = {}
    count, position = read_unsigned_varint(response, position)
    for _ in range(count - 1):
        topic, position = _read_topic(version, response, position, topics)
        partitions, position = read_unsigned_varint(response, position)
        for _ in range(partitions - 1):
            number, error, base, _append_time, _log_start = _produced_partition.unpack_from(response, position)
            position += _produced_partition.size
            record_errors, position = read_unsigned_varint(response, position)
            first_message: str | None = None
            refused = []
            for _ in range(record_errors - 1):
                refused.append(_int32.unpack_from(response, position)[0])
                message, position = _read_nullable_string(response, position + 4)
                first_message = first_message or message
                position = _skip_tags(response, position)
            message, position = _read_nullable_string(response, position)
            position = _skip_tags(response, position)
            found[TopicPartition(topic, number)] = Produced(error, base, first_message or message, tuple(refused))
        position = _skip_tags(response, position)
    return int(_int32.unpack_from(response, position)[0]), found


def read_unsigned_varint(buffer: memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint and the position after it; IndexError where the buffer ends, ValueError past five bytes."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise ValueError("an unsigned varint of more than five bytes")


def _after(buffer: memoryview, position: int, length: int) -> int:
    """The position after ``length`` bytes (null, -1, has none); IndexError where they are not there."""
    if length > len(buffer) - position:
        raise IndexError(f"{length} bytes wanted, {len(buffer) - position} are left")
    return position + max(length, 0)


def _compact_string(text: str) -> bytes:
    encoded = text.encode()
    return unsigned_varint(len(encoded) + 1) + encoded


def _read_topic(version: int, buffer: memoryview, position: int, topics: Mapping[UUID, str]) -> tuple[str, int]:
    if version < 13:
        name, position = _read_nullable_string(buffer, position)
        return name or "", position
    return topics[UUID(bytes=bytes(buffer[position : position + 16]))], position + 16


def _read_nullable_string(buffer: memoryview, position: int) -> tuple[str | None, int]:
    length, position = read_unsigned_varint(buffer, position)
    if length == 0:
        return None, position
    end = _after(buffer, position, length - 1)
    return str(buffer[position:end], "utf-8"), end


def _skip_tags(buffer: memoryview, position: int) -> int:
    tags, position = read_unsigned_varint(buffer, position)
    for _ in range(tags):
        _, position = read_unsigned_varint(buffer, position)
        length, position = read_unsigned_varint(buffer, position)
        position = _after(buffer, position, length)
    return position
