"""The alignment of two sequences of record marks: pairs in order, moved, repeated, missing and extra ones. Pure.

Marks that occur once on both sides anchor the alignment, as in patience diff (Bram Cohen): the longest run of anchors that
keeps its order on both sides is the backbone. Between two anchors equal neighbours are paired from both ends, then equal
marks in the order of their occurrence.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Marks = np.ndarray[Any, np.dtype[np.uint64]]
Pair = tuple[int, int]


@dataclass(frozen=True)
class Alignment:
    """Numbers of marks of the ``one`` and the ``other`` sequence.

    ``pairs`` are equal and in order on both sides, ``moved`` equal and out of order; ``repeated`` are further copies, in
    the other, of a mark of the one; ``missing`` are only in the one, ``extra`` only in the other.
    """

    pairs: tuple[Pair, ...]
    moved: tuple[Pair, ...]
    repeated: tuple[Pair, ...]
    missing: tuple[int, ...]
    extra: tuple[int, ...]


def align(one: Marks, other: Marks) -> Alignment:
    """Align two sequences; O(n log n) in their lengths."""
    pairs: list[Pair] = []
    anchors = [*_longest_in_order(_anchors(one, other)), (len(one), len(other))]
    here, there = 0, 0
    for i, j in anchors:
        if here < i and there < j:
            pairs += _between(one, other, (here, there), (i, j))
        if i < len(one):
            pairs.append((i, j))
        here, there = i + 1, j + 1
    return _sorted_out(one, other, pairs)


def _anchors(one: Marks, other: Marks) -> list[Pair]:
    """Marks that occur once on both sides, in the order of the one."""
    ours, first, counts = np.unique(one, return_index=True, return_counts=True)
    theirs, other_first, other_counts = np.unique(other, return_index=True, return_counts=True)
    single, other_single = counts == 1, other_counts == 1
    _, at, other_at = np.intersect1d(ours[single], theirs[other_single], assume_unique=True, return_indices=True)
    found = np.stack([first[single][at], other_first[other_single][other_at]], axis=1)
    return [(int(i), int(j)) for i, j in found[np.argsort(found[:, 0])]]


def _longest_in_order(pairs: Sequence[Pair]) -> list[Pair]:
    """The longest part of ``pairs`` (in the order of the first numbers) whose second numbers rise (patience sorting)."""
    tails: list[int] = []  # the smallest second number that ends a rising run of each length
    ends: list[int] = []  # whose it is
    before: list[int] = []
    for number, (_, j) in enumerate(pairs):
        length = bisect_left(tails, j)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [j]
        ends[length : length + 1] = [number]
    found = []
    at = ends[-1] if ends else -1
    while at >= 0:
        found.append(pairs[at])
        at = before[at]
    return found[::-1]


def _between(one: Marks, other: Marks, start: Pair, end: Pair) -> list[Pair]:
    """The pairs of a gap between two anchors."""
    (i, j), (i_end, j_end) = start, end
    found = []
    forward = _equal(one[i:i_end], other[j:j_end])
    found += [(i + k, j + k) for k in range(forward)]
    i, j = i + forward, j + forward
    backward = _equal(one[i:i_end][::-1], other[j:j_end][::-1])
    i_end, j_end = i_end - backward, j_end - backward
    if i < i_end and j < j_end:
        places: dict[int, deque[int]] = defaultdict(deque)
        for k in range(j, j_end):
            places[int(other[k])].append(k)
        candidates = [(k, places[int(one[k])].popleft()) for k in range(i, i_end) if places.get(int(one[k]))]
        found += _longest_in_order(candidates)
    return found + [(i_end + k, j_end + k) for k in range(backward)]


def _equal(one: Marks, other: Marks) -> int:
    """The number of equal marks at the beginning of both."""
    count = min(len(one), len(other))
    different = np.flatnonzero(one[:count] != other[:count])
    return int(different[0]) if len(different) else count


def _sorted_out(one: Marks, other: Marks, pairs: Sequence[Pair]) -> Alignment:
    """Align the records of both sides that are left after the pairs in order."""
    free, other_free = np.ones(len(one), bool), np.ones(len(other), bool)
    for i, j in pairs:
        free[i] = other_free[j] = False
    left: dict[int, deque[int]] = defaultdict(deque)
    for i in np.flatnonzero(free).tolist():
        left[int(one[i])].append(i)
    first = {int(mark): number for mark, number in zip(one[::-1], range(len(one) - 1, -1, -1), strict=True)}
    moved, repeated, extra = [], [], []
    for j in np.flatnonzero(other_free).tolist():
        mark = int(other[j])
        if left.get(mark):
            moved.append((left[mark].popleft(), j))
        elif mark in first:
            repeated.append((first[mark], j))
        else:
            extra.append(j)
    missing = sorted(i for rest in left.values() for i in rest)
    return Alignment(tuple(pairs), tuple(moved), tuple(repeated), tuple(missing), tuple(extra))
