"""The embedded Airflow's settings: what is waited for, and for how long."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sql

from airmirror_local import airflow_stack
from airmirror_local.processes import ProcessFailed, start_process


def test_whoever_finds_the_database_locked_waits_for_a_minute(tmp_path: Path) -> None:
    settings = airflow_stack._settings(tmp_path, "http://127.0.0.1:1", 1, tmp_path, tmp_path / "passwords", 4)
    engine = sql.create_engine(settings["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    with engine.connect() as connection:
        assert connection.exec_driver_sql("pragma busy_timeout").scalar() == 60_000
    engine.dispose()
    assert (tmp_path / "airflow.db").exists()


@pytest.mark.long
def test_the_api_waits_while_the_database_is_locked(tmp_path: Path) -> None:
    """SQLite alone gives up after five seconds, and the API answered 500."""
    (tmp_path / "dags").mkdir()
    stack = airflow_stack.start_airflow(tmp_path / "airflow", dags=tmp_path / "dags")
    try:
        other = sqlite3.connect(tmp_path / "airflow" / "airflow.db", isolation_level=None)
        with closing(other), ThreadPoolExecutor(30) as pool, stack.client() as client:
            client.health()  # logs in
            other.execute("begin immediate")
            calls = [pool.submit(client.request, "POST", "/pools", {"name": f"p{n}", "slots": 1}) for n in range(30)]
            assert wait(calls, timeout=12).done == set()
            other.execute("rollback")
            for call in calls:
                call.result(60)  # HTTPStatusError is raised here
    finally:
        stack.stop()


def test_whoever_waits_for_airflow_is_told_that_a_component_has_ended(tmp_path: Path) -> None:
    process = start_process("Airflow scheduler", ["sh", "-c", "echo database is locked"], tmp_path / "scheduler.log")
    stack = airflow_stack.AirflowStack(tmp_path, "http://127.0.0.1:1", "", {}, {"scheduler": process})
    process.handle.wait()
    with stack.client() as client, pytest.raises(ProcessFailed, match=r"(?s)scheduler has ended.*database is locked"):
        client.wait(lambda: None)
    stack.stop()
