"""Two logs brought together by what mappings map, against a model that asks for every single offset; what is covered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airmirror.windows.coverage import still_held, uncovered
from airmirror.windows.cursor import Cursor, pairs
from airmirror.wire.mappings import MappedRange
from airmirror.wire.records import Array, Records
from support.ledgers import mapping


def given_records(offsets: Sequence[int], cuts: Sequence[int]) -> Cursor:
    """A cursor over records at these offsets, fetched in pieces."""
    bounds = [0, *sorted(cut % (len(offsets) + 1) for cut in cuts), len(offsets)]
    chunks = [offsets[first:end] for first, end in pairwise(bounds) if end > first]
    cursor = Cursor(None, None, 0, 0, True)  # type: ignore[arg-type]
    none = np.empty(0, np.uint8)
    arrays = [np.array(chunk, np.int64) for chunk in chunks]
    cursor._chunks = iter([Records(none, array, array, array, array) for array in arrays])
    return cursor


offsets = st.lists(st.integers(0, 60), unique=True).map(sorted)
cuts = st.lists(st.integers(0, 60), max_size=4)


@given(st.lists(st.tuples(*[st.integers(0, 3)] * 2, st.integers(1, 8)), max_size=6), offsets, offsets, cuts, cuts)
def test_every_record_of_both_sides_is_told_once(
    steps: list[tuple[int, int, int]], here: list[int], there: list[int], cuts_here: list[int], cuts_there: list[int]
) -> None:
    runs, source, target = list[MappedRange](), 0, 0
    for hole, marker, count in steps:
        runs.append(MappedRange(source + hole, target + marker, count))
        source, target = runs[-1].source_end, runs[-1].target_end
    to = {run.source_first + n: run.target_first + n for run in runs for n in range(run.count)}
    back = {target: source for source, target in to.items()}
    found = list(pairs(given_records(here, cuts_here), given_records(there, cuts_there), runs))

    def all_of(arrays: list[Array]) -> list[int]:
        return [int(offset) for array in arrays for offset in array]

    both = [offset for offset in here if offset in to and to[offset] in there]
    assert all_of([pair.at for pair in found]) == all_of([pair.here.offsets for pair in found]) == both
    assert all_of([pair.there.offsets for pair in found]) == [to[offset] for offset in both]
    assert all_of([pair.source.offsets for pair in found]) == here
    assert all_of([pair.target.offsets for pair in found]) == there
    assert all_of([pair.absent_there for pair in found]) == [o for o in here if o in to and to[o] not in there]
    assert all_of([pair.absent_here for pair in found]) == [back[o] for o in there if o in back and back[o] not in here]
    assert all_of([pair.surplus_here for pair in found]) == [offset for offset in here if offset not in to]
    assert all_of([pair.surplus_there for pair in found]) == [offset for offset in there if offset not in back]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), max_size=6),
    st.integers(0, 60),
    st.integers(0, 60),
)
def test_what_no_record_covers(steps: list[tuple[int, int]], begin: int, end: int) -> None:
    records, at = [], 0
    for gap, count in steps:
        records.append(mapping(at + gap, at + gap + count))
        at = records[-1].source_end
    covered = {offset for record in records for offset in range(record.source_start, record.source_end)}
    found = [offset for first, stop in uncovered(records, begin, end) for offset in range(first, stop)]
    assert found == [offset for offset in range(begin, end) if offset not in covered]


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_what_both_logs_still_hold(source_start: int, target_start: int, begin: int, end: int) -> None:
    """Offsets 10 to 30, of which 12 to 19 and 25 to 27 lie at 5 to 12 and 14 to 16 on the target."""
    runs = (MappedRange(12, 5, 8), MappedRange(25, 14, 3))
    whole = mapping(10, 30)
    record = type(whole)(**whole.__dict__ | {"ranges": runs, "copied": 11, "target_start": 5, "target_end": 17})
    part = still_held(record, source_start, target_start, (begin, end))
    to = {run.source_first + n: run.target_first + n for run in runs for n in range(run.count)}
    kept = {s: t for s, t in to.items() if max(source_start, begin) <= s < end and t >= target_start}
    assert {run.source_first + n: run.target_first + n for run in part.ranges for n in range(run.count)} == kept
    assert part.copied == len(kept) and part.source_start <= part.source_end <= 30
    assert all(part.target_start <= target < part.target_end for target in kept.values())
    if part.source_start < part.source_end:
        assert part.source_start >= max(10, min(source_start, 30), begin) and part.source_end <= end
