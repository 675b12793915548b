"""Translation of positions, against a model that asks every single record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airmirror.offsets.translation import (
    Reason,
    Replicated,
    Sync,
    Translated,
    nothing_replicated,
    to_source,
    to_target,
    usable_history,
)
from airmirror.wire.mappings import MappedRange, MappingRecord
from support.ledgers import mapping


@dataclass(frozen=True)
class Model:
    """Every replicated record, as (source offset, target offset), where the replicated range ends, and what is known of it.

    ``lost`` and ``unknown`` are source ranges; ``there`` are records in lost ranges that the target has all the same.
    """

    records: list[tuple[int, int]]
    source_end: int
    target_end: int
    known: Replicated
    lost: list[range]
    unknown: list[range]


def record(source: int, end: int, target: int, runs: tuple[MappedRange, ...], lost: int = 0) -> MappingRecord:
    copied = sum(run.count for run in runs)
    last = runs[-1].target_end if runs else target
    return replace(
        mapping(source, end),
        target_start=runs[0].target_first if runs else target,
        target_end=last,
        copied=copied,
        ranges=runs,
        lost=lost,
        aborted=end - source - copied - lost,
    )


@st.composite
def models(draw: st.DrawFn, *, kinds: str = "copied nothing") -> Model:
    """A partition as windows leave it: runs with gaps on the source and markers on the target, some of it verified.

    ``kinds`` of mapping records: ``copied`` or ``nothing``, a declared loss that the target may hold (``lost``), ``unknown``
    to the ledger although it lies on both sides.
    """
    source = source_start = draw(st.integers(0, 5))
    target = target_start = draw(st.sampled_from([0, 0, 7]))
    found: list[MappingRecord] = []
    lost: list[range] = []
    unknown: list[range] = []
    for number, kind in enumerate(draw(st.lists(st.sampled_from(kinds.split()), min_size=1, max_size=6))):
        begin, runs = source, list[MappedRange]()
        target += draw(st.integers(0, 1))
        if kind in ("copied", "unknown"):
            for hole, marker, count in draw(
                st.lists(st.tuples(*[st.integers(0, 3)] * 2, st.integers(1, 6)), max_size=3)
            ):
                runs.append(MappedRange(source + hole, target + (marker if runs else 0), count))
                source, target = runs[-1].source_end, runs[-1].target_end
        source += draw(st.integers(0 if runs else 1, 3))
        if kind == "unknown" and number:
            unknown.append(range(begin, source))
            continue
        if kind == "lost":
            lost.append(range(begin, source))
            target += source - begin  # as another program may have copied it
        found.append(record(begin, source, target, tuple(runs), source - begin if kind == "lost" else 0))
    if found[0].target_start != target_start:
        target_start = found[0].target_start
    verified = draw(st.sampled_from([found[0].source_start - 1, *(each.source_end - 1 for each in found)]))
    pairs = [
        (run.source_first + n, run.target_first + n) for each in found for run in each.ranges for n in range(run.count)
    ]
    verified_end = max((to + 1 for at, to in pairs if at <= verified), default=target_start)
    known = Replicated(
        source_start=source_start,
        target_start=target_start,
        verified=verified,
        verified_end=verified_end,
        records=tuple(found),
        log_start=source_start,
    )
    target_end = pairs[-1][1] + 1 if pairs else target_start
    return Model(
        records=pairs, source_end=found[-1].source_end, target_end=target_end, known=known, lost=lost, unknown=unknown
    )


def model_to_target(model: Model, position: int) -> int:
    return min((target for source, target in model.records if source >= position), default=model.target_end)


def model_to_source(model: Model, position: int) -> int:
    return min((source for source, target in model.records if target >= position), default=model.source_end)


@given(models(), st.integers(0, 60))
def test_a_position_is_that_of_the_next_replicated_record_up_to_the_verified_one(model: Model, position: int) -> None:
    found, known = to_target(model.known, position), model.known
    if position < known.source_start and known.target_start:
        assert found is Reason.BEFORE_MAPPINGS
    elif position > known.source_start > known.verified:
        assert found is Reason.NOT_VERIFIED
    else:
        capped = position if position < known.source_start else min(position, known.verified + 1)
        right = 0 if position < known.source_start else min(model_to_target(model, capped), known.verified_end)
        assert found == Translated(capped, right, True, position - capped)
        unread = [target for source, target in model.records if capped <= source <= known.verified]
        assert [target for _, target in model.records if right <= target < known.verified_end] == unread


@given(models(), st.integers(0, 60))
def test_the_return_trip_is_the_next_record_of_the_source(model: Model, position: int) -> None:
    found, known = to_source(model.known, position), model.known
    if known.verified < known.source_start and position > known.target_start:
        assert found is Reason.NOT_VERIFIED
        return
    assert isinstance(found, Translated) and found.exact
    right = model_to_source(model, position)
    assert found.translation == min(right, known.verified + 1)
    assert found.position + found.again == position
    assert found.position == position or found.position == known.verified_end


@given(models(), st.integers(0, 60))
def test_there_and_back_nothing_is_lost_nor_read_twice(model: Model, position: int) -> None:
    known = replace(model.known, verified=model.source_end - 1, verified_end=model.target_end)
    there = to_target(known, position)
    if isinstance(there, Translated):
        back = to_source(known, there.translation)
        assert isinstance(back, Translated)
        unread = [source for source, _ in model.records if source >= position]
        assert [source for source, _ in model.records if source >= back.translation] == unread


@given(models(kinds="copied nothing lost unknown"), st.integers(0, 60))
def test_nothing_that_may_be_there_is_jumped_over(model: Model, position: int) -> None:
    """Offsets that no mapping record covers, and declared losses, may lie on the other side: nobody is moved past them."""
    known = model.known
    doubtful = {offset for part in (*model.lost, *model.unknown) for offset in part}
    there, back = to_target(known, position), to_source(known, position)
    if isinstance(there, Translated) and position >= known.source_start:
        assert there.translation <= max(known.verified_end, known.target_start)
        for offset in (offset for offset in doubtful if offset >= there.position):
            before = [target + 1 for source, target in model.records if source < offset]
            assert there.translation <= max(before, default=known.target_start), "it may lie there"
        if position in doubtful and position <= known.verified:
            before = [target + 1 for source, target in model.records if source < position]
            assert (there.translation, there.exact) == (max(before, default=known.target_start), False)
    if position in {offset for part in model.unknown for offset in part} and position <= known.verified:
        assert there is Reason.NOT_COVERED
    if isinstance(back, Translated):
        for offset in (offset for offset in doubtful if offset < back.translation):
            after = [target for source, target in model.records if source > offset]
            assert position >= min(after, default=2**63), "it may not have been read there"


@given(models(kinds="copied nothing lost unknown"), st.integers(0, 60))
def test_only_the_records_around_are_needed(model: Model, position: int) -> None:
    for side, translate in ((attrgetter("source_end"), to_target), (attrgetter("target_end"), to_source)):
        copied = [each for each in model.known.records if each.ranges]
        before = [each for each in copied if side(each.ranges[-1]) <= position]
        after = [each for each in copied if side(each.ranges[-1]) > position]
        first = before[-1].source_start if before else 0
        last = after[0].source_start if after else 10**9
        around = tuple(each for each in model.known.records if first <= each.source_start <= last)
        assert translate(replace(model.known, records=around), position) == translate(model.known, position)


def test_a_gap_between_mapping_records_is_a_reason() -> None:
    """As MirrorMaker 2 leaves it that has copied in between, as an unclean election of the mapping topic does, or a reset."""
    gap = Replicated(0, 0, 199, 251, (mapping(0, 100), record(150, 200, 201, (MappedRange(150, 201, 50),))))
    assert to_target(gap, 99) == Translated(99, 99) and to_target(gap, 150) == Translated(150, 201)
    assert {to_target(gap, position) for position in (100, 120, 149)} == {Reason.NOT_COVERED}
    assert {to_source(gap, position) for position in (100, 150, 200)} == {Reason.NOT_COVERED}
    assert to_target(replace(gap, verified=99, verified_end=100), 120) == Translated(100, 100, again=20)


def test_what_the_source_still_has_before_the_first_copied_record_was_never_copied() -> None:
    """As with auto.offset.reset=latest; below the source's log start there is nothing to be skipped."""
    late = Replicated(100, 0, 199, 100, (record(100, 200, 0, (MappedRange(100, 0, 100),)),), log_start=40)
    assert {to_target(late, position) for position in (0, 40, 99)} == {Reason.BEFORE_MAPPINGS}
    assert to_target(late, 100) == Translated(100, 0)
    assert to_target(replace(late, log_start=100), 50) == Translated(50, 0)


