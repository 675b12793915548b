"""A comparison keeps no more open records than its bound: what is beyond it is counted and said, and no verdict is wrong."""

from __future__ import annotations

import random
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.evidence import comparing
from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.found import Findings, Kind
from airmirror.evidence.joining import Work
from airmirror.evidence.mapped import Mapped
from airmirror.evidence.marked import Marked
from airmirror.evidence.open_records import MOST_RANGES, Open
from airmirror.evidence.parts import Bounds, Part
from airmirror.evidence.positions import _outcome
from airmirror.evidence.rows import row_of
from airmirror.partitions import TopicPartition
from evidence.test_comparing import MemoryLog, Written, compare_logs, numbered, told
from support.examples import examples


def numbers(found: list[int]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(found, np.int64)


def marks(found: list[int]) -> np.ndarray:  # type: ignore[type-arg]
    return np.array(found, np.uint64)


def compared(source: MemoryLog, target: MemoryLog, most_open: int) -> Findings:
    found = compare_logs(source, target, most_open)
    assert max(len(found.missing.marked), len(found.extra.marked)) <= most_open
    return found


def notes(found: Findings) -> str:
    bounds = Bounds(TopicPartition("orders", 0), 0, 10, 0, 10, 0, is_compacted=False)
    whole = Part((bounds,), (bounds,))
    return "; ".join(row_of(ComparisonRequest(("orders",)), Work("orders", "orders", 0, whole, [whole]), found).notes)


@given(st.lists(st.tuples(st.sampled_from(("add", "take", "find")), st.lists(st.integers(0, 9), max_size=12))))
@examples(200)
def test_marked_records_are_found_and_taken_as_from_lists_by_mark(steps: list[tuple[str, list[int]]]) -> None:
    found, wanted = Marked(), defaultdict[int, list[int]](list)
    offset = 0
    for what, of in steps:
        if what == "add":
            found.add(marks(of), numbers(list(range(offset, offset + len(of)))))
            for number, mark in enumerate(of):
                wanted[mark].append(offset + number)
            offset += len(of)
        elif what == "take":
            assert found.take(marks(of)).tolist() == [wanted[mark].pop() if wanted[mark] else -1 for mark in of]
        else:
            assert found.find(marks(of)).tolist() == [max(wanted[mark], default=-1) for mark in of]
        assert found.records()[1].tolist() == sorted(each for its in wanted.values() for each in its)


def test_the_oldest_are_given_up_and_their_ranges_stay() -> None:
    records = Open(most=100)
    records.add(marks(list(range(150))), numbers(list(range(0, 300, 2))))
    given_up = records.oldest()
    assert given_up.tolist() == list(range(0, 150, 2)) and len(records.marked) == 75
    records.give_up(numbers([1, 2, 3, 7, 8]), (2, 0))
    assert records.passed == [(1, 1, 1), (2, 3, 2), (7, 8, 2)] and records.given_up == 5


def test_ranges_have_a_bound_and_none_grows_over_a_place_that_decides() -> None:
    records = Open()
    for first in range(0, 10 * MOST_RANGES, 10_000):
        records.give_up(numbers(list(range(first, first + 10_000, 2))), (45_001, 80_000))
    assert len(records.passed) <= MOST_RANGES + 2 and records.given_up == 5 * MOST_RANGES
    for cut in (45_001, 80_000):
        assert not any(first < cut <= last for first, last, _ in records.passed)


def test_what_is_missing_beyond_the_bound_is_counted_named_and_said() -> None:
    one = numbered(20_000)
    other = [*one[:1_000], *one[8_000:12_000], *one[12_001:14_000:2], *one[14_000:16_000]]
    found = compared(MemoryLog(one), MemoryLog(other), 500)
    assert told(found) == {"equal": 8_000, "missing": 8_000, "lagging": 4_000}
    runs = [(each.source_offset, each.count) for each in found.differences]
    assert runs[0] == (1_000, 7_000) and runs[-1] == (16_000, 4_000)
    assert 11_500 <= found.missing.given_up < 12_000
    assert f"{found.missing.given_up:,} records that are missing so far were given up" in notes(found)
    assert "given up" not in notes(compared(MemoryLog(one), MemoryLog(other), 12_000))


def test_what_is_extra_beyond_the_bound_is_counted_and_said() -> None:
    one = numbered(6_000)
    found = compared(MemoryLog(one), MemoryLog([*one[:500], *numbered(9_000, 50_000), *one[500:]]), 400)
    assert told(found) == {"equal": 6_000, "extra": 9_000}
    assert [(each.target_offset, each.count) for each in found.differences] == [(500, 9_000)]
    assert found.extra.given_up > 8_500 and "records that are extra so far were given up" in notes(found)


def test_a_record_that_comes_after_the_bound_is_still_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MOST_REGION", 256)
    one = numbered(9_000)
    other = MemoryLog([*one[:100], *one[4_000:8_000], *one[100:110], *one[8_000:]])
    found = compared(MemoryLog(one), other, 300)
    assert told(found) == {"equal": 5_100, "missing": 3_900, "twice": 10} and not found.is_equal
    assert told(compared(MemoryLog(one), other, 9_000)) == {"equal": 5_100, "missing": 3_890, "reordered": 10}


def test_expired_records_beyond_the_bound_are_no_difference() -> None:
    one = numbered(9_000)
    kept = MemoryLog(one[5_000:], offsets=range(5_000, 9_000), log_start=5_000)
    moved = MemoryLog(one[5_000:], offsets=range(7_700, 11_700), log_start=7_700)
    for side in (kept, moved):
        assert told(compared(MemoryLog(one), side, 200)) == {"equal": 4_000, "expired": 5_000}
        assert told(compared(side, MemoryLog(one), 200)) == {"equal": 4_000, "expired": 5_000}
    lacking = MemoryLog([*one[5_000:6_000], *one[7_000:]], offsets=range(7_700, 10_700), log_start=7_700)
    found = compared(MemoryLog(one), lacking, 200)
    assert told(found) == {"equal": 3_000, "expired": 5_000, "missing": 1_000}


@pytest.mark.parametrize("lost", [0, 1])
def test_compacted_records_beyond_the_bound_are_no_difference_and_a_lost_one_is(lost: int) -> None:
    one = [Written(b"k%d" % (number % 40), b"v%d" % number, number) for number in range(4_000)]
    one[17:17] = [Written(b"gone", None, 17), Written(b"kept", b"newest of its key", 17)]
    newest = [(18, one[18])] * (1 - lost) + list(enumerate(one))[-40:]
    target = MemoryLog([each for _, each in newest], offsets=[offset for offset, _ in newest], is_compacted=True)
    found = compared(MemoryLog(one, is_compacted=True), target, 300)
    wanted = {"equal": 41 - lost, "compacted": 3_961, "missing": lost}
    assert told(found) == {kind: count for kind, count in wanted.items() if count}
    assert [each.source_offset for each in found.differences if each.kind is Kind.MISSING] == [18] * lost


@given(st.integers(0, 2**32), st.integers(1, 60))
@examples(15)
def test_no_bound_makes_a_wrong_verdict(seed: int, most_open: int) -> None:
    """Every record is counted once on its side, and logs are equal only if they are so without a bound."""
    chance = random.Random(seed)
    one, other = numbered(700), list[Written]()
    faults = chance.choice((0.0, 0.01, 0.3))
    for number, written in enumerate(one):
        fault = chance.choice(("missing", "extra", "late", "twice")) if chance.random() < faults else ""
        if fault == "extra":
            other += numbered(chance.randint(1, 90), 10_000 + 100 * number)
        if fault != "missing":
            other.append(written)
        if fault == "late":
            other.insert(chance.randrange(len(other)), other.pop(chance.randrange(len(other))))
        if fault == "twice":
            other += one[max(0, number - chance.randint(0, 300)) : number]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparing, "MOST_REGION", 256)
        patch.setattr(comparing, "FIRST_REGION", 128)
        found, free = (compared(MemoryLog(one), MemoryLog(other), most) for most in (most_open, 10_000))
    assert found.is_equal == free.is_equal
    counts = Counter({str(kind): count for kind, count in found.counts.items()})
    both = counts["equal"] + counts["reordered"] + counts["altered"]
    assert both + counts["missing"] + counts["lagging"] == len(one)
    assert both + counts["extra"] + counts["twice"] == len(other)


def test_runs_of_equal_records_have_a_bound_and_a_group_is_not_told_what_is_not_known() -> None:
    mapped = Mapped(most=3)
    mapped.add(numbers([0, 20]), numbers([0, 10]), numbers([10, 5]))
    mapped.add(numbers([25, 40]), numbers([15, 30]), numbers([1, 2]))
    assert [(run.source_first, run.target_first, run.count) for run in mapped] == [(0, 0, 10), (20, 10, 6), (40, 30, 2)]
    assert not mapped.is_cut
    mapped.add(numbers([50]), numbers([40]), numbers([2]))
    assert mapped.is_cut and len(mapped) == 3
    one = numbered(3_000)
    whole, cut = (compared(MemoryLog(one), MemoryLog(one[::2]), most) for most in (3_000, 100))
    assert _outcome(whole, 0, 10) == (10 + 1_499, 0)
    assert _outcome(cut, 0, 10) == (-1, -1)
