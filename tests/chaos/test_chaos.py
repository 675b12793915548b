"""A short chaos test, and the seeds that have found defects. `make chaos SEED=… MINUTES=…` runs others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.clusters import Clusters, start_clusters
from chaos.plan import SPARK_EVERY, Plan, make_plan
from chaos.run import Report, run_seed
from support.servers import keep

pytestmark = pytest.mark.timeout(300)

SHORT = 16  # kills a window and its slots, stops one and denies it to write, within eight seconds
# 15: what was fetched at once took longer to write than a transaction may last (test_transactions.py has it alone).
# 50: a window stood in Spark's client for minutes after the server was killed (test_windows_on_spark.py has its retries).
LONGER = (1, 15, 50)


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clusters]:
    with start_clusters(tmp_path_factory.mktemp("chaos")) as started:
        yield started


def test_a_seed_is_a_plan() -> None:
    assert make_plan(7) == make_plan(7) != make_plan(8)
    assert {make_plan(seed).three for seed in range(2)} == {"source", "target"}
    kinds = {fault.kind for seed in range(50) for fault in make_plan(seed).faults}
    assert {"kill_slot", "kill_window", "kill_node", "stop_node", "refuse_writes", "cut", "second_window"} <= kinds
    assert any(fault.kind == "kill_spark" for seed in range(0, 50, SPARK_EVERY) for fault in make_plan(seed).faults)


def run(clusters: Clusters, plan: Plan, directory: Path) -> Report:
    report = run_seed(plan, clusters, directory)
    for process in clusters.processes:
        keep(process)
    return report


def test_short(clusters: Clusters, tmp_path: Path) -> None:
    report = run(clusters, make_plan(SHORT, 8.0), tmp_path / "seed")
    assert not report.failures
    assert report.records and report.happened


@pytest.mark.long
@pytest.mark.parametrize("seed", LONGER)
def test_longer(clusters: Clusters, tmp_path: Path, seed: int) -> None:
    report = run(clusters, make_plan(seed), tmp_path / "seed")
    assert not report.failures