def test_a_declared_loss_is_entered_at_its_beginning() -> None:
    lost = record(100, 150, 151, (), lost=50)
    known = Replicated(0, 0, 199, 251, (mapping(0, 100), lost, record(150, 200, 201, (MappedRange(150, 201, 50),))))
    assert to_target(known, 120) == Translated(120, 100, exact=False)
    assert to_source(known, 120) == Translated(120, 100, exact=False)
    assert to_target(known, 150) == Translated(150, 201) and to_source(known, 201) == Translated(201, 150)
    # Within a record, and at its end: 30 and 31 differ on the target, 90 to 99 it lacks.
    runs = (MappedRange(0, 0, 30), MappedRange(32, 32, 58))
    part = Replicated(
        0, 0, 149, 151, (record(0, 100, 0, runs, lost=12), record(100, 150, 101, (MappedRange(100, 101, 50),)))
    )
    assert to_target(part, 30) == Translated(30, 30, exact=False) and to_target(part, 32) == Translated(32, 32)
    assert to_target(part, 95) == Translated(95, 90, exact=False) and to_source(part, 95) == Translated(
        95, 90, exact=False
    )


def test_a_verified_offset_whose_mapping_record_is_gone_covers_nothing() -> None:
    known = Replicated(0, 0, 149, 150, (mapping(0, 100),))
    assert to_target(known, 120) is Reason.NOT_COVERED and to_target(known, 99) == Translated(99, 99)
    assert to_target(known, 150) == Translated(150, 150)


