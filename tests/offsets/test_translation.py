"""Translation of positions, against a model that asks every single record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

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
from airmirror.wire.segments import Segment


@dataclass(frozen=True)
class Model:
    """Every replicated record, as (source offset, target offset), and where the replicated range ends."""

    records: list[tuple[int, int]]
    known: Replicated


@st.composite
def models(draw: st.DrawFn) -> Model:
    """A partition as windows leave it: runs with gaps on the source and markers on the target, some of it verified."""
    source = source_start = draw(st.integers(0, 5))
    target = target_start = draw(st.sampled_from([0, 0, 7]))
    runs: list[Segment] = []
    for hole, marker, count in draw(st.lists(st.tuples(*[st.integers(0, 3)] * 2, st.integers(1, 6)), max_size=6)):
        runs.append(Segment(source + hole, target + (marker if runs else 0), count))
        source, target = runs[-1].source_end, runs[-1].target_end
    end = source + draw(st.integers(0, 3))
    verified = draw(st.integers(source_start - 1, end - 1))
    records = [(run.source_first + n, run.target_first + n) for run in runs for n in range(run.count)]
    return Model(records, Replicated(source_start, target_start, end, target, verified, tuple(runs), source_start))


def model_to_target(model: Model, position: int) -> int:
    return min((target for source, target in model.records if source >= position), default=model.known.target_end)


def model_to_source(model: Model, position: int) -> int:
    return min((source for source, target in model.records if target >= position), default=model.known.source_end)


@given(models(), st.integers(0, 60))
def test_a_position_is_that_of_the_next_replicated_record_up_to_the_verified_one(model: Model, position: int) -> None:
    found, known = to_target(model.known, position), model.known
    if position < known.source_start and known.target_start:
        assert found is Reason.BEFORE_SEGMENTS
    elif position > known.source_start > known.verified:
        assert found is Reason.NOT_VERIFIED
    else:
        capped = position if position < known.source_start else min(position, known.verified + 1)
        assert found == Translated(capped, model_to_target(model, capped), True, position - capped)


@given(models(), st.integers(0, 60))
def test_the_return_trip_is_the_next_record_of_the_source(model: Model, position: int) -> None:
    found, known = to_source(model.known, position), model.known
    if known.verified < known.source_start and position > known.target_start:
        assert found is Reason.NOT_VERIFIED
        return
    assert isinstance(found, Translated) and found.exact
    right = model_to_source(model, position)
    assert found.translation == min(right, known.verified + 1)
    if right <= known.verified + 1:
        assert (found.position, found.again) == (position, 0)
    else:
        assert found.position == min(position, model_to_target(model, known.verified + 1))
        assert found.position + found.again == position


@given(models(), st.integers(0, 60))
def test_there_and_back_nothing_is_lost_nor_read_twice(model: Model, position: int) -> None:
    known = replace(model.known, verified=model.known.source_end - 1)
    there = to_target(known, position)
    if isinstance(there, Translated):
        back = to_source(known, there.translation)
        assert isinstance(back, Translated)
        unread = [source for source, _ in model.records if source >= position]
        assert [source for source, _ in model.records if source >= back.translation] == unread


@given(models(), st.data())
def test_only_the_runs_that_are_needed_are_enough(model: Model, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, 60))
    wanted = (position, model.known.verified + 1)
    needed = {
        run for at in wanted for run in [next((r for r in model.known.runs if r.source_end > at), None)] if run
    }  # fmt: skip
    backwards = next((run for run in model.known.runs if run.target_end > position), None)
    some = replace(model.known, runs=sorted(needed, key=lambda run: run.source_first))
    assert to_target(some, position) == to_target(model.known, position)
    needed |= {backwards} if backwards else set()
    some = replace(model.known, runs=sorted(needed, key=lambda run: run.source_first))
    assert to_source(some, position) == to_source(model.known, position)


def test_an_empty_partition_is_at_0() -> None:
    empty = nothing_replicated(0, 0)
    assert to_target(empty, 0) == Translated(0, 0)
    assert to_source(empty, 0) == Translated(0, 0)
    assert to_target(empty, 5) is Reason.NOT_VERIFIED
    # The source's log begins at 40, and nothing was copied yet: all of it is still to be read.
    assert to_target(nothing_replicated(40, 0), 40) == Translated(40, 0)


def test_a_partition_that_somebody_else_fills_is_not_guessed() -> None:
    other = nothing_replicated(0, 12)
    assert to_target(other, 0) is Reason.BEFORE_SEGMENTS
    assert to_target(other, 12) is Reason.BEFORE_SEGMENTS
    assert to_source(other, 12) is Reason.BEFORE_SEGMENTS


HISTORY = (Sync(10, 5), Sync(20, 15), Sync(90, 70))
TAKEN_OVER = Replicated(100, 80, 150, 130, 149, (Segment(100, 80, 50),), 0, HISTORY)


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (9, Reason.BEFORE_SEGMENTS),
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
        (4, Reason.BEFORE_SEGMENTS),
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
