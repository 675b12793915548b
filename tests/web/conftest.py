"""The console with Airflow's log-in and permissions replaced, its ledger, and a browser to look at it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser

from airmirror.ledger import Ledger
from airmirror.web import app
from support.browser import Seen, started, watched
from support.console import Viewer, pretend, pretend_records, served


@pytest.fixture
def viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Viewer:
    """Who calls; its permissions take the place of Airflow's."""
    return pretend(tmp_path, monkeypatch)


@pytest.fixture
def client(viewer: Viewer) -> TestClient:
    """The app, called without a browser."""
    return TestClient(app.build_app())


@pytest.fixture
def ledger(viewer: Viewer, tmp_path: Path) -> Iterator[Ledger]:
    """The ledger of the console, empty."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as opened:
        yield opened


@pytest.fixture
def now() -> int:
    """The time in epoch milliseconds."""
    return int(time.time() * 1000)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with started() as found:
        yield found


@pytest.fixture
def url(viewer: Viewer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where the console is served, under a base path; its records are made up."""
    pretend_records(monkeypatch)
    with served(app.build_app(), "/mirror") as found:
        yield found


@pytest.fixture
def seen(browser: Browser) -> Iterator[Seen]:
    with watched(browser) as found:
        yield found
