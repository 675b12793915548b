"""The Spark connections that windows run with, and the ones refused before anything starts."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airmirror.flows.audit import Range
from airmirror.flows.selection import Selection
from airmirror.on_airflow.dags.audit import ReplicateRange
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks import submit
from airmirror.on_airflow.tasks.spark import BadSparkConnection, windows_of
from airmirror.on_airflow.tasks.submit import DriverNotPossible, LedgerOutOfReach
from airmirror.on_spark.ranges import read_ranges
from airmirror.windows.results import WindowResult
from airmirror_local.brokers import Broker
from support.flows import Mirror, mirror
from support.topics import Record, produce

POSTGRESQL = "postgresql+psycopg2://airmirror:planted@postgres/airmirror"


def no_connect(url: str) -> WindowResult:
    raise AssertionError(url)


def given(monkeypatch: pytest.MonkeyPatch, ledger: str, **connection: object) -> None:
    """Ask for a window with a connection of these fields."""
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps(connection))
    place = Deployment(
        config=Path("mirror.properties"),
        ledger=ledger,
        expectations=Path(),
        alert_receivers=(),
        metrics_conn_id="",
    )
    windows_of(
        conn_id="spark_test",
        deployment=place,
        flow="east->west",
        window="w1",
        selection=Selection(),
        over_connect=no_connect,
    )


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
    place = Deployment(
        config=Path("mirror.properties"),
        ledger=POSTGRESQL,
        expectations=Path(),
        alert_receivers=(),
        metrics_conn_id="",
    )
    with pytest.raises(BadSparkConnection, match="no such connection"):
        windows_of(
            conn_id="nowhere",
            deployment=place,
            flow="east->west",
            window="w1",
            selection=Selection(),
            over_connect=no_connect,
        )


def test_replays_are_submitted_too(east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = mirror(east, west, tmp_path, partitions=1)
    produce(east, flow.topic, [Record(b"v")] * 20)
    submitted: list[tuple[list[str], list[Range]]] = []

    class Hook:
        def __init__(self, **given: Any) -> None:
            self.arguments = given["application_args"]

        def submit(self, application: str) -> None:
            ranges = read_ranges(Path(self.arguments[self.arguments.index("--ranges") + 1]))
            submitted.append((self.arguments, ranges))

    monkeypatch.setattr(submit, "SparkSubmitHook", Hook)
    monkeypatch.setattr(submit, "opened_flow", lambda *_: _Opened(flow))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_TEST", json.dumps({"conn_type": "spark", "host": "local[2,4]"}))
    form = {"what": "replay", "topics": [flow.topic], "partitions": [0], "start": 5, "end": 12, "dry_run": False}
    context: Any = {"params": form, "dag_run": SimpleNamespace(run_type="manual")}
    task = ReplicateRange(task_id="replicate_window", flow=flow.flow.name, spark_conn_id="spark_test")
    result = task.windows(context, "w1", Selection((flow.topic,), (0,))).replicate()
    ((arguments, ranges),) = submitted
    assert ranges == [Range(flow.topic, 0, 5, 12)] and result.rows == () and not result.is_cut
    assert {"--no-advance", "--before"} <= set(arguments)


class _Opened:
    def __init__(self, flow: Mirror) -> None:
        self.flow = flow

    def __enter__(self) -> Any:
        return self.flow.opened

    def __exit__(self, *_: object) -> None: ...
