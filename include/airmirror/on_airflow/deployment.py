"""The deployment's configuration, ledger, expectations and Data Docs: environment variables, with defaults.

By default ``include/`` lies alongside Airflow's DAGs folder, as in a checkout and in Astronomer's projects.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from airflow.sdk.configuration import conf

from airmirror.quality.suites import default_directory


@dataclass(frozen=True)
class Deployment:
    """The places of one deployment. ``ledger`` is a SQLAlchemy URL and may hold a password: it is not to be logged.

    ``alert_receivers``: the Airflow connections whose passwords are the tokens of alert receivers;
    ``metrics_conn_id``: the one whose password is Prometheus's token; ``report_conn_id``: whose password is the private key that
    reports are signed with, empty: they are not.
    """

    config: Path
    ledger: str
    expectations: Path
    data_docs: Path
    alert_receivers: tuple[str, ...]
    metrics_conn_id: str
    report_conn_id: str = ""


def deployment() -> Deployment:
    """Read the deployment from the environment variables ``AIRMIRROR_…`` (docs/airflow.md lists them)."""

    home = Path(conf.get("core", "dags_folder")).absolute().parent

    def path(name: str, default: Path) -> Path:
        return Path(os.environ.get(name) or default).absolute()

    return Deployment(
        config=path("AIRMIRROR_CONFIG", home / "include" / "mirror.properties"),
        ledger=os.environ.get("AIRMIRROR_LEDGER") or f"sqlite:///{home / '.local' / 'ledger.db'}",
        expectations=path("AIRMIRROR_EXPECTATIONS", default_directory(home)),
        data_docs=path("AIRMIRROR_DATA_DOCS", home / ".local" / "data-docs"),
        alert_receivers=tuple((os.environ.get("AIRMIRROR_ALERT_RECEIVERS") or "airmirror_alerts").split(",")),
        metrics_conn_id=os.environ.get("AIRMIRROR_METRICS_CONNECTION") or "airmirror_metrics",
        report_conn_id=os.environ.get("AIRMIRROR_REPORT_CONNECTION") or "",
    )
