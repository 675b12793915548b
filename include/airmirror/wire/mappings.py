"""The records of the mapping topic, versioned: leases, mappings, verified offsets, holds, decisions, resets, identity.

A key begins with INT8 kind, a value with INT16 version (0). Keys are unique, so that compaction keeps what counts; a null value
deletes. docs/formats.md documents the fields that are declared here and
in ``freezes``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, get_args
from uuid import UUID

from airmirror.errors import AirmirrorError
from airmirror.partitions import OfCopy, PartitionFacts
from airmirror.times import utc
from airmirror.wire.fields import (
    BYTES_16,
    INT32,
    INT64,
    REASON,
    STRING,
    TEXTS,
    UUID_ID,
    Field,
    Fields,
    FieldType,
    MappingTopicRecord,
    Together,
    enumerated,
    fields,
)
from airmirror.wire.moves import OfMoves
from airmirror.wire.primitives import MalformedRecord, Reader, unsigned_varint

MOST_OFFSET = 2**63 - 1
PARTITION = fields(topic=STRING, partition=INT32)


class LeaseEvent(IntEnum):
    """The event of a lease record's window."""

    TAKEN = 0
    RENEWED = 1
    RELEASED = 2
    ENDING = 3  # a renewal: slots that follow the log end


@dataclass(frozen=True)
class Lease(MappingTopicRecord):
    """The right of one window to write for a flow (invariant B). ``slots``: the most that any lease ever had."""

    kind: ClassVar[int] = 1
    key_fields: ClassVar[Fields] = fields(window=STRING)
    value_fields: ClassVar[Fields] = fields(
        event=enumerated(LeaseEvent, "lease event"), owner=STRING, time_ms=INT64, duration_ms=INT64, slots=INT32
    )

    window: str
    event: LeaseEvent
    owner: str
    time_ms: int
    duration_ms: int
    slots: int


@dataclass(frozen=True, slots=True)
class MappedRange:
    """A run of source offsets that lie at consecutive target offsets."""

    source_first: int
    target_first: int
    count: int

    @property
    def source_end(self) -> int:
        return self.source_first + self.count

    @property
    def target_end(self) -> int:
        return self.target_first + self.count


class Ranges(Field):
    """Ranges, each by the gaps to the end of the one before; the first to the record's source and target start."""

    def write(self, record: object) -> bytes:
        assert isinstance(record, MappingRecord)
        out = bytearray(unsigned_varint(len(record.ranges)))
        source, target = record.source_start, record.target_start
        for run in record.ranges:
            out += unsigned_varint(run.source_first - source)
            out += unsigned_varint(run.target_first - target)
            out += unsigned_varint(run.count)
            source, target = run.source_end, run.target_end
        return bytes(out)

    def read(self, reader: Reader, into: dict[str, Any]) -> None:
        count = reader.unsigned_varint()
        if count * 3 > reader.left:
            raise MalformedRecord(f"{count} ranges in {reader.left} bytes")
        found = []
        source, target = into["source_start"], into["target_start"]
        for _ in range(count):
            source += reader.unsigned_varint()
            target += reader.unsigned_varint()
            run = MappedRange(source, target, reader.unsigned_varint())
            found.append(run)
            source, target = run.source_end, run.target_end
        if max(source, target) > MOST_OFFSET:
            raise MalformedRecord(f"ranges that end at {source} and {target}")
        into["ranges"] = tuple(found)


