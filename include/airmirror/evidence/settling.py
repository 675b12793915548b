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
            taken = _superseded(found, log, offsets, is_source=is_source)
            open_.marked = Marked.of(marks[~taken], offsets[~taken])
    return found


def bounded(found: Findings, source: Log, target: Log) -> None:
    """Give up the oldest open records of a side that has too many of them. Raises what reading the logs raises."""
    for open_, log, other, is_source in _sides(found, source, target):
        offsets = open_.oldest()
        if not len(offsets):
            continue
        if other.is_compacted:
            offsets = offsets[~_superseded(found, log, offsets, is_source=is_source)]
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


def settled(found: Findings, source_start: int, target_start: int) -> Findings:
    """Settle what is open; the whole logs begin at these offsets, 0 where nothing was taken from them."""
    first = found.first_pair or (NEVER, NEVER)
    kept_from = target_start if found.keeps_offsets else first[0]
    _settle(found, found.missing, (kept_from if target_start > 0 else 0, found.last_pair[0]), is_source=True)
    _settle(found, found.extra, (first[1] if source_start > 0 else 0, NEVER), is_source=False)
    named = sorted(found.differences, key=lambda each: (each.source_offset < 0, each.source_offset, each.target_offset))
    found.differences = []
    for each in named:
        found.name(each)
    return found


def _settle(found: Findings, open_: Open, places: tuple[int, int], *, is_source: bool) -> None:
    """Settle one side: what is before the first of both places has expired, what is after the second one lags."""
    kept_from, last = places
    lost = Kind.MISSING if is_source else Kind.EXTRA
    _, offsets = open_.marked.records()
    has_expired, lags = offsets < kept_from, offsets > last
    kinds = ((Kind.EXPIRED, has_expired), (Kind.LAGGING, lags & ~has_expired), (lost, ~(lags | has_expired)))
    for kind, chosen in kinds:
        _differ(found, kind, offsets[chosen], is_source=is_source)
    for start, end, count in open_.passed:
        kind = Kind.EXPIRED if end < kept_from else Kind.LAGGING if start > last else lost
        found.counts[kind] += count
        if end - start == count - 1:
            found.name(Difference(kind, *((start, -1) if is_source else (-1, start)), count=count))


def _sides(found: Findings, source: Log, target: Log) -> tuple[tuple[Open, Log, Log, bool], ...]:
    return (found.missing, source, target, True), (found.extra, target, source, False)


def _superseded(found: Findings, log: Log, offsets: Array, *, is_source: bool) -> Array:
    """Return which of a side's records its cleaner may take; they are noted as compacted."""
    taken = superseded(log, offsets)
    _differ(found, Kind.COMPACTED, offsets[taken], is_source=is_source)
    return taken


def _differ(found: Findings, kind: Kind, offsets: Array, *, is_source: bool) -> None:
    nowhere = np.full(len(offsets), -1, np.int64)
    found.differ(kind, *((offsets, nowhere) if is_source else (nowhere, offsets)))
