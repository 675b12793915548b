"""The effect of a decision on a partition: the account stays whole, whatever was lost on either side (invariants C, E, G)."""

from __future__ import annotations

import uuid
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from airmirror.windows.coverage import account_error
from airmirror.windows.resets import (
    Choice,
    Facts,
    Reset,
    ResetNotPossible,
    decide,
    mapping_records,
    shorten,
    verified_record,
)
from airmirror.wire.mappings import MappedRange, MappingRecord, Verified

SOURCE, TARGET, OTHER = (uuid.UUID(int=number) for number in (1, 2, 3))


@st.composite
def histories(draw: st.DrawFn) -> tuple[MappingRecord, ...]:
    """Mapping records that follow each other, of records with control records, aborted ones and holes between."""
    source, target = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    records = []
    for _ in range(draw(st.integers(1, 4))):
        start, ranges = source, []
        counts = {"control": 0, "aborted": 0, "holes": 0}
        for _ in range(draw(st.integers(0, 3))):
            gap = draw(st.integers(0, 3))
            counts[draw(st.sampled_from(sorted(counts)))] += gap
            count = draw(st.integers(1, 5))
            ranges.append(MappedRange(source + gap, target, count))
            source, target = source + gap + count, target + count + draw(st.integers(0, 1))
        if source == start:  # a record of the same key comes after it, and counts
            continue
        copied = sum(run.count for run in ranges)
        first = ranges[0].target_first if ranges else target
        end = ranges[-1].target_end if ranges else target
        record = MappingRecord(
            source_topic_id=SOURCE,
            topic="orders",
            partition=0,
            source_start=start,
            window="w",
            slot=0,
            time_ms=0,
            source_end=source,
            target_topic_id=TARGET,
            remote_topic="A.orders",
            target_start=first,
            target_end=end,
            copied=copied,
            control=counts["control"],
            aborted=counts["aborted"],
            holes=counts["holes"],
            lost=0,
            size=copied * 10,
            max_timestamp=0,
            leader_epoch=1,
            digest=bytes(16),
            ranges=tuple(ranges),
        )
        records.append(record)
        target += 1
    assume(records)
    return tuple(records)


@st.composite
def situations(draw: st.DrawFn) -> Facts:
    records = draw(histories())
    last = records[-1]
    end = max(record.target_end for record in records)
    earliest = draw(st.integers(0, last.source_end + 5))
    high = draw(st.integers(earliest, last.source_end + 10))
    return Facts(
        topic="orders",
        partition=0,
        remote_topic="A.orders",
        source_topic_id=SOURCE,
        target_topic_id=draw(st.sampled_from([TARGET, TARGET, OTHER])),
        earliest=earliest,
        high_watermark=high,
        diverged_at=draw(st.one_of(st.just(-1), st.integers(earliest, high))),
        target_end=draw(st.integers(0, end + 3)),
        foreign=draw(st.booleans()),
        position=last.source_end,
        records=records,
        last=last,
        verified=draw(
            st.one_of(st.none(), st.integers(0, last.source_end - 1 if last.source_end else 0).map(verified))
        ),
    )


def verified(offset: int) -> Verified:
    return Verified(
        topic="orders", partition=0, source_topic_id=SOURCE, offset=offset, target_end=99, window="w", time_ms=0, seen=0
    )


def after(reset: Reset) -> list[MappingRecord]:
    """What the mapping topic holds afterwards, by source offset."""
    gone = {record.source_start for record in reset.forgotten}
    left = [record for record in reset.facts.records if record.source_start not in gone]
    if reset.shortened is not None:
        left = [reset.shortened if each.source_start == reset.shortened.source_start else each for each in left]
    new = {record.source_start: record for record in mapping_records(reset, "reset", 1)}
    left = [each for each in left if each.source_start not in new]
    return sorted([*left, *new.values()], key=lambda record: (record.source_end, record.source_start))


@given(situations())
def test_an_accepted_loss_leaves_the_account_whole(facts: Facts) -> None:
    reset = decide(facts, Choice.ACCEPT_LOSS)
    if reset is None:
        assert not facts.problem
        return
    records = after(reset)
    assert account_error("A", records, compacted=True, start=records[0].source_start) is None
    assert records[-1].source_end == reset.start and records[-1].lost == reset.lost >= 0
    assert facts.earliest <= reset.start <= max(facts.high_watermark, facts.position)
    remaining = {run for record in records for run in _mapping(record)}
    before = {run for record in facts.records for run in _mapping(record)}
    assert remaining <= before
    # What is no longer mapped is lost on one of the sides, and what is declared lost is mapped to nothing.
    for source, target in before - remaining:
        assert facts.target_recreated or source >= reset.lost_first
        assert facts.target_recreated or target >= facts.target_end or source >= _first_lost(facts)
    assert not any(reset.lost_first <= source for source, _ in remaining)
    remains = verified_record(reset, 0)
    assert remains is None or remains.offset < reset.lost_first


@given(situations())
def test_no_offset_sync_leads_past_what_is_copied_after_a_loss(facts: Facts) -> None:
    """MirrorMaker 2 translates a position past the last sync to the offset after it, and forgets all syncs before one that goes
    back: so that goes back to what the target has lost, and to a record that is there, or to none."""
    reset = decide(facts, Choice.ACCEPT_LOSS)
    if reset is None:
        return
    source, target = reset.sync
    left = dict(pair for record in after(reset) for pair in _mapping(record))
    lost = {each for record in facts.records for each, _ in _mapping(record)} - left.keys()
    assert all(target + (position > source) <= facts.target_end for position in range(source, reset.start + 1))
    assert target == left.get(source, -1) or (source, target) == (reset.start, facts.target_end)
    assert all(source <= each for each in lost if each < reset.start)