@dataclass(frozen=True)
class MappingRecord(MappingTopicRecord, OfCopy):
    """The effect of one transaction on one partition (invariants A, E and G).

    Ends are exclusive, times in milliseconds, ``size`` in bytes of the batches written. ``min_timestamp`` is the earliest of
    the batches' first records, ``read_ms`` when the last fetch was answered; -1 unknown.
    ``leader_epoch`` is that of the last batch on the source, ``target_epoch`` of the last one on the target, where it was read
    back; -1 unknown. ``source_checksum`` is that of the source's batch with the offset before
    ``source_end``, by which a restored log is recognised; -1 unknown, and in compacted topics, whose batches are rewritten.
    """

    kind: ClassVar[int] = 2
    key_fields: ClassVar[Fields] = fields(source_topic_id=UUID_ID, topic=STRING, partition=INT32, source_start=INT64)
    value_fields: ClassVar[Fields] = Fields(
        (
            *fields(window=STRING, slot=INT32, time_ms=INT64, source_end=INT64).fields,
            *fields(target_topic_id=UUID_ID, remote_topic=STRING, target_start=INT64, target_end=INT64).fields,
            *fields(copied=INT64, control=INT64, aborted=INT64, holes=INT64, lost=INT64, size=INT64).fields,
            *fields(max_timestamp=INT64, leader_epoch=INT32, digest=BYTES_16).fields,
            Ranges(
                "ranges",
                FieldType("UVARINT count, then of each UVARINT source gap, UVARINT target gap, UVARINT count:"),
            ),
            *fields(min_timestamp=INT64, read_ms=INT64, target_epoch=INT32, source_checksum=INT64).fields,
        )
    )

    source_topic_id: UUID
    topic: str
    partition: int
    source_start: int
    window: str
    slot: int
    time_ms: int
    source_end: int
    target_topic_id: UUID
    remote_topic: str
    target_start: int
    target_end: int
    copied: int
    control: int
    aborted: int
    holes: int
    lost: int
    size: int
    max_timestamp: int
    leader_epoch: int
    digest: bytes
    ranges: tuple[MappedRange, ...]
    min_timestamp: int = -1
    read_ms: int = -1
    target_epoch: int = -1
    source_checksum: int = -1

    @property
    def was_read_back(self) -> bool:
        """Return whether the slot has read from the target what it copied, and found it equal (``window.verify``)."""
        return not self.copied or self.target_epoch >= 0


@dataclass(frozen=True)
class Verified(MappingTopicRecord, PartitionFacts):
    """The last source offset of a partition that the gate has let pass (invariant F). ``seen``: the end of the mapping topic as
    its judge had read it; where a reset of the partition lies between, it slept, and the record counts for nothing."""

    kind: ClassVar[int] = 3
    key_fields: ClassVar[Fields] = PARTITION
    value_fields: ClassVar[Fields] = fields(
        source_topic_id=UUID_ID, offset=INT64, target_end=INT64, window=STRING, time_ms=INT64, seen=INT64
    )

    source_topic_id: UUID
    offset: int
    target_end: int
    window: str
    time_ms: int
    seen: int


@dataclass(frozen=True)
class Hold(MappingTopicRecord, PartitionFacts):
    """A partition that the gate holds until it lets it pass; released by a null value."""

    kind: ClassVar[int] = 4
    key_fields: ClassVar[Fields] = PARTITION
    value_fields: ClassVar[Fields] = fields(offset=INT64, reason=REASON, window=STRING, by=STRING, time_ms=INT64)

    offset: int
    reason: str
    window: str
    by: str
    time_ms: int


