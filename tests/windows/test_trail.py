"""Following what MirrorMaker 2 has copied, when it was killed in between."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from airmirror.windows.trail import follow


def marks(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def test_runs_that_go_back_are_copies_made_again() -> None:
    source = marks(*range(100))
    trail = follow(source, marks(*range(10, 40), *range(25, 60), *range(5, 60)), 10)
    assert trail.copies == tuple((n, n - 10 if n < 40 else n - 40 + 45) for n in range(10, 60))
    assert [number for number, _ in trail.again] == [*range(25, 40), *range(5, 60)]
    assert not trail.skipped and not trail.strange


def test_what_was_skipped_or_is_of_others_is_told() -> None:
    source = marks(*range(50))
    trail = follow(source, [*marks(*range(10, 20)), b"x", *marks(*range(30, 35))], 10)
    assert trail.skipped == ((20, 30),) and trail.strange == (10,)
    assert [number for number, _ in trail.copies] == [*range(10, 20), *range(30, 35)]


def test_equal_records_continue_where_they_do_so_for_longest() -> None:
    source = [b"a", b"b", b"a", b"b", b"c", b"d"]
    trail = follow(source, [b"a", b"b", b"a", b"b", b"a", b"b", b"c"], 0)
    assert [number for number, _ in trail.copies] == [0, 1, 2, 3, 4] and len(trail.again) == 2 and not trail.skipped


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=30), st.data())
def test_any_at_least_once_copy_is_explained(source: list[bytes], data: st.DataObject) -> None:
    """Every copy is of an equal record, both sides rise, and nothing is skipped where the writer skipped nothing."""
    target, furthest = list[bytes](), 0
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, furthest))
        end = data.draw(st.integers(start, len(source)))
        target += source[start:end]
        furthest = max(furthest, end)
    trail = follow(source, target, 0)
    assert not trail.strange
    assert all(source[number] == target[at] for number, at in (*trail.copies, *trail.again))
    assert len(trail.copies) + len(trail.again) == len(target)
    assert [at for _, at in trail.copies] == sorted(at for _, at in trail.copies)
    if len(set(source)) == len(source):
        assert not trail.skipped and len(trail.copies) == furthest
