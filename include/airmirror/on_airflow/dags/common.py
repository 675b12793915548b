"""The things that all DAGs share: their names, start, owner and retries, and the tags by which people find them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG

from airmirror.config import Flow

START = datetime(2026, 1, 1, tzinfo=UTC)
OWNER = "airmirror"
RETRIES = 3
# Template fields of what triggers a DAG; the standard provider of Airflow 3.2 serializes an unset date with its address, which
# would make a new version of the DAG of each parse.
TRIGGERING = ("trigger_dag_id",)
AT_ONCE = 1000  # runs of a DAG that people trigger: none waits for others, which may wait for people for days
RETRY_DELAY = timedelta(seconds=15)  # the lease of a window that died ends after 30 s


def new_dag(dag_id: str, schedule: Any, *, max_active_runs: int = 1, **more: Any) -> DAG:
    """A DAG without catch-up, whose tasks are tried again. ``more``: arguments of ``DAG``."""
    return DAG(
        dag_id,
        schedule=schedule,
        start_date=START,
        catchup=False,
        max_active_runs=max_active_runs,
        default_args={"owner": OWNER, "retries": RETRIES, "retry_delay": RETRY_DELAY},
        **more,
    )


def id_of(kind: str, flow: Flow) -> str:
    """Return the id of a flow's DAG of this kind."""
    return f"{kind}.{flow.source.alias}.{flow.target.alias}"


def tags(flow: Flow) -> list[str]:
    """Return the tags by which people find a flow's DAGs."""
    return [f"flow:{flow.name}", f"source:{flow.source.alias}", f"target:{flow.target.alias}"]
