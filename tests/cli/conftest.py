"""Short waits for all tests of this room, and no Airflow but their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.waiting import short_waits

__all__ = ["short_waits"]


@pytest.fixture(autouse=True)
def no_airflow_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands ask an Airflow that is set up under HOME: none of the machine on which tests run."""
    monkeypatch.setenv("HOME", str(tmp_path / "home-of-nobody"))
    monkeypatch.delenv("AIRFLOW_HOME", raising=False)
