"""Compression of record batches, by Kafka's codec numbers; libraries do it, Kafka's framings included.

Nothing is allocated by a length that only the bytes themselves claim: output is taken as it comes, up to a limit.
"""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable
from dataclasses import dataclass

import lz4.frame
import snappy
import xxhash
import zstandard
from kafka.codec import gzip_encode, lz4_encode, snappy_encode

from airmirror.errors import AirmirrorError

LARGEST = 1 << 29  # bytes that a batch can have without its compression; Kafka's own limits are far below
CHUNK = 1 << 20
XERIAL = b"\x82SNAPPY\0"  # how the framing of xerial's snappy begins, which Java's clients use; then two int32 versions
_XERIAL_HEADER_SIZE = 16
_int32 = struct.Struct(">i")


@dataclass(eq=False)
class UnknownCodec(AirmirrorError):
    """A compression type that Kafka did not have when this was written."""

    codec: int

    def __str__(self) -> str:
        return f"compression type {self.codec} is not known; a newer version of Airmirror may know it"


@dataclass(eq=False)
class DecompressionFailed(AirmirrorError):
    """Bytes that are not what the batch's compression type says."""

    codec: int
    reason: str

    def __str__(self) -> str:
        return f"compression type {self.codec}: {self.reason}"


def decompress(codec: int, payload: memoryview) -> bytes | memoryview:
    """The records of a batch, not compressed. Raises DecompressionFailed, UnknownCodec."""
    if codec == 0:
        return payload
    if codec not in _DECOMPRESS:
        raise UnknownCodec(codec)
    return _checked(codec, _DECOMPRESS[codec], payload)


def decompress_lz4_of_format_0(payload: memoryview) -> bytes:
    """What Kafka before 0.10 compressed with lz4: its frames have a wrong header checksum (KAFKA-3160).

    Raises DecompressionFailed.
    """
    return _checked(3, _lz4_of_format_0, payload)


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


def _checked(codec: int, function: Callable[[memoryview], bytes], payload: memoryview) -> bytes:
    try:
        return function(payload)
    except MemoryError:
        raise
    except Exception as error:  # each library raises errors of its own
        raise DecompressionFailed(codec, str(error) or repr(error)) from error


def _gzip(payload: memoryview) -> bytes:
    with gzip.GzipFile(fileobj=io.BytesIO(payload)) as stream:
        return _all(stream.read)


def _zstd(payload: memoryview) -> bytes:
    with zstandard.ZstdDecompressor().stream_reader(payload, read_across_frames=True) as stream:
        return _all(stream.read)


def _all(read: Callable[[int], bytes]) -> bytes:
    parts, size = [], 0
    while part := read(CHUNK):
        size += len(part)
        if size > LARGEST:
            raise _too_large()
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _lz4(payload: memoryview | bytes) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    chunk = max(CHUNK, 4 * len(payload))  # what is left of the payload is copied for each chunk: mostly there is one
    part: bytes = frame.decompress(payload, chunk)
    parts, size = [part], len(part)
    while not frame.eof:
        part = frame.decompress(b"", chunk)
        if not part:
            raise ValueError("the frame is cut off")
        size += len(part)
        if size > LARGEST:
            raise _too_large()
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _lz4_of_format_0(payload: memoryview) -> bytes:
    before = 14 if payload[4] & 0x08 else 6  # of the header's checksum: the content size is optional
    checksum = xxhash.xxh32_digest(payload[4:before])[2:3]
    return _lz4(bytes(payload[:before]) + checksum + bytes(payload[before + 1 :]))


def _snappy(payload: memoryview) -> bytes:
    if payload[: len(XERIAL)] != XERIAL or len(payload) <= _XERIAL_HEADER_SIZE:
        return _snappy_block(payload)
    parts, size, position = [], 0, _XERIAL_HEADER_SIZE
    while position < len(payload):
        length = _int32.unpack_from(payload, position)[0]
        position += _int32.size
        if not 0 < length <= len(payload) - position:
            raise ValueError(f"a block of {length} bytes where {len(payload) - position} are left")
        part = _snappy_block(payload[position : position + length])
        size += len(part)
        if size > LARGEST:
            raise _too_large()
        parts.append(part)
        position += length
    return b"".join(parts)


def _snappy_block(block: memoryview) -> bytes:
    """A block begins with its size without compression; three of its bytes give 64 at most (snappy's format_description)."""
    claimed = shift = 0
    for byte in block[:5]:
        claimed |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if claimed > min(LARGEST, 22 * len(block)):
        raise ValueError(f"a block of {len(block)} bytes that says it holds {claimed}")
    return bytes(snappy.decompress(bytes(block)))


def _too_large() -> ValueError:
    return ValueError(f"more than {LARGEST} bytes without compression")


_DECOMPRESS: dict[int, Callable[[memoryview], bytes]] = {1: _gzip, 2: _snappy, 3: _lz4, 4: _zstd}
