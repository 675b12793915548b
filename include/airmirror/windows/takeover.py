"""Partitions that MirrorMaker 2 has copied before: its progress is there, mappings are not, or end before it.

MirrorMaker 2 writes records first and its progress up to a minute later, so the target's tail may hold records past the
progress. The tail is compared with the source after the progress; what is there already is taken over as a mapping and
not copied again. By default MirrorMaker 2 copies what was aborted too, and one that was killed begins again at its progress:
then those records, and what was copied twice, stay on the target, unmapped.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

import xxhash

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.account import Account
from airmirror.slot.errors import CopyError, PartitionError, TargetTruncated, reset_command
from airmirror.windows.declared import times_replaced
from airmirror.windows.diverged import look_at_epochs
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import Planned
from airmirror.windows.trail import Trail, follow
from airmirror.wire.mappings import MappingRecord

MOST_RECORDS = 200_000  # compared at the tail: what MirrorMaker 2 may have written since it last wrote its progress
ANCHOR = 200  # records before the progress, which tell equal tails apart


class TailTooLong(CopyError):
    """More records past the progress than are compared."""

    records: int
    says = (
        "{0.where}: cluster {0.target!r} holds more than {0.records} records in {0.remote_topic!r} past the progress of "
        "MirrorMaker 2; stop MirrorMaker 2 in order, so that it writes its progress, and try again"
    )


class TailDiffers(CopyError):
    """The target does not end with what the source holds at MirrorMaker 2's progress: how far it has come is not known."""

    progress: int

    def __str__(self) -> str:
        twice = "continue after that offset, and copy again what MirrorMaker 2 has copied past it"
        return (
            f"{self.where}: the last records of {self.remote_topic!r} on cluster {self.target!r} are not those of the source "
            f"up to, or after, the progress of MirrorMaker 2 (offset {self.progress}): start MirrorMaker 2 again and stop it in "
            f"order, so that it writes its progress, and try again; or "
            f"{reset_command(self, twice, '--accept-loss')}"
        )


@dataclass(frozen=True)
class TakenOver:
    """A partition's accounts of what the target holds past the progress, one after the other.

    Within an account's mappings the target holds nothing else: records that MirrorMaker 2 should not have copied, of
    aborted transactions, and those that it has copied ``again``, lie between accounts.
    """

    planned: Planned
    accounts: tuple[Account, ...]
    again: int = 0

    @property
    def end(self) -> int:
        """The source offset to resume at."""
        return self.accounts[-1].end

    @property
    def copied(self) -> int:
        return sum(account.copied for account in self.accounts)

    def records(self, ids: tuple[UUID, UUID], *, window: str, time_ms: int) -> list[MappingRecord]:
        """The first mapping records of the partition. The last ends where the target does: what follows there is not ours."""
        place = (self.planned.key, self.planned.remote_topic, ids)
        return [account.record(*place, window=window, time_ms=time_ms) for account in self.accounts]


def candidates(state: State, planned: Sequence[Planned]) -> list[Planned]:
    """The partitions with progress and without mappings."""
    return [item for item in planned if item.error is None and item.key in state.progress and item.last is None]


