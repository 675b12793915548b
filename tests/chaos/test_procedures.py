"""Procedures among faults: a short seed, and one of each procedure. `make chaos ONLY=procedures SEED=… MINUTES=…` runs others."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror_local.proxy import Exchange, Proxy
from chaos import procedures
from chaos.drivers import Watch
from chaos.faults import Happened
from chaos.procedures import ProcedureReport, Telling, run_procedure
from chaos.results import PROCEDURES, Kept, write_procedures
from chaos.stories import ALL_FROM, KINDS, PLACES, STORIES, Doing, Hit, make_procedure_plan
from support.forked import processes
from support.servers import keep
from support.sides import Sides

pytestmark = pytest.mark.timeout(600)

QUICK = 1927  # a failover that is killed, done again when its groups have read on, and undone while another driver does it again
SOON = 10.0
FREEZING = Doing("failover", only=("drain", "freeze"))


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
    found = {(act.place(hit.step), hit.kind) for act, hit in places if isinstance(act, Doing)}
    assert found == set(itertools.product(PLACES, KINDS))


def test_a_fault_is_at_a_later_step_where_its_own_sends_fewer_requests() -> None:
    reached, sends = processes.Pipe(duplex=False)
    proxy = Proxy(0, 0)
    watch = Watch(Hit(doing=0, step=0, number=3, kind="lose"), SimpleNamespace(value=1), sends)
    watch.on("east", proxy)
    produce = Exchange(api_key=0, api_version=0, correlation_id=0, number=1)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(proxy.on_request, produce, b"frame")
        found = reached.poll(SOON) and reached.recv()
        watch.let(loses=True)
        assert held.result(SOON) is None
    assert found == ("east", 1)


@pytest.mark.parametrize("lets", [True, False])
def test_a_fault_counts_where_it_has_befallen_something(monkeypatch: pytest.MonkeyPatch, lets: bool) -> None:
    """It was planned for the first step, and found the second one; if the clusters let nobody take ids, nothing happened."""
    flow = SimpleNamespace(source=SimpleNamespace(alias="east"), target=SimpleNamespace(alias="west"))
    opened = SimpleNamespace(flow=flow)
    sides, both = SimpleNamespace(east=None, west=None), SimpleNamespace(forward=opened, reverse=opened)
    monkeypatch.setattr(procedures, "hijack", lambda *_: lets)
    monkeypatch.setattr(Watch, "on", lambda watch, side, _: watch.reached.send((side, 1)))
    report, (never, _still) = ProcedureReport(0), processes.Pipe(duplex=False)
    estate: Any = SimpleNamespace(sides=sides, both=both)
    telling = Telling(make_procedure_plan(0), estate, {"west": Proxy(0, 0)}, report)
    running: Any = SimpleNamespace(step=None, process=SimpleNamespace(sentinel=never))
    telling._befall(running, FREEZING, Hit(doing=0, step=0, number=1, kind="hijack"), FREEZING)
    assert (len(report.happened), len(report.missed)) == ((1, 0) if lets else (0, 1))
    assert report.places == ({"failover freeze": {"hijack": 1}} if lets else {})


def test_the_page_counts_faults_by_their_step_and_kind(tmp_path: Path) -> None:
    page = tmp_path / "CHAOS.md"
    page.write_text(f"# Windows\n\n{PROCEDURES}what was there before\n")
    both = ProcedureReport(
        2000, name="failover, undone", places={"failover freeze": {"lose": 2}, "failover undo": {"cut": 1}}
    )
    both.happened = [Happened("lose", ""), Happened("lose", ""), Happened("cut", "")]
    one = ProcedureReport(
        2001, name="failover", places={"failover freeze": {"lose": 1}}, happened=[Happened("lose", "")]
    )
    write_procedures(page, [Kept("abc", "2026-11-28", report) for report in (both, one)])
    text = page.read_text()
    assert text.startswith(f"# Windows\n\n{PROCEDURES}2 of 2 seeds passed")
    assert "| at the step | lose | cut | all |" in text
    assert "| failover freeze | 3 | 0 | 3 |" in text and "| failover drain | 0 | 0 | 0 |" in text


def test_a_command_among_faults_is_done_in_the_end(kept: Sides, tmp_path: Path) -> None:
    report = run_procedure(make_procedure_plan(QUICK), kept, tmp_path / "seed")
    assert not report.failures and not report.missed, [*report.failures, *map(str, report.missed)]
    assert report.happened and report.records


@pytest.mark.long
@pytest.mark.parametrize("name", [pytest.param(name, id=name.replace(" ", "-")) for name in STORIES])
def test_each_procedure_among_faults_is_done_in_the_end(kept: Sides, tmp_path: Path, name: str) -> None:
    plans = map(make_procedure_plan, itertools.count(ALL_FROM))
    plan = next(plan for plan in plans if plan.name == name and len(plan.hits) > 1)
    report = run_procedure(plan, kept, tmp_path / "seed")
    assert not report.failures, [*report.failures, *map(str, report.happened)]
    assert report.happened and report.records, [*map(str, report.missed)]
