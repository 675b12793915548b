"""A comparison in parts finds what the comparison as one finds; a sample grows until its borders are sound."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.evidence.asking import BadSample, sample_of
from airmirror.evidence.borders import SampleSize, cut, place, sampled
from airmirror.evidence.compared_report import verdict
from airmirror.evidence.comparing import compare_ranges
from airmirror.evidence.found import Findings, Kind
from airmirror.evidence.joining import Work, compare_parts, together
from airmirror.evidence.parts import Bounds, Part
from airmirror.evidence.rows import ComparedLogs
from airmirror.evidence.settling import settled, told_apart
from airmirror.partitions import TopicPartition
from evidence.test_comparing import MemoryLog, Written, compare_logs, numbered, told
from support.examples import examples

KEY = TopicPartition("orders", 0)


def log(written: Sequence[Written], first: int = 0) -> MemoryLog:
    return MemoryLog(written, range(first, first + len(written)), start=first, end=first + len(written), since=first)


def whole(source: MemoryLog, target: MemoryLog) -> Part:
    one, other = (Bounds(KEY, each.start, each.end, each.start, each.end, 0, False) for each in (source, target))
    return Part((one,), (other,))


def in_parts(source: MemoryLog, target: MemoryLog, size: int) -> tuple[Findings, list[int]]:
    """What is found in parts of ``size`` offsets, and how many of them were compared in each round."""
    rounds = []

    def execute(parts: Sequence[Part]) -> list[Findings]:
        rounds.append(len(parts))
        return [
            compare_ranges(
                replace(source, start=part.source[0].start, end=part.source[0].end),  # type: ignore[arg-type]
                replace(target, start=part.target[0].start, end=part.target[0].end),  # type: ignore[arg-type]
            )
            for part in parts
        ]

    all_of_it = whole(source, target)
    parts = [all_of_it.within(*places) for places in cut(source, target, size)]  # type: ignore[arg-type]
    work = Work("orders", "orders", 0, all_of_it, parts)
    compare_parts([work], execute, is_sample=False)
    found = told_apart(together(work), source, target)  # type: ignore[arg-type]
    return settled(found, source.log_start, target.log_start), rounds


def assert_as_one(source: MemoryLog, target: MemoryLog, size: int) -> list[int]:
    """The same is found, whether in parts or not; how many parts were compared in each round."""
    found, rounds = in_parts(source, target, size)
    one = compare_logs(source, target)
    assert told(found) == told(one)
    assert found.differences == one.differences and found.ranges == one.ranges
    assert (found.first_pair, found.last_pair) == (one.first_pair, one.last_pair)
    assert (found.missing, found.extra, found.keeps_offsets) == (one.missing, one.extra, one.keeps_offsets)
    return rounds


@pytest.mark.parametrize("shift", [0, 5_000])
def test_equal_logs_are_cut_whether_offsets_are_kept_or_not(shift: int) -> None:
    one = numbered(3000)
    assert assert_as_one(log(one), log(one, shift), 500) == [6]


def test_one_difference_is_found_without_a_second_reading() -> None:
    one = numbered(3000)
    assert assert_as_one(log(one), log([*one[:1700], *one[1701:]]), 500) == [6]
    other = [*one[:1700], replace(one[1700], value=b"other"), *one[1701:]]
    assert assert_as_one(log(one), log(other), 500) == [6]


def test_copies_of_records_before_a_border_are_found() -> None:
    one = numbered(3000)
    rounds = assert_as_one(log(one), log([*one[:1600], *one[1100:1600], *one[1600:]]), 500)
    assert rounds == [6]  # nothing is open: every further copy has its original


def test_a_record_that_moved_over_a_border_is_not_lost() -> None:
    one = numbered(3000)
    assert assert_as_one(log(one), log([*one[:300], *one[301:2200], one[300], *one[2200:]]), 500) == [6, 1]
    assert assert_as_one(log(one), log([*one[:300], one[2200], *one[300:2200], *one[2201:]]), 500) == [6, 1]


def test_a_difference_at_a_border_itself() -> None:
    one = numbered(3000)
    for at in (1000, 1001, 999, 960, 1047, 1048):
        assert_as_one(log(one), log([*one[:at], *one[at + 1 :]]), 500)
        assert_as_one(log(one), log([*one[:at], Written(b"new", b"new", at), *one[at:]]), 500)


def test_records_that_all_look_alike() -> None:
    same = [Written(None, b"beat", 1)] * 3000
    assert_as_one(log(same), log(same[:2990]), 500)
    assert place(log(same), log(same, 5000), 500) is None, "it could be anywhere"  # type: ignore[arg-type]
    repeated = numbered(500) * 6
    assert_as_one(log(repeated), log(repeated, 5000), 500)
    assert_as_one(log(repeated), log([*repeated[:700], *repeated[701:]], 5000), 500)


def test_what_the_target_lacks_at_its_end_is_lag_only_there() -> None:
    one = numbered(3000)
    assert_as_one(log(one), log(one[:1600]), 500)
    assert_as_one(log(one), log([*one[:1499], *one[1500:2900]]), 500)


@given(st.integers(0, 2**32))
@examples(8)
def test_faults_planted_at_random_are_the_same_in_parts(seed: int) -> None:
    chance = random.Random(seed)
    one, other = numbered(2000), list[Written]()
    for number, written in enumerate(one):
        fault = chance.choice(("missing", "extra", "twice", "altered", "late")) if chance.random() < 0.003 else ""
        if fault == "extra":
            other.append(Written(b"x%d" % number, b"extra", written.time))
        if fault == "altered":
            other.append(Written(written.key, b"!", written.time))
        elif fault != "missing":
            other.append(written)
        if fault == "twice":
            other += one[max(0, number - chance.randint(0, 600)) : number]
        if fault == "late" and number > 700:
            other.append(other.pop(chance.randrange(len(other) - 600)))
    assert_as_one(log(one), log(other, chance.choice((0, 7000))), chance.randint(150, 700))


def test_a_sample_is_chosen_by_its_seed_alone() -> None:
    one = MemoryLog([], start=10, end=1_000_010)
    one.partition = KEY  # type: ignore[attr-defined]
    chosen = SampleSize(share=5_000, seed=3).chosen(one)  # type: ignore[arg-type]
    assert chosen == SampleSize(share=5_000, seed=3).chosen(one) != SampleSize(share=5_000, seed=4).chosen(one)  # type: ignore[arg-type]
    assert sum(end - start for start, end in chosen) == 50_000
    assert all(end < start for (_, end), (start, _) in pairwise(chosen))
    assert len(SampleSize(share=1).chosen(one)) == 1, "however small the share"
    assert SampleSize(share=100_000).chosen(one) == [(10, 1_000_010)]  # type: ignore[arg-type]
    assert sum(end - start for start, end in SampleSize(ranges=2).chosen(one)) == 20_000  # type: ignore[arg-type]


@pytest.mark.parametrize("shift", [0, 5_000])
def test_the_ranges_of_a_sample_grow_until_both_logs_run_together(shift: int) -> None:
    one = numbered(9000)
    equal, lacking = log(one, shift), log([*one[:1500], *one[2500:]], shift)
    ((start, end),) = sampled(log(one), equal, [(2000, 3000)])  # type: ignore[arg-type]
    assert (start, end) == ((2000, 2000 + shift), (3000, 3000 + shift))
    ((start, end),) = sampled(log(one), lacking, [(2000, 3000)])  # type: ignore[arg-type]
    assert start == (1000, 1000 + shift) and end == (3000, 2000 + shift)
    assert sampled(log(one), log(numbered(9000, 20_000)), [(2000, 3000)]) == [((0, 0), (9000, 9000))]  # type: ignore[arg-type]
    ranges = [(2000, 2200), (2400, 2500), (5000, 5100)]
    assert sampled(log(one), lacking, ranges) == [  # type: ignore[arg-type]
        ((1000, 1000 + shift), (3200, 2200 + shift)),
        ((5000, 4000 + shift), (5100, 4100 + shift)),
    ]


def test_a_sample_is_never_told_as_the_whole() -> None:
    whole = ComparedLogs("orders", "orders", 0, {Kind.EQUAL: 10}, findings=Findings(), offsets=10, of_offsets=10)
    assert verdict([whole]) == "10 records are equal on both clusters, and nothing differs."
    said = verdict([whole, replace(whole, of_offsets=11)])
    assert said.startswith("In a sample of 20 of 21 source offsets") and said.endswith("was not read is not known.")


@pytest.mark.parametrize(
    ("text", "share", "ranges"), [("10%", 10_000, 0), ("0.5%", 500, 0), ("100%", 100_000, 0), ("20", 0, 20)]
)
def test_samples_as_they_are_written(text: str, share: int, ranges: int) -> None:
    found = sample_of(text, 7)
    assert found == SampleSize(share, ranges, 7) and text in str(found)


@pytest.mark.parametrize("text", ["0%", "101%", "0", "-1", "ten", "1e3", "%", "0.0001%", "10001"])
def test_samples_that_are_none(text: str) -> None:
    with pytest.raises(BadSample, match="as in"):
        sample_of(text, 1)
    assert sample_of("", 1) is None
