"""Where this deployment keeps its configuration, ledger, expectations and Data Docs: environment variables, with defaults.

The defaults are those of a checkout, in which ``dags/`` and ``include/`` lie beside each other.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Deployment:
    """The places of one deployment. ``ledger`` is a SQLAlchemy URL and may hold a password: it is not to be logged."""

    config: Path
    ledger: str
    expectations: Path
    data_docs: Path


def deployment() -> Deployment:
    """What ``AIRMIRROR_CONFIG``, ``AIRMIRROR_LEDGER``, ``AIRMIRROR_EXPECTATIONS`` and ``AIRMIRROR_DATA_DOCS`` say."""

    def path(name: str, default: str) -> Path:
        return Path(os.environ.get(name) or ROOT / default).absolute()

    return Deployment(
        config=path("AIRMIRROR_CONFIG", "include/mirror.properties"),
        ledger=os.environ.get("AIRMIRROR_LEDGER") or f"sqlite:///{ROOT / '.local' / 'ledger.db'}",
        expectations=path("AIRMIRROR_EXPECTATIONS", "include/expectations"),
        data_docs=path("AIRMIRROR_DATA_DOCS", ".local/data-docs"),
    )
