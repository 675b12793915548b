"""Following what an at-least-once writer has copied: runs of the source, each of which may go back to before it was killed.

MirrorMaker 2 that was killed begins again after its last progress, so the target holds some records twice; its producer may
also write a batch twice. Pure functions on the digests of records.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MOST_PLACES = 50  # of equal records, on each side of the furthest one, that are looked at
ENOUGH = 200  # equal records in a row tell two places apart


@dataclass(frozen=True)
class Trail:
    """What records of the target are, by the numbers of records on both sides.

    ``copies``: (source, target) of the first copy of each record, both rising. ``again``: the same of those that were copied
    before. ``skipped``: ranges of the source that lie between copies and were not copied. ``strange``: records of the target
    that are none of the source's.
    """

    copies: tuple[tuple[int, int], ...]
    again: tuple[tuple[int, int], ...]
    skipped: tuple[tuple[int, int], ...]
    strange: tuple[int, ...]


def follow(source: Sequence[bytes], target: Sequence[bytes], begin: int) -> Trail:
    """Follow all of ``target``, whose first new record should be number ``begin`` of ``source``."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for number, mark in enumerate(source):
        places[mark].append(number)
    copies, again, skipped, strange = [], [], [], []
    expected = furthest = begin
    for number, mark in enumerate(target):
        if expected >= len(source) or source[expected] != mark:
            found = _place(source, target, number, places, furthest)
            if found is None:
                strange.append(number)
                continue
            expected = found
        if expected < furthest:
            again.append((expected, number))
        else:
            if expected > furthest:
                skipped.append((furthest, expected))
            copies.append((expected, number))
            furthest = expected + 1
        expected += 1
    return Trail(tuple(copies), tuple(again), tuple(skipped), tuple(strange))


def _place(
    source: Sequence[bytes], target: Sequence[bytes], number: int, places: Mapping[bytes, list[int]], furthest: int
) -> int | None:
    """The place at which the target continues: where it does so for longest; of several the last that skips nothing."""
    found = places.get(target[number], [])
    middle = bisect_left(found, furthest + 1)
    near = found[max(0, middle - MOST_PLACES) : middle + MOST_PLACES]
    return max(
        near,
        key=lambda place: (_equal(source, target, place, number), place <= furthest, -abs(furthest - place)),
        default=None,
    )


def _equal(source: Sequence[bytes], target: Sequence[bytes], place: int, number: int) -> int:
    most = min(ENOUGH, len(source) - place, len(target) - number)
    return next((count for count in range(most) if source[place + count] != target[number + count]), most)
