"""The effect of an operator's decision on one partition that can't continue by itself: nothing is read or written here.

``start-again`` begins at the source's earliest offset, after what the remote partition holds; ``new-topic`` does so in
another remote topic. ``accept-loss`` resumes at the first offset that both sides can continue at, and declares lost what
lies between there and the end of the last mapping record that is kept, and what lies between two of them: counted in mapping
records, so that the account stays whole (invariants C and E), and what the target no longer holds is no longer mapped
(invariant G). What MirrorMaker 2 has copied meanwhile is not lost: it is taken over as far as both sides bear it out. What is
not verified and differs is declared lost likewise (windows/losses).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise
from uuid import UUID

from airmirror.clusters.protocol.epochs import epoch_before
from airmirror.errors import AirmirrorError, named
from airmirror.partitions import CopyFacts
from airmirror.slot.account import Account
from airmirror.windows.coverage import runs_within
from airmirror.windows.diverged import Epochs
from airmirror.windows.takeover import TakenOver
from airmirror.wire.mappings import MappedRange, MappingRecord, Verified

SOURCE_RECREATED = "the source topic was created again"


class Choice(StrEnum):
    """The choices for a partition."""

    START_AGAIN = "start-again"
    NEW_TOPIC = "new-topic"
    ACCEPT_LOSS = "accept-loss"
    FORGET = "forget"


class ResetNotPossible(AirmirrorError, bad_input=True):
    """A choice that leads nowhere for a partition."""

    partition: str
    choice: str
    reason: str
    says = "{0.partition}: --{0.choice} is not possible: {0.reason}"


@dataclass(frozen=True)
class Facts(CopyFacts):
    """One partition as both sides have it now, and what is known of it.

    ``position``: the source offset to continue at, -1 where nothing was copied. ``recorded``: what MirrorMaker 2's progress
    says of that, -1 nothing. ``diverged_at``: from here on the source's log is not the one that was copied; -1: it is.
    ``foreign``: another writer has written after the flow's last record. ``tail``: what MirrorMaker 2 has copied since, where
    its progress is further, or why that is not known. ``records``: all that is known of the partition, by source offset;
    ``last`` the newest of them. ``target_kept``: from this target offset on the log is not the one that was written (it was cut,
    and has grown again), -1: it is. ``epochs``: those of both logs.
    """

    source_topic_id: UUID
    target_topic_id: UUID
    earliest: int
    high_watermark: int
    diverged_at: int
    target_end: int
    foreign: bool
    position: int
    records: tuple[MappingRecord, ...]
    last: MappingRecord | None
    verified: Verified | None
    recorded: int = -1
    tail: TakenOver | AirmirrorError | None = None
    target_kept: int = -1
    epochs: Epochs = field(default_factory=Epochs)

    @property
    def held_to(self) -> int:
        """The target offset up to which it holds what was written to it."""
        return self.target_end if self.target_kept < 0 else self.target_kept

    @property
    def source_recreated(self) -> bool:
        return self.last is not None and self.last.source_topic_id != self.source_topic_id

    @property
    def target_recreated(self) -> bool:
        return self.last is not None and self.last.target_topic_id != self.target_topic_id

    @property
    def source_cut(self) -> int | None:
        """The source offset from which on copies have no original any more; None: all have."""
        if self.diverged_at >= 0:
            return min(self.diverged_at, self.high_watermark)
        return self.high_watermark if self.position > self.high_watermark else None

    @property
    def problem(self) -> str:
        """Return why the partition can't continue by itself; empty: it can."""
        found = []
        if self.source_recreated:
            found.append(SOURCE_RECREATED)
        elif self.source_cut is not None:
            found.append(f"the source's log was cut at offset {self.source_cut}, {self.position} was reached")
        elif 0 <= self.position < self.earliest:
            found.append(f"source offsets {self.position} to {self.earliest - 1} were deleted before they were copied")
        if self.target_recreated:
            found.append("the remote topic was created again")
        elif self.last is not None and self.held_to < self.last.target_end:
            found.append(f"the remote partition was cut at {self.held_to}, {self.last.target_end} was committed")
        elif self.foreign and not isinstance(self.tail, TakenOver):
            found.append("another writer has written to the remote partition")
        if isinstance(self.tail, AirmirrorError):
            found.append("the extent of MirrorMaker 2's copies past its progress is not known")
        if self.last is not None and not self.source_recreated and self.recorded not in (-1, self.position):
            found.append(
                f"MirrorMaker 2's progress continues at {self.recorded}, the newest mapping record ends at {self.position}"
            )
        found += [f"no mapping record covers source offsets {first} to {end - 1}" for first, end in gaps(self.of_topic)]
        return "; ".join(found)

    @property
    def of_topic(self) -> list[MappingRecord]:
        """The records of the topic that is there now."""
        return [record for record in self.records if record.source_topic_id == self.source_topic_id]

    @property
    def resumes_at(self) -> int:
        """The source offset that is to be copied next, as far as the target is concerned."""
        if isinstance(self.tail, TakenOver):
            return self.tail.end
        begun = max(self.position, self.recorded)
        return begun if begun >= 0 else self.earliest


