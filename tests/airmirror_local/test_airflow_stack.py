"""The embedded Airflow's settings: what is waited for, and for how long."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sql

from airmirror_local import airflow_stack


def test_whoever_finds_the_database_locked_waits_for_a_minute(tmp_path: Path) -> None:
    settings = airflow_stack._settings(tmp_path, "http://127.0.0.1:1", 1, tmp_path, None, tmp_path / "passwords", 4)
    engine = sql.create_engine(settings["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    with engine.connect() as connection:
        assert connection.exec_driver_sql("pragma busy_timeout").scalar() == 60_000
    engine.dispose()
    assert (tmp_path / "airflow.db").exists()
