"""The records of the segment topic, versioned: claims, segments, verified offsets, holds, decisions, resets, identity.

Big-endian protocol types as in MirrorMaker 2's records. A key begins with INT8 kind, a value with INT16 version (0; of
segments 1, if they tell when they were read). Keys are unique, so that compaction keeps what counts; a null value deletes.
The format is documented in docs/formats.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import IntEnum
from typing import ClassVar
from uuid import UUID

from airmirror.wire.primitives import MalformedRecord, Reader, string, texts, unsigned_varint

VERSION, VERSION_WITH_TIMES = 0, 1


class ClaimEvent(IntEnum):
    """What a claim record says of its window."""

    CLAIMED = 0
    RENEWED = 1
    RELEASED = 2


@dataclass(frozen=True)
class Claim:
    """The right of one window to write for a flow (invariant B). ``slots``: the most that any claim ever had."""

    kind: ClassVar[int] = 1

    window: str
    event: ClaimEvent
    owner: str
    time_ms: int
    lease_ms: int
    slots: int

    def encode_key(self) -> bytes:
        return struct.pack(">b", self.kind) + string(self.window)

    def encode_value(self) -> bytes:
        return (
            struct.pack(">hb", VERSION, self.event)
            + string(self.owner)
            + struct.pack(">qqi", self.time_ms, self.lease_ms, self.slots)
        )


@dataclass(frozen=True, slots=True)
class Segment:
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


@dataclass(frozen=True)
class SegmentRecord:
    """What one transaction did to one partition (invariants A, E and G).

    Ends are exclusive, times in milliseconds, ``size`` in bytes of the batches written. ``min_timestamp`` is the earliest of
    the batches' first records, ``read_ms`` when the last fetch was answered; -1 unknown, as in records of version 0.
    """

    kind: ClassVar[int] = 2

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
    segments: tuple[Segment, ...]
    min_timestamp: int = -1
    read_ms: int = -1

    _numbers: ClassVar[struct.Struct] = struct.Struct(">qqqqqqqqqi")

    def encode_key(self) -> bytes:
        return (
            struct.pack(">b", self.kind)
            + self.source_topic_id.bytes
            + string(self.topic)
            + struct.pack(">iq", self.partition, self.source_start)
        )

    def encode_value(self) -> bytes:
        version = VERSION if self.read_ms < 0 else VERSION_WITH_TIMES
        out = bytearray(struct.pack(">h", version) + string(self.window))
        out += struct.pack(">iqq", self.slot, self.time_ms, self.source_end)
        out += self.target_topic_id.bytes + string(self.remote_topic)
        out += self._numbers.pack(
            self.target_start, self.target_end, self.copied, self.control, self.aborted, self.holes, self.lost,
            self.size, self.max_timestamp, self.leader_epoch,
        )  # fmt: skip
        out += self.digest
        out += unsigned_varint(len(self.segments))
        source, target = self.source_start, self.target_start
        for segment in self.segments:
            out += unsigned_varint(segment.source_first - source)
            out += unsigned_varint(segment.target_first - target)
            out += unsigned_varint(segment.count)
            source, target = segment.source_end, segment.target_end
        if version == VERSION_WITH_TIMES:
            out += struct.pack(">qq", self.min_timestamp, self.read_ms)
        return bytes(out)


@dataclass(frozen=True)
class Verified:
    """The last source offset of a partition that the gate has let pass (invariant F)."""

    kind: ClassVar[int] = 3

    topic: str
    partition: int
    source_topic_id: UUID
    offset: int
    target_end: int
    window: str
    time_ms: int

    def encode_key(self) -> bytes:
        return _partition_key(self.kind, self.topic, self.partition)

    def encode_value(self) -> bytes:
        return (
            struct.pack(">h", VERSION)
            + self.source_topic_id.bytes
            + struct.pack(">qq", self.offset, self.target_end)
            + string(self.window)
            + struct.pack(">q", self.time_ms)
        )


@dataclass(frozen=True)
class Hold:
    """A partition that the gate holds until it lets it pass; released by a null value."""

    kind: ClassVar[int] = 4

    topic: str
    partition: int
    offset: int
    reason: str
    window: str
    by: str
    time_ms: int

    def encode_key(self) -> bytes:
        return _partition_key(self.kind, self.topic, self.partition)

    def encode_value(self) -> bytes:
        texts = string(self.reason[:10_000]) + string(self.window) + string(self.by)
        return struct.pack(">hq", VERSION, self.offset) + texts + struct.pack(">q", self.time_ms)


@dataclass(frozen=True)
class FlowIdentity:
    """Which clusters the flow joins, and by which rules: what other configurations must know of it.

    ``upstream``: aliases and ids of the clusters from which records may have reached the flow's source, as those who
    brought them call them.
    """

    kind: ClassVar[int] = 5

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

    def encode_key(self) -> bytes:
        return struct.pack(">b", self.kind)

    def encode_value(self) -> bytes:
        names = (self.source, self.target, self.source_cluster_id, self.target_cluster_id)
        return (
            struct.pack(">h", VERSION)
            + b"".join(map(string, names))
            + struct.pack(">q", self.time_ms)
            + string(self.policy)
            + string(self.separator)
            + texts(self.topics)
            + texts(self.topics_exclude)
            + texts([part for pair in self.upstream for part in pair])
        )


GATE = "gate"  # who holds, where it is not somebody


class Action(IntEnum):
    """What somebody has decided."""

    HOLD = 0
    RELEASE = 1
    VERIFY_AGAIN = 2  # what the gate holds
    LET_PASS = 3  # although the gate's expectations object; the engine's own checks count all the same
    ACCEPT_LOSS = 4  # with its ResetRecord, as the two that follow
    START_AGAIN = 5
    NEW_TOPIC = 6


@dataclass(frozen=True)
class Decision:
    """What somebody has decided of a partition, and why. It is held until a release follows the latest hold.

    ``offset``: the source offset that replication would go on from.
    """

    kind: ClassVar[int] = 6

    topic: str
    partition: int
    time_ms: int
    action: Action
    offset: int
    reason: str
    by: str

    def encode_key(self) -> bytes:
        return _partition_key(self.kind, self.topic, self.partition) + struct.pack(">q", self.time_ms)

    def encode_value(self) -> bytes:
        texts = string(self.reason[:10_000]) + string(self.by)
        return struct.pack(">hbq", VERSION, self.action, self.offset) + texts


@dataclass(frozen=True)
class ResetRecord:
    """What a person has decided with ``airmirror reset``, and why: how a partition goes on, and which source offsets are lost.

    ``lost_first == lost_end``: none. ``start``: the source offset from which on it is copied; -1 where it is not.
    Of the whole flow: an empty topic and partition -1.
    """

    kind: ClassVar[int] = 7

    topic: str
    partition: int
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
        when = datetime.fromtimestamp(self.time_ms / 1000, UTC).isoformat(timespec="seconds")
        what = f"{self.topic}-{self.partition}: {self.choice}, {lost}" if self.topic else self.choice
        return f"{when} {self.by}: {what} ({self.problem or 'nothing was wrong'}; {self.reason})"

    def encode_key(self) -> bytes:
        return _partition_key(self.kind, self.topic, self.partition) + struct.pack(">q", self.time_ms)

    def encode_value(self) -> bytes:
        return (
            struct.pack(">h", VERSION)
            + string(self.choice)
            + struct.pack(">qqq", self.lost_first, self.lost_end, self.start)
            + string(self.window)
            + texts((self.problem, self.by, self.reason))
        )


@dataclass(frozen=True)
class Tombstone:
    """A null value: what had this key is deleted. ``key`` holds the key's fields after the kind."""

    kind: int
    key: tuple[object, ...]


