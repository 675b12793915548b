"""What abort markers in an answer say, whatever its list of aborted transactions says."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airmirror.wire import markers
from airmirror.wire.aborted import AbortedFilter
from airmirror.wire.batch import CONTROL, TRANSACTIONAL
from airmirror.wire.batches import parse
from airmirror.wire.markers import Ended, ended
from airmirror.wire.requests import AbortedTransaction
from support.hostile import NOON, batch
from support.topics import Record
from wire.test_small import PRODUCERS, QUICKLY, logs, marker, restamped

ABORT, COMMIT = 0, 1


def data(offset: int, producer: int, *, flags: int = TRANSACTIONAL, **more: int) -> bytes:
    return restamped(batch([Record(b"v", None, (), NOON)]), offset, flags=flags, producer=producer, **more)


def end(offset: int, producer: int, kind: int, **more: int) -> bytes:
    return restamped(marker(kind), offset, flags=TRANSACTIONAL | CONTROL, producer=producer, **more)


LOG = [
    data(0, 1),
    data(1, 2),
    data(2, 1, flags=0),  # not of the transaction
    end(3, 1, ABORT),
    data(4, 1),
    end(5, 2, COMMIT),
    data(6, 2),
    end(7, 1, COMMIT),
    end(8, 1, ABORT),  # of a transaction without a record here
    data(9, 3),
    end(10, 3, COMMIT, count=0),  # compaction has left nothing of it
    end(11, 3, ABORT),
    data(12, 1),
    end(13, 2, ABORT),
    data(14, 4, count=0),  # compaction has left nothing of it, and no marker
    end(15, 4, ABORT),
]  # and the transaction at 12 has not ended
ABORTED = [AbortedTransaction(1, 0), AbortedTransaction(2, 6)]


@pytest.mark.parametrize("few", [markers.FEW, 0])
def test_what_a_marker_ends_is_aborted_though_the_list_leaves_it_out(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(markers, "FEW", few)
    log = memoryview(b"before" + b"".join(LOG) + b"after")
    places = 6, len(log) - 5
    begun = {7: -3, 8: -2}
    assert ended(log, *places, begun) == [Ended(1, 0, 3), Ended(2, 6, 13)] and begun == {7: -3, 8: -2, 1: 12}
    for told in ([], ABORTED[1:], ABORTED, [AbortedTransaction(1, -4), *ABORTED[1:]]):
        found = AbortedFilter()
        found.begin(told, log, *places, 0)
        assert [each.base_offset for each in parse(log, *places) if found.is_aborted(log, each)] == [0, 6]


def test_of_more_producers_than_the_compiled_loop_takes() -> None:
    count = 3 * markers.FEW
    log = memoryview(b"".join(data(n, n) for n in range(count)) + b"".join(end(n, n, ABORT) for n in range(count)))
    assert ended(log, 0, len(log), {}) == [Ended(n, n, n) for n in range(count)]
    begun = {count + number: -1 for number in range(count)}
    assert len(ended(log, 0, len(log), begun)) == len(begun) == count


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], phases=QUICKLY)
@given(compacted=st.booleans(), drawn=st.data())
def test_the_compiled_loop_finds_the_same(compacted: bool, drawn: st.DataObject) -> None:
    log = memoryview(drawn.draw(logs(compacted)).data)
    start = drawn.draw(st.integers(0, len(log)))
    before = drawn.draw(st.dictionaries(st.sampled_from(PRODUCERS), st.integers(-9, -1)))
    for first in (0, start):
        one, other = dict(before), dict(before)
        found = markers._ended_of_many(log, first, len(log), one)
        assert found == markers._ended(log, first, len(log), other, len(log) + 1) and one == other


@dataclass
class Written:
    """A transaction in a log of which batch N begins at offset N: its batches that have records, and its marker, empty or not."""

    producer: int
    is_aborted: bool
    offsets: list[int]
    first: int
    marker: int


@st.composite
def histories(draw: Any) -> tuple[dict[int, bytes], list[Written]]:
    """Batches by offset and transactions: up to a last stable offset, and compacted, so that all may be gone of some."""
    log, written, begun = dict[int, bytes](), list[Written](), dict[int, list[int]]()
    turns = draw(st.lists(st.tuples(st.sampled_from(PRODUCERS), st.booleans()), min_size=1, max_size=16))
    turns += [(producer, False) for producer in PRODUCERS]
    for offset, (producer, is_data) in enumerate(turns):
        if is_data:
            begun.setdefault(producer, []).append(offset)
            log[offset] = data(offset, producer)
        elif offsets := begun.pop(producer, []):
            is_aborted = draw(st.booleans())
            log[offset] = end(offset, producer, ABORT if is_aborted else COMMIT)
            kept = draw(st.lists(st.sampled_from(offsets), unique=True)) if draw(st.booleans()) else offsets
            for each in {*offsets} - {*kept}:
                del log[each]
            if not kept and draw(st.booleans()):
                log[offsets[-1]] = data(offsets[-1], producer, count=0)
            if not kept and draw(st.booleans()):
                del log[offset]
            written.append(Written(producer, is_aborted, sorted(kept), offsets[0], offset))
    return log, written


def names(
    draw: Any, written: Sequence[Written], answer: Sequence[int], kept: Container[int], hides: bool
) -> list[AbortedTransaction]:
    """The list of an answer with the batches at these offsets; ``kept``: those of the log; who ``hides`` leaves out any."""
    return [
        AbortedTransaction(each.producer, each.first)
        for each in written
        if each.is_aborted and (each.offsets or each.marker in kept)
        if each.marker >= answer[0] and each.first <= answer[-1]
        if not (hides and draw(st.booleans()))
    ]


@settings(deadline=None, phases=QUICKLY, max_examples=100)
@given(drawn=st.data(), history=histories())
def test_what_lists_leave_out_is_found_when_its_marker_comes(
    drawn: st.DataObject, history: tuple[dict[int, bytes], list[Written]]
) -> None:
    """In answers of any size, which may overlap, from any offset on: nothing else is taken for aborted, or found."""
    log, written = history
    begin = drawn.draw(st.integers(0, max(log, default=0)))
    hides, looks_back = drawn.draw(st.booleans()), drawn.draw(st.integers(0, 2))
    left = {offset for each in written if each.is_aborted for offset in each.offsets if offset >= begin}
    known = list[Ended]()
    while True:
        found, aborted_filter = set[int](), AbortedFilter(tuple(known))
        before = sorted(offset for offset in log if offset < begin)
        rest = before[max(0, len(before) - looks_back) :] + sorted(offset for offset in log if offset >= begin)
        position = begin
        while rest and not aborted_filter.left_out:
            answer = rest[: drawn.draw(st.integers(1, 6))]
            there = names(drawn.draw, written, answer, log.keys(), hides)
            buffer = memoryview(b"".join(log[offset] for offset in answer))
            aborted_filter.begin(there, buffer, 0, len(buffer), position)
            taken = answer[: drawn.draw(st.integers(1, len(answer)))]
            batches = [each for each in parse(buffer, 0, len(buffer)) if each.base_offset <= taken[-1]]
            found |= {each.base_offset for each in batches if aborted_filter.is_aborted(buffer, each) and each.count}
            rest, position = rest[len(taken) :], max(position, taken[-1] + 1)
        if not aborted_filter.left_out:
            break
        for each in aborted_filter.left_out:
            its = next(other for other in written if other.marker == each.marker)
            assert hides and its.is_aborted and its.producer == each.producer_id
            assert each.first_offset in (begin, *its.offsets) and begin <= each.first_offset < each.marker
        assert not {*known} & {*aborted_filter.left_out}
        known += aborted_filter.left_out
    assert {offset for offset in found if offset >= begin} == left


def left_out(
    known: Sequence[Ended], *answers: tuple[list[tuple[int, int]], bytes, int]
) -> tuple[list[Ended], list[int]]:
    """What is found to be left out, up to the first answer that tells, and what is aborted: of lists, answers and positions."""
    aborted_filter, found = AbortedFilter(known), list[int]()
    for named, answer, position in answers:
        log = memoryview(answer)
        aborted_filter.begin([AbortedTransaction(*each) for each in named], log, 0, len(log), position)
        if aborted_filter.left_out or aborted_filter.lapsed:
            return aborted_filter.left_out + aborted_filter.lapsed, found
        found += [each.base_offset for each in parse(log, 0, len(log)) if aborted_filter.is_aborted(log, each)]
    return [], found


def test_transactions_of_a_producer_one_after_another() -> None:
    log = [data(0, 1), end(1, 1, ABORT), data(2, 1), end(3, 1, ABORT), data(4, 1), end(5, 1, COMMIT), data(6, 1)]
    first, second = Ended(1, 0, 1), Ended(1, 2, 3)
    answers = [([], one, at) for at, one in enumerate(log)]
    assert left_out([], *answers) == ([first], [])
    assert left_out([first], *answers) == ([second], [0])
    assert left_out([first, second], *answers) == ([], [0, 2])
    three = [([], b"".join(log[:3]), 0), *answers[3:]]
    assert left_out([], *three)[0] == left_out([first], *three)[0] == [second]


@pytest.mark.parametrize("named", [[], [(1, 0)], [(1, 2)], [(1, 0), (1, 2)]])
def test_transactions_of_a_producer_in_one_answer(named: list[tuple[int, int]]) -> None:
    log = [data(0, 1), end(1, 1, ABORT), data(2, 1), end(3, 1, ABORT), data(4, 1)]
    assert left_out([], (named, b"".join(log), 0)) == ([], [0, 2])


def test_a_list_that_names_one_before_it_does_not_name_it() -> None:
    """The first transaction's marker, and the second one's first batch, are in one answer, which names the first one only."""
    named = [(1, 0)]
    found, _ = left_out(
        [], (named, data(0, 1), 0), (named, end(1, 1, ABORT) + data(2, 1), 1), ([], end(3, 1, ABORT), 3)
    )
    assert found == [Ended(1, 2, 3)]


@pytest.mark.parametrize("late", [1, 2])
def test_a_list_that_names_it_too_late_is_no_excuse(late: int) -> None:
    log = [data(0, 1), data(1, 1), end(2, 1, ABORT)]
    answers = [([(1, 0)] if at == late else [], one, at) for at, one in enumerate(log)]
    assert left_out([], *answers)[0] == [Ended(1, 0, 2)]


def test_a_list_that_names_one_after_it_tells_that_its_marker_is_gone() -> None:
    """Compaction has taken it, between two answers."""
    answers = [([], data(0, 7), 0), ([(7, 5)], data(5, 7), 5), ([], end(6, 7, ABORT), 6)]
    assert left_out([], *answers) == ([], [5])


def test_what_was_not_taken_is_not_believed() -> None:
    """The rest of an answer is asked for again after a commit: the later list counts."""
    answers = [([], data(0, 1) + data(1, 7), 0), ([(7, 1)], data(1, 7), 1), ([(7, 1)], end(2, 7, ABORT), 2)]
    assert left_out([], *answers) == ([], [1])


def test_what_lies_between_answers_says_nothing_of_a_later_transaction() -> None:
    """The log's beginning has moved, past the marker of what was taken before."""
    log = memoryview(b"".join([data(0, 1), data(8, 1), end(9, 1, ABORT)]))
    first = len(data(0, 1))
    for jumps in (False, True):
        aborted_filter = AbortedFilter()
        aborted_filter.begin([], log, 0, first, 0)
        if jumps:
            aborted_filter.jump()
        aborted_filter.begin([], log, first, len(log), 1)
        assert aborted_filter.left_out == ([] if jumps else [Ended(1, 0, 9)])
