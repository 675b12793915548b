"""The plan of a window: offsets to replicate, packed into slots; notices that a topic was created again, or its log cut.

Each partition resumes by invariant C. In the window ``slot.attempts`` and ``slot.source`` notice the same.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapreplace
from uuid import UUID

from airmirror.errors import AirmirrorError
from airmirror.ledger.state import State
from airmirror.partitions import CopyFacts, TopicPartition
from airmirror.slot.contract import SlotPartition
from airmirror.slot.errors import PartitionUnavailable, SourceTruncated, TopicRecreated
from airmirror.windows.errors import ProgressDiffers
from airmirror.wire.mappings import MappingRecord

BYTES_GUESSED = 1_000  # a record, where nothing was copied yet
FOLLOW_SECONDS = 10.0  # what comes in that time counts for the number of slots that follow


@dataclass(frozen=True)
class LogExtent:
    """A source partition as it is now: earliest and end offset (the last stable offset under read_committed)."""

    earliest: int
    end: int
    high_watermark: int


@dataclass(frozen=True)
class Planned(CopyFacts):
    """One partition of the plan. ``start == end``: nothing to do. ``error``: it is left out of this window."""

    start: int
    end: int
    high_watermark: int
    error: AirmirrorError | None = None
    last: MappingRecord | None = None  # its newest mapping record

    def bytes_wanted(self, follows: bool, now_ms: int) -> float:
        """An estimate of the bytes that a window copies, from what the records copied last took. One that ``follows`` copies
        what comes in some seconds too: as much a second as since the oldest record of the last transaction."""
        last = self.last
        size = (self.end - self.start) * (last.size / last.copied if last and last.copied else BYTES_GUESSED)
        if not follows or last is None or last.min_timestamp < 0:
            return size
        since = max(1.0, (now_ms - last.min_timestamp) / 1000)
        return size + (size + last.size) / since * FOLLOW_SECONDS

    def waited_ms(self, now_ms: int) -> int:
        """The age of the newest record copied where others wait, which are hardly older; 0 where nothing tells."""
        if self.start == self.end or self.last is None or self.last.max_timestamp < 0:
            return 0
        return now_ms - self.last.max_timestamp

    @property
    def has_work(self) -> bool:
        return self.takes_part(follows=False)

    def takes_part(self, follows: bool) -> bool:
        """Return whether a window copies it: one that ``follows`` waits for what comes."""
        return self.error is None and (follows or self.start < self.end)


def plan(
    source: str,
    progress_topic: str,
    remote_topics: Mapping[str, str],
    extents: Mapping[TopicPartition, LogExtent],
    topic_ids: Mapping[str, UUID],
    state: State,
    purged: Collection[str] = (),
) -> list[Planned]:
    """Return the work of a window: from each partition's position (else the earliest offset) to the end.

    The newest mapping record says where that is; MirrorMaker 2's progress only where there is none. Where both are there
    and differ, where the source no longer has the position, or the topic has another id, it is an error of the partition.
    ``purged``: topics from whose beginning records may go that were handled; offsets before it are holes of the window.
    """
    planned = []
    for key, extent in sorted(extents.items()):
        last, recorded = state.mappings.get(key), state.progress.get(key)
        start = state.positions.get(key, extent.earliest)
        error: AirmirrorError | None = None
        if last is not None and last.source_topic_id != topic_ids[key.topic]:
            error = TopicRecreated(source, *key, str(last.source_topic_id), str(topic_ids[key.topic]))
        elif last is not None and recorded is not None and recorded + 1 != start:
            error = ProgressDiffers(source, *key, progress_topic, recorded, start)
        elif start > extent.high_watermark or (start < extent.earliest and key.topic not in purged):
            error = SourceTruncated(source, *key, start, extent.earliest, extent.high_watermark)
        end = max(start, extent.end)
        planned.append(Planned(*key, remote_topics[key.topic], start, end, extent.high_watermark, error, last))
    return planned


def leaderless(source: str, key: TopicPartition) -> PartitionUnavailable:
    """Return the error of a partition without a leader now."""
    return PartitionUnavailable(source, *key, "it has no leader; the next window tries again")


def left_out(key: TopicPartition, remote_topic: str, state: State, error: AirmirrorError) -> Planned:
    """A partition of which nothing can be known now: it is left out of this window, alone."""
    position = state.positions.get(key, 0)
    return Planned(*key, remote_topic, position, position, position, error, state.mappings.get(key))


def pack(
    partitions: Sequence[tuple[SlotPartition, float]], slots: int
) -> list[tuple[tuple[SlotPartition, ...], float]]:
    """Partitions with their bytes, spread over ``slots``, or one each: the largest first to the emptiest slot.

    Returns each slot's partitions and its share of all bytes.
    """
    count = min(slots, len(partitions))
    members: list[list[SlotPartition]] = [[] for _ in range(count)]
    bytes_of = [(0.0, 0, number) for number in range(count)]  # a heap: bytes, partitions, slot
    for partition, size in sorted(partitions, key=lambda item: -item[1]):
        filled, held, emptiest = bytes_of[0]
        members[emptiest].append(partition)
        heapreplace(bytes_of, (filled + size, held + 1, emptiest))
    total = sum(size for _, size in partitions) or 1.0
    return [
        (tuple(members[number]), filled / total) for filled, _, number in sorted(bytes_of, key=lambda item: item[2])
    ]
