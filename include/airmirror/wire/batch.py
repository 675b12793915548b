"""A record batch as its header tells it, and what can be wrong with its bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from airmirror.errors import AirmirrorError

CODEC_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20
DELETE_HORIZON = 0x40
MESSAGE_SET = 0x10000  # above the bits of any header: these bytes are messages of format 0 or 1

CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}

LEVELS = {1: (-1, 9), 3: (1, 17), 4: (-131_072, 22)}  # the lowest and the highest, by codec; snappy has none

LARGEST = 1 << 28  # bytes that a batch can have without its compression; Kafka's own limits are far below
MOST_RECORDS = 10_000_000  # in a compressed batch: what claims more is damaged


@dataclass(frozen=True)
class Compression:
    """A codec, by Kafka's number, and its level; None: the library's own."""

    codec: int
    level: int | None = None


class CorruptBatch(AirmirrorError):
    """A batch whose bytes do not agree with its header."""

    says = "the record batch at offset {0.base_offset} is corrupt: {0.reason}"
    transient: ClassVar[bool] = True  # a fetch may have been cut; a log that is really corrupt fails again

    base_offset: int
    reason: str


class BatchTooLarge(CorruptBatch, transient=False):
    """A batch with more bytes of records, without their compression, than who reads it takes."""

    says = "the record batch at offset {0.base_offset} holds {0.reason}"
    limit: int


class UnknownMessageFormat(AirmirrorError):
    """A batch of a format that Kafka did not have when this was written."""

    says = (
        "the log holds message format {0.magic} at offset {0.offset}, which is not known; "
        "a newer version of Airmirror may know it, or leave the topic out with topics.exclude"
    )
    offset: int
    magic: int


class Batch(NamedTuple):
    """A record batch as its header tells it; ``position`` is where it begins in the buffer it was read from."""

    position: int
    size: int  # bytes, the header included
    base_offset: int
    leader_epoch: int
    checksum: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # hides tuple.count, which is not wanted of a batch

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last one."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_dense(self) -> bool:
        """Return whether every offset of the batch holds a record."""
        return self.last_offset_delta + 1 == self.count

    @property
    def is_message_set(self) -> bool:
        """Return whether its bytes are messages of format 0 or 1: no header, no producer, no leader epoch."""
        return bool(self.attributes & MESSAGE_SET)
