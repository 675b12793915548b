"""Aborted transactions that the source's leader does not name: left out by what their markers say, or named by an error."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airmirror.slot.errors import AbortLeftOut, PartitionUnavailable, SourceCorrupt
from airmirror.slot.intake import Intake
from airmirror.slot.refusals import Refusals
from airmirror.wire.batch import TRANSACTIONAL
from airmirror.wire.markers import Ended
from airmirror.wire.requests import AbortedTransaction
from support.hostile import NOON, batch
from support.intakes import FLOW, intake, sent_offsets, take
from support.topics import Record
from wire.test_aborted import ABORT, COMMIT, Written, data, end, histories, names
from wire.test_small import QUICKLY, restamped

FOUR = restamped(
    batch([Record(b"v%d" % number, None, (), NOON) for number in range(4)]), 0, flags=TRANSACTIONAL, producer=7
)


@settings(deadline=None, phases=QUICKLY, max_examples=60)
@given(drawn=st.data(), history=histories())
def test_all_but_what_is_aborted_is_copied_once(
    drawn: st.DataObject, history: tuple[dict[int, bytes], list[Written]]
) -> None:
    """By windows of any size, with commits and looks back in between, answers that overlap, and lists that leave out some."""
    log, written = history
    hides = drawn.draw(st.booleans())
    good = {offset for each in written if not each.is_aborted for offset in each.offsets}
    copied, refusals = Counter[int](), Refusals()
    progress, after = 0, max(log, default=-1) + 1
    last = drawn.draw(st.integers(0, after))
    while progress < after:
        taker, sent = intake(last, start=progress, compacted=True, refusals=refusals)
        try:
            while not taker.is_done:
                if drawn.draw(st.booleans()):
                    taker.look_back()
                rest = [offset for offset in sorted(log) if offset >= taker.fetched_from]
                if not rest:
                    taker.nothing_more(taker.end)
                    break
                answer = rest[: drawn.draw(st.integers(1, 6))]
                there = names(drawn.draw, written, answer, log.keys(), hides)
                take(taker, *(log[offset] for offset in answer), aborted=there)
                if taker.is_done or drawn.draw(st.booleans()):
                    progress = taker.position
                    copied.update(sent_offsets(sent))
                    sent.clear()
                    taker.committed()
        except AbortLeftOut as error:
            its = next(each for each in written if each.marker == error.marker)
            assert hides and its.is_aborted and its.producer == error.producer
            if error.is_copied:
                assert any(copied[offset] for offset in its.offsets if error.first <= offset < error.until)
            assert refusals.allow(error, FLOW) is not error.is_copied
            continue
        progress = taker.position
        copied.update(sent_offsets(sent))
        if progress < after:
            last, refusals = drawn.draw(st.integers(progress + 1, after)), Refusals()
    assert not [offset for offset in good if copied[offset] != 1]
    assert max(copied.values(), default=1) == 1 and (hides or copied.keys() == good)


def test_it_is_not_the_one_before_it() -> None:
    """The first one was committed, over the end of an answer; the second one is aborted in the next."""
    taker, sent = intake(4)
    take(taker, data(0, 7))
    take(taker, end(1, 7, COMMIT), data(2, 7), end(3, 7, ABORT))
    assert taker.is_done and sent_offsets(sent) == [0] and taker.account.aborted == 1


def test_it_is_left_out_by_the_next_attempt() -> None:
    """All that end in one answer are: what comes before the first of them is committed first."""
    refusals, first = Refusals(), [data(number, number) for number in range(40)]
    ends = [end(40 + number, number, ABORT) for number in range(40)]
    taker, _ = intake(80, refusals=refusals)
    take(taker, *first[:20])
    take(taker, *first[20:])
    with pytest.raises(AbortLeftOut) as caught:
        take(taker, *ends)
    assert "from offset 0 on" in str(caught.value) and "copied" not in str(caught.value)
    assert refusals.allow(caught.value, FLOW)
    assert not refusals.allow(caught.value, FLOW), "it did not help"
    taker, sent = intake(80, refusals=refusals)
    take(taker, *first)
    take(taker, *ends)
    assert taker.is_done and not sent and (taker.account.aborted, taker.account.control) == (40, 40)


def test_what_is_committed_of_it_is_an_error() -> None:
    """Whatever else ends in that answer."""
    taker, _ = intake(9)
    take(taker, data(0, 7))
    taker.committed()
    take(taker, data(1, 8))
    with pytest.raises(
        AbortLeftOut,
        match=r"producer 7 from offset 0 on, .* marker at offset 3 aborts\. Its records before offset 1 are",
    ) as caught:
        take(taker, end(2, 8, ABORT), end(3, 7, ABORT))
    assert not Refusals().allow(caught.value, FLOW) and caught.value.first_bad is None
    assert "--recreate-remote-topic" in str(caught.value)
    caught.value.is_shared = True
    assert str(caught.value).endswith("Keep these copies"), "what others write to is never emptied"


def test_what_is_committed_of_it_is_an_error_after_a_look_back() -> None:
    taker, _ = intake(3)
    take(taker, data(0, 7))
    taker.committed()
    taker.look_back()
    with pytest.raises(AbortLeftOut, match="before offset 1 are"):
        take(taker, data(0, 7), end(1, 7, ABORT))


def test_what_is_committed_of_it_is_an_error_in_mid_batch() -> None:
    taker, _ = intake(2)
    take(taker, FOUR)
    taker.committed()
    taker.end_at(5)
    with pytest.raises(AbortLeftOut, match="before offset 2 are"):
        take(taker, FOUR, end(4, 7, ABORT))


def test_what_an_earlier_window_has_copied_of_a_batch_is_not_said_again() -> None:
    """It has ended in mid-batch; the rest is left out by the next attempt."""
    refusals = Refusals()
    taker, _ = intake(5, start=2, refusals=refusals)
    take(taker, FOUR)
    with pytest.raises(
        AbortLeftOut, match="from offset 2 on, which the marker at offset 4 aborts; the next attempt leaves it out"
    ) as caught:
        take(taker, end(4, 7, ABORT))
    assert refusals.allow(caught.value, FLOW) and refusals.proven == 2, "what comes before it is committed first"
    taker, sent = intake(5, start=2, refusals=refusals)
    take(taker, FOUR)
    take(taker, end(4, 7, ABORT))
    assert taker.is_done and not sent and taker.account.aborted == 2


def test_what_an_earlier_window_has_copied_is_not_said_again() -> None:
    """The batch before the position is looked at again; the marker may come at once, or with an answer after a commit."""
    first = data(4, 7)
    taker, _ = intake(9)
    for others in ([], [data(5, 1, flags=0)]):
        partition = replace(taker.partition, start=5, source_checksum=int.from_bytes(first[17:21]))
        taker = Intake(taker.context, partition, 9)
        assert taker.looks_back
        take(taker, first, *others)
        taker.committed()
        take(taker, end(5 + len(others), 7, ABORT))
        assert taker.position == 6 + len(others)


@pytest.mark.parametrize("where", ["in the window", "after it", "in a later answer"])
def test_a_marker_that_is_damaged_aborts_nothing(where: str) -> None:
    """A flipped bit has made an abort of a commit."""
    damaged = bytearray(end(1, 7, COMMIT))
    damaged[damaged.index(b"\0\0\0\1", 61) + 3] = ABORT
    taker, sent = intake(1 if where == "after it" else 2)
    if where == "in a later answer":
        take(taker, data(0, 7))
    if where == "after it":
        take(taker, data(0, 7), damaged)
    else:
        with pytest.raises(SourceCorrupt):
            take(taker, *([] if where == "in a later answer" else [data(0, 7)]), damaged)
    assert sent_offsets(sent) == [0]


def test_a_marker_that_is_damaged_hides_no_commit() -> None:
    damaged = bytearray(end(1, 7, COMMIT))
    damaged[16] = 3
    taker, sent = intake(1)
    take(taker, data(0, 7), damaged, data(2, 7), end(3, 7, ABORT), aborted=[AbortedTransaction(7, 2)])
    assert sent_offsets(sent) == [0]


def test_another_log_without_the_marker_is_told() -> None:
    """It was cut and written again since: what an earlier attempt has found there says nothing of it."""
    refusals = Refusals(left_out=[Ended(7, 3, 9)])
    log = [data(5, 1), end(6, 1, COMMIT), data(7, 7), end(8, 7, COMMIT), data(9, 7), end(10, 7, COMMIT)]
    taker, sent = intake(11, start=5, refusals=refusals)
    with pytest.raises(PartitionUnavailable, match="the abort marker at offset 9 is not there any more"):
        take(taker, *log)
    taker, sent = intake(11, start=5, refusals=refusals)
    take(taker, *log)
    assert taker.is_done and sent_offsets(sent) == [5, 7, 9]


def test_compaction_between_two_answers_is_none_of_it() -> None:
    """What was taken before, and its marker, are gone by the time of the next answer, which names the next transaction."""
    for is_silent in (False, True):
        taker, sent = intake(7, compacted=True)
        take(taker, data(0, 7))
        if is_silent:
            taker.nothing_more(5)
        take(taker, data(5, 7), end(6, 7, ABORT), aborted=[AbortedTransaction(7, 5)])
        assert taker.is_done and sent_offsets(sent) == [0] and taker.account.aborted == 1


def test_what_came_before_the_logs_beginning_says_nothing_of_a_later_transaction() -> None:
    """The marker of the first one is gone with what was purged."""
    taker, _ = intake(7, compacted=True)
    take(taker, data(0, 7))
    taker.purged(5)
    take(taker, data(5, 7), end(6, 7, ABORT))
    assert taker.is_done and (taker.account.aborted, taker.account.control) == (1, 1)
