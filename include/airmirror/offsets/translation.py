"""Where a position lies on the other cluster: exact by the segments (invariant G), never past the verified offset (F).

A position is the next offset to read, as consumer groups commit it. Pure functions: what they need of a partition is in a
``Replicated``. Offsets between two runs of consecutive offsets (compacted, control and aborted records, the markers of
our own transactions) hold nothing to read, so a position there is that of the next replicated record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from airmirror.wire.segments import Segment


class Reason(StrEnum):
    """Why a group's position was not translated, or why the group was not moved to it."""

    NOT_REPLICATED = "topic not replicated by this flow"
    AGGREGATE = "aggregate flow: name the group in groups if it reads this source's records alone"
    NO_PARTITION = "partition does not exist any more"
    NO_LEADER = "partition has no leader now"
    MISSING = "topic or partition is not on the other cluster (yet, or any more)"
    RECREATED = "topic was recreated since it was replicated"
    BEYOND_END = "position beyond the log end (truncated)"
    BEFORE_SEGMENTS = "position before what was replicated, and no offset sync tells of it"
    NOT_VERIFIED = "not yet verified"
    BELOW_START = "translated below the log start of the target"
    ACTIVE = "active on the target"
    AHEAD = "ahead on the target already"
    BEYOND_TARGET = "beyond the log end of the target"
    LAGGING = "held back by window.max.lag"
    REFUSED = "refused by the target"


@dataclass(frozen=True)
class Sync:
    """Offsets of one record on both clusters: an offset sync."""

    source: int
    target: int


@dataclass(frozen=True)
class Replicated:
    """What is known of a partition's replicated records.

    ``source_start`` and ``target_start`` are where the first known segment record begins, ``source_end`` and
    ``target_end`` where the last one ends; ``verified`` is the last verified source offset. ``runs``, by offset, has at
    least, for every position to translate and for the verified one, the first run that ends past it. ``log_start`` is
    the source's. ``history``: offset syncs of what was copied before ``source_start``, by offset.
    """

    source_start: int
    target_start: int
    source_end: int
    target_end: int
    verified: int
    runs: Sequence[Segment]
    log_start: int = 0
    history: Sequence[Sync] = ()


@dataclass(frozen=True)
class Translated:
    """A position and where it is on the other cluster. ``again``: offsets below the one asked for, to be read again.

    ``exact``: the very next record; else estimated by MirrorMaker 2's rule, at most one record past an offset sync.
    """

    position: int
    translation: int
    exact: bool = True
    again: int = 0


def nothing_replicated(log_start: int, target_end: int, history: Sequence[Sync] = ()) -> Replicated:
    """A partition without segments: empty on the target (all is still to come), or filled by somebody else."""
    if target_end == 0:
        return Replicated(log_start, 0, log_start, 0, log_start - 1, (), log_start)
    never = 2**63 - 1  # every position lies before what we have replicated
    return Replicated(never, never, never, never, never - 1, (), log_start, history)


def to_target(known: Replicated, position: int) -> Translated | Reason:
    """The target's position for one of the source: the first replicated record at or after it, or the end."""
    if position < known.source_start:
        if known.target_start == 0:  # nothing lies before: all that was replicated is still to be read
            return Translated(position, 0)
        return _estimated(position, [(sync.source, sync.target) for sync in known.history])
    if known.verified < known.source_start and position > known.source_start:
        return Reason.NOT_VERIFIED
    capped = min(position, known.verified + 1)
    return Translated(capped, _target_of(known, capped), again=position - capped)


def to_source(known: Replicated, position: int) -> Translated | Reason:
    """The return trip: the source's position for one of the target, by the same segments read backwards."""
    if position < known.target_start and known.log_start < known.source_start:
        return _estimated(position, [(sync.target, sync.source) for sync in known.history])
    if known.verified < known.source_start and position > known.target_start:
        return Reason.NOT_VERIFIED
    number = bisect_right(known.runs, position, key=lambda run: run.target_end)
    if number < len(known.runs):
        run = known.runs[number]
        translation = run.source_first + max(0, position - run.target_first)
    else:
        translation = known.source_end
    if translation <= known.verified + 1:
        return Translated(position, translation)
    capped = _target_of(known, known.verified + 1)
    return Translated(min(capped, position), known.verified + 1, again=max(0, position - capped))


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


def _target_of(known: Replicated, position: int) -> int:
    number = bisect_right(known.runs, position, key=lambda run: run.source_end)
    if number == len(known.runs):
        return known.target_end
    run = known.runs[number]
    return run.target_first + max(0, position - run.source_first)


def _estimated(position: int, pairs: Sequence[tuple[int, int]]) -> Translated | Reason:
    """MirrorMaker 2's rule: the last sync at or before the position, and never more than one past it."""
    number = bisect_right(pairs, position, key=lambda pair: pair[0]) - 1
    if number < 0:
        return Reason.BEFORE_SEGMENTS
    here, there = pairs[number]
    return Translated(position, there + (position > here), exact=False)