@dataclass(frozen=True)
class Reset:
    """The changes to commit for a partition. Source offsets ``[lost_first, lost_end)`` and those in ``gaps`` are declared
    lost; from there to ``start`` the ``tail`` is taken over.

    ``start`` -1: it is not copied any more. ``forgotten``: mapping records to be deleted; ``shortened``: the one of which
    a part remains. ``anew``: nothing of it counts as verified. ``rewritten``: mapping records that count what differs as
    lost, and nothing else changes; ``runs``: the records that are not mapped any more, by their offsets on both sides.
    """

    facts: Facts
    choice: Choice
    start: int
    lost_first: int
    lost_end: int
    gaps: tuple[tuple[int, int], ...] = ()
    tail: TakenOver | None = None
    forgotten: tuple[MappingRecord, ...] = ()
    shortened: MappingRecord | None = None
    anew: bool = False
    rewritten: tuple[MappingRecord, ...] = ()
    runs: tuple[MappedRange, ...] = ()

    @property
    def lost(self) -> int:
        """The number of source offsets that are declared lost."""
        if not self.rewritten:
            return self.lost_end - self.lost_first + sum(end - first for first, end in self.gaps)
        before = {record.source_start: record.lost for record in self.facts.records}
        return sum(record.lost - before[record.source_start] for record in self.rewritten)

    @property
    def sync(self) -> tuple[int, int]:
        """The source and the target offset of the offset sync by which MirrorMaker 2 translates after the reset.

        It translates what is past a sync to the offset after it. So where the target has lost records, that is the last one that
        is left; where none is, what is past the first lost offset begins at the target's offset 0.
        """
        if self.lost_end <= self.lost_first or _first_missing(self.facts) is None:
            return self.start, self.facts.target_end
        kept = [run for record in keep(self.facts.of_topic, self.lost_first).records for run in record.ranges]
        return (kept[-1].source_end - 1, kept[-1].target_end - 1) if kept else (self.lost_first, -1)

    @property
    def problem(self) -> str:
        """The problem of the partition; empty: nothing."""
        if not self.rewritten:
            return self.facts.problem
        differ = "records that are not verified yet are not on the target as they are on the source"
        return f"{differ}: offsets {offsets_of(self.runs)}" if self.runs else differ


def offsets_of(runs: Sequence[MappedRange], most: int = 100) -> str:
    """The source offsets of runs, in words, and how many more runs there are."""
    ends = [(run.source_first, run.source_end - 1) for run in runs]
    return named([str(first) if first == last else f"{first} to {last}" for first, last in ends], most)


def decide(facts: Facts, choice: Choice) -> Reset | None:
    """Return what a choice means for a partition; None: there is nothing to decide. Raises ResetNotPossible."""
    if choice is Choice.FORGET:
        return Reset(facts, choice, -1, -1, -1)
    if choice in (Choice.START_AGAIN, Choice.NEW_TOPIC):
        begins = facts.earliest
        return Reset(facts, choice, begins, begins, begins, forgotten=facts.records, anew=True)
    if not facts.problem:
        return None
    if facts.source_recreated:
        reason = "nothing is left of the topic that was replicated; use --start-again"
        raise ResetNotPossible(str(facts.key), choice, reason)
    cut, records = facts.source_cut, facts.of_topic
    start = max(facts.earliest, facts.resumes_at if cut is None else cut)
    kept_to = min([limit for limit in (cut, _first_missing(facts)) if limit is not None], default=facts.resumes_at)
    kept = keep(records, kept_to)
    kept_end = kept.records[-1].source_end if kept.records else records[0].source_start if records else start
    tail = facts.tail if isinstance(facts.tail, TakenOver) and start == facts.resumes_at and kept.is_whole else None
    lost_end = start if tail is None else tail.accounts[0].start
    return Reset(
        facts=facts,
        choice=choice,
        start=start,
        lost_first=min(kept_end, lost_end),
        lost_end=lost_end,
        gaps=tuple(gaps(kept.records)),
        tail=tail,
        forgotten=kept.forgotten,
        shortened=kept.shortened,
    )


@dataclass(frozen=True)
class Remaining:
    """The part of a partition's mapping records that remains, and what goes; ``shortened``: the last one that remains, if it
    does so in part."""

    records: tuple[MappingRecord, ...]
    forgotten: tuple[MappingRecord, ...] = ()
    shortened: MappingRecord | None = None

    @property
    def is_whole(self) -> bool:
        return not self.forgotten and self.shortened is None

    @property
    def last(self) -> MappingRecord | None:
        return self.records[-1] if self.records else None


