"""The console with Airflow's log-in and permissions replaced, and its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from airmirror.ledger import Ledger
from support.console import Viewer, pretend


@pytest.fixture
def viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Viewer:
    """Who calls; its permissions take the place of Airflow's."""
    return pretend(tmp_path, monkeypatch)


@pytest.fixture
def ledger(viewer: Viewer, tmp_path: Path) -> Iterator[Ledger]:
    """The ledger of the console, empty."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as opened:
        yield opened
