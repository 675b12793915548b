"""The copies that MirrorMaker 2 made before a flow's first mapping record: compared with the source, so that they get mappings.

The target's log below the first mapping record is followed, record by record, in the source's, some at a time: every record
that is mapped was seen to be equal on both sides (invariant D). A record that was copied twice is mapped where it lies first.
What is mapped reaches without a gap to the first mapping record (invariant C): what lies before a record that was skipped is
not mapped. Of a compacted topic a record that one side has may belong to a hole of the other's; whether a cleaner may have taken
it there, a later record of its key tells, which is looked at by ``runbooks.takeover.exact``. Only reads.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from airmirror.clusters.protocol.log import EARLIEST, offsets_with_patience, read_records
from airmirror.partitions import TopicPartition
from airmirror.slot.account import MOST_RANGES, Account
from airmirror.windows.handover import AT_ONCE, BACK
from airmirror.windows.mirror import Mirror
from airmirror.windows.takeover import BothLogs, Copies, LogRange, Record, accounts_of, missing
from airmirror.windows.trail import Trail, follow
from airmirror.wire.mappings import MappedRange, MappingRecord

Pair = tuple[Record, int]  # of the source, and the offset of its copy on the target


def between(
    lost: Sequence[Record], strange: Iterable[Record], pairs: tuple[tuple[int, int], tuple[int, int]], room: int
) -> list[Pair] | None:
    """What lies between two copies, in order; None: a record of the source was not copied.

    ``lost``: records that the source alone has; ``strange``: that the target alone has; ``pairs``: the offsets of both copies;
    ``room``: holes of the target right before the second one.
    """
    (here, there), (until, end) = pairs
    if until - here != end - there:
        if len(lost) > room:
            return None
        return [(record, end - len(lost) + number) for number, record in enumerate(lost)]
    ours = {record.offset: (record, there + record.offset - here) for record in lost}
    theirs = {here + record.offset - there: record for record in strange}
    if ours.keys() & theirs.keys():
        return None
    theirs_as_ours = {offset: (replace(record, offset=offset), record.offset) for offset, record in theirs.items()}
    return [each for _, each in sorted((ours | theirs_as_ours).items())]


def filled(
    trail: Trail,
    view: Sequence[Record],
    theirs: Sequence[Record],
    *,
    last: tuple[int, int] | None,
    seen: int,
    is_hole: Callable[[int], bool],
) -> tuple[list[Pair], list[list[Record]]]:
    """The copies that a trail has found, with those of which one side was taken; and the runs of records that were not copied.

    ``last``: the offsets of the copy before, ``seen``: the target's last offset before; None and -1: there is none. ``is_hole``:
    of a source offset that no record has, whether it is no control record and of no aborted transaction.
    """
    pairs: list[Pair] = []
    gaps: list[list[Record]] = []
    ranges = {end: (begin, end) for begin, end in trail.skipped}
    strange, taken = list(trail.strange), 0
    for number, at in trail.copies:
        record, there = view[number], theirs[at].offset
        lost = missing(replace(trail, skipped=(ranges[number],)), view) if number in ranges else []
        first = taken
        while taken < len(strange) and strange[taken] < at:
            taken += 1
        apart = [theirs[each] for each in strange[first:taken]]
        if last is not None and (lost or apart):
            room = there - (theirs[at - 1].offset if at else seen) - 1
            made = between(lost, apart, (last, (record.offset, there)), room)
            if made is None:
                gaps.append(lost)
            pairs += [pair for pair in made or [] if pair[0] in lost or is_hole(pair[0].offset)]
        pairs.append((record, there))
        last = record.offset, there
    return pairs, gaps


def numbered(pairs: Sequence[Pair], theirs: Sequence[Record]) -> tuple[Copies, list[Record]]:
    """Pairs as ``accounts_of`` takes them, and the target's records with those that are no longer there in their places."""
    there = {each.offset: each for each in theirs}
    for record, at in pairs:
        there.setdefault(at, replace(record, offset=at))
    places = {offset: number for number, offset in enumerate(sorted(there))}
    return [(record, places[at]) for record, at in pairs], [there[offset] for offset in sorted(there)]


@dataclass(frozen=True)
class Gap:
    """Source offsets ``first`` to ``last``, of which ``count`` records are not on the target, though later ones are."""

    first: int
    last: int
    count: int