def keep(records: Sequence[MappingRecord], end: int) -> Remaining:
    """Keep mapping records, in order, up to source offset ``end``."""
    kept = [record for record in records if record.source_end <= end]
    rest = records[len(kept) :]
    crossing = rest[0] if rest and rest[0].source_start < end else None
    shortened = None if crossing is None else shorten(crossing, end)
    remaining = kept if shortened is None else [*kept, shortened]
    return Remaining(tuple(remaining), tuple(rest[crossing is not None :]), shortened)


def borne_out(facts: Facts) -> Remaining:
    """Keep what both logs bear out: nothing of a topic that was created again, nothing after the place where a log was cut."""
    if facts.source_recreated:
        return Remaining((), facts.records)
    limits = [limit for limit in (facts.source_cut, _first_missing(facts)) if limit is not None]
    return keep(facts.of_topic, min(limits, default=max(facts.position, 0)))


def gaps(records: Sequence[MappingRecord]) -> list[tuple[int, int]]:
    """The source offsets between consecutive records that none of them covers, as ranges."""
    ends = [(one.source_end, other.source_start) for one, other in pairwise(records)]
    return [(end, start) for end, start in ends if end < start]


def _first_missing(facts: Facts) -> int | None:
    """The first source offset whose record the target no longer holds; None: none is missing."""
    if facts.target_recreated:
        return facts.of_topic[0].source_start if facts.of_topic else None
    for record in facts.of_topic:
        for run in record.ranges:
            if run.target_end > facts.held_to:
                return run.source_first + max(0, facts.held_to - run.target_first)
    return None


def shorten(record: MappingRecord, end: int) -> MappingRecord:
    """A mapping record up to source offset ``end``, whose last batches are of unknown leader epochs then."""
    kept = runs_within(record.ranges, record.source_start, end)
    target_end = kept[-1].target_end if kept else record.target_start
    return replace(keeping(record, kept, end), target_end=target_end, leader_epoch=-1, target_epoch=-1)


def keeping(record: MappingRecord, kept: Sequence[MappedRange], end: int, *, holes: bool = True) -> MappingRecord:
    """A mapping record up to source offset ``end`` that maps no more than ``kept``; the rest is accounted for, or lost.

    How many of the offsets that are no records were control records, aborted or holes is known for the whole only: they
    are taken in that order; without ``holes`` these are lost too.
    """
    copied = sum(run.count for run in kept)
    others = end - record.source_start - copied
    control = min(record.control, others)
    aborted = min(record.aborted, others - control)
    compacted = min(record.holes, others - control - aborted) if holes else 0
    return replace(
        record,
        source_end=end,
        copied=copied,
        control=control,
        aborted=aborted,
        holes=compacted,
        lost=others - control - aborted - compacted,
        size=record.size * copied // record.copied if record.copied else 0,
        ranges=tuple(kept),
        source_checksum=-1,
    )


def mapping_records(reset: Reset, window: str, time_ms: int) -> list[MappingRecord]:
    """The records that say what was lost, what is taken over, and, the last, where the partition resumes."""
    facts, taken = reset.facts, list[MappingRecord]()
    ids = facts.source_topic_id, facts.target_topic_id
    if reset.tail is not None and reset.tail.copied:
        taken = reset.tail.records(ids, window=window, time_ms=time_ms)
    between = taken[0].target_start if taken else facts.target_end

    def lost(first: int, end: int, target_end: int) -> MappingRecord:
        epochs = epoch_before(facts.epochs.source, end), epoch_before(facts.epochs.target, target_end)
        account = Account(first, target_end, end=end, lost=end - first, leader_epoch=epochs[0], target_epoch=epochs[1])
        return account.record(facts.key, facts.remote_topic, ids, window=window, time_ms=time_ms)

    filled = [lost(first, end, _target_end_before(facts, first)) for first, end in reset.gaps]
    last = lost(reset.lost_first, reset.lost_end, between)
    return [*filled, *([last] if not taken or reset.lost_end > reset.lost_first else []), *taken]


def _target_end_before(facts: Facts, offset: int) -> int:
    """Return the end on the target of the records before a source offset."""
    return max((record.target_end for record in facts.of_topic if record.source_end <= offset), default=0)


def verified_record(reset: Reset, seen: int) -> Verified | None:
    """The verified offset that remains; None: nothing of the partition is verified (any more). ``seen``: where the lease lies,
    under which all before is known."""
    verified = reset.facts.verified
    if verified is None or reset.anew or reset.lost_first <= 0:
        return None
    return replace(
        verified,
        offset=min(verified.offset, reset.lost_first - 1),
        target_end=min(verified.target_end, reset.facts.target_end),
        seen=seen,
    )
