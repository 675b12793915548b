"""Fetched data that can't be copied: damaged batches, other offsets than asked for, and ends inside holes."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from airmirror.slot.errors import SourceCorrupt, TargetTruncated, UnexpectedHole
from airmirror.slot.refusals import Refusals, WriteRefused
from airmirror.wire import merging
from airmirror.wire.batches import build
from support.hostile import batch, numbered, reaching
from support.intakes import FLOW, at, intake, sent_offsets, take


def nonsense(codec: int, count: int) -> bytearray:
    """A batch with a right checksum around bytes that are no records."""
    return build(b"\x7fnonsense" * 20, count=count, base_timestamp=0, max_timestamp=0, codec=codec)


def damaged(one: bytearray) -> bytearray:
    one[-1] ^= 1
    return one


def test_what_comes_before_a_damaged_batch_is_known() -> None:
    taker, sent = intake(30)
    with pytest.raises(SourceCorrupt, match=r"offset 10 on.*checksum") as caught:
        take(taker, batch(numbered(10)), at(10, damaged(batch(numbered(10)))))
    assert caught.value.first_bad == 10 and len(sent) == 1


@pytest.mark.parametrize("merged", [False, True])
def test_a_damaged_batch_after_the_end_is_no_concern(monkeypatch: pytest.MonkeyPatch, merged: bool) -> None:
    """Left out with a damaged batch, a partition ends before it: the answer that has its last batch has the damaged one too."""
    monkeypatch.setattr(merging, "MERGED_FROM", 0 if merged else 1 << 20)
    taker, sent = intake(10)
    take(taker, batch(numbered(10)), at(10, damaged(batch(numbered(10)))))
    assert taker.is_done and len(sent) == 1 and taker.account.end == 10
    take(taker, at(10, damaged(batch(numbered(10)))))  # as it comes where the end was moved while it was under way


@pytest.mark.parametrize("merged", [False, True])
def test_what_was_taken_before_a_refusal_is_committed_before_more_is_tried(
    monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    """The refused record lies within a batch, whose rest comes after the commit: each record once."""
    monkeypatch.setattr(merging, "MERGED_FROM", 0 if merged else 1 << 20)
    log = [bytes(at(first, batch(numbered(10)))) for first in (0, 10, 20)]
    taker, sent = intake(30)
    taker.refusals.proven = 13
    taker.end_at(30)
    take(taker, *log)
    assert taker.awaits_commit and taker.position == taker.account.end == 13
    taker.committed()
    assert not taker.awaits_commit and not taker.is_done
    take(taker, *log[1:])
    assert taker.is_done and sent_offsets(sent) == list(range(30))


def test_where_the_target_has_refused_nothing_is_known() -> None:
    refused = WriteRefused(
        "east", "orders", 0, "west", "east.orders", first=10, last=19, code=32, error="", offsets=(17, 13)
    )
    tolerant, refusals = replace(FLOW, settings=replace(FLOW.settings, errors_tolerance="all")), Refusals()
    assert refusals.allow(refused, tolerant) and refusals.proven == 13
    refusals = Refusals()
    assert not refusals.allow(refused, FLOW) and refusals.proven == -1


@pytest.mark.parametrize("codec", range(5))
def test_records_that_make_no_sense(codec: int) -> None:
    """They are copied whole where nobody must look inside; where somebody must, it is an error."""
    taker, sent = intake(5)
    with pytest.raises(SourceCorrupt, match="offset 0 on") as caught:
        take(taker, nonsense(codec, 10))
    assert caught.value.first_bad == 0 and not sent


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_an_unknown_compression_type(codec: int) -> None:
    taker, _ = intake(5)
    with pytest.raises(SourceCorrupt, match="not known"):
        take(taker, nonsense(codec, 10))


def test_an_unknown_message_format() -> None:
    one = batch(numbered(3))
    one[16] = 3
    taker, _ = intake(5)
    with pytest.raises(SourceCorrupt, match="message format 3"):
        take(taker, one)


def test_an_answer_with_other_offsets_is_not_asked_for_again_for_ever() -> None:
    taker, _ = intake(30)
    take(taker, batch(numbered(10)))
    with pytest.raises(SourceCorrupt, match=r"offset 10 on.*other offsets"):
        take(taker, batch(numbered(10)))


def test_a_window_that_ends_inside_a_hole_is_done() -> None:
    taker, _ = intake(15, compacted=True)
    take(taker, batch(numbered(10)), at(20, batch(numbered(1))))
    assert taker.is_done and taker.account.end == 15
    assert taker.account.holes == 5


def test_what_ends_in_a_hole_has_no_leader_epoch() -> None:
    """It may end past the epoch of its last batch, whose log would be taken for another one; so may the next fetch begin."""
    log = (batch(numbered(10)), at(20, batch(numbered(1))))
    for one in log:
        struct.pack_into(">i", one, 12, 7)
    taker, _ = intake(15, compacted=True)
    take(taker, *map(bytes, log))
    assert taker.account.leader_epoch == taker.leader_epoch == -1
    taker, _ = intake(21, compacted=True)
    take(taker, *map(bytes, log))
    assert taker.account.holes == 10 and taker.account.leader_epoch == taker.leader_epoch == 7


def test_a_window_that_ends_inside_an_unexpected_hole() -> None:
    taker, _ = intake(15)
    with pytest.raises(UnexpectedHole) as caught:
        take(taker, batch(numbered(10)), at(20, batch(numbered(1))))
    assert (caught.value.first, caught.value.last) == (10, 14)


def test_records_out_of_order_are_no_records() -> None:
    one = reaching(batch(numbered(3), offsets=[0, 2, 1]), 2)
    taker, _ = intake(2)
    with pytest.raises(SourceCorrupt, match="not in order"):
        take(taker, one)


def test_a_target_that_gives_offsets_below_what_was_committed() -> None:
    """Whoever cut it: the flow's records end at 10, and the next is not written at 4."""
    taker, sent = intake(10)
    taker.account.target_end = 10
    take(taker, batch(numbered(10)))
    with pytest.raises(TargetTruncated) as caught:
        sent[0].on_written(4)
    assert (caught.value.expected_end, caught.value.end) == (10, 4)