def take_over(mirror: Mirror, item: Planned, *, compacted: bool = False) -> TakenOver | PartitionError:
    """Find what the target holds past the progress of one partition; an error of the partition is returned.

    Where the target sets times of its own, records are distinguished by all but their timestamps. Of a ``compacted`` topic the
    records before the progress may be gone on one side only, so that they prove nothing.
    """
    source, target, remote, logs = mirror.source, mirror.target, item.remote, BothLogs(mirror, item.key, item.remote)
    target_end = offsets_with_patience(target, [remote], LATEST, read_committed=True)[remote]
    target_start = offsets_with_patience(target, [remote], EARLIEST)[remote]
    earliest = offsets_with_patience(source, [item.key], EARLIEST)[item.key]
    if target_end == 0:
        return TargetTruncated(source.alias, *item.key, target.alias, item.remote_topic, 1, 0)
    before = max(earliest, item.start - ANCHOR)
    first = max(target_start, target_end - 2 * MOST_RECORDS)
    epochs = look_at_epochs(mirror, {item.key: item.start}, {item.key: (remote, first)})[item.key]
    ours = logs.ours(before, max(item.end, logs.end()), MOST_RECORDS + ANCHOR)  # its end is asked after the target's
    theirs = logs.theirs(first, target_end)
    there = [each.digest for each in theirs]
    most: int | None = None
    copies: Copies = []
    for view in (ours.committed, ours.records):  # as MirrorMaker 2 has read it: committed, or everything, its default
        split = bisect_left(view, item.start, key=lambda each: each.offset)
        preceding = [each.digest for each in view[:split]]
        count = overlap([each.digest for each in view[split:]], there, preceding)
        fits = compacted or not preceding or count == len(there) or _anchored(there, count, preceding) > 0
        if fits and (most is None or count > most):
            most, begin = count, len(there) - count
            copies = [(record, begin + number) for number, record in enumerate(view[split : split + count])]
    again = 0
    if most is None:
        found = _copied_again(ours, there, item.start)
        if found is None:
            return TailDiffers(source.alias, *item.key, target.alias, item.remote_topic, item.start - 1)
        copies, again = found
    if len(copies) >= MOST_RECORDS:
        return TailTooLong(source.alias, *item.key, target.alias, item.remote_topic, MOST_RECORDS)
    return TakenOver(item, epochs.noted(accounts_of(item.start, target_end, copies, theirs, ours)), again)


Copies = Sequence[tuple["Record", int]]
"""Records of the source, each with the number of its copy among those of the target; both rising."""


def _copied_again(ours: LogRange, there: Sequence[bytes], start: int) -> tuple[Copies, int] | None:
    """What was copied from offset ``start`` on by one that was killed and began again; how many records it has copied twice.

    Followed from the copies of what precedes ``start`` on. None: that does not explain all that the target holds after them.
    """
    for view in (ours.committed, ours.records):
        split = bisect_left(view, start, key=lambda each: each.offset)
        marks = [each.digest for each in view]
        anchors = [number for number, mark in enumerate(there) if split and mark == marks[split - 1]]
        if not anchors:
            continue
        first = max(anchors, key=lambda number: _anchored(there[: number + 1], 0, marks[:split]))
        trail = follow(marks, there[first + 1 :], split)
        if not trail.strange and not missing(trail, view):
            return [(view[number], first + 1 + at) for number, at in trail.copies], len(trail.again)
    return None


def missing(trail: Trail, view: Sequence[Record]) -> list[Record]:
    """The records of the source, of ``view``, that were skipped, though others after them were copied; not aborted ones."""
    return [record for begin, end in trail.skipped for record in view[begin:end] if not record.aborted]


def accounts_of(
    start: int, target_end: int, copies: Copies, theirs: Sequence[Record], ours: LogRange
) -> Iterator[Account]:
    """The accounts of ``copies`` from source offset ``start`` on; a new one after records of the target that are no copies."""
    account, apart, expected = Account(start, target_end), False, copies[0][1] if copies else 0
    for record, number in copies:
        apart, expected = apart or number != expected, number + 1
        if record.aborted:
            apart = True
            continue
        if apart and account.copied:
            yield _counted(account, ours)
            account = Account(account.end, target_end)
        apart = False
        account.written([(record.offset, 1)], theirs[number].offset)
        account.end = record.offset + 1
        account.bytes += record.size
    if (apart or expected < len(theirs)) and account.copied:
        yield _counted(account, ours)
        account = Account(account.end, target_end)
    account.end = copies[-1][0].offset + 1 if copies else start
    yield _counted(account, ours)