@dataclass(frozen=True)
class History:
    """A partition's copies before its first mapping record ``before``.

    ``accounts``: what gets mappings, up to ``before`` without a gap; ``again``: runs of records that were copied before, by
    source and target; ``strange``: records of the target that are not the source's (it has deleted them, or another writer
    wrote them), as runs (first, end); ``gaps``: what was not copied, by source offset. ``refused``: why nothing gets mappings;
    empty: it does, or there is nothing. Of a compacted topic ``skipped``: the source offsets of what was not copied, or was taken
    by the target's cleaner; ``cleaned``: how many records of both sides a cleaner has taken on the other one.
    """

    before: MappingRecord
    accounts: tuple[Account, ...]
    again: tuple[MappedRange, ...]
    strange: tuple[tuple[int, int], ...]
    gaps: tuple[Gap, ...]
    refused: str = ""
    skipped: Sequence[int] = ()
    cleaned: int = 0

    @property
    def key(self) -> TopicPartition:
        return self.before.key

    @property
    def start(self) -> int:
        """The first source offset whose position is exact with it."""
        return self.accounts[0].start if self.accounts else self.before.source_start

    @property
    def copied(self) -> int:
        return sum(account.copied for account in self.accounts)

    @property
    def twice(self) -> int:
        return sum(run.count for run in self.again)


def compare_history(mirror: Mirror, before: MappingRecord, *, compacted: bool, after: int = -1) -> History:
    """Follow what the target holds before ``before``, the first mapping record of its partition. Raises a cluster's error.

    Of a ``compacted`` topic either side may lack records that the other has. Nothing gets mappings up to source offset ``after``.
    """
    walk = _Walk(mirror, before, compacted=compacted, after=after)
    walk.run()
    refused = ""
    if not compacted and any(account.holes for account in walk.accounts):
        refused = "the source's log has holes, and the topic is not compacted (topics.compacted says that it was once)"
    return History(
        before,
        () if refused else tuple(walk.accounts),
        tuple(walk.again),
        tuple(walk.strange),
        tuple(walk.gaps),
        refused,
        walk.skipped,
    )


