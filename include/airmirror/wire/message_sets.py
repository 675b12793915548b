"""Messages of formats 0 and 1, as Kafka wrote them before 0.11: found in a log, checked, and read as batches.

A message is ``offset int64, size int32, checksum uint32, format int8, attributes int8, [timestamp int64: format 1], key,
value``, big-endian; key and value begin with an int32 length, -1 for null. The checksum is a CRC-32 of everything after it.
A compressed message holds messages in its value and has the offset of the last one; their own offsets are absolute in
format 0 and relative in format 1 (Kafka documentation, "Message sets"; KIP-31, KIP-32; AbstractLegacyRecordBatch.java).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from airmirror.wire.batch import (
    CODEC_MASK,
    LARGEST,
    LOG_APPEND_TIME,
    MESSAGE_SET,
    MOST_RECORDS,
    Batch,
    BatchTooLarge,
    CorruptBatch,
)
from airmirror.wire.codecs import LZ4_OF_FORMAT_0, DecompressionFailed, TooLarge, UnknownCodec, decompress

MOST_BYTES = 1 << 18  # of messages without compression that are read as one batch
_header = struct.Struct(">qiIBB")
_CHECKED_FROM = 16
_BEFORE_KEY = {0: 18, 1: 26}
_int32 = struct.Struct(">i")
_int64 = struct.Struct(">q")


class Message(NamedTuple):
    """A message as its header tells it; ``position`` is where it begins in the buffer it was read from."""

    position: int
    size: int  # bytes, offset and size included
    offset: int
    magic: int
    attributes: int

    @property
    def end(self) -> int:
        return self.position + self.size

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK


def read(buffer: memoryview, position: int, end: int, largest: int = LARGEST) -> Batch | None:
    """The compressed message at ``position``, or the messages without compression from there on, as one batch.

    None where the first message is cut off. Raises CorruptBatch, BatchTooLarge. The batch has the attribute
    MESSAGE_SET and no header; ``upgrade.records_of`` gives its records.
    """
    first = _message(buffer, position, end)
    if first is None:
        return None
    if first.codec:
        base, last, count = _absolute(first, _messages(inner(buffer, first, largest), first))
        return _batch(first, first.end, base, last, count)
    last, count, stop = first.offset, 1, first.end
    while stop - position < MOST_BYTES:
        message = _message(buffer, stop, end)
        if message is None or message.magic != first.magic or message.codec or message.offset <= last:
            break
        last, count, stop = message.offset, count + 1, message.end
    return _batch(first, stop, first.offset, last, count)


def at(buffer: memoryview, batch: Batch) -> Message:
    """The first message of a batch that ``read`` gave."""
    message = _message(buffer, batch.position, batch.position + batch.size)
    assert message is not None  # read has seen all of it
    return message


def append_time(buffer: memoryview, message: Message) -> int | None:
    """The time of every message inside a compressed one of LogAppendTime; None where each has its own, or none at all."""
    if message.codec and message.magic == 1 and message.attributes & LOG_APPEND_TIME:
        return int(_int64.unpack_from(buffer, message.position + 18)[0])
    return None


def inner(buffer: memoryview, message: Message, largest: int = LARGEST) -> memoryview:
    """The messages inside a compressed one. Raises CorruptBatch, BatchTooLarge."""
    key = message.position + _BEFORE_KEY[message.magic]
    value = key + 4 + max(_int32.unpack_from(buffer, key)[0], 0)
    if value + 4 > message.end:
        raise CorruptBatch(message.offset, "a message does not end where its size says")
    length = _int32.unpack_from(buffer, value)[0]
    if length < 0 or value + 4 + length != message.end:
        raise CorruptBatch(message.offset, "a compressed message without messages in it")
    payload = buffer[value + 4 : message.end]
    try:
        return decompress(
            LZ4_OF_FORMAT_0 if (message.magic, message.codec) == (0, 3) else message.codec, payload, largest
        )
    except TooLarge as error:
        raise BatchTooLarge(message.offset, str(error), largest) from error
    except (DecompressionFailed, UnknownCodec) as error:  # a codec above 3 came with format 2
        raise CorruptBatch(message.offset, f"its messages can't be decompressed ({error})") from error


def _messages(data: memoryview, wrapper: Message) -> Iterator[Message]:
    """The messages of decompressed bytes, every one checked."""
    position = 0
    while position < len(data):
        message = _message(data, position, len(data))
        if message is None or message.magic != wrapper.magic or message.codec:
            raise CorruptBatch(wrapper.offset, "what it has compressed are not messages of its own format")
        yield message
        position = message.end


def _absolute(wrapper: Message, messages: Iterable[Message]) -> tuple[int, int, int]:
    """The first and last offset of the log in a compressed message that holds ``messages``, and how many they are."""
    first, last, count = 0, -1, 0
    for message in messages:
        if message.offset <= last or count == MOST_RECORDS:
            raise CorruptBatch(wrapper.offset, "the offsets of its messages do not increase, or they are too many")
        first = first if count else message.offset
        last, count = message.offset, count + 1
    if not count:
        raise CorruptBatch(wrapper.offset, "what it has compressed is nothing")
    if wrapper.magic == 0:
        return first, max(last, wrapper.offset), count
    # Some producers of librdkafka left 0 in place of the last offset.
    shift = wrapper.offset - last if wrapper.offset else 0
    if shift < 0:
        raise CorruptBatch(wrapper.offset, "its offset is below that of its last message")
    return first + shift, last + shift, count


def _message(buffer: memoryview, position: int, end: int) -> Message | None:
    """The message at ``position``; None where it is cut off, or a batch of format 2 begins there. Raises CorruptBatch."""
    if position + _header.size > end:
        return None
    offset, length, checksum, magic, attributes = _header.unpack_from(buffer, position)
    if magic > 1:
        return None
    size = length + 12
    if size < _BEFORE_KEY[magic] + 8 or offset < 0:
        raise CorruptBatch(offset, f"a message of {length} bytes")
    if position + size > end:
        return None
    if zlib.crc32(buffer[position + _CHECKED_FROM : position + size]) != checksum:
        raise CorruptBatch(offset, "the checksum differs")
    return Message(position, size, offset, magic, attributes)


def _batch(first: Message, stop: int, base: int, last: int, count: int) -> Batch:
    return Batch(
        position=first.position,
        size=stop - first.position,
        base_offset=base,
        leader_epoch=-1,
        checksum=0,
        attributes=first.codec | MESSAGE_SET,
        last_offset_delta=last - base,
        base_timestamp=0,
        max_timestamp=-1,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=count,
    )
