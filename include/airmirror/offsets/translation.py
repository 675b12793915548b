"""The translation of positions: exact by the mappings (invariant G), never past the verified offset (F).

A position is the next offset to read, as consumer groups commit it. Pure functions: what they need of a partition is in a
``Replicated``. Offsets between two runs of consecutive offsets (compacted, control and aborted records, the markers of
our own transactions) hold nothing to read, so a position there is that of the next replicated record: but only where
mapping records follow one another from run to run. Of what none covers nothing is known, and it is never jumped over.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cached_property

from airmirror.wire.mappings import MappedRange, MappingRecord


class Reason(StrEnum):
    """The reasons why a group's position was not translated, or the group not moved to it."""

    NOT_REPLICATED = "topic not replicated by this flow"
    AGGREGATE = "aggregate flow: name the group in groups if it reads this source's records alone"
    NO_PARTITION = "partition does not exist any more"
    NO_LEADER = "partition has no leader now"
    MISSING = "topic or partition is not on the other cluster (yet, or any more)"
    RECREATED = "topic was recreated since it was replicated"
    BEYOND_END = "position beyond the log end (truncated)"
    NOT_COVERED = "position in or next to a gap between mapping records"
    BEFORE_MAPPINGS = "position before what was replicated, and no offset sync tells of it"
    NOT_VERIFIED = "not yet verified"
    BELOW_START = "translated below the log start of the target"
    ACTIVE = "active on the target"
    AHEAD = "ahead on the target already"
    BEYOND_TARGET = "beyond the log end of the target"
    LAGGING = "held back by window.max.lag"
    FROZEN = "its topic is frozen: no window moves groups there any more"
    CUT_OVER = "cut over by a migration: no window moves it any more"
    FROM_TARGET = "its topic came from the target: only a failover, a failback or groups apply moves it there"
    STREAMS_AHEAD = (
        "a streams group that the target does not have yet: on Kafka 4.2.0 its positions would break it (KAFKA-20254); "
        "streams.groups.ahead.allowed"
    )
    REFUSED = "refused by the target"


@dataclass(frozen=True)
class Sync:
    """Offsets of one record on both clusters: an offset sync."""

    source: int
    target: int


class Between(Enum):
    """The content between two runs, before the first or after the last."""

    COVERED = "nothing to read"
    LOST = "something that an operator has declared lost, and that may be there all the same"
    UNKNOWN = "offsets that no mapping record covers"


@dataclass(frozen=True)
class Replicated:
    """The replicated records of a partition, as far as they are known.

    ``source_start`` and ``target_start`` are where the first known mapping record begins; ``verified`` is the last verified
    source offset, ``verified_end`` where the verified records end on the target. ``records``, by offset, has at least, for
    every position to translate, the mapping records from the last run before it to the first that ends past it.
    ``log_start`` is the source's. ``history``: offset syncs of what was copied before ``source_start``, by offset.
    """

    source_start: int
    target_start: int
    verified: int
    verified_end: int
    records: Sequence[MappingRecord]
    log_start: int = 0
    history: Sequence[Sync] = ()

    @cached_property
    def runs(self) -> list[MappedRange]:
        return [run for record in self.records for run in record.ranges]

    @cached_property
    def between(self) -> list[Between]:
        """The content before each of the ``runs``, and after the last."""
        found, now = [], Between.COVERED
        for before, record in zip([None, *self.records], self.records, strict=False):
            if before is not None and before.source_end != record.source_start:
                now = Between.UNKNOWN
            now = _with_losses(now, record)
            for _ in record.ranges:
                found.append(now)
                now = _with_losses(Between.COVERED, record)
        return [*found, now]


def _with_losses(now: Between, record: MappingRecord) -> Between:
    return Between.LOST if record.lost and now is Between.COVERED else now


@dataclass(frozen=True)
class Translated:
    """A position and where it is on the other cluster. ``again``: offsets below the one asked for, to be read again.

    ``exact``: the very next record. Else it is estimated by MirrorMaker 2's rule, at most one record past an offset sync; or
    it lies in a declared loss, and the translation is the end of what lies before that: nothing is skipped that may be there.
    """

    position: int
    translation: int
    exact: bool = True
    again: int = 0


