"""Taking over what MirrorMaker 2 has copied of each partition, also after Airmirror has copied it before and handed it back.

Where a mapping record says how far this flow has come, everything that the target holds after it is followed, record by
record, in the source: it continues the mappings without a gap (invariant C), what was copied twice is counted, and a record
that was skipped, or is not the source's, is an error. Where MirrorMaker 2 never wrote its progress, its copies are followed
from their first record on. Else its progress is trusted, and its tail compared (``windows.takeover``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.errors import AirmirrorError
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.account import Account
from airmirror.slot.adjacent import explained
from airmirror.slot.errors import EMPTY, CopyError, PartitionError, TargetTruncated, of_flow, reset_command, ways_out
from airmirror.windows.declared import compacted_topics
from airmirror.windows.diverged import look_at_epochs
from airmirror.windows.errors import ProgressDiffers
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import Planned
from airmirror.windows.takeover import BothLogs, LogRange, Record, TakenOver, accounts_of, missing, take_over
from airmirror.windows.trail import Trail, follow

AT_ONCE = 100_000  # offsets of the target that are held in memory, and compared together
BACK = 100_000  # records of the source before, to which one that was killed may have gone back


class CopiesSkipped(CopyError):
    """Records of the source that MirrorMaker 2 has not copied, though it has copied later ones."""

    first: int
    last: int
    count: int

    def __str__(self) -> str:
        accept = ("continue after its copies, and record what is missing as lost", "--accept-loss")
        return (
            f"{self.where}: MirrorMaker 2 has copied to {self.remote_topic!r} on cluster {self.target!r} without {self.count} "
            f"records between offsets {self.first} and {self.last}: it resumed after a truncation or a new topic without "
            f"reporting it; {ways_out(self, accept, EMPTY)}"
        )


class CopiesDiffer(CopyError):
    """Records of the remote topic, after what is known of it, that are not the source's."""

    first: int
    count: int

    def __str__(self) -> str:
        return (
            f"{self.where}: {self.count} records of {self.remote_topic!r} on cluster {self.target!r}, from offset {self.first} "
            "on, are not what the source holds at MirrorMaker 2's place: another writer wrote them, or the source has "
            f"deleted them, or was cut or created again; {ways_out(self, ('continue after them', '--accept-loss'), EMPTY)}"
        )


class CopiesLost(CopyError):
    """MirrorMaker 2's progress is past the last record of its that the target holds."""

    recorded: int
    end: int

    def __str__(self) -> str:
        return (
            f"{self.where}: MirrorMaker 2 says that it has copied offset {self.recorded}, but {self.remote_topic!r} on cluster "
            f"{self.target!r} ends with the source's offset {self.end - 1}: the target has lost what it copied; "
            f"{reset_command(self, 'continue after that, and record what is missing as lost', '--accept-loss')}"
        )


Found = TakenOver | PartitionError


def look_at_copies(
    mirror: Mirror, state: State, planned: Sequence[Planned], progress: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Found]:
    """What MirrorMaker 2 has copied of each partition that this flow has no account of, or why that is not known.

    ``progress``: the last offset by its own account. Partitions of which it has copied nothing since are left out.
    """
    known = [item for item in planned if item.error is None or isinstance(item.error, ProgressDiffers)]
    if mirror.flow.is_aggregate:  # others write between what is ours
        known = [item for item in known if item.last is None and item.key in state.progress]
    missing_topics = mirror.target.refresh_existing({item.remote_topic for item in known})
    known = [item for item in known if item.remote_topic not in missing_topics]
    compacted = compacted_topics(mirror, {item.topic for item in known})
    found: dict[TopicPartition, Found] = {}
    for item in known:
        if item.last is None and item.key in state.progress:
            copies: Found | None = take_over(mirror, item, compacted=compacted[item.topic])
        else:
            copies = copied_since(mirror, item, progress.get(item.key, -1), compacted=compacted[item.topic])
        if copies is not None:
            found[item.key] = copies
            of_flow(copies if isinstance(copies, AirmirrorError) else None, mirror.flow)
    return found