def _counted(account: Account, ours: LogRange) -> Account:
    account.control = ours.left_out("control", account.start, account.end)
    account.aborted = ours.left_out("aborted", account.start, account.end)
    account.holes = account.end - account.start - account.copied - account.control - account.aborted
    return account


def overlap(source: Sequence[bytes], target: Sequence[bytes], before: Sequence[bytes] = ()) -> int:
    """Return how many of the first ``source`` records are the last ``target`` records.

    Of several possible answers the one counts before which the target stays equal to ``before`` (what precedes
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
    """Return how many records before the last ``count`` of the target are equal to those at the end of ``before``."""
    end = len(target) - count
    equal = 0
    while equal < min(end, len(before)) and target[end - 1 - equal] == before[-1 - equal]:
        equal += 1
    return equal


@dataclass(frozen=True, slots=True)
class Record:
    """A record of a log: its content's digest, its offset, its size, and whether its transaction was aborted."""

    digest: bytes
    offset: int
    size: int
    aborted: bool


@dataclass(frozen=True)
class LogRange:
    """The records of a range, aborted ones among them, and the offsets of what is no committed record."""

    records: list[Record]
    others: list[tuple[str, int, int]]

    @property
    def committed(self) -> list[Record]:
        return [record for record in self.records if not record.aborted]

    def left_out(self, what: str, start: int, end: int) -> int:
        """Return how many offsets of ``[start, end)`` are control records, or in aborted transactions."""
        return sum(max(0, min(last, end) - max(first, start)) for kind, first, last in self.others if kind == what)


@dataclass(frozen=True)
class BothLogs:
    """A partition's log and that of its remote partition, as MirrorMaker 2's copies are looked for in them."""

    mirror: Mirror
    key: TopicPartition
    remote: TopicPartition

    @property
    def keeps_times(self) -> bool:
        return not times_replaced(self.mirror.flow).matches(self.key.topic)

    def end(self) -> int:
        """The source's end now, for the flow's isolation level."""
        source, committed = self.mirror.source, self.mirror.flow.reads_committed
        return offsets_with_patience(source, [self.key], LATEST, read_committed=committed)[self.key]

    def ours(self, start: int, end: int, most: int = 0) -> LogRange:
        """At least the first ``most`` committed records of a range of the source, or (0) all."""
        routes, times, committed = self.mirror.source, self.keeps_times, self.mirror.flow.reads_committed
        return read_log(routes, self.key, start, end, read_committed=committed, most=most, times=times)

    def theirs(self, start: int, end: int, most: int = 0) -> list[Record]:
        """At least the first ``most`` committed records of a range of the target, or (0) all."""
        routes, times = self.mirror.target, self.keeps_times
        return read_log(routes, self.remote, start, end, read_committed=True, most=most, times=times).committed


def read_log(
    routes: Routes, partition: TopicPartition, start: int, end: int, read_committed: bool, most: int, times: bool
) -> LogRange:
    """At least the first ``most`` committed records of a range, or (0) all."""
    from airmirror.wire.records import index  # loads compiled loops: only where records must be decoded

    found = LogRange([], [])
    committed = 0
    for buffer, batches in read_batches(routes, partition, start, end, read_committed=read_committed):
        for batch, aborted in batches:
            if batch.is_control or aborted:
                found.others.append(
                    ("control" if batch.is_control else "aborted", batch.base_offset, batch.next_offset)
                )
            if batch.is_control:
                continue
            records = index(buffer, [batch], start, end)
            data = records.data.data
            for number in range(len(records)):
                body = data[records.starts[number] : records.ends[number]]
                time = int(records.timestamps[number] if times else 0).to_bytes(8, "big", signed=True)
                digest = xxhash.xxh3_128_digest(time + bytes(body))
                found.records.append(Record(digest, int(records.offsets[number]), len(body), aborted))
            committed += 0 if aborted else len(records)
        if most and committed >= most:
            break
    return found