def nothing_replicated(log_start: int, target_end: int, history: Sequence[Sync] = ()) -> Replicated:
    """A partition without mappings: empty on the target (all is still to come), or filled by another writer."""
    never = 2**63 - 1  # filled by another one, every position lies before what we have replicated
    start, there = (log_start, 0) if target_end == 0 else (never, never)
    return Replicated(
        source_start=start,
        target_start=there,
        verified=start - 1,
        verified_end=there,
        records=(),
        log_start=log_start,
        history=history,
    )


def to_target(known: Replicated, position: int) -> Translated | Reason:
    """The target's position for one of the source: the first replicated record at or after it, or the end."""
    if position < known.source_start:
        if known.target_start == 0 and max(position, known.log_start) >= known.source_start:
            return Translated(position, 0)  # nothing lies before: all that was replicated is still to be read
        return _estimated(position, [(sync.source, sync.target) for sync in known.history])
    if known.verified < known.source_start and position > known.source_start:
        return Reason.NOT_VERIFIED
    if position > known.verified:
        return Translated(known.verified + 1, known.verified_end, again=position - known.verified - 1)
    number = bisect_right(known.runs, position, key=lambda run: run.source_end)
    if number < len(known.runs) and known.runs[number].source_first <= position:
        run = known.runs[number]
        return Translated(position, run.target_first + position - run.source_first)
    if not _covers(known.records, position) or known.between[number] is Between.UNKNOWN:
        return Reason.NOT_COVERED
    if known.between[number] is Between.LOST or number == len(known.runs):
        end = known.runs[number - 1].target_end if number else known.records[0].target_start
        return Translated(position, end, exact=known.between[number] is not Between.LOST)
    return Translated(position, min(known.runs[number].target_first, known.verified_end))


def to_source(known: Replicated, position: int) -> Translated | Reason:
    """The return trip: the source's position for one of the target, by the same mappings read backwards."""
    if position < known.target_start and known.log_start < known.source_start:
        return _estimated(position, [(sync.target, sync.source) for sync in known.history])
    if known.verified < known.source_start and position > known.target_start:
        return Reason.NOT_VERIFIED
    found = _on_source(known, position)
    if isinstance(found, Reason) or found.translation <= known.verified + 1:
        return found
    capped = min(position, known.verified_end)
    return Translated(capped, known.verified + 1, again=position - capped)


def _on_source(known: Replicated, position: int) -> Translated | Reason:
    number = bisect_right(known.runs, position, key=lambda run: run.target_end)
    if number < len(known.runs) and known.runs[number].target_first <= position:
        run = known.runs[number]
        return Translated(position, run.source_first + position - run.target_first)
    if known.between[number] is Between.UNKNOWN:
        return Reason.NOT_COVERED
    if known.between[number] is Between.LOST:
        return Translated(position, known.runs[number - 1].source_end if number else known.source_start, exact=False)
    end = known.records[-1].source_end if known.records else known.source_start
    return Translated(position, known.runs[number].source_first if number < len(known.runs) else end)


def _covers(records: Sequence[MappingRecord], position: int) -> bool:
    """Return whether a record holds a source position, or ends there."""
    number = bisect_right(records, position, key=lambda record: record.source_start) - 1
    return number >= 0 and position <= records[number].source_end


def usable_history(syncs: Iterable[Sync], before: int) -> list[Sync]:
    """Of one partition's offset syncs in log order, those below source offset ``before`` that still count.

    As in MirrorMaker 2's store, one that goes back makes all before it void (OffsetSyncStore.java).
    """
    found: list[Sync] = []
    for sync in syncs:
        if found and (sync.source < found[-1].source or sync.target < found[-1].target):
            found.clear()
        if sync.source < before:
            found.append(sync)
    return found


def _estimated(position: int, pairs: Sequence[tuple[int, int]]) -> Translated | Reason:
    """MirrorMaker 2's rule: the last sync at or before the position, and never more than one past it."""
    number = bisect_right(pairs, position, key=lambda pair: pair[0]) - 1
    if number < 0:
        return Reason.BEFORE_MAPPINGS
    here, there = pairs[number]
    return Translated(position, there + (position > here), exact=False)
