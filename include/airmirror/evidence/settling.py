"""The fate of records that only one side has, when both logs are read: moved, compacted, expired, still to come, or lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airmirror.evidence.compaction import superseded
from airmirror.evidence.found import Difference, Findings, Kind
from airmirror.evidence.logs import Log
from airmirror.evidence.marked import Marked
from airmirror.evidence.open_records import Open
from airmirror.wire.records import Array

NEVER = 2**63 - 1


def told_apart(found: Findings, source: Log, target: Log) -> Findings:
    """Find what came far too late, and what compaction took. Raises what reading the logs raises."""
    marks, offsets = (each[::-1] for each in found.extra.marked.records())
    late = found.missing.marked.take(marks)
    found.differ(Kind.REORDERED, late[late >= 0][::-1], offsets[late >= 0][::-1])
    found.extra.marked.take(marks[late >= 0])
    for open_, log, other, is_source in _sides(found, source, target):
        if other.is_compacted:
            marks, offsets = open_.marked.records()
            taken = _superseded(found, (log, other), offsets, is_source=is_source)
            open_.marked = Marked.of(marks[~taken], offsets[~taken])
    return found


def bounded(found: Findings, source: Log, target: Log) -> None:
    """Give up the oldest open records of a side that has too many of them. Raises what reading the logs raises."""
    for open_, log, other, is_source in _sides(found, source, target):
        offsets = open_.oldest()
        if not len(offsets):
            continue
        if other.is_compacted:
            offsets = offsets[~_superseded(found, (log, other), offsets, is_source=is_source)]
        first = found.first_pair[0 if is_source else 1] if found.first_pair else 0
        open_.give_up(offsets, (other.log_start, first))


def find_moved(found: Sequence[Findings]) -> None:
    """Records that are missing in one partition of a topic and extra in another one have changed their partition."""
    for number, each in enumerate(found):
        for other_number, other in enumerate(found):
            if other_number == number or not len(each.missing.marked) or not len(other.extra.marked):
                continue
            marks, offsets = each.missing.marked.records()
            there = other.extra.marked.take(marks)
            moved = there >= 0
            each.differ(Kind.ALTERED, offsets[moved], there[moved], ("partition",), other_number)
            each.missing.marked = Marked.of(marks[~moved], offsets[~moved])


def settled(found: Findings, source_start: int, target_start: int, *, is_withheld: bool = False) -> Findings:
    """Settle what is open; the whole logs begin at these offsets, 0 where nothing was taken from them. ``is_withheld``: the
    source has more than could be read."""
    first = found.first_pair or (NEVER, NEVER)
    kept_from = target_start if found.keeps_offsets else first[0]
    _settle(found, found.missing, kept_from=kept_from, last=found.last_pair[0], most=target_start, is_source=True)
    _settle(
        found,
        found.extra,
        kept_from=first[1],
        last=found.last_pair[1] if is_withheld else NEVER,
        most=source_start,
        is_source=False,
    )
    named = sorted(found.differences, key=lambda each: (each.source_offset < 0, each.source_offset, each.target_offset))
    found.differences = []
    for each in named:
        found.name(each)
    return found


def _settle(found: Findings, open_: Open, *, kept_from: int, last: int, most: int, is_source: bool) -> None:
    """Settle one side: the oldest records first. What is before ``kept_from`` may have expired, ``most`` records of it, for the
    other log lacks no more offsets at its beginning. What is after ``last`` lags, or is withheld."""
    lost, late = (Kind.MISSING, Kind.LAGGING) if is_source else (Kind.EXTRA, Kind.WITHHELD)
    left = most
    for start, end, count in open_.passed:
        expired = min(count, left) if end < kept_from else 0
        left -= expired
        rest = late if start > last else lost
        for kind, first, its in ((Kind.EXPIRED, start, expired), (rest, start + expired, count - expired)):
            found.counts[kind] += its
            if its and end - start == count - 1:
                found.name(Difference(kind, *((first, -1) if is_source else (-1, first)), count=its))
    _, offsets = open_.marked.records()
    has_expired, lags = offsets < kept_from, offsets > last
    has_expired[np.flatnonzero(has_expired)[left:]] = False
    kinds = ((Kind.EXPIRED, has_expired), (late, lags & ~has_expired), (lost, ~(lags | has_expired)))
    for kind, chosen in kinds:
        _differ(found, kind, offsets[chosen], is_source=is_source)


def _sides(found: Findings, source: Log, target: Log) -> tuple[tuple[Open, Log, Log, bool], ...]:
    return (found.missing, source, target, True), (found.extra, target, source, False)


def _superseded(found: Findings, logs: tuple[Log, Log], offsets: Array, *, is_source: bool) -> Array:
    """Return which records of the first log the cleaner of the second may have taken; they are noted as compacted."""
    taken = superseded(logs[0], offsets, logs[1])
    _differ(found, Kind.COMPACTED, offsets[taken], is_source=is_source)
    return taken


def _differ(found: Findings, kind: Kind, offsets: Array, *, is_source: bool) -> None:
    nowhere = np.full(len(offsets), -1, np.int64)
    found.differ(kind, *((offsets, nowhere) if is_source else (nowhere, offsets)))
