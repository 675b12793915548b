"""Partitions that MirrorMaker 2 has copied before: its progress is there, segments are not.

MirrorMaker 2 writes records first and its progress up to a minute later, so the target's tail may hold records past the
progress. The tail is compared with the source after the progress; what is there already is taken over as a segment and
not copied again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import xxhash

from airmirror.clusters.log import EARLIEST, LATEST, offsets_with_patience, read_batches
from airmirror.clusters.routes import Routes
from airmirror.windows.errors import PartitionError, TargetTruncated
from airmirror.windows.index import Index
from airmirror.windows.plan import Planned
from airmirror.windows.slot.account import Account
from airmirror.wire.requests import TopicPartition

MOST_RECORDS = 200_000  # compared at the tail: what MirrorMaker 2 may have written since it last wrote its progress
ANCHOR = 200  # records before the progress, which tell equal tails apart


@dataclass(eq=False)
class TailTooLong(PartitionError):
    """More records past the progress than are compared."""

    target: str
    remote_topic: str
    records: int

    def __str__(self) -> str:
        return (
            f"{self.where}: cluster {self.target!r} holds more than {self.records} records in {self.remote_topic!r} past "
            "the progress of MirrorMaker 2; stop MirrorMaker 2 in order, so that it writes its progress, and try again"
        )


@dataclass(frozen=True)
class TakenOver:
    """A partition's account of what the target holds past the progress, and where the target ends."""

    planned: Planned
    account: Account
    target_end: int


def candidates(index: Index, planned: Sequence[Planned]) -> list[Planned]:
    """The partitions with progress and without segments."""
    progress, segments = index.progress(), index.last_segments()
    return [item for item in planned if item.error is None and item.key in progress and item.key not in segments]


def take_over(
    source: Routes, target: Routes, item: Planned, read_committed: bool, times: bool = True
) -> TakenOver | PartitionError:
    """Find what the target holds past the progress of one partition; an error of the partition is returned.

    Without ``times`` records are told apart by all but their timestamps.
    """
    remote = TopicPartition(item.remote_topic, item.partition)
    target_end = offsets_with_patience(target, [remote], LATEST, read_committed=True)[remote]
    target_start = offsets_with_patience(target, [remote], EARLIEST)[remote]
    earliest = offsets_with_patience(source, [item.key], EARLIEST)[item.key]
    if target_end == 0:
        return TargetTruncated(source.alias, *item.key, target.alias, item.remote_topic, 1, 0)
    before = max(earliest, item.start - ANCHOR)
    ours = _Log(source, item.key, before, item.end, read_committed, MOST_RECORDS + ANCHOR, times)
    theirs = _Log(
        target, remote, max(target_start, target_end - 2 * MOST_RECORDS), target_end, True, 2 * MOST_RECORDS, times
    )
    split = next((number for number, offset in enumerate(ours.offsets) if offset >= item.start), len(ours.offsets))
    count = overlap(ours.digests[split:], theirs.digests, ours.digests[:split])
    if count >= MOST_RECORDS:
        return TailTooLong(source.alias, *item.key, target.alias, item.remote_topic, MOST_RECORDS)
    account = Account(item.start, target_end)
    if count:
        copied = ours.offsets[split : split + count]
        account.end = copied[-1] + 1
        for offset, target_offset in zip(copied, theirs.offsets[-count:], strict=True):
            account.written([(offset, 1)], target_offset)
        account.control = ours.left_out("control", item.start, account.end)
        account.aborted = ours.left_out("aborted", item.start, account.end)
        account.holes = account.end - item.start - count - account.control - account.aborted
        account.bytes = sum(ours.sizes[split : split + count])
    return TakenOver(replace(item, start=account.end), account, target_end)


def overlap(source: Sequence[bytes], target: Sequence[bytes], before: Sequence[bytes] = ()) -> int:
    """How many of the first ``source`` records are the last ``target`` records.

    Of several possible answers the one counts before which the target goes on to be equal to ``before`` (what precedes
    ``source``) for longest; where none does, the largest.
    """
    sequence = [*source, b"", *target[-(len(source)) :]] if source else []
    borders = [0] * len(sequence)
    for number in range(1, len(sequence)):
        length = borders[number - 1]
        while length and sequence[number] != sequence[length]:
            length = borders[length - 1]
        borders[number] = length + (sequence[number] == sequence[length])
    best, best_anchor = 0, _anchored(target, 0, before)
    length = borders[-1] if borders else 0
    while length:
        anchor = _anchored(target, length, before)
        if anchor > best_anchor or (anchor == best_anchor and length > best):
            best, best_anchor = length, anchor
        length = borders[length - 1]
    return best


def _anchored(target: Sequence[bytes], count: int, before: Sequence[bytes]) -> int:
    """How many records before the last ``count`` of the target are equal to those at the end of ``before``."""
    end = len(target) - count
    equal = 0
    while equal < min(end, len(before)) and target[end - 1 - equal] == before[-1 - equal]:
        equal += 1
    return equal


class _Log:
    """The digests, offsets and sizes of a range's records, and the offsets that hold none."""

    def __init__(
        self,
        routes: Routes,
        partition: TopicPartition,
        start: int,
        end: int,
        read_committed: bool,
        most: int,
        times: bool,
    ) -> None:
        from airmirror.wire.records import index  # loads compiled loops: only where records must be decoded

        self.digests: list[bytes] = []
        self.offsets: list[int] = []
        self.sizes: list[int] = []
        self._left_out: list[tuple[str, int, int]] = []
        for buffer, batches in read_batches(routes, partition, start, end, read_committed=read_committed):
            for batch, aborted in batches:
                if batch.is_control or aborted:
                    what = "control" if batch.is_control else "aborted"
                    self._left_out.append((what, batch.base_offset, batch.next_offset))
                    continue
                records = index(buffer, [batch], start, end)
                data = records.data.data
                for number in range(len(records)):
                    body = data[records.starts[number] : records.ends[number]]
                    time = int(records.timestamps[number] if times else 0).to_bytes(8, "big", signed=True)
                    self.digests.append(xxhash.xxh3_128_digest(time + bytes(body)))
                    self.offsets.append(int(records.offsets[number]))
                    self.sizes.append(len(body))
            if len(self.digests) >= most:
                return

    def left_out(self, what: str, start: int, end: int) -> int:
        """How many offsets of ``[start, end)`` are control records, or in aborted transactions."""
        return sum(max(0, min(last, end) - max(first, start)) for kind, first, last in self._left_out if kind == what)
