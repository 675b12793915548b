"""MirrorMaker 2's checkpoints: where a consumer group stands on the source, and where that is on the target.

Byte for byte as MirrorMaker 2 4.2.0 writes them (Checkpoint.java). The topic is compacted: the last record of a key counts.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from airmirror.wire.primitives import MalformedRecord, Reader, string

VERSION = 0


@dataclass(frozen=True)
class Checkpoint:
    """A group's position (the next offset to read) of a partition: ``upstream`` on the source, ``downstream`` on the target.

    ``topic`` is the target's name of it; ``metadata`` is what the consumer committed with its offset.
    """

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.group, self.topic, self.partition

    def encode_key(self) -> bytes:
        return string(self.group) + string(self.topic) + struct.pack(">i", self.partition)

    def encode_value(self) -> bytes:
        return struct.pack(">hqq", VERSION, self.upstream, self.downstream) + string(self.metadata)


def decode_checkpoint(key: bytes, value: bytes) -> Checkpoint:
    """Raises MalformedRecord, also for a version that is not known (as MirrorMaker 2 from KAFKA-20659 on)."""
    values = Reader(value)
    if (version := values.int16()) != VERSION:
        raise MalformedRecord(f"version {version} of a checkpoint is not known")
    checkpoint = Checkpoint(*decode_checkpoint_key(key), values.int64(), values.int64(), values.string())
    values.end()
    return checkpoint


def decode_checkpoint_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic and partition: all that a deleted checkpoint has. Raises MalformedRecord."""
    keys = Reader(key)
    group, topic, partition = keys.string(), keys.string(), keys.int32()
    keys.end()
    return group, topic, partition