Record = Claim | SegmentRecord | Verified | Hold | FlowIdentity | Decision | ResetRecord | Tombstone


def decode(key: bytes, value: bytes | None) -> Record:
    """A record of the segment topic. Raises MalformedRecord, also for kinds and versions that are not known."""
    reader = Reader(key)
    kind = reader.int8()
    fields: tuple[object, ...]
    if kind == Claim.kind:
        fields = (reader.string(),)
    elif kind == SegmentRecord.kind:
        fields = (reader.uuid(), reader.string(), reader.int32(), reader.int64())
    elif kind in (Verified.kind, Hold.kind):
        fields = (reader.string(), reader.int32())
    elif kind == FlowIdentity.kind:
        fields = ()
    elif kind in (Decision.kind, ResetRecord.kind):
        fields = (reader.string(), reader.int32(), reader.int64())
    else:
        raise MalformedRecord(f"kind {kind} is not known")
    reader.end()
    if value is None:
        return Tombstone(kind, fields)
    reader = Reader(value)
    version = reader.int16()
    if version != VERSION and (kind, version) != (SegmentRecord.kind, VERSION_WITH_TIMES):
        raise MalformedRecord(f"version {version} of kind {kind} is not known")
    record = _DECODERS[kind](fields, reader)
    if version == VERSION_WITH_TIMES:
        assert isinstance(record, SegmentRecord)
        record = replace(record, min_timestamp=reader.int64(), read_ms=reader.int64())
    reader.end()
    return record


