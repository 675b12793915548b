"""The account of one partition in one transaction: every source offset, and where it went (invariants E and G)."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

import xxhash

from airmirror.partitions import TopicPartition
from airmirror.wire.batch import CODEC_MASK, LOG_APPEND_TIME
from airmirror.wire.mappings import MappedRange, MappingRecord

MOST_RANGES = 20_000  # in one record of the mapping topic, which stays well below max.message.bytes then

_batch_shape = struct.Struct(">hiqqi")


class Digest:
    """The digest of what the target must hold: xxh3-128 over each batch's codec, timestamp type, count, base and
    maximum timestamp, size and payload digest, in order. It can be computed again from the target alone."""

    def __init__(self) -> None:
        self._hash = xxhash.xxh3_128()

    def add(
        self, attributes: int, count: int, base_timestamp: int, max_timestamp: int, size: int, payload_digest: bytes
    ) -> None:
        shape = attributes & (CODEC_MASK | LOG_APPEND_TIME)
        self._hash.update(_batch_shape.pack(shape, count, base_timestamp, max_timestamp, size))
        self._hash.update(payload_digest)

    def value(self) -> bytes:
        return self._hash.digest()


NO_DIGEST = Digest().value()  # of a record that nothing was written for


def payload_digest(payload: bytes | memoryview) -> bytes:
    """The digest of a batch's bytes after its header."""
    return xxhash.xxh3_128_digest(payload)


@dataclass
class Account:
    """The fate of the source offsets ``[start, end)`` since the last commit.

    ``target_end``: where the flow's records end on the target (exclusive), -1: it has none there yet.
    """

    start: int
    target_end: int
    end: int = -1
    runs: int = 0  # of source offsets without a gap between them that were sent: there will be as many ranges
    sent_end: int = -1
    copied: int = 0
    control: int = 0
    aborted: int = 0
    holes: int = 0
    lost: int = 0
    bytes: int = 0
    max_timestamp: int = -1
    min_timestamp: int = -1
    read_ms: int = -1
    leader_epoch: int = -1
    target_epoch: int = -1  # of what ends at ``target_end``, -1 unknown
    checksum: int = -1  # of the source's batch with the last offset, -1 unknown
    ranges: list[MappedRange] = field(default_factory=list)
    digest: Digest = field(default_factory=Digest)

    def __post_init__(self) -> None:
        self.end = max(self.end, self.start)

    @property
    def is_empty(self) -> bool:
        return self.end == self.start

    def times(self, first: int, last: int) -> None:
        """A batch is sent whose first record is of one time and whose newest is of another, in epoch milliseconds."""
        first = max(0, first)  # a producer may have chosen any number of 64 bits
        self.min_timestamp = first if self.min_timestamp < 0 else min(self.min_timestamp, first)
        self.max_timestamp = max(self.max_timestamp, last)

    def sent(self, runs: Sequence[tuple[int, int]]) -> None:
        """Records of the source runs (first offset, count) are on their way."""
        self.runs += len(runs) - (runs[0][0] == self.sent_end)
        self.sent_end = sum(runs[-1])

    @property
    def is_full(self) -> bool:
        """Return whether its record would become too large with many more ranges."""
        return self.runs > MOST_RANGES

    def written(self, runs: Sequence[tuple[int, int]], target_first: int) -> None:
        """Records of the source runs (first offset, count) lie on the target from ``target_first`` on."""
        for first, count in runs:
            last = self.ranges[-1] if self.ranges else None
            if last and last.source_end == first and last.target_end == target_first:
                self.ranges[-1] = MappedRange(last.source_first, last.target_first, last.count + count)
            else:
                self.ranges.append(MappedRange(first, target_first, count))
            self.copied += count
            target_first += count
        self.target_end = target_first

    def record(
        self,
        key: TopicPartition,
        remote_topic: str,
        ids: tuple[UUID, UUID],
        *,
        window: str,
        time_ms: int,
        slot: int = 0,
        checksum: int = -1,
    ) -> MappingRecord:
        """The mapping record of the transaction (invariant A). ``ids``: of the source's topic and of the remote one."""
        target_end = max(self.target_end, 0)
        return MappingRecord(
            source_topic_id=ids[0],
            topic=key.topic,
            partition=key.partition,
            source_start=self.start,
            window=window,
            slot=slot,
            time_ms=time_ms,
            source_end=self.end,
            target_topic_id=ids[1],
            remote_topic=remote_topic,
            target_start=self.ranges[0].target_first if self.ranges else target_end,
            target_end=target_end,
            copied=self.copied,
            control=self.control,
            aborted=self.aborted,
            holes=self.holes,
            lost=self.lost,
            size=self.bytes,
            max_timestamp=self.max_timestamp,
            leader_epoch=self.leader_epoch,
            digest=self.digest.value(),
            ranges=tuple(self.ranges),
            min_timestamp=self.min_timestamp,
            read_ms=self.read_ms,
            target_epoch=self.target_epoch,
            source_checksum=checksum,
        )