def test_an_empty_partition_is_at_0() -> None:
    empty = nothing_replicated(0, 0)
    assert to_target(empty, 0) == Translated(0, 0)
    assert to_source(empty, 0) == Translated(0, 0)
    assert to_target(empty, 5) is Reason.NOT_VERIFIED
    # The source's log begins at 40, and nothing was copied yet: all of it is still to be read.
    assert to_target(nothing_replicated(40, 0), 40) == Translated(40, 0)


def test_a_partition_that_somebody_else_fills_is_not_guessed() -> None:
    other = nothing_replicated(0, 12)
    assert to_target(other, 0) is Reason.BEFORE_MAPPINGS
    assert to_target(other, 12) is Reason.BEFORE_MAPPINGS
    assert to_source(other, 12) is Reason.BEFORE_MAPPINGS


HISTORY = (Sync(10, 5), Sync(20, 15), Sync(90, 70))
TAKEN_OVER = Replicated(
    source_start=100,
    target_start=80,
    verified=149,
    verified_end=130,
    records=(record(100, 150, 80, (MappedRange(100, 80, 50),)),),
    log_start=0,
    history=HISTORY,
)


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (9, Reason.BEFORE_MAPPINGS),
        (10, Translated(10, 5, exact=False)),
        (11, Translated(11, 6, exact=False)),
        (19, Translated(19, 6, exact=False)),  # never more than one past a sync
        (99, Translated(99, 71, exact=False)),
        (100, Translated(100, 80)),
        (150, Translated(150, 130)),
    ],
)
def test_history_of_mirrormaker_2_is_translated_by_its_rule(position: int, expected: Translated | Reason) -> None:
    assert to_target(TAKEN_OVER, position) == expected


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (4, Reason.BEFORE_MAPPINGS),
        (5, Translated(5, 10, exact=False)),
        (14, Translated(14, 11, exact=False)),
        (80, Translated(80, 100)),
    ],
)
def test_history_is_translated_back_by_the_same_rule(position: int, expected: Translated | Reason) -> None:
    assert to_source(TAKEN_OVER, position) == expected


def test_what_the_source_no_longer_holds_comes_back_to_its_first_record() -> None:
    pruned = replace(TAKEN_OVER, log_start=100, history=())
    assert to_source(pruned, 3) == Translated(3, 100)


@given(st.lists(st.builds(Sync, st.integers(0, 30), st.integers(0, 30)), max_size=12), st.integers(0, 30))
def test_a_sync_that_goes_back_makes_those_before_it_void(syncs: list[Sync], before: int) -> None:
    found = usable_history(syncs, before)
    for one, other in pairwise(found):
        assert one.source <= other.source and one.target <= other.target
    assert all(sync.source < before for sync in found)
    if syncs and syncs[-1].source < before:
        assert found[-1] == syncs[-1]
