"""A flow resumes after what the reverse flow has copied: every offset is counted, every record mapped back."""

from __future__ import annotations

from uuid import UUID

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from airmirror.slot.account import NO_DIGEST
from airmirror.windows.continuing import _accounts, _Content
from airmirror.wire.mappings import MappedRange, MappingRecord

NEVER, CONTROL, ABORTED, HOLE = "never", "control", "aborted", "hole"  # what lies between what returned


def back(source_start: int, target_start: int, runs: list[MappedRange]) -> MappingRecord:
    """A mapping record of the reverse flow."""
    return MappingRecord(
        source_topic_id=UUID(int=1),
        topic="east.orders",
        partition=0,
        source_start=source_start,
        window="w",
        slot=0,
        time_ms=1,
        source_end=runs[-1].source_end,
        target_topic_id=UUID(int=2),
        remote_topic="orders",
        target_start=target_start,
        target_end=runs[-1].target_end,
        copied=sum(run.count for run in runs),
        control=0,
        aborted=0,
        holes=0,
        lost=0,
        size=0,
        max_timestamp=-1,
        leader_epoch=-1,
        digest=NO_DIGEST,
        ranges=tuple(runs),
    )


@given(
    st.lists(
        st.tuples(st.sampled_from([NEVER, CONTROL, ABORTED, HOLE]), st.integers(0, 4), st.integers(1, 5)), max_size=8
    ),
    st.integers(0, 20),
    st.booleans(),
)
def test_every_offset_is_counted_and_every_record_mapped_back(
    parts: list[tuple[str, int, int]], begin: int, compacted: bool
) -> None:
    """The log: each time something else, then a run that returned, whose original lies at other offsets."""
    spans: dict[str, list[tuple[int, int]]] = {NEVER: [], CONTROL: [], ABORTED: [], HOLE: []}
    at, original, records, offsets = begin, 1000, list[MappingRecord](), list[int]()
    pairs: dict[int, int] = {}
    for kind, others, count in parts:
        spans[kind].append((at, at + others))
        offsets += range(at, at + others) if kind == NEVER else ()
        at += others
        run = MappedRange(original, at, count)
        records.append(back(original, at, [run]))
        pairs |= {at + number: original + number for number in range(count)}
        offsets += range(at, at + count)
        at, original = at + count, original + count + 3
    content = _Content(np.array(offsets, np.int64), spans[CONTROL], spans[ABORTED], compacted)
    found = list(_accounts(content, begin, at, 7, 5000, records))
    assert [each.start for each in found] == [begin, *(each.end for each in found[:-1])] and found[-1].end == at
    assert found[-1].target_end == 5000, "what follows on the target is the flow's own"
    for each in found:
        assert each.control + each.aborted + each.lost + each.holes + each.copied == each.end - each.start
    mapped = {
        run.source_first + number: run.target_first + number
        for each in found
        for run in each.ranges
        for number in range(run.count)
    }
    assert mapped == pairs

    def total(kind: str) -> int:
        return sum(end - first for first, end in spans[kind])

    assert sum(each.control for each in found) == total(CONTROL)
    assert sum(each.aborted for each in found) == total(ABORTED)
    assert sum(each.lost for each in found) == total(NEVER) + (0 if compacted else total(HOLE))
    assert sum(each.holes for each in found) == (total(HOLE) if compacted else 0)


def test_what_is_accounted_for_already_is_not_mapped_again() -> None:
    content = _Content(np.arange(10, 30), [], [], False)
    runs = [back(100, 10, [MappedRange(100, 10, 10)]), back(110, 20, [MappedRange(110, 20, 10)])]
    first, last = _accounts(content, 15, 25, 7, 99, runs[:1]), list(_accounts(content, 15, 25, 7, 99, runs))
    assert next(first).ranges == [MappedRange(15, 105, 5)]
    assert [each.ranges for each in last] == [[MappedRange(15, 105, 5)], [MappedRange(20, 110, 5)], []]
