"""Record batches of message format 2: their header, read, restamped for another log, and made again.

The header is 61 bytes, big-endian (Kafka documentation, "Record Batch"); what follows are the records, compressed as one
block. A batch is copied by restamping its header in place: the records are never touched. Messages of formats 0 and 1
are read as batches too (wire/message_sets), which always take the slow path.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import crc32c

from airmirror.wire.batch import (
    CODEC_MASK,
    DELETE_HORIZON,
    LARGEST,
    MOST_RECORDS,
    TRANSACTIONAL,
    Batch,
    CorruptBatch,
    UnknownMessageFormat,
)
from airmirror.wire.message_sets import read
from airmirror.wire.primitives import read_varint

HEADER = struct.Struct(">qiibIHiqqqhii")
HEADER_SIZE = HEADER.size  # 61
CHECKSUM_FROM = 21  # the checksum covers everything from the attributes on

LEAST_BATCH = 26  # bytes: a message of format 0 with neither key nor value
LEAST_RECORD = 7  # bytes: length, attributes, two deltas, two lengths, number of headers

_MAGIC_AT = 16
_PRODUCER = struct.Struct(">qhi")
_PRODUCER_AT = 43
_int64 = struct.Struct(">q")
_uint32 = struct.Struct(">I")
_int16 = struct.Struct(">h")
_uint16 = struct.Struct(">H")


def parse(buffer: memoryview, start: int, end: int, largest: int = LARGEST) -> Iterator[Batch]:
    """The whole batches in ``buffer[start:end]``; a batch that is cut off at the end is left out.

    Formats can be mixed, as they are in a log whose topic was converted; messages of the old ones are decompressed, up to
    ``largest`` bytes at once. Raises CorruptBatch where length, count or checksum is wrong, BatchTooLarge,
    UnknownMessageFormat for what comes after format 2.
    """
    position = start
    checksum = crc32c.crc32c
    while position + _MAGIC_AT < end:
        magic = buffer[position + _MAGIC_AT]
        if magic != 2:
            if magic > 2:
                raise UnknownMessageFormat(_int64.unpack_from(buffer, position)[0], magic)
            messages = read(buffer, position, end, largest)
            if messages is None:
                return
            yield messages
            position += messages.size
            continue
        if position + HEADER_SIZE > end:
            return
        (base, length, epoch, _magic, crc, attributes, last, base_time, max_time, pid, pepoch, sequence, count) = (
            HEADER.unpack_from(buffer, position)
        )
        size = length + 12
        if size < HEADER_SIZE:
            raise CorruptBatch(base, f"a length of {length} bytes")
        if position + size > end:
            return
        if checksum(buffer[position + CHECKSUM_FROM : position + size]) != crc:
            raise CorruptBatch(base, "the checksum differs")
        if base < 0 or not 0 <= count <= last + 1 or last < 0:
            raise CorruptBatch(base, f"{count} records in {last + 1} offsets")
        if count * LEAST_RECORD > size - HEADER_SIZE and (count > MOST_RECORDS or not attributes & CODEC_MASK):
            raise CorruptBatch(base, f"{count} records in {size} bytes")
        yield Batch(
            position=position,
            size=size,
            base_offset=base,
            leader_epoch=epoch,
            checksum=crc,
            attributes=attributes,
            last_offset_delta=last,
            base_timestamp=base_time,
            max_timestamp=max_time,
            producer_id=pid,
            producer_epoch=pepoch,
            base_sequence=sequence,
            count=count,
        )
        position += size


def restamp(buffer: memoryview, batch: Batch, producer_id: int, producer_epoch: int, sequence: int) -> None:
    """Make a batch that was fetched into one to be produced, in place and in a transaction.

    The base offset becomes 0, the producer ours, the transactional bit is set and the delete horizon bit cleared (the
    deltas stay relative to the stored base timestamp).
    """
    at = batch.position
    _int64.pack_into(buffer, at, 0)
    _uint16.pack_into(buffer, at + CHECKSUM_FROM, (batch.attributes | TRANSACTIONAL) & ~DELETE_HORIZON)
    _PRODUCER.pack_into(buffer, at + _PRODUCER_AT, producer_id, producer_epoch, sequence)
    _uint32.pack_into(buffer, at + 17, crc32c.crc32c(buffer[at + CHECKSUM_FROM : at + batch.size]))


def build(
    payload: bytes | memoryview,
    *,
    count: int,
    base_timestamp: int,
    max_timestamp: int,
    codec: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> bytearray:
    """A batch of ``count`` dense records whose (compressed) bytes are ``payload``, to be produced."""
    batch = bytearray(HEADER_SIZE + len(payload))
    attributes = codec | (TRANSACTIONAL if transactional else 0)
    placed, producer = (0, len(batch) - 12, -1, 2, 0), (producer_id, producer_epoch, sequence)
    HEADER.pack_into(batch, 0, *placed, attributes, count - 1, base_timestamp, max_timestamp, *producer, count)
    batch[HEADER_SIZE:] = payload
    _uint32.pack_into(batch, 17, crc32c.crc32c(memoryview(batch)[CHECKSUM_FROM:]))
    return batch


def control_type(buffer: memoryview, batch: Batch) -> int:
    """The type of a control batch's marker: 0 abort, 1 commit (other values are not transaction markers)."""
    found = marker_type(buffer[batch.position + HEADER_SIZE : batch.position + batch.size])
    if found is None:
        raise CorruptBatch(batch.base_offset, "a control record is cut off")
    return found


def marker_type(record: memoryview) -> int | None:
    """The type of the marker that a control record is; None where it is cut off."""
    try:
        _, position = read_varint(record, 0)  # its length; attributes follow, one plain byte
        _, position = read_varint(record, position + 1)  # timestamp delta
        _, position = read_varint(record, position)  # offset delta
        return int(_int16.unpack_from(record, position + 3)[0])  # key length (one byte), version (int16), type (int16)
    except (IndexError, struct.error):
        return None


def next_sequence(sequence: int, count: int) -> int:
    """The sequence after ``count`` records: it wraps from 2^31 - 1 to 0."""
    return (sequence + count) & 0x7FFFFFFF
