"""Compression of record batches, by Kafka's codec numbers; libraries do it, Kafka's framings included.

Nothing is allocated by a length that only the bytes themselves claim: output is taken as it comes, up to ``largest`` bytes.
"""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable, Iterable, Iterator

import lz4.frame
import snappy
import xxhash
from backports import zstd
from kafka.codec import gzip_encode, lz4_encode, snappy_encode

from airmirror.errors import AirmirrorError
from airmirror.wire.batch import LARGEST

CHUNK = 1 << 20
_PIECE = 1 << 17
XERIAL = b"\x82SNAPPY\0"  # how the framing of xerial's snappy begins, which Java's clients use; then two int32 versions
_XERIAL_HEADER_SIZE = 16
_int32 = struct.Struct(">i")


class UnknownCodec(AirmirrorError):
    """A compression type that Kafka did not have when this was written."""

    says = "compression type {0.codec} is not known; a newer version of Airmirror may know it"
    codec: int


class DecompressionFailed(AirmirrorError):
    """Bytes that are not what the batch's compression type says."""

    says = "compression type {0.codec}: {0.reason}"
    codec: int
    reason: str


class TooLarge(AirmirrorError):
    """Bytes that are more without their compression than the caller takes."""

    says = "more than {0.limit} bytes without compression"
    limit: int


def decompress(codec: int, payload: memoryview, largest: int = LARGEST) -> memoryview:
    """The records of a batch, not compressed. Raises DecompressionFailed, TooLarge, UnknownCodec."""
    if codec == 0:
        return payload
    out = bytearray()
    decompress_into(out, codec, payload, largest)
    return memoryview(out)


def decompress_into(out: bytearray, codec: int, payload: memoryview, largest: int = LARGEST) -> None:
    """Append the records of a batch, not compressed; nothing where it raises what ``decompress`` does."""
    if codec not in _PARTS:
        raise UnknownCodec(codec)
    _append(out, codec, _PARTS[codec](payload, largest), largest)


def decompress_lz4_of_format_0(payload: memoryview, largest: int = LARGEST) -> memoryview:
    """Decompress lz4 of Kafka before 0.10: its frames have a wrong header checksum (KAFKA-3160).

    Raises DecompressionFailed, TooLarge.
    """
    out = bytearray()
    _append(out, 3, _lz4_of_format_0(payload, largest), largest)
    return memoryview(out)


def compress(codec: int, records: bytes | memoryview, level: int | None = None) -> bytes | memoryview:
    """The bytes of a batch after its header, for records that are not compressed; ``level``: else the library's own."""
    if codec == 0:
        return records
    if codec == 1:
        return bytes(gzip_encode(bytes(records), level))
    if codec == 2:
        return bytes(snappy_encode(bytes(records)))
    if codec == 3:
        return bytes(lz4_encode(bytes(records), compression_level=level or 0))
    if codec == 4:
        return zstd.compress(records, 3 if level is None else level)
    raise UnknownCodec(codec)


def _append(out: bytearray, codec: int, parts: Iterable[bytes | memoryview], largest: int) -> None:
    begin = len(out)
    try:
        for part in parts:
            if len(out) - begin + len(part) > largest:
                raise TooLarge(largest)
            out += part
    except Exception as error:  # each library raises errors of its own
        del out[begin:]
        if isinstance(error, MemoryError | TooLarge):
            raise
        raise DecompressionFailed(codec, str(error) or repr(error)) from error


def _plain(payload: memoryview, _largest: int) -> Iterator[memoryview]:
    yield payload


def _gzip(payload: memoryview, largest: int) -> Iterator[bytes]:
    with gzip.GzipFile(fileobj=io.BytesIO(payload)) as stream:
        while part := stream.read(min(CHUNK, largest + 1)):
            yield part


def _zstd(payload: memoryview, largest: int) -> Iterator[bytes]:
    """Frame after frame, a piece at a time: what is left of a piece is copied at the end of each frame in it."""
    frame, chunk = zstd.ZstdDecompressor(), min(CHUNK, largest + 1)
    for begin in range(0, len(payload), _PIECE):
        piece: memoryview | bytes = payload[begin : begin + _PIECE]
        while piece or not (frame.needs_input or frame.eof):
            if frame.eof:
                frame = zstd.ZstdDecompressor()
            yield frame.decompress(piece, chunk)
            piece = frame.unused_data
    if len(payload) and not frame.eof:
        raise ValueError("the frame is cut off")


def _lz4(payload: memoryview | bytes, largest: int) -> Iterator[bytes]:
    frame = lz4.frame.LZ4FrameDecompressor()
    # What is left of the payload is copied for each chunk: mostly there is one.
    chunk = min(max(CHUNK, 4 * len(payload)), largest + 1)
    yield frame.decompress(payload, chunk)
    while not frame.eof:
        part: bytes = frame.decompress(b"", chunk)
        if not part:
            raise ValueError("the frame is cut off")
        yield part


def _lz4_of_format_0(payload: memoryview, largest: int) -> Iterator[bytes]:
    before = 14 if payload[4] & 0x08 else 6  # of the header's checksum: the content size is optional
    checksum = xxhash.xxh32_digest(payload[4:before])[2:3]
    yield from _lz4(bytes(payload[:before]) + checksum + bytes(payload[before + 1 :]), largest)


def _snappy(payload: memoryview, largest: int) -> Iterator[bytes]:
    if payload[: len(XERIAL)] != XERIAL or len(payload) <= _XERIAL_HEADER_SIZE:
        yield _snappy_block(payload, largest)
        return
    position = _XERIAL_HEADER_SIZE
    while position < len(payload):
        length = _int32.unpack_from(payload, position)[0]
        position += _int32.size
        if not 0 < length <= len(payload) - position:
            raise ValueError(f"a block of {length} bytes where {len(payload) - position} are left")
        yield _snappy_block(payload[position : position + length], largest)
        position += length


def _snappy_block(block: memoryview, largest: int) -> bytes:
    """A block begins with its size without compression; three of its bytes give 64 at most (snappy's format_description)."""
    claimed = shift = 0
    for byte in block[:5]:
        claimed |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if claimed > 22 * len(block):
        raise ValueError(f"a block of {len(block)} bytes that says it holds {claimed}")
    if claimed > largest:
        raise TooLarge(largest)
    return bytes(snappy.decompress(bytes(block)))


_PARTS: dict[int, Callable[[memoryview, int], Iterator[bytes | memoryview]]] = {
    0: _plain,
    1: _gzip,
    2: _snappy,
    3: _lz4,
    4: _zstd,
}
