"""Compression of record batches, by Kafka's codec numbers; libraries do it, Kafka's framings included."""

from __future__ import annotations

from dataclasses import dataclass

import zstandard
from kafka.codec import (
    gzip_decode,
    gzip_encode,
    lz4_decode,
    lz4_decode_old_kafka,
    lz4_encode,
    snappy_decode,
    snappy_encode,
)

from airmirror.errors import AirmirrorError


@dataclass(eq=False)
class UnknownCodec(AirmirrorError):
    """A compression type that Kafka did not have when this was written."""

    codec: int

    def __str__(self) -> str:
        return f"compression type {self.codec} is not known; a newer version of Airmirror may know it"


def decompress(codec: int, payload: memoryview) -> bytes | memoryview:
    """The records of a batch, not compressed."""
    if codec == 0:
        return payload
    if codec == 1:
        return bytes(gzip_decode(bytes(payload)))
    if codec == 2:
        return bytes(snappy_decode(bytes(payload)))
    if codec == 3:
        return bytes(lz4_decode(bytes(payload)))
    if codec == 4:
        # Kafka writes frames without their content size: read as a stream
        return zstandard.ZstdDecompressor().decompressobj().decompress(bytes(payload))
    raise UnknownCodec(codec)


def decompress_lz4_of_format_0(payload: memoryview) -> bytes:
    """What Kafka before 0.10 compressed with lz4: its frames have a wrong header checksum (KAFKA-3160)."""
    return bytes(lz4_decode_old_kafka(bytes(payload)))


def compress(codec: int, records: bytes | memoryview) -> bytes | memoryview:
    """The bytes of a batch after its header, for records that are not compressed."""
    if codec == 0:
        return records
    if codec == 1:
        return bytes(gzip_encode(bytes(records)))
    if codec == 2:
        return bytes(snappy_encode(bytes(records)))
    if codec == 3:
        return bytes(lz4_encode(bytes(records)))
    if codec == 4:
        return zstandard.ZstdCompressor().compress(bytes(records))
    raise UnknownCodec(codec)