def held_by_decision(decisions: Iterable[Decision]) -> dict[tuple[str, int], Hold]:
    """The holds that stand after decisions in log order, by topic and partition."""
    holding = [decision for decision in decisions if decision.action in (Action.HOLD, Action.RELEASE)]
    latest = {(decision.topic, decision.partition): decision for decision in holding}
    return {
        key: Hold(*key, decision.offset, decision.reason, "", decision.by, decision.time_ms)
        for key, decision in latest.items()
        if decision.action is Action.HOLD
    }


def _claim(key: tuple[object, ...], reader: Reader) -> Record:
    event = reader.int8()
    if event not in ClaimEvent.__members__.values():
        raise MalformedRecord(f"claim event {event} is not known")
    return Claim(str(key[0]), ClaimEvent(event), reader.string(), reader.int64(), reader.int64(), reader.int32())


def _segment(key: tuple[object, ...], reader: Reader) -> Record:
    topic_id, topic, partition, start = key
    assert isinstance(topic_id, UUID) and isinstance(partition, int) and isinstance(start, int)
    window = reader.string()
    slot, time_ms, end = reader.int32(), reader.int64(), reader.int64()
    target_topic_id, remote_topic = reader.uuid(), reader.string()
    packed = SegmentRecord._numbers
    (
        target_start, target_end, copied, control, aborted, holes, lost, size, max_timestamp, epoch,
    ) = packed.unpack(reader.take(packed.size))  # fmt: skip
    digest = reader.take(16)
    count = reader.unsigned_varint()
    if count * 3 > reader.left:
        raise MalformedRecord(f"{count} segments in {reader.left} bytes")
    segments = []
    source, target = start, target_start
    for _ in range(count):
        segment = Segment(
            source + reader.unsigned_varint(), target + reader.unsigned_varint(), reader.unsigned_varint()
        )
        segments.append(segment)
        source, target = segment.source_end, segment.target_end
    return SegmentRecord(
        topic_id, str(topic), partition, start, window, slot, time_ms, end, target_topic_id, remote_topic,
        target_start, target_end, copied, control, aborted, holes, lost, size, max_timestamp, epoch,
        digest, tuple(segments),
    )  # fmt: skip


def _verified(key: tuple[object, ...], reader: Reader) -> Record:
    topic, partition = key
    assert isinstance(partition, int)
    return Verified(
        str(topic), partition, reader.uuid(), reader.int64(), reader.int64(), reader.string(), reader.int64()
    )


def _hold(key: tuple[object, ...], reader: Reader) -> Record:
    topic, partition = key
    assert isinstance(partition, int)
    return Hold(
        str(topic), partition, reader.int64(), reader.string(), reader.string(), reader.string(), reader.int64()
    )


def _identity(key: tuple[object, ...], reader: Reader) -> Record:
    names = (reader.string(), reader.string(), reader.string(), reader.string())
    time_ms, policy, separator = reader.int64(), reader.string(), reader.string()
    topics, exclude, upstream = reader.texts(), reader.texts(), reader.texts()
    pairs = tuple(zip(upstream[::2], upstream[1::2], strict=False))
    return FlowIdentity(*names, time_ms, policy, separator, topics, exclude, pairs)


def _decision(key: tuple[object, ...], reader: Reader) -> Record:
    topic, partition, time_ms = key
    assert isinstance(partition, int) and isinstance(time_ms, int)
    action = reader.int8()
    if action not in Action.__members__.values():
        raise MalformedRecord(f"decision {action} is not known")
    return Decision(
        str(topic), partition, time_ms, Action(action), reader.int64(), reader.string(), reader.string()
    )  # fmt: skip


def _reset(key: tuple[object, ...], reader: Reader) -> Record:
    topic, partition, time_ms = key
    assert isinstance(partition, int) and isinstance(time_ms, int)
    choice, first, end, start, window = reader.string(), reader.int64(), reader.int64(), reader.int64(), reader.string()
    said = reader.texts()
    if len(said) != 3:
        raise MalformedRecord(f"a reset with {len(said)} texts")
    return ResetRecord(str(topic), partition, time_ms, choice, said[0], first, end, start, window, said[1], said[2])


_DECODERS = {1: _claim, 2: _segment, 3: _verified, 4: _hold, 5: _identity, 6: _decision, 7: _reset}


def _partition_key(kind: int, topic: str, partition: int) -> bytes:
    return struct.pack(">b", kind) + string(topic) + struct.pack(">i", partition)
