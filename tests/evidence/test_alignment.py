"""The alignment of two logs: planted faults are found, each as what it is, and nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airmirror.evidence.alignment import Alignment, align
from support.examples import examples


def aligned(one: list[int], other: list[int]) -> Alignment:
    return align(np.array(one, np.uint64), np.array(other, np.uint64))


def test_equal_logs_have_pairs_only() -> None:
    found = aligned([1, 2, 2, 3], [1, 2, 2, 3])
    assert found.pairs == ((0, 0), (1, 1), (2, 2), (3, 3))
    assert not (found.moved or found.repeated or found.missing or found.extra)


def test_a_run_that_was_copied_again_is_repeated() -> None:
    """As MirrorMaker 2 does after it was killed between its records and its offsets."""
    one = list(range(100))
    found = aligned(one, [*range(60), *range(40, 60), *range(60, 100)])
    assert len(found.pairs) == 100
    assert sorted(i for i, _ in found.repeated) == list(range(40, 60))
    assert not (found.moved or found.missing or found.extra)


def test_missing_extra_and_moved_records() -> None:
    found = aligned([1, 2, 3, 4, 5, 6, 7], [1, 3, 99, 4, 6, 5, 7])
    assert found.missing == (1,)
    assert found.extra == (2,)
    assert len(found.moved) == 1 and found.moved[0] in ((4, 5), (5, 4))


def test_equal_records_in_a_row_that_lost_one() -> None:
    found = aligned([5] * 10 + [6], [5] * 9 + [6])
    assert len(found.pairs) == 10 and len(found.missing) == 1 and not found.extra


@given(st.lists(st.integers(0, 20), max_size=60), st.lists(st.integers(0, 20), max_size=60))
@examples(500)
def test_every_record_is_accounted_for_once(one: list[int], other: list[int]) -> None:
    found = aligned(one, other)
    left = [i for i, _ in (*found.pairs, *found.moved)] + list(found.missing)
    assert sorted(left) == list(range(len(one)))
    right = [j for _, j in (*found.pairs, *found.moved, *found.repeated)] + list(found.extra)
    assert sorted(right) == list(range(len(other)))
    assert all(one[i] == other[j] for i, j in (*found.pairs, *found.moved, *found.repeated))
    assert list(found.pairs) == sorted(found.pairs) and len({j for _, j in found.pairs}) == len(found.pairs)
    assert all(a[1] < b[1] for a, b in zip(found.pairs, found.pairs[1:], strict=False))
    assert not {one[i] for i in found.missing} & {other[j] for j in found.extra}


@given(st.data())
@examples(300)
def test_planted_faults_in_distinct_records_are_found_exactly(data: st.DataObject) -> None:
    one = list(range(200))
    lost = data.draw(st.sets(st.integers(0, 199), max_size=8))
    other = [mark for mark in one if mark not in lost]
    begin = data.draw(st.integers(0, len(other)))
    again = other[max(0, begin - data.draw(st.integers(0, 30))) : begin]
    strangers = data.draw(st.lists(st.integers(1000, 1100), max_size=5))
    other = [*other[:begin], *again, *strangers, *other[begin:]]
    found = aligned(one, other)
    assert set(found.missing) == lost
    assert [other[j] for j in found.extra] == strangers
    assert sorted(one[i] for i, _ in found.repeated) == sorted(again)
    assert not found.moved
