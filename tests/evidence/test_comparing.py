"""Two logs compared: every planted fault is found as what it is, and nothing else, whatever the chunks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.evidence import comparing
from airmirror.evidence.comparing import compare_ranges
from airmirror.evidence.found import Findings, Kind
from airmirror.evidence.mirrors import _settled
from airmirror.evidence.open_records import MOST_OPEN
from airmirror.evidence.positions import _outcome
from airmirror.evidence.settling import settled, told_apart
from airmirror.wire.primitives import varint
from airmirror.wire.records import Records
from support.examples import examples


@dataclass(frozen=True)
class Written:
    """A record as a test writes it."""

    key: bytes | None
    value: bytes | None
    time: int = 0

    @cached_property
    def body(self) -> bytes:
        parts = [varint(-1) if part is None else varint(len(part)) + part for part in (self.key, self.value)]
        return b"".join(parts) + varint(0)


@dataclass
class MemoryLog:
    """A log in memory, with the interface of evidence.logs.Log; ``chunk`` records come at a time."""

    written: Sequence[Written]
    offsets: Sequence[int] = ()
    aborted: Sequence[tuple[int, Written]] = ()
    log_start: int = 0
    is_compacted: bool = False
    chunk: int = 700
    start: int = 0
    end: int = 1 << 60
    since: int = 0
    until: int = 1 << 60
    times: bool = True

    def __post_init__(self) -> None:
        self.offsets = self.offsets or range(len(self.written))

    def first_from(self, time_ms: int) -> int:
        return next((o for o, w in zip(self.offsets, self.written, strict=True) if w.time >= time_ms), -1)

    def records(self, start: int | None = None, end: int | None = None) -> Iterator[Records]:
        first, last = self.start if start is None else start, self.end if end is None else end
        chosen = [(o, w) for o, w in zip(self.offsets, self.written, strict=True) if first <= o < last]
        for at in range(0, len(chosen), self.chunk):
            yield _records(chosen[at : at + self.chunk])

    def records_and_aborted(
        self, start: int | None = None, end: int | None = None
    ) -> Iterator[tuple[Records, Records]]:
        last = self.end if end is None else end
        inside = [(o, w) for o, w in zip(self.offsets, self.written, strict=True) if (start or 0) <= o < last]
        yield _records(inside), _records([(o, w) for o, w in self.aborted if (start or 0) <= o < last])


def _records(chosen: Sequence[tuple[int, Written]]) -> Records:
    bodies = [written.body for _, written in chosen]
    ends = np.cumsum([len(body) for body in bodies], dtype=np.int64)
    return Records(
        np.frombuffer(b"".join(bodies), np.uint8),
        np.array([offset for offset, _ in chosen], np.int64),
        np.array([written.time for _, written in chosen], np.int64),
        ends - np.array([len(body) for body in bodies], np.int64),
        ends,
    )


def numbered(count: int, start: int = 0) -> list[Written]:
    return [Written(b"k%d" % number, b"v%d" % number, number) for number in range(start, start + count)]


def compare_logs(source: Any, target: Any, most_open: int = MOST_OPEN) -> Findings:
    """A whole partition, in one part."""
    found = told_apart(compare_ranges(source, target, most_open), source, target)
    return settled(found, source.log_start, target.log_start)


def compared(source: Sequence[Written] | MemoryLog, target: Sequence[Written] | MemoryLog) -> Findings:
    ends = [log if isinstance(log, MemoryLog) else MemoryLog(log) for log in (source, target)]
    return compare_logs(*ends)


def told(found: Findings) -> dict[str, int]:
    return {str(kind): count for kind, count in found.counts.items() if count}


def test_equal_logs() -> None:
    found = compared(numbered(5000), MemoryLog(numbered(5000), chunk=333))
    assert told(found) == {"equal": 5000} and found.keeps_offsets
    assert [(s.source_first, s.target_first, s.count) for s in found.ranges] == [(0, 0, 5000)]


def test_a_run_copied_again() -> None:
    one = numbered(20_000)
    found = compared(one, one[:9_000] + one[7_500:9_000] + one[9_000:])
    assert told(found) == {"equal": 20_000, "twice": 1500}
    assert [(d.source_offset, d.target_offset, d.count) for d in found.differences] == [(7_500, 9_000, 1_500)]


def test_a_run_copied_again_that_is_longer_than_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MOST_REGION", 2048)
    one = numbered(20_000)
    found = compared(one, one[:9_000] + one[1_000:9_000] + one[9_000:])
    assert told(found) == {"equal": 20_000, "twice": 8_000}


def test_a_long_run_that_is_missing_and_a_long_one_that_is_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MOST_REGION", 2048)
    one = numbered(20_000)
    assert told(compared(one, one[:5_000] + one[11_000:])) == {"equal": 14_000, "missing": 6_000}
    strangers = numbered(6_000, start=1_000_000)
    assert told(compared(one, one[:5_000] + strangers + one[5_000:])) == {"equal": 20_000, "extra": 6_000}


def test_a_record_that_was_altered_names_what_differs() -> None:
    one = numbered(3000)
    other = list(one)
    other[500] = Written(one[500].key, b"other", one[500].time)
    other[900] = Written(b"other", one[900].value, one[900].time)
    other[1500] = Written(one[1500].key, one[1500].value, 77)
    found = compared(one, other)
    assert told(found) == {"equal": 2997, "altered": 3}
    assert [(d.source_offset, d.target_offset, d.parts) for d in found.differences] == [
        (500, 500, ("value",)),
        (900, 900, ("key",)),
        (1500, 1500, ("timestamp",)),
    ]


def test_records_that_changed_their_order() -> None:
    one = numbered(3000)
    other = [*one[:1000], one[1001], one[1000], *one[1002:]]
    found = compared(one, other)
    assert told(found) == {"equal": 2999, "reordered": 1}


def test_a_record_that_comes_far_too_late_is_reordered_not_lost() -> None:
    one = numbered(9000)
    other = [*one[:100], *one[101:8000], one[100], *one[8000:]]
    assert told(compared(one, other)) == {"equal": 8999, "reordered": 1}


def test_what_the_target_does_not_have_yet_is_lag() -> None:
    one = numbered(3000)
    assert told(compared(one, one[:2500])) == {"equal": 2500, "lagging": 500}
    assert told(compared(one, [])) == {"lagging": 3000}
    assert told(compared([], one)) == {"extra": 3000}
    assert told(compared([], [])) == {}


def test_what_retention_took_is_not_lost() -> None:
    one = numbered(3000)
    kept = MemoryLog(one[1000:], offsets=range(1500, 3500), log_start=1500)
    assert told(compared(one, kept)) == {"equal": 2000, "expired": 1000}
    gone = MemoryLog(one[1000:], offsets=range(1000, 3000), log_start=1000)
    assert told(compared(gone, one)) == {"equal": 2000, "expired": 1000}
    lacks_its_first = MemoryLog(one[1001:], offsets=range(1001, 3000), log_start=1000)
    assert told(compared(one, lacks_its_first)) == {"equal": 1999, "expired": 1000, "missing": 1}
    began_later = MemoryLog(one[200:], offsets=range(200, 3000), log_start=200)
    assert told(compared(began_later, lacks_its_first)) == {"equal": 1999, "expired": 800, "missing": 1}


def test_what_compaction_took_is_not_lost_and_what_it_never_takes_is() -> None:
    one = [Written(b"k%d" % (number % 40), b"v%d" % number, number) for number in range(400)]
    newest = MemoryLog(one[360:], offsets=range(360, 400), is_compacted=True)
    assert told(compared(MemoryLog(one, is_compacted=True), newest)) == {"equal": 40, "compacted": 360}
    lost = MemoryLog(one[361:], offsets=range(361, 400), is_compacted=True)
    found = compared(MemoryLog(one, is_compacted=True), lost)
    assert told(found) == {"equal": 39, "compacted": 360, "missing": 1}
    lost_one = [d for d in found.differences if d.kind is Kind.MISSING]
    assert [(d.source_offset, d.count) for d in lost_one] == [(360, 1)]


def keyed(*pairs: tuple[bytes, bytes | None]) -> MemoryLog:
    return MemoryLog([Written(key, value, time) for time, (key, value) in enumerate(pairs)], is_compacted=True)


ADA, BOB, EVE = (b"ada", b"1"), (b"bob", b"2"), (b"eve", b"3")
NO_ADA, NO_BOB = (b"ada", None), (b"bob", None)


def test_a_deletion_counts_as_compacted_only_where_nothing_is_left_to_delete() -> None:
    """A cleaner takes a tombstone after what it deletes: a deletion that was never replicated is no compaction, on either
    side."""
    source = keyed(ADA, BOB, NO_ADA, NO_BOB, EVE)
    unreplicated = MemoryLog([source.written[at] for at in (0, 1, 4)], is_compacted=True)
    assert told(compared(source, unreplicated)) == {"equal": 3, "missing": 2}
    cleaned = MemoryLog([source.written[4]], offsets=[4], is_compacted=True)
    assert told(compared(source, cleaned)) == {"equal": 1, "compacted": 4}
    assert told(compared(cleaned, source)) == {"equal": 1, "compacted": 4}
    half = MemoryLog([source.written[at] for at in (0, 2, 4)], offsets=[0, 2, 4], is_compacted=True)
    assert told(compared(source, half)) == {"equal": 3, "compacted": 2}, "bob went with his deletion"
    again = keyed(ADA, NO_ADA, BOB, ADA)
    kept = MemoryLog([again.written[at] for at in (2, 3)], offsets=[2, 3], is_compacted=True)
    assert told(compared(again, kept)) == {"equal": 2, "compacted": 2}, "a later record of its key supersedes it"
    assert told(compared(keyed(ADA, BOB), keyed(ADA, BOB, NO_BOB))) == {"equal": 2, "extra": 1}, "a stranger's"
    assert told(compared(keyed(ADA, BOB, NO_BOB), keyed(ADA, BOB))) == {"equal": 2, "lagging": 1}, "still to come"


@pytest.mark.parametrize("most_open", [1_000_000, 100])
def test_no_more_expires_than_the_other_log_has_lost_offsets(most_open: int, monkeypatch: pytest.MonkeyPatch) -> None:
    one = numbered(1000)

    def found(source: MemoryLog, target: MemoryLog) -> dict[str, int]:
        return told(compare_logs(source, target, most_open))

    after_five = MemoryLog(one[500:], offsets=range(5, 505), log_start=5)
    assert found(MemoryLog(one), after_five) == {"equal": 500, "expired": 5, "missing": 495}
    last = MemoryLog(one[999:], offsets=[1], log_start=1)
    assert found(MemoryLog(one), last) == {"equal": 1, "expired": 1, "missing": 998}
    strangers = MemoryLog(numbered(500, start=1_000_000) + one[1:])
    began = MemoryLog(one[1:], offsets=range(1, 1000), log_start=1)
    assert found(began, strangers) == {"equal": 999, "expired": 1, "extra": 499}
    assert found(MemoryLog(one), MemoryLog([], log_start=400)) == {"expired": 400, "lagging": 600}
    named = compare_logs(MemoryLog(one), after_five, most_open).differences
    assert [(str(each.kind), each.source_offset, each.count) for each in named] == [
        ("expired", 0, 5),
        ("missing", 5, 495),
    ]


def test_records_of_aborted_transactions_are_told_apart() -> None:
    """MirrorMaker 2 copies them by default."""
    one = numbered(2000)
    offsets = [*range(1000), *range(1050, 2050)]
    aborted = [(1000 + number, Written(b"a", b"aborted%d" % number)) for number in range(50)]
    source = MemoryLog(one, offsets=offsets, aborted=aborted)
    found = compared(source, one[:1000] + [written for _, written in aborted] + one[1000:])
    assert told(found) == {"equal": 2000, "aborted": 50} and not found.is_equal


def test_equal_records_in_a_row() -> None:
    same = [Written(None, b"beat", 1)] * 3000
    found = compared(same, same[:2990])
    assert found.counts[Kind.EQUAL] == 2990 and sum(found.counts.values()) == 3000


@given(st.integers(0, 2**32), st.integers(1, 900))
@examples(17)
def test_faults_planted_at_random_are_found_exactly(seed: int, chunk: int) -> None:
    chance = random.Random(seed)
    one = numbered(2000)
    other: list[Written] = []
    planted = dict.fromkeys(("missing", "extra", "twice", "altered"), 0)
    strangers = iter(numbered(2000, start=1_000_000))
    quiet = 0
    for number, written in enumerate(one):
        quiet -= 1
        if quiet > 0 or number < 100 or number > 1900 or chance.random() > 0.02:
            other.append(written)
            continue
        quiet = 60  # so that no two faults touch: what they are together may be told in several ways
        fault = chance.choice(("missing", "extra", "twice", "altered"))
        if fault == "altered":
            other.append(Written(written.key, b"!" + (written.value or b""), written.time))
        if fault == "extra":
            other += [next(strangers), written]
        if fault == "twice":
            other += [written, *one[number - 30 : number]]
            planted["twice"] += 29
        planted[fault] += 1
    found = compared(MemoryLog(one, chunk=chunk), MemoryLog(other, chunk=chance.randint(1, 900)))
    got = told(found)
    equal = got.pop("equal")
    assert got == {fault: count for fault, count in planted.items() if count}
    assert equal == 2000 - planted["missing"] - planted["altered"]


def test_what_the_source_keeps_back_may_be_on_the_target() -> None:
    """Its records up to where a transaction is open, and more copies than that."""
    one, other = numbered(100), [*numbered(50), Written(b"stranger", b"s"), *numbered(90, 50)]
    for is_withheld, rest in ((True, {"extra": 1, "withheld": 40}), (False, {"extra": 41})):
        logs = MemoryLog(one), MemoryLog(other)
        found = told_apart(compare_ranges(*logs), *logs)  # type: ignore[arg-type]
        assert told(settled(found, 0, 0, is_withheld=is_withheld)) == {"equal": 100} | rest
        assert not found.is_equal
    by_key: Any = SimpleNamespace(is_by_key=True, source=[SimpleNamespace(withheld=3)])
    assert _settled(by_key, Findings(counts=Counter({Kind.EQUAL: 5, Kind.EXTRA: 2}))).is_equal


@pytest.mark.parametrize(
    ("made", "positions", "moved"),
    [
        (lambda one: (one, [*one[:40], *one[41:]]), (10, 70), (61, 0)),
        # The target's retention has taken what the group has not read yet, …
        (lambda one: (one, MemoryLog(one[30:], range(30, 100), log_start=30)), (10, 30), (20, 0)),
        # … or the source's what it would read again.
        (lambda one: (MemoryLog(one[30:], range(30, 100), log_start=30), one), (35, 25), (0, 10)),
        # Every record is another one: what a group has passed of them, and what not, is known by their places all the same.
        (lambda one: (one, [Written(w.key, w.value, w.time + 1) for w in one]), (40, 45), (5, 0)),
        (lambda one: (one, [Written(w.key, w.value, w.time + 1) for w in one]), (40, 33), (0, 7)),
    ],
    ids=["lost", "expired there", "expired here", "altered, ahead", "altered, behind"],
)
def test_a_group_skips_and_reads_again_what_the_logs_say(
    made: Any, positions: tuple[int, int], moved: tuple[int, int]
) -> None:
    assert _outcome(compared(*made(numbered(100))), *positions) == moved
