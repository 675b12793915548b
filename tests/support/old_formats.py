"""Messages of formats 0 and 1, made with kafka-python's encoder: no producer of today writes them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from kafka.codec import gzip_encode, lz4_encode, lz4_encode_old_kafka, snappy_encode
from kafka.record.legacy_records import LegacyRecordBatchBuilder


@dataclass(frozen=True)
class Message:
    """What formats 0 and 1 can hold; ``timestamp`` in ms is left out of format 0."""

    key: bytes | None
    value: bytes | None
    timestamp: int


def plain(messages: Sequence[Message], magic: int, base: int) -> bytes:
    """Messages without compression, with consecutive offsets from ``base`` on."""
    return _encode(messages, magic, range(base, base + len(messages)))


def compressed(
    messages: Sequence[Message],
    magic: int,
    codec: int,
    base: int,
    *,
    append_time: int | None = None,
    kept: Sequence[int] | None = None,
    inside: bytes | None = None,
) -> bytes:
    """One compressed message around ``messages``, with consecutive offsets from ``base`` on.

    ``append_time`` makes it one of LogAppendTime; ``kept`` are the numbers of those that compaction has left; ``inside``
    is put in their place as it is.
    """
    numbers = list(range(len(messages)) if kept is None else kept)
    offsets = [base + number if magic == 0 else number for number in numbers]
    if inside is None:
        inside = _encode([messages[number] for number in numbers], magic, offsets)
    lz4 = lz4_encode_old_kafka if magic == 0 else lz4_encode
    value = {1: gzip_encode, 2: snappy_encode, 3: lz4}[codec](inside)
    time = append_time if append_time is not None else max((message.timestamp for message in messages), default=-1)
    attributes = codec | (0 if append_time is None else 8)
    body = struct.pack(">BB", magic, attributes) + (b"" if magic == 0 else struct.pack(">q", time))
    body += struct.pack(">ii", -1, len(value)) + bytes(value)
    last = base + (numbers[-1] if numbers else 0)
    return struct.pack(">qiI", last, len(body) + 4, zlib.crc32(body)) + body


def _encode(messages: Sequence[Message], magic: int, offsets: Sequence[int]) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 30)
    for message, offset in zip(messages, offsets, strict=True):
        assert builder.append(offset, message.timestamp, message.key, message.value) is not None
    return bytes(builder.build())
