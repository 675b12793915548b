"""What tasks under test have kept in a ledger: their pages, and the JSON beside them."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import Engine

from airmirror.ledger import Ledger
from airmirror.ledger.pages import JSON, PAGE, page_at
from airmirror.on_airflow.deployment import deployment


def kept(page: str, ledger: str = "") -> str:
    """The text of a page by its path, from the deployment's ledger, or from the one at a URL."""
    with Ledger(ledger or deployment().ledger) as opened:
        return in_ledger(opened.engine, page)


def in_ledger(engine: Engine, page: str) -> str:
    """The text of a page by its path."""
    content = page_at(engine, *page.split("/"))
    assert content is not None, page
    return content.decode()


def json_of(page: str) -> str:
    """The path of the JSON beside a page."""
    return page.removesuffix(PAGE) + JSON


def ledger_in(directory: Path) -> str:
    """The URL of a ledger in a directory."""
    return f"sqlite:///{directory / 'ledger.db'}"
