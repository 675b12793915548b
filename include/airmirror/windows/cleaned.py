"""Copies of a compacted topic of which a cleaner has taken one side: they left a hole where they lay, on that side.

Where both logs are in step between two copies, each record that one side has belongs to the hole that lies as far from them on
the other. Where they are not, holes of the target are counted. A record of the source without a hole was never copied.
Pure functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from airmirror.windows.takeover import Copies, Record, missing
from airmirror.windows.trail import Trail

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