def _mapping(record: MappingRecord) -> list[tuple[int, int]]:
    return [(run.source_first + n, run.target_first + n) for run in record.ranges for n in range(run.count)]


def _first_lost(facts: Facts) -> int:
    """The first copied offset that one of the sides no longer has."""
    lost = [source for record in facts.records for source, target in _mapping(record) if target >= facts.target_end]
    cut = [facts.source_cut] if facts.source_cut is not None else []
    return min([*lost, *cut, facts.position])


@given(situations())
def test_starting_again_leaves_nothing_of_before(facts: Facts) -> None:
    reset = decide(facts, Choice.START_AGAIN)
    assert reset is not None and reset.lost == 0
    (record,) = after(reset)
    assert (record.source_start, record.source_end) == (facts.earliest, facts.earliest)
    assert record.target_end == facts.target_end and record.target_topic_id == facts.target_topic_id
    assert verified_record(reset, 0) is None


@given(histories(), st.data())
def test_a_shortened_record_counts_every_offset_up_to_its_end(
    records: tuple[MappingRecord, ...], data: st.DataObject
) -> None:
    record = data.draw(st.sampled_from(records))
    end = data.draw(st.integers(record.source_start, record.source_end))
    short = shorten(record, end)
    assert account_error("A", [short], compacted=True, start=record.source_start) is None
    assert short.lost == 0 and short.source_end == end
    assert _mapping(short) == [pair for pair in _mapping(record) if pair[0] < end]
    assert all(one.source_end <= other.source_first for one, other in pairwise(short.ranges))


def test_a_topic_created_again_can_not_be_continued() -> None:
    record = MappingRecord(
        source_topic_id=OTHER,
        topic="orders",
        partition=0,
        source_start=0,
        window="w",
        slot=0,
        time_ms=0,
        source_end=5,
        target_topic_id=TARGET,
        remote_topic="A.orders",
        target_start=0,
        target_end=5,
        copied=5,
        control=0,
        aborted=0,
        holes=0,
        lost=0,
        size=50,
        max_timestamp=0,
        leader_epoch=1,
        digest=bytes(16),
        ranges=(MappedRange(0, 0, 5),),
    )
    facts = Facts(
        topic="orders",
        partition=0,
        remote_topic="A.orders",
        source_topic_id=SOURCE,
        target_topic_id=TARGET,
        earliest=0,
        high_watermark=9,
        diverged_at=-1,
        target_end=6,
        foreign=False,
        position=5,
        records=(record,),
        last=record,
        verified=None,
    )
    with pytest.raises(ResetNotPossible, match="--start-again"):
        decide(facts, Choice.ACCEPT_LOSS)
    reset = decide(facts, Choice.START_AGAIN)
    assert reset is not None and reset.forgotten == (record,)


def ten(start: int) -> MappingRecord:
    return MappingRecord(
        source_topic_id=SOURCE,
        topic="orders",
        partition=0,
        source_start=start,
        window="w",
        slot=0,
        time_ms=0,
        source_end=start + 10,
        target_topic_id=TARGET,
        remote_topic="A.orders",
        target_start=start,
        target_end=start + 10,
        copied=10,
        control=0,
        aborted=0,
        holes=0,
        lost=0,
        size=50,
        max_timestamp=0,
        leader_epoch=1,
        digest=bytes(16),
        ranges=(MappedRange(start, start, 10),),
    )


def test_a_gap_between_records_is_declared_lost() -> None:
    """One that was skipped as malformed, or lost with the tail of the mapping topic: what follows it stays mapped."""
    records = (ten(0), ten(20), ten(30))
    facts = Facts(
        topic="orders",
        partition=0,
        remote_topic="A.orders",
        source_topic_id=SOURCE,
        target_topic_id=TARGET,
        earliest=0,
        high_watermark=90,
        diverged_at=-1,
        target_end=41,
        foreign=False,
        position=40,
        records=records,
        last=records[-1],
        verified=verified(9),
    )
    assert "10 to 19" in facts.problem
    reset = decide(facts, Choice.ACCEPT_LOSS)
    assert reset is not None and (reset.start, reset.lost, reset.gaps) == (40, 10, ((10, 20),))
    found = after(reset)
    assert account_error("A", found, compacted=False, start=0) is None and sum(record.lost for record in found) == 10
    assert {run for record in found for run in _mapping(record)} == {
        run for record in records for run in _mapping(record)
    }
    assert found[-1].source_end == 40 and not [record for record in found if record.target_end > 41]


def test_what_others_have_copied_since_is_lost_from_the_last_record_on() -> None:
    records = (ten(0), ten(10))
    facts = Facts(
        topic="orders",
        partition=0,
        remote_topic="A.orders",
        source_topic_id=SOURCE,
        target_topic_id=TARGET,
        earliest=0,
        high_watermark=90,
        diverged_at=-1,
        target_end=61,
        foreign=True,
        position=20,
        records=records,
        last=records[-1],
        verified=verified(19),
        recorded=50,
    )
    reset = decide(facts, Choice.ACCEPT_LOSS)
    assert reset is not None and (reset.lost_first, reset.lost_end, reset.start) == (20, 50, 50)
    found = after(reset)
    assert account_error("A", found, compacted=False, start=0) is None and found[-1].target_end == 61