def copied_since(mirror: Mirror, item: Planned, recorded: int, *, compacted: bool) -> Found | None:
    """The copies after the newest mapping record, or all that there are; None: there are none.

    ``recorded``: the source offset that MirrorMaker 2 says it has copied last. Of a ``compacted`` topic either side may lack
    records that the other has.
    """
    source, target = mirror.source, mirror.target
    remote = item.remote
    end = offsets_with_patience(target, [remote], LATEST, read_committed=True)[remote]
    begin = offsets_with_patience(target, [remote], EARLIEST)[remote] if item.last is None else item.last.target_end
    if item.last is not None:
        is_other = target.topic_ids[item.remote_topic] != item.last.target_topic_id
        if is_other or end < begin:
            kept = 0 if is_other else end
            return TargetTruncated(source.alias, *item.key, target.alias, item.remote_topic, begin, kept)
    lost = CopiesLost(source.alias, *item.key, target.alias, item.remote_topic, recorded, item.start)
    if end <= (begin if item.last is None else explained(item.last)):
        return lost if recorded >= item.start and not compacted else None
    search = _Search(mirror, item, compacted=compacted, any_start=item.last is None and begin > 0)
    epochs = look_at_epochs(mirror, {item.key: item.start}, {item.key: (remote, begin)})[item.key]
    found = search.run(begin, end)
    if isinstance(found, TakenOver):
        epochs.noted(found.accounts)
    if isinstance(found, TakenOver) and not found.copied and not found.again and recorded < found.end:
        return None  # control records only
    if isinstance(found, TakenOver) and recorded >= found.end and not compacted:
        return replace(lost, end=found.end)
    return found


class _Search:
    """Follows the target's records, some at a time, and keeps the accounts of what they are."""

    def __init__(self, mirror: Mirror, item: Planned, *, compacted: bool, any_start: bool) -> None:
        self._mirror, self._item, self._compacted = mirror, item, compacted
        self._logs = BothLogs(mirror, item.key, item.remote)
        self._any_start = any_start  # the target's first records were deleted: those that are left begin anywhere
        self._accounts: list[Account] = []
        self._at, self._again = item.start, 0

    def run(self, begin: int, end: int) -> Found:
        """Follow the target's offsets ``[begin, end)``."""
        is_apart = False
        for start in range(begin, end, AT_ONCE):
            theirs = self._logs.theirs(start, min(end, start + AT_ONCE))
            if not theirs:
                continue
            ours = self._ours(len(theirs))
            found = self._followed(ours, theirs)
            if isinstance(found, PartitionError):
                return found
            view, trail = found
            copies = [(view[number], at) for number, at in trail.copies]
            if self._any_start and copies:
                self._at, self._any_start = copies[0][0].offset, False
            self._again += len(trail.again)
            made = list(accounts_of(self._at, end, copies, theirs, ours))
            self._accounts += [account for account in made if account.copied]
            self._at = self._accounts[-1].end if self._accounts else self._at
            is_apart = not copies or copies[-1][1] + 1 < len(theirs) or not made[-1].copied
        if is_apart or not self._accounts:  # what the target ends with is not ours
            self._accounts.append(Account(self._at, end))
        return TakenOver(self._item, tuple(self._accounts), self._again)

    def _ours(self, count: int) -> LogRange:
        earliest = offsets_with_patience(self._mirror.source, [self._item.key], EARLIEST)[self._item.key]
        return self._logs.ours(max(earliest, self._at - BACK), self._logs.end(), BACK + 2 * count)

    def _followed(self, ours: LogRange, theirs: Sequence[Record]) -> tuple[Sequence[Record], Trail] | PartitionError:
        """The trail, in the source's records as MirrorMaker 2 has read them: committed ones, or, its default, everything."""
        marks = [each.digest for each in theirs]
        error: PartitionError | None = None
        for view in (ours.committed, ours.records):
            begin = bisect_left(view, self._at, key=lambda each: each.offset)
            if self._any_start:
                begin = next((number for number, each in enumerate(view) if each.digest == marks[0]), begin)
            trail = follow([each.digest for each in view], marks, begin)
            found = self._wrong(trail, view, theirs)
            if found is None:
                return view, trail
            error = found if error is None or len(trail.strange) == 0 else error
        assert error is not None
        return error

    def _wrong(self, trail: Trail, view: Sequence[Record], theirs: Sequence[Record]) -> PartitionError | None:
        if self._compacted:
            return None
        where = (self._mirror.source.alias, *self._item.key)
        to = (self._mirror.target.alias, self._item.remote_topic)
        if trail.strange:
            return CopiesDiffer(*where, *to, theirs[trail.strange[0]].offset, len(trail.strange))
        if absent := missing(trail, view):
            return CopiesSkipped(*where, *to, absent[0].offset, absent[-1].offset, len(absent))
        return None
