"""A short chaos test, and the seeds that have found defects. `make chaos SEED=… MINUTES=…` runs others."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.clusters import Clusters, start_clusters
from chaos.explanations import unexplained
from chaos.faults import Happened
from chaos.plan import (
    ACCESS,
    ALL_FROM,
    APART,
    BETWEEN,
    CLOCKS,
    DISKS,
    IDS,
    LOSSES,
    MORE_FROM,
    MOVES,
    NODES,
    PROXIED,
    STARVED,
    STATE,
    WINDOWS,
    WITHHELD,
    Plan,
    directed,
    each_kind,
    few_kinds,
    make_plan,
    upgrading,
)
from chaos.results import write
from chaos.run import Report, run_seed
from support.servers import keep

pytestmark = pytest.mark.timeout(900)

SHORT = 16  # kills a window and its slots, stops one and denies it to write, within eight seconds
# 15: what was fetched at once took longer to write than a transaction may last (test_transactions.py has it alone).
# 50: a window stood in Spark's client for minutes after the server was killed (test_windows_on_spark.py has its retries).
LONGER = (1, 15, 50)
OLDER = "4.0.0"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with start_clusters(tmp_path_factory.mktemp("chaos")) as started:
        yield started


def test_a_seed_is_a_plan() -> None:
    assert make_plan(7) == make_plan(7) != make_plan(8)
    assert {make_plan(seed).three for seed in range(2)} == {"source", "target"}


def test_seeds_that_found_something_stay_what_they_were() -> None:
    """The plans of old seeds do not change when kinds are added."""
    newest = MOVES | APART | IDS | DISKS | CLOCKS
    for seeds, unknown in ((range(MORE_FROM), STATE | STARVED | WITHHELD | BETWEEN), (range(ALL_FROM), newest)):
        assert not {fault.kind for seed in seeds for fault in make_plan(seed).faults} & unknown
    assert newest <= {fault.kind for seed in range(ALL_FROM, ALL_FROM + 50) for fault in make_plan(seed).faults}
    plans = "\n".join(str(make_plan(seed)) for seed in range(1, 51))
    assert hashlib.sha256(plans.encode()).hexdigest()[:16] == "6def455e66429dd8"


def test_no_error_passes_that_no_fault_explains() -> None:
    assert unexplained({"AccessLost": 1, "FlowBusy": 2}, {"deny_writes", "kill_window"}) == []
    assert unexplained({"AccessLost": 1, "FlowBusy": 2}, {"kill_window"}) == ["AccessLost"]
    assert unexplained({"SlotFenced": 1}, ()) == ["SlotFenced"]
    assert unexplained({"NobodyKnowsIt": 1}, {"kill_window"}) == ["NobodyKnowsIt"]


def test_a_report_counts_what_happened(tmp_path: Path) -> None:
    """A plan's faults that found nothing to befall are told apart."""
    file = tmp_path / "chaos.md"
    report = Report(
        16, records=7, windows=3, happened=[Happened("kill_slot", "x")], missed=[Happened("kill_window", "x")]
    )
    write(file, [(make_plan(SHORT, 8.0), report)])
    text = file.read_text()
    assert "1 faults that happened: kill slot 1. 1 more were planned and found nothing to befall." in text
    assert "| kill slot | 3 (0) |" in text


def run(clusters: Clusters, plan: Plan, directory: Path) -> Report:
    report = run_seed(plan, clusters, directory)
    for process in clusters.processes:
        keep(process)
    return report


def test_the_short_plans_have_every_kind_but_those_of_spark() -> None:
    kinds = ACCESS | APART | BETWEEN | CLOCKS | DISKS | IDS | LOSSES | MOVES
    kinds |= NODES | PROXIED | STARVED | STATE | WINDOWS | WITHHELD
    assert {fault.kind for plan in each_kind().values() for fault in plan.faults} == kinds


@pytest.mark.long
@pytest.mark.parametrize("name", each_kind())
def test_each_kind_happens_and_nothing_is_lost(clusters: Clusters, tmp_path: Path, name: str) -> None:
    check(run(clusters, each_kind()[name], tmp_path / "seed"), each_kind()[name])


@pytest.mark.long  # what happens by faults has tests of its own; above are plans and reports
def test_a_few_kinds_happen_and_nothing_is_lost(tmp_path: Path) -> None:
    """What each other kind does is found by a test of its own, in ``windows``: this one has them among windows and producers."""
    with start_clusters(tmp_path, nodes=1) as smallest:
        check(run_seed(few_kinds(), smallest, tmp_path / "seed"), few_kinds())


@pytest.mark.long
def test_nodes_are_upgraded_one_after_the_other_and_then_transactions(tmp_path: Path) -> None:
    """From the first protocol of transactions to the second one, while windows write by it."""
    plan = upgrading()
    with start_clusters(tmp_path, version=OLDER, features={"transaction.version": 0}) as clusters:
        check(run_seed(plan, clusters, tmp_path / "seed"), plan)


def check(report: Report, plan: Plan) -> None:
    assert not report.failures and not report.missed, [*report.failures, *map(str, report.missed)]
    assert Counter(fault.kind for fault in report.happened) == Counter(fault.kind for fault in plan.faults)
    assert report.records and report.following


@pytest.mark.long
def test_short(clusters: Clusters, tmp_path: Path) -> None:
    report = run(clusters, make_plan(SHORT, 8.0), tmp_path / "seed")
    assert not report.failures
    assert report.records and report.happened


@pytest.mark.long
@pytest.mark.parametrize("name", directed())
def test_what_reviews_have_found(clusters: Clusters, tmp_path: Path, name: str) -> None:
    """Every planned fault happens, but for the death of a process that may just not be there."""
    plan = directed()[name]
    report = run(clusters, plan, tmp_path / "seed")
    assert not report.failures, [*report.failures, *map(str, report.happened)]
    found = {fault.kind for fault in report.happened}
    assert {fault.kind for fault in plan.faults} - found <= {"kill_slot", "kill_window", "lose_answer"}


@pytest.mark.long
@pytest.mark.parametrize("seed", LONGER)
def test_longer(clusters: Clusters, tmp_path: Path, seed: int) -> None:
    report = run(clusters, make_plan(seed), tmp_path / "seed")
    assert not report.failures
