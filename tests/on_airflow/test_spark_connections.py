"""Which Spark connections windows run with, and what is refused before anything is started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airmirror.flows.choice import Choice
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.spark import BadSparkConnection, windows_of
from airmirror.on_airflow.submit import DriverNotPossible, LedgerOutOfReach

POSTGRESQL = "postgresql+psycopg2://airmirror:planted@postgres/airmirror"


def given(monkeypatch: pytest.MonkeyPatch, ledger: str, **connection: object) -> None:
    """Ask for a window with a connection of these fields."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps(connection))
    place = Deployment(Path("mirror.properties"), ledger, Path(), Path(), (), "")
    windows_of("spark_test", place, "east->west", "w1", Choice())


@pytest.mark.parametrize("host", ["yarn", "k8s://https://kubernetes:6443"])
def test_a_driver_elsewhere_needs_a_ledger_that_it_can_reach(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    extra = {"deploy-mode": "cluster"}
    with pytest.raises(LedgerOutOfReach, match="PostgreSQL") as caught:
        given(monkeypatch, "sqlite:////var/lib/airmirror/ledger.db", conn_type="spark", host=host, extra=extra)
    assert not caught.value.transient
    given(monkeypatch, POSTGRESQL, conn_type="spark", host=host, extra=extra)
    given(monkeypatch, "sqlite:///ledger.db", conn_type="spark", host=host)  # the driver is here


@pytest.mark.parametrize(
    "where", [{"host": "spark://master:7077"}, {"host": "spark://master", "port": 7077}, {"host": "m", "port": 1}]
)
def test_a_standalone_master_runs_no_python_drivers(monkeypatch: pytest.MonkeyPatch, where: dict[str, object]) -> None:
    with pytest.raises(DriverNotPossible, match="client") as caught:
        given(monkeypatch, POSTGRESQL, conn_type="spark", extra={"deploy-mode": "cluster"}, **where)
    assert not caught.value.transient
    given(monkeypatch, "sqlite:///ledger.db", conn_type="spark", **where)


def test_other_connections_are_refused_with_what_to_make(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadSparkConnection, match="its type is 'http'"):
        given(monkeypatch, POSTGRESQL, conn_type="http", host="master")
    place = Deployment(Path("mirror.properties"), POSTGRESQL, Path(), Path(), (), "")
    with pytest.raises(BadSparkConnection, match="no such connection"):
        windows_of("nowhere", place, "east->west", "w1", Choice())
