"""Procedures among faults: a short seed, and one of each procedure. `make chaos ONLY=procedures SEED=… MINUTES=…` runs others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.procedures import run_procedure
from chaos.stories import ALL_FROM, BOOKS, KINDS, STORIES, Doing, make_procedure_plan
from support.servers import keep
from support.sides import Sides

pytestmark = pytest.mark.timeout(600)

QUICK = 1207  # a failover, done again when its groups have read on, and undone while another driver does it: five kinds of faults


@pytest.fixture
def kept(sides: Sides) -> Iterator[Sides]:
    """Clusters whose nodes a seed may start again."""
    yield sides
    for broker in (sides.east, sides.west):
        keep(broker.process)


def test_a_seed_is_a_plan() -> None:
    assert make_procedure_plan(7) == make_procedure_plan(7) != make_procedure_plan(8)
    assert [make_procedure_plan(seed).name for seed in range(len(STORIES))] == list(STORIES)


def test_every_step_of_every_runbook_has_faults_of_every_kind() -> None:
    plans = [make_procedure_plan(seed) for seed in range(ALL_FROM, ALL_FROM + 2600)]
    places = [(plan.acts[hit.doing], hit) for plan in plans for hit in plan.hits]
    found = {(act.book, act.steps[hit.step], hit.kind) for act, hit in places if isinstance(act, Doing)}
    steps = {(book.name, step.name) for book in BOOKS.values() for step in book.steps}
    steps |= {(book.name, "undo") for book in BOOKS.values() if book.undo}
    steps |= {(book.name, "rehearse") for book in BOOKS.values() if book.rehearse}
    assert found == {(*step, kind) for step in steps for kind in KINDS}


def test_a_command_among_faults_is_done_in_the_end(kept: Sides, tmp_path: Path) -> None:
    report = run_procedure(make_procedure_plan(QUICK), kept, tmp_path / "seed")
    assert not report.failures and not report.missed, [*report.failures, *map(str, report.missed)]
    assert report.happened and report.records


@pytest.mark.long
@pytest.mark.parametrize("seed", range(len(STORIES)), ids=[name.replace(" ", "-") for name in STORIES])
def test_each_procedure_among_faults_is_done_in_the_end(kept: Sides, tmp_path: Path, seed: int) -> None:
    report = run_procedure(make_procedure_plan(seed), kept, tmp_path / "seed")
    assert not report.failures, [*report.failures, *map(str, report.happened)]
    assert report.records
