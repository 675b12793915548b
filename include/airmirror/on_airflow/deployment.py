"""The deployment's configuration, ledger and expectations: environment variables, with defaults.

By default ``include/`` lies alongside Airflow's DAGs folder, as in a checkout and in Astronomer's projects, or in it, where a
service has nothing else (Amazon MWAA, Cloud Composer).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from airflow.sdk.configuration import conf

from airmirror.config.values import as_list
from airmirror.errors import AirmirrorError
from airmirror.quality.suites import default_directory


class LedgerNotShared(AirmirrorError):
    """A ledger that is a file of one machine, where tasks run on several. Nothing is parsed, so that nothing runs."""

    file: str
    executor: str
    says = (
        "the ledger is the SQLite file {0.file}, and {0.executor} runs tasks where it is not: set "
        "AIRMIRROR_LEDGER=postgresql+psycopg2://USER:PASSWORD@HOST/DATABASE, the same for every service of Airflow (an empty "
        "database is enough), or AIRFLOW__CORE__EXECUTOR=LocalExecutor, if all of them run on one machine"
    )


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
    alert_receivers: tuple[str, ...]
    metrics_conn_id: str
    report_conn_id: str = ""


def deployment() -> Deployment:
    """Read the deployment from the environment variables ``AIRMIRROR_…`` (docs/airflow.md lists them)."""
    dags = Path(conf.get("core", "dags_folder")).absolute()
    homes = (dags.parent, dags)
    configs = [home / "include" / "mirror.properties" for home in homes]

    def path(name: str, default: Path) -> Path:
        return Path(os.environ.get(name) or default).absolute()

    return Deployment(
        config=path("AIRMIRROR_CONFIG", next(filter(Path.is_file, configs), configs[0])),
        ledger=os.environ.get("AIRMIRROR_LEDGER") or f"sqlite:///{dags.parent / '.local' / 'ledger.db'}",
        expectations=path("AIRMIRROR_EXPECTATIONS", default_directory(*homes)),
        alert_receivers=as_list(os.environ.get("AIRMIRROR_ALERT_RECEIVERS") or "airmirror_alerts"),
        metrics_conn_id=os.environ.get("AIRMIRROR_METRICS_CONNECTION") or "airmirror_metrics",
        report_conn_id=os.environ.get("AIRMIRROR_REPORT_CONNECTION") or "",
    )


def check_ledger(place: Deployment) -> None:
    """Raise LedgerNotShared where another machine's tasks, by Airflow's executors, could not reach the ledger."""
    executors = [each.strip() for each in re.split("[,;]", conf.get("core", "executor"))]  # with a team= or an alias:
    elsewhere = [each for each in executors if each and not each.endswith("LocalExecutor")]
    if elsewhere and place.ledger.startswith("sqlite"):
        raise LedgerNotShared(place.ledger.partition("///")[2], elsewhere[0])
