"""The records of the segment topic that a failover or a migration writes, and what comes after it: closures, moved groups,
rescued records, fences, returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar
from uuid import UUID

from airmirror.wire.fields import INT32, INT64, STRING, UUID_ID, Fields, enumerated, fields
from airmirror.wire.kept import REASON, Kept

WHOLE = ""  # the topic of a closure of the whole flow


class ClosureEvent(IntEnum):
    """The event of a closure record."""

    CLOSED = 0
    OPENED = 1


@dataclass(frozen=True)
class Closure(Kept):
    """A person's decision that no window writes to a source topic's remote topic any more, or that windows do again.

    ``topic``: ``WHOLE`` for the flow with all that it will ever replicate. ``window``: the claim under which it was written,
    which has fenced every window before it (invariant B). Of each topic the last one in the log counts.
    """

    kind: ClassVar[int] = 8
    key_fields: ClassVar[Fields] = fields(topic=STRING, time_ms=INT64)
    value_fields: ClassVar[Fields] = fields(
        event=enumerated(ClosureEvent, "closure event"), window=STRING, reason=REASON, by=STRING
    )

    topic: str
    time_ms: int
    event: ClosureEvent
    window: str
    reason: str
    by: str


@dataclass(frozen=True)
class GroupMove(Kept):
    """A group that a failover or a migration has moved in a partition of the target, and where it stood there before (-1:
    nowhere)."""

    kind: ClassVar[int] = 9
    key_fields: ClassVar[Fields] = fields(group=STRING, topic=STRING, partition=INT32)
    value_fields: ClassVar[Fields] = fields(
        window=STRING, before=INT64, after=INT64, time_ms=INT64, metadata_before=STRING
    )

    group: str
    topic: str
    partition: int
    window: str
    before: int
    after: int
    time_ms: int
    metadata_before: str


@dataclass(frozen=True)
class Rescue(Kept):
    """Records of the source that never crossed, copied in one transaction with this record.

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
class Fence(Kept):
    """A fence that a migration has put around a topic of the source, written before it: nobody writes there any more.

    ``principal``: whom an ACL denies WRITE; empty: everybody, by ``max.message.bytes = 0``. ``before``: the topic's own value of
    that before, empty: it had none.
    """

    kind: ClassVar[int] = 11
    key_fields: ClassVar[Fields] = fields(topic=STRING, principal=STRING)
    value_fields: ClassVar[Fields] = fields(move=STRING, before=STRING, time_ms=INT64, by=STRING)

    topic: str
    principal: str
    move: str
    before: str
    time_ms: int
    by: str


def rescues_of(rescues: Iterable[Rescue], topic: str, partition: int, source_topic_id: str) -> Iterator[Rescue]:
    """Yield the rescues from a partition of a topic with this id."""
    for each in rescues:
        if (each.topic, each.partition, str(each.source_topic_id)) == (topic, partition, source_topic_id):
            yield each


@dataclass(frozen=True)
class Return(Kept):
    """A topic that returns: ``topic``, which the flow in the other direction has brought to this flow's source, is copied back
    into ``into``, the topic of the target that it was brought from. Deleted by a null value when the return is over.

    ``window``: the claim under which its account began, in the same transaction; empty: it has none yet, the return is armed.
    """

    kind: ClassVar[int] = 12
    key_fields: ClassVar[Fields] = fields(topic=STRING)
    value_fields: ClassVar[Fields] = fields(into=STRING, window=STRING, time_ms=INT64, reason=REASON, by=STRING)

    topic: str
    into: str
    window: str
    time_ms: int
    reason: str
    by: str

    @property
    def is_armed(self) -> bool:
        """Return whether it is to begin when the other flow is closed: until then nothing is copied back."""
        return not self.window


OfSwitches = Closure | GroupMove | Rescue | Fence | Return


def closed(closures: Iterable[Closure]) -> dict[str, Closure]:
    """The closures in force after ``closures`` in log order, by topic."""
    latest = {each.topic: each for each in closures}
    return {topic: each for topic, each in latest.items() if each.event is ClosureEvent.CLOSED}