def _pairs(found: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(zip(found[::2], found[1::2], strict=False))


PAIRS = FieldType(
    "TEXTS",
    write=lambda pairs: TEXTS.write([part for pair in pairs for part in pair]),
    read=lambda reader: _pairs(TEXTS.read(reader)),
)


@dataclass(frozen=True)
class FlowIdentity(MappingTopicRecord):
    """The clusters that a flow joins, and its rules: what other configurations must know of it.

    ``upstream``: aliases and ids of the clusters from which records may have reached the flow's source, as those who
    brought them call them.
    """

    kind: ClassVar[int] = 5
    key_fields: ClassVar[Fields] = fields()
    value_fields: ClassVar[Fields] = Fields(
        (
            *fields(source=STRING, target=STRING, source_cluster_id=STRING, target_cluster_id=STRING).fields,
            *fields(time_ms=INT64, policy=STRING, separator=STRING, topics=TEXTS, topics_exclude=TEXTS).fields,
            Field("upstream", PAIRS),
        )
    )

    source: str
    target: str
    source_cluster_id: str
    target_cluster_id: str
    time_ms: int
    policy: str = ""
    separator: str = "."
    topics: tuple[str, ...] = ()
    topics_exclude: tuple[str, ...] = ()
    upstream: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return f"{self.source}->{self.target}"


GATE = "gate"  # who holds, where it is not an operator


class Action(IntEnum):
    """The kinds of decisions."""

    HOLD = 0
    RELEASE = 1
    VERIFY_AGAIN = 2  # what the gate holds
    LET_PASS = 3  # although the gate's expectations object; the engine's own checks count all the same
    ACCEPT_LOSS = 4  # with its ResetRecord, as the two that follow
    START_AGAIN = 5
    NEW_TOPIC = 6


@dataclass(frozen=True)
class Decision(MappingTopicRecord, PartitionFacts):
    """An operator's decision about a partition, and the reason. It is held until a release follows the latest hold.

    ``offset``: the source offset that replication would resume at.
    """

    kind: ClassVar[int] = 6
    key_fields: ClassVar[Fields] = fields(topic=STRING, partition=INT32, time_ms=INT64)
    value_fields: ClassVar[Fields] = fields(
        action=enumerated(Action, "decision"), offset=INT64, reason=REASON, by=STRING
    )

    time_ms: int
    action: Action
    offset: int
    reason: str
    by: str


@dataclass(frozen=True)
class ResetRecord(MappingTopicRecord, PartitionFacts):
    """A decision by ``airmirror reset``, and the reason: how a partition continues, and which source offsets are lost.

    ``lost_first == lost_end``: none. ``start``: the source offset from which on it is copied; -1 where it is not.
    Of the whole flow: an empty topic and partition -1.
    """

    kind: ClassVar[int] = 7
    key_fields: ClassVar[Fields] = fields(topic=STRING, partition=INT32, time_ms=INT64)
    value_fields: ClassVar[Fields] = Fields(
        (
            *fields(choice=STRING, lost_first=INT64, lost_end=INT64, start=INT64, window=STRING).fields,
            Together("problem, by, reason", TEXTS),
        )
    )

    time_ms: int
    choice: str
    problem: str
    lost_first: int
    lost_end: int
    start: int
    window: str
    by: str
    reason: str

    def __str__(self) -> str:
        lost = f"lost {self.lost_first} to {self.lost_end - 1}" if self.lost_end > self.lost_first else "nothing lost"
        when = utc(self.time_ms, "%Y-%m-%dT%H:%M:%S+00:00")
        what = f"{self.topic}-{self.partition}: {self.choice}, {lost}" if self.topic else self.choice
        return f"{when} {self.by}: {what} ({self.problem or 'nothing was wrong'}; {self.reason})"


@dataclass(frozen=True)
class Tombstone:
    """A null value: what had this key is deleted. ``key`` holds the key's fields after the kind."""

    kind: int
    key: tuple[object, ...]


Written = Lease | MappingRecord | Verified | Hold | FlowIdentity | Decision | ResetRecord | OfMoves
Record = Written | Tombstone

KINDS: dict[int, type[Written]] = {record.kind: record for record in get_args(Written)}


class LaterRecord(AirmirrorError):
    """A record as a later version of Airmirror writes it. It is not skipped: this version would not keep to what it says."""

    place: str
    kind: int
    version: int
    says = (
        "{0.place} has a record of kind {0.kind} in version {0.version}, of a later version of Airmirror: install that one "
        "wherever this flow runs (docs/upgrade.md)"
    )


def decode(key: bytes, value: bytes | None) -> Record:
    """A record of the mapping topic. Raises LaterRecord, MalformedRecord: also for a kind that is not known."""
    kind = Reader(key).int8()
    declared = KINDS.get(kind)
    if declared is None:
        raise MalformedRecord(f"kind {kind} is not known")
    found = declared.decode_key(key[1:])
    if value is None:
        return Tombstone(kind, tuple(found.values()))
    reader = Reader(value)
    if (version := reader.int16()) < 0:
        raise MalformedRecord(f"kind {kind} in version {version}")
    if version != declared.version:
        raise LaterRecord("the mapping topic", kind, version)
    found = declared.value_fields.decode(reader, found)
    reader.end()
    return declared(**found)


def held_by_decision(decisions: Iterable[Decision]) -> dict[tuple[str, int], Hold]:
    """The holds that stand after decisions in log order, by topic and partition."""
    holding = [decision for decision in decisions if decision.action in (Action.HOLD, Action.RELEASE)]
    latest = {(decision.topic, decision.partition): decision for decision in holding}
    return {
        key: Hold(*key, offset=each.offset, reason=each.reason, window="", by=each.by, time_ms=each.time_ms)
        for key, each in latest.items()
        if each.action is Action.HOLD
    }
