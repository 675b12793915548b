"""What lies between two copies of a compacted topic: records of one side belong to the holes of the other."""

from __future__ import annotations

import pytest

from airmirror.windows.history import Pair, between, filled, numbered
from airmirror.windows.takeover import Record
from airmirror.windows.trail import follow


def record(offset: int, mark: str = "", *, aborted: bool = False) -> Record:
    return Record((mark or str(offset)).encode(), offset, 10, aborted)


def offsets(pairs: list[Pair] | None) -> list[tuple[int, int]] | None:
    return None if pairs is None else [(each.offset, at) for each, at in pairs]


@pytest.mark.parametrize(
    ("lost", "strange", "to", "room", "expected"),
    [
        ([11, 12], [], (14, 24), 3, [(11, 21), (12, 22)]),
        ([11], [22], (14, 24), 1, [(11, 21), (12, 22)]),  # each cleaner has taken one
        ([11], [21], (14, 24), 0, None),  # another record lies in its place
        ([11, 12], [], (14, 25), 4, [(11, 23), (12, 24)]),  # a marker is there too
        ([11, 12], [], (14, 22), 1, None),  # one hole for two
        ([], [21], (11, 22), 0, []),  # somebody else's
    ],
)
def test_between_two_copies(
    lost: list[int], strange: list[int], to: tuple[int, int], room: int, expected: list[tuple[int, int]] | None
) -> None:
    found = between([record(at) for at in lost], [record(at) for at in strange], ((10, 20), to), room)
    assert offsets(found) == expected


def test_a_trail_with_holes_on_both_sides() -> None:
    """The source has lost c and f, where f was no hole but a marker; the target b and e."""
    view = [record(at, mark) for at, mark in ((0, "a"), (1, "b"), (3, "d"), (4, "e"), (6, "g"))]
    theirs = [record(at, mark) for at, mark in ((10, "a"), (12, "c"), (13, "d"), (15, "f"), (16, "g"))]
    trail = follow([each.digest for each in view], [each.digest for each in theirs], 0)
    pairs, gaps = filled(trail, view, theirs, last=None, seen=-1, is_hole=lambda offset: offset != 5)
    assert offsets(pairs) == [(0, 10), (1, 11), (2, 12), (3, 13), (4, 14), (6, 16)] and gaps == []
    copies, there = numbered(pairs, theirs)
    assert [each.offset for each in there] == [10, 11, 12, 13, 14, 15, 16]
    assert [there[number].offset for _, number in copies] == [at for _, at in pairs]
