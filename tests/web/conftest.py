"""The console with Airflow's log-in and permissions replaced, and its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fastapi import Depends, HTTPException

from airmirror.ledger import Ledger
from airmirror.web import app, security
from support.console import Viewer, all_dags, configuration


@pytest.fixture
def viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Viewer:
    """Who calls; its permissions take the place of Airflow's."""
    path, found = configuration(tmp_path), Viewer()
    found.dags = all_dags(path)
    monkeypatch.setenv("AIRMIRROR_CONFIG", str(path))
    monkeypatch.setenv("AIRMIRROR_LEDGER", f"sqlite:///{tmp_path / 'ledger.db'}")
    monkeypatch.setenv("AIRMIRROR_DATA_DOCS", str(tmp_path / "docs"))

    def user() -> str:
        if not found.logged_in:
            raise HTTPException(401, "Invalid authentication credentials")
        return "ann"

    def may_see_dag(dag_id: str, _user: str = Depends(user)) -> None:
        if dag_id not in found.dags:
            raise HTTPException(403, "Forbidden")

    def readable(_user: Any, dag_ids: Any) -> dict[str, bool]:
        return {dag_id: dag_id in found.paused for dag_id in dag_ids if dag_id in found.dags}

    monkeypatch.setattr(app, "may_see_plugins", lambda: Depends(user))
    monkeypatch.setattr(security, "may_see_plugins", lambda: Depends(user))
    monkeypatch.setattr(security, "may_see_dag", lambda: Depends(may_see_dag))
    monkeypatch.setattr(security, "logged_in", lambda: Depends(user))
    monkeypatch.setattr(security, "readable", readable)
    return found


@pytest.fixture
def ledger(viewer: Viewer, tmp_path: Path) -> Iterator[Ledger]:
    """The ledger of the console, empty."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as opened:
        yield opened