@pytest.mark.parametrize("before", [0, 1])
def test_a_hole_inside_a_batch_of_a_topic_that_is_not_compacted(before: int) -> None:
    """Alone, and in a run with others: such a batch is taken apart."""
    log = [batch(numbered(4))] * before + [at(4 * before, batch(numbered(3), offsets=[0, 1, 3]))]
    taker, sent = intake(4 * before + 4)
    with pytest.raises(UnexpectedHole) as caught:
        take(taker, *log)
    hole = 4 * before + 2
    assert (caught.value.first, caught.value.last) == (hole, hole) and len(sent) == before
    taker, sent = intake(4 * before + 4, compacted=True)
    take(taker, *log)
    assert taker.account.holes == 1 and taker.is_done and len(sent) == before + 1


# What the cleaner leaves: a whole batch, one whose tail is gone, one of which nothing is left, nothing at all, a whole one.
CLEANED = {
    0: batch(numbered(4)),
    4: at(4, reaching(batch(numbered(3, 4)), 9)),
    14: at(14, reaching(build(b"", count=1, base_timestamp=0, max_timestamp=0), 5, count=0)),
    25: at(25, batch(numbered(3, 25))),
}
KEPT = {*range(7), *range(25, 28)}
AFTER = {0: 4, 4: 14, 14: 20, 25: 28}


@pytest.mark.parametrize("merged", [False, True])
def test_windows_that_begin_and_end_anywhere_in_what_was_compacted(
    monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    """A fetch from within a tail that is gone is answered with its batch: nothing is waited for, and nothing sent again."""
    monkeypatch.setattr(merging, "MERGED_FROM", 0 if merged else 1 << 20)
    for begin in range(28):
        for end in range(begin + 1, 29):
            taker, sent = intake(end, start=begin, compacted=True)
            take(taker, *(bytes(one) for base, one in CLEANED.items() if AFTER[base] > begin))
            expected = KEPT & set(range(begin, end))
            runs = [run for each in sent for run in each.on_written.__self__.runs]
            offsets = [first + number for first, count in runs for number in range(count)]
            assert taker.is_done and offsets == sorted(expected), (begin, end)
            assert taker.account.holes == end - begin - len(expected) and taker.account.end == end


@pytest.mark.parametrize("merged", [False, True])
def test_the_tail_of_a_batch_that_is_gone_from_a_topic_that_is_not_compacted(
    monkeypatch: pytest.MonkeyPatch, merged: bool
) -> None:
    monkeypatch.setattr(merging, "MERGED_FROM", 0 if merged else 1 << 20)
    for end in range(8, 15):
        taker, _ = intake(end)
        with pytest.raises(UnexpectedHole) as caught:
            take(taker, bytes(CLEANED[0]), bytes(CLEANED[4]))
        assert (caught.value.first, caught.value.last, caught.value.first_bad) == (7, end - 1, 7)
    taker, sent = intake(7)
    take(taker, bytes(CLEANED[0]), bytes(CLEANED[4]))
    assert taker.is_done and sum(each.count for each in sent) == 7, "what comes before it is copied"
