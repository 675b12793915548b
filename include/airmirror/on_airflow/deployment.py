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
    """The places of one deployment. ``ledger`` is a SQLAlchemy URL and may hold a password: it is not to be logged.

    ``alert_receivers``: the Airflow connections whose passwords are the tokens of alert receivers;
    ``metrics_conn_id``: the one whose password is Prometheus's token.
    """

    config: Path
    ledger: str
    expectations: Path
    data_docs: Path
    alert_receivers: tuple[str, ...]
    metrics_conn_id: str


def deployment() -> Deployment:
    """What the environment variables ``AIRMIRROR_…`` say (docs/airflow.md lists them)."""

    def path(name: str, default: str) -> Path:
        return Path(os.environ.get(name) or ROOT / default).absolute()

    return Deployment(
        config=path("AIRMIRROR_CONFIG", "include/mirror.properties"),
        ledger=os.environ.get("AIRMIRROR_LEDGER") or f"sqlite:///{ROOT / '.local' / 'ledger.db'}",
        expectations=path("AIRMIRROR_EXPECTATIONS", "include/expectations"),
        data_docs=path("AIRMIRROR_DATA_DOCS", ".local/data-docs"),
        alert_receivers=tuple((os.environ.get("AIRMIRROR_ALERT_RECEIVERS") or "airmirror_alerts").split(",")),
        metrics_conn_id=os.environ.get("AIRMIRROR_METRICS_CONNECTION") or "airmirror_metrics",
    )
