"""MirrorMaker 2's checkpoints: a consumer group's position on the source, and where that is on the target.

Byte for byte as MirrorMaker 2 4.2.0 writes them (Checkpoint.java). The topic is compacted: the last record of a key counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airmirror.wire.fields import INT32, INT64, STRING, Declared, Fields, fields


@dataclass(frozen=True)
class Checkpoint(Declared):
    """A group's position (the next offset to read) of a partition: ``upstream`` on the source, ``downstream`` on the target.

    ``topic`` is the target's name of it; ``metadata`` is what the consumer committed with its offset.
    """

    key_fields: ClassVar[Fields] = fields(group=STRING, topic=STRING, partition=INT32)
    value_fields: ClassVar[Fields] = fields(upstream=INT64, downstream=INT64, metadata=STRING)

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    @property
    def key(self) -> tuple[str, str, int]:
        return self.group, self.topic, self.partition


def without_nul(metadata: str) -> str:
    """Cut a consumer's metadata at a NUL: C's clients (librdkafka) may end it with one, which no database can hold."""
    return metadata.partition("\0")[0]
