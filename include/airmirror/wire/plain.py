"""The records of a batch one by one, without the compiled loops: for small topics, and bounded for whatever lies in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airmirror.wire.batch import LOG_APPEND_TIME, Batch, BatchTooLarge, CorruptBatch
from airmirror.wire.batches import HEADER_SIZE
from airmirror.wire.codecs import DecompressionFailed, TooLarge, decompress_into
from airmirror.wire.primitives import read_varint

LARGEST_PLAIN = 64 << 20  # bytes of a batch without its compression


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A record of a small topic, decoded; ``epoch``: of the leader that took it, -1 unknown."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    epoch: int = -1


def plain_records(buffer: memoryview, batch: Batch, largest: int = LARGEST_PLAIN) -> Iterator[LogRecord]:
    """The records of a batch in order, without headers. Nothing is yielded of a batch of over ``largest`` bytes.

    Raises CorruptBatch where the bytes make no sense, BatchTooLarge, UnknownCodec.
    """
    out = bytearray()
    unpack(out, buffer, batch, largest)
    data = bytes(out)
    del out
    append_time = batch.max_timestamp if batch.attributes & LOG_APPEND_TIME else -1
    position, last = 0, -1
    try:
        for _ in range(batch.count):
            length, position = read_varint(data, position)
            end = position + length
            time, at = read_varint(data, position + 1)  # one byte of attributes, unused
            delta, at = read_varint(data, at)
            key, at = _bytes(data, at)
            value, at = _bytes(data, at)
            if not at <= end <= len(data) or not last < delta <= batch.last_offset_delta:
                raise IndexError
            position, last = end, delta
            # The sum wraps at 64 bits, as Kafka's own arithmetic has it.
            timestamp = append_time if append_time >= 0 else (batch.base_timestamp + time + 2**63) % 2**64 - 2**63
            yield LogRecord(batch.base_offset + delta, timestamp, key, value, batch.leader_epoch)
        if position != len(data):
            raise IndexError
    except IndexError:
        reason = "its records do not end where their lengths say, or are not in order"
        raise CorruptBatch(batch.base_offset, reason) from None


def unpack(out: bytearray, buffer: memoryview, batch: Batch, largest: int) -> None:
    """Append a batch's records as format 2 has them, not compressed. Raises what ``plain_records`` does."""
    payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
    try:
        if batch.is_message_set:
            from airmirror.wire.upgrade import records_of  # loads the compiled loops: only for old formats

            out += records_of(buffer, batch, largest)
        else:
            decompress_into(out, batch.codec, payload, largest)
    except TooLarge as error:
        raise BatchTooLarge(batch.base_offset, str(error), largest) from error
    except DecompressionFailed as error:
        raise CorruptBatch(batch.base_offset, f"its records can't be decompressed ({error.reason})") from error


def _bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Bytes with their length before them (-1: null), and the position after them. Raises IndexError past the end."""
    length, position = read_varint(data, position)
    if length < -1 or length > len(data) - position:
        raise IndexError
    if length == -1:
        return None, position
    return data[position : position + length], position + length
