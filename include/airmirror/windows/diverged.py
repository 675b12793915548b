"""Find where a log parted from the one that was copied, or written to: by leader epochs and checksums, in one topic id.

An unclean leader election cuts a log, which grows again under a later leader epoch. Mapping records keep the epoch of their
last batch; the leader tells where its log's epochs end. That bounds the place, between two records at the worst, and
what lies there is compared record by record (invariants D and E). A disk that was restored may have grown again under the same
epochs: the checksum of the last batch tells that, and then records are compared from the newest back to the first that is equal.
Accounts that no slot has made get the epochs that leaders tell before a log is read or a position decided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from airmirror.clusters.protocol.epochs import EpochEnd, epoch_before, epoch_ends, epochs_since
from airmirror.clusters.protocol.log import read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition
from airmirror.slot.account import Account
from airmirror.slot.errors import SourceDiverged
from airmirror.windows.compare import Logs, look_at_logs, read_pairs
from airmirror.windows.coverage import still_held
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import Planned
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.records import first_difference


def with_epochs(planned: Sequence[Planned], source: Routes) -> list[Planned]:
    """The plan, with an error for each partition whose log is not the one that was copied, also where nothing is new."""
    epochs = {
        item.key: item.last.leader_epoch
        for item in planned
        if item.error is None and item.last is not None and item.last.leader_epoch >= 0
    }
    ends = epoch_ends(source, epochs)

    def diverged(item: Planned) -> SourceDiverged | None:
        end = ends.get(item.key)
        if end is None or (end.epoch == epochs[item.key] and end.offset >= item.start):
            return None
        return SourceDiverged(source.alias, *item.key, item.start, end.epoch, end.offset)

    return [replace(item, error=item.error or diverged(item)) for item in planned]


@dataclass(frozen=True)
class Epochs:
    """The epochs of a partition's two logs, in their order; empty: nothing is known of that log."""

    source: Sequence[EpochEnd] = ()
    target: Sequence[EpochEnd] = ()

    def noted(self, accounts: Iterable[Account]) -> tuple[Account, ...]:
        """Return the accounts with the epochs of what they end with on both sides.

        On the target only where nothing was copied: an account that has one counts as read back, and it was not.
        """
        found = tuple(accounts)
        for account in found:
            account.leader_epoch = epoch_before(self.source, account.end)
            account.target_epoch = -1 if account.copied else epoch_before(self.target, account.target_end)
        return found


def look_at_epochs(
    mirror: Mirror, starts: Mapping[TopicPartition, int], remote: Mapping[TopicPartition, tuple[TopicPartition, int]]
) -> dict[TopicPartition, Epochs]:
    """Ask for the epochs of partitions from offsets of the source on, and of the remote partitions that some of them have from
    offsets of the target on. Raises what ``epochs_since`` does."""
    ours = epochs_since(mirror.source, starts)
    theirs = epochs_since(mirror.target, dict(remote.values()))
    return {key: Epochs(ours[key], theirs[remote[key][0]] if key in remote else ()) for key in starts}


class EpochRange(NamedTuple):
    """Offsets of a log that were read or written, up to a batch of a leader epoch; -1: it is unknown."""

    epoch: int
    start: int
    end: int


@dataclass(frozen=True)
class LogDivergence:
    """Below offset ``same`` a log is the one that was known, from ``other`` on it is not; between them, who knows."""

    same: int
    other: int


def parting(stretches: Sequence[EpochRange], ask: Callable[[int], EpochEnd]) -> LogDivergence | None:
    """Find where a log parted from the one of ``stretches``, in their order, by leader epochs alone; None: nowhere.

    ``ask``: where an epoch ends in the log now. A leader that answers with an older epoch is asked again with the newest
    known one that is not later (KIP-595): it may have more of that older epoch than was known, which others follow there.
    """
    known = [stretch for stretch in stretches if stretch.epoch >= 0]
    other: int | None = None
    while known:
        last = known[-1]
        found = ask(last.epoch)
        if found.epoch == last.epoch:
            if found.offset < last.end:
                return LogDivergence(found.offset, found.offset)
            return None if other is None else LogDivergence(last.end, max(last.end, other))
        limit = found.epoch if found.epoch >= 0 else last.epoch - 1
        first_later = next(stretch for stretch in known if stretch.epoch > limit)
        bounds = [first_later.end, *([found.offset] if found.epoch >= 0 else []), *([other] if other else [])]
        other = min(bounds)
        known = [stretch for stretch in known if stretch.epoch <= limit]
    return None if other is None else LogDivergence(min(stretches[0].start, other), other)


def kept_on_target(target: Routes, records: Sequence[MappingRecord]) -> int:
    """The target offset from which on a remote log is not the one that mapping records were written to, -1: it is.

    To be safe: a record of which it is not known whether all is there does not count.
    """
    if not records:
        return -1
    remote = TopicPartition(records[-1].remote_topic, records[-1].partition)
    written = [EpochRange(each.target_epoch, each.target_start, each.target_end) for each in records if each.copied]
    found = parting(written, lambda epoch: epoch_ends(target, {remote: epoch})[remote])
    return -1 if found is None else found.same


def diverged_at(mirror: Mirror, records: Sequence[MappingRecord], *, readable: bool) -> int:
    """The first source offset of ``records`` whose copies have no original any more; -1: all have.

    ``readable``: whether the target still has the topic that they were copied to. Raises what reading a log does.
    """
    if not records:
        return -1
    key = TopicPartition(records[0].topic, records[0].partition)
    copied = [EpochRange(each.leader_epoch, each.source_start, each.source_end) for each in records]
    found = parting(copied, lambda epoch: epoch_ends(mirror.source, {key: epoch})[key])
    if found is None:
        return -1 if is_same(mirror.source, records[-1]) else _rewritten_from(mirror, records, readable=readable)
    between = [each for each in records if each.source_start < found.other and each.source_end > found.same]
    if not between or not readable:
        return found.same
    logs = look_at_logs(mirror, between)
    for record in between:
        if (at := _first_other(logs, record, found)) is not None:
            return at
    return found.other


def is_same(source: Routes, last: MappingRecord) -> bool:
    """Return whether the source's batch before the position is the one that was copied, as far as both are known."""
    key = last.key
    if last.source_checksum < 0:
        return True
    for _, batches in read_batches(source, key, last.source_end - 1, last.source_end, read_committed=False):
        for batch, _ in batches:
            if batch.base_offset < last.source_end <= batch.next_offset:
                return batch.checksum == last.source_checksum
    return True


def _rewritten_from(mirror: Mirror, records: Sequence[MappingRecord], *, readable: bool) -> int:
    """The first source offset of the newest ``records`` that differ; where they can't be read, of all of them."""
    if not readable:
        return records[0].source_start
    at, logs = records[-1].source_end, look_at_logs(mirror, records)
    for record in reversed(records):
        first = _first_other(logs, record, LogDivergence(record.source_start, record.source_end))
        if first is None:
            break
        at = first
    return at


def _first_other(logs: Logs, record: MappingRecord, within: LogDivergence) -> int | None:
    """The first offset of a range at which the source does not hold what was copied."""
    starts = logs.starts[record.key]
    part = still_held(record, *starts, (within.same, within.other))
    for pair in read_pairs(logs, part):
        number = first_difference(pair.here, pair.there)
        found = [int(pair.at[number])] if number >= 0 else []
        found += [] if logs.compacted[record.topic] else map(int, pair.absent_here[:1])
        found += [] if record.lost else map(int, pair.surplus_here[:1])
        if found:
            return min(found)
    return None
