"""Where a deployment has its files when no variable says so, and a ledger that not every task could reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.on_airflow.dags.all_dags import dags
from airmirror.on_airflow.deployment import LedgerNotShared, deployment
from airmirror.quality.suites import OWN
from airmirror_local.ports import LOOPBACK

FLOW = f"clusters = a, b\na.bootstrap.servers = {LOOPBACK}:1\nb.bootstrap.servers = {LOOPBACK}:1\na->b.enabled = true\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that holds the DAGs folder, of a service of which no variable is set."""
    for name in ("CONFIG", "LEDGER", "EXPECTATIONS"):
        monkeypatch.delenv(f"AIRMIRROR_{name}", raising=False)
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", str(tmp_path / "dags"))
    return tmp_path


def written(home: Path) -> Path:
    place = home / "include"
    (place / "expectations").mkdir(parents=True)
    (place / "mirror.properties").write_text(FLOW)
    return place


def test_files_are_looked_for_alongside_the_dags_folder_and_then_in_it(home: Path) -> None:
    found = deployment()
    assert (found.config, found.expectations) == (home / "include" / "mirror.properties", OWN)
    for parent in (home / "dags", home):
        place = written(parent)
        found = deployment()
        assert (found.config, found.expectations) == (place / "mirror.properties", place / "expectations")
    assert found.ledger == f"sqlite:///{home}/.local/ledger.db"


def test_receivers_are_listed_as_everywhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a blank after the comma the second one's token let nobody in."""
    monkeypatch.setenv("AIRMIRROR_ALERT_RECEIVERS", "alertmanager, grafana")
    assert deployment().alert_receivers == ("alertmanager", "grafana")


@pytest.mark.parametrize(
    "executor",
    [
        "CeleryExecutor",
        "LocalExecutor,KubernetesExecutor",
        "team=CeleryExecutor;LocalExecutor",
        "quick:airflow.providers.edge3.executors.EdgeExecutor",
    ],
)
def test_a_ledger_in_a_file_is_refused_where_tasks_run_elsewhere(
    executor: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(home)
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    with pytest.raises(LedgerNotShared, match=r"AIRMIRROR_LEDGER=postgresql\+psycopg2://") as refused:
        dags()
    assert f"{home}/.local/ledger.db" in str(refused.value) and not refused.value.transient
    assert not (home / ".local").exists(), "nothing is written before"
    monkeypatch.setenv("AIRMIRROR_LEDGER", "postgresql+psycopg2://airmirror@ledger/airmirror")
    assert "replicate.a.b" in dags()


@pytest.mark.parametrize("executor", ["LocalExecutor", "team:airflow.executors.local_executor.LocalExecutor"])
def test_one_machine_needs_no_server_for_its_ledger(executor: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(home)
    monkeypatch.setenv("AIRFLOW__CORE__EXECUTOR", executor)
    assert "replicate.a.b" in dags()
