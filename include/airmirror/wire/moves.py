"""The records of the mapping topic that the undo of a failover or a migration needs, and its account: moved groups, rescued
records, blocked producers. They decide nothing: who may write a topic is in ``owners``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from airmirror.partitions import GroupPartition
from airmirror.wire.fields import INT32, INT64, REASON, STRING, UUID_ID, Fields, MappingTopicRecord, fields
from airmirror.wire.owners import Ownership

# What the windows begin with in whose name groups are moved.
FAILOVER, FAILBACK, MIGRATION = "failover-", "return-", "move-"


@dataclass(frozen=True)
class GroupMove(MappingTopicRecord, GroupPartition):
    """A group that a failover or a migration has moved in a partition of the target, and its position there before (-1:
    none). In partition -1 of its window: that a migration has cut the group over."""

    kind: ClassVar[int] = 9
    key_fields: ClassVar[Fields] = fields(group=STRING, topic=STRING, partition=INT32)
    value_fields: ClassVar[Fields] = fields(
        window=STRING, before=INT64, after=INT64, time_ms=INT64, metadata_before=STRING
    )

    window: str
    before: int
    after: int
    time_ms: int
    metadata_before: str

    @property
    def is_mark(self) -> bool:
        """Return whether it says that the group was cut over: what it has beyond its moves, it has from then on."""
        return self.partition < 0

    @property
    def is_failovers(self) -> bool:
        """Return whether a failover was the first to move it."""
        return self.window.startswith(FAILOVER)


@dataclass(frozen=True)
class Rescue(MappingTopicRecord):
    """Records of the source that were not replicated, copied in one transaction with this record.

    The source offsets from ``source_start`` on and before ``source_end``; ``records`` of them hold data, and lie in ``into`` at
    the target offsets from ``target_start`` on and before ``target_end``.
    """

    kind: ClassVar[int] = 10
    key_fields: ClassVar[Fields] = fields(source_topic_id=UUID_ID, topic=STRING, partition=INT32, source_start=INT64)
    value_fields: ClassVar[Fields] = fields(
        window=STRING,
        source_end=INT64,
        into=STRING,
        target_start=INT64,
        target_end=INT64,
        records=INT64,
        time_ms=INT64,
        reason=REASON,
        by=STRING,
    )

    source_topic_id: UUID
    topic: str
    partition: int
    source_start: int
    window: str
    source_end: int
    into: str
    target_start: int
    target_end: int
    records: int
    time_ms: int
    reason: str
    by: str


@dataclass(frozen=True)
class ProducerBlock(MappingTopicRecord):
    """A block that a migration has put on a topic of the source, written before it: ``principal`` is denied WRITE."""

    kind: ClassVar[int] = 11
    key_fields: ClassVar[Fields] = fields(topic=STRING, principal=STRING)
    value_fields: ClassVar[Fields] = fields(move=STRING, time_ms=INT64, by=STRING)

    topic: str
    principal: str
    move: str
    time_ms: int
    by: str


def rescues_of(rescues: Iterable[Rescue], topic: str, partition: int, source_topic_id: str) -> Iterator[Rescue]:
    """Yield the rescues from a partition of a topic with this id."""
    for each in rescues:
        if (each.topic, each.partition, str(each.source_topic_id)) == (topic, partition, source_topic_id):
            yield each


OfMoves = Ownership | GroupMove | Rescue | ProducerBlock