@dataclass
class _Walk:
    """What was found so far. ``at``: the source offset after the last copy, -1: none was found yet."""

    mirror: Mirror
    before: MappingRecord
    compacted: bool = field(kw_only=True)
    after: int = field(kw_only=True)
    accounts: list[Account] = field(default_factory=list)
    again: list[MappedRange] = field(default_factory=list)
    strange: list[tuple[int, int]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    skipped: array[int] = field(default_factory=lambda: array("q"))
    at: int = -1
    last: tuple[int, int] | None = None  # the offsets of the last copy
    seen: int = -1  # the target's last record

    def run(self) -> None:
        begin = offsets_with_patience(self.mirror.target, [self.before.remote], EARLIEST)[self.before.remote]
        earliest = offsets_with_patience(self.mirror.source, [self.before.key], EARLIEST)[self.before.key]
        end = self.before.target_start
        if earliest >= self.before.source_start:
            return
        for start in range(begin, end, AT_ONCE):
            theirs = self.logs.theirs(start, min(end, start + AT_ONCE))
            if theirs:
                self._take(theirs, earliest)
        self._join()

    @property
    def logs(self) -> BothLogs:
        return BothLogs(self.mirror, self.before.key, self.before.remote)

    def _take(self, theirs: Sequence[Record], earliest: int) -> None:
        """Follow the next records of the target, from the last copy on, or from where the first one may be."""
        at = self.at if self.at >= 0 else max(earliest, self._guess(theirs[0].offset))
        ours = self.logs.ours(max(earliest, at - BACK), self.before.source_start, BACK + 2 * len(theirs))
        marks = [each.digest for each in theirs]
        found: list[tuple[int, Sequence[Record], Trail]] = []
        views: Sequence[Sequence[Record]] = (ours.committed, ours.records)
        for view in views:  # as MirrorMaker 2 has read it: committed, or everything, its default
            begin = bisect_left(view, at, key=lambda each: each.offset)
            trail = follow([each.digest for each in view], marks, begin)
            if self.at < 0 and trail.again and (lowest := min(number for number, _ in trail.again)) < begin:
                trail = follow([each.digest for each in view], marks, lowest)  # another writer's time led too far
            found.append((len(trail.strange) + sum(gap.count for gap in self._gaps_of(trail, view)), view, trail))
        _, chosen, trail = min(found, key=lambda each: each[0])
        self.again += runs((chosen[number].offset, theirs[there].offset) for number, there in trail.again)
        self.strange += ranges(theirs[number].offset for number in trail.strange)
        copies, theirs, gaps = self._copies(trail, chosen, theirs, ours)
        if gaps:
            self.gaps += gaps
            self.accounts.clear()
            copies = [copy for copy in copies if copy[0].offset > gaps[-1].last]
            self.at = copies[0][0].offset
        elif self.at < 0 and copies:
            self.at = copies[0][0].offset
        mapped = [copy for copy in copies if copy[0].offset > self.after]
        if mapped and not self.accounts:
            self.at = max(self.at, self.after + 1)
        for first in range(0, len(mapped), MOST_RANGES):
            made = accounts_of(self.at, theirs[-1].offset + 1, mapped[first : first + MOST_RANGES], theirs, ours)
            self.accounts += [account for account in made if account.copied]
            self.at = self.accounts[-1].end if self.accounts else self.at
        if copies and not mapped:
            self.at = copies[-1][0].offset + 1

    def _copies(
        self, trail: Trail, view: Sequence[Record], theirs: Sequence[Record], ours: LogRange
    ) -> tuple[Copies, Sequence[Record], list[Gap]]:
        """The copies of a trail, the target's records by whose numbers they are, and what was skipped."""
        if not self.compacted:
            return [(view[number], at) for number, at in trail.copies], theirs, list(self._gaps_of(trail, view))
        trail = self._between(trail)

        def is_hole(offset: int) -> bool:
            return not any(ours.left_out(what, offset, offset + 1) for what in ("control", "aborted"))

        pairs, skipped = filled(trail, view, theirs, last=self.last, seen=self.seen, is_hole=is_hole)
        gone = {record.offset for run in skipped for record in run}
        self.skipped.extend(each.offset for each in missing(trail, view) if each.offset not in gone)
        if pairs:
            self.last = pairs[-1][0].offset, pairs[-1][1]
        self.seen = theirs[-1].offset
        return *numbered(pairs, theirs), [Gap(run[0].offset, run[-1].offset, len(run)) for run in skipped]

    def _gaps_of(self, trail: Trail, view: Sequence[Record]) -> Iterator[Gap]:
        """Yield the records that were skipped between copies: not before the first one that is known, nor by a cleaner."""
        for each in () if self.compacted else self._between(trail).skipped:
            if lost := missing(replace(trail, skipped=(each,)), view):
                yield Gap(lost[0].offset, lost[-1].offset, len(lost))

    def _between(self, trail: Trail) -> Trail:
        """The trail with what was skipped between copies: not before the first one that is known."""
        if self.at >= 0 or not trail.copies:
            return trail
        return replace(trail, skipped=tuple(each for each in trail.skipped if each[1] > trail.copies[0][0]))

    def _guess(self, offset: int) -> int:
        """The source offset at which the target's first record may lie, by its timestamp."""
        first = next(
            read_records(self.mirror.target, self.before.remote, offset, offset + 1, read_committed=True), None
        )
        if first is None or first.timestamp < 0 or not self.logs.keeps_times:
            return 0
        return max(0, offsets_with_patience(self.mirror.source, [self.before.key], first.timestamp)[self.before.key])

    def _join(self) -> None:
        """Let the last account end where the first mapping record begins, if no record of the source lies between."""
        if not self.accounts:
            return
        last, end = self.accounts[-1], self.before.source_start
        ours = self.logs.ours(last.end, end, 0 if self.compacted else 1)
        if lost := ours.committed:
            made = None
            if self.compacted and self.last is not None:
                to = (end, self.before.target_start)
                made = between(lost, (), (self.last, to), to[1] - self.seen - 1)
            if made is None:
                self.gaps.append(Gap(lost[0].offset, end - 1, len(lost) if self.compacted else 0))
                self.accounts.clear()
                return
            for record, at in made:
                last.written([(record.offset, 1)], at)
            last.holes -= len(made)
            self.skipped.extend(record.offset for record in lost)
        others = {what: ours.left_out(what, last.end, end) for what in ("control", "aborted")}
        last.control, last.aborted = last.control + others["control"], last.aborted + others["aborted"]
        last.holes += end - last.end - sum(others.values())
        last.end = end


def runs(pairs: Iterable[tuple[int, int]]) -> Iterator[MappedRange]:
    """Join pairs of offsets that follow one another on both sides."""
    run: MappedRange | None = None
    for source, target in pairs:
        if run is not None and (run.source_end, run.target_end) == (source, target):
            run = MappedRange(run.source_first, run.target_first, run.count + 1)
            continue
        if run is not None:
            yield run
        run = MappedRange(source, target, 1)
    if run is not None:
        yield run


def ranges(offsets: Iterable[int]) -> list[tuple[int, int]]:
    return [(run.target_first, run.target_end) for run in runs((offset, offset) for offset in offsets)]
