"""The callback for runs that do not end in time: it counts them, so that an alert can fire."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from airmirror.on_airflow.deployment import deployment

log = logging.getLogger(__name__)


async def run_is_late(flow: str, context: Any = None) -> None:
    """Called by Airflow's triggerer, with the run in ``context``.

    Airflow forgets the deadline of a run that succeeded, and not of one that failed: such a run has ended, and is not late.
    """
    run = (context or {}).get("dag_run") or {}
    if isinstance(run, dict) and run.get("state") in ("success", "failed"):
        return
    log.warning("flow %r: run %s has not ended in time", flow, run.get("dag_run_id") if isinstance(run, dict) else run)
    await asyncio.to_thread(_count, flow)


def _count(flow: str) -> None:
    from airmirror.flows.measure import LATE
    from airmirror.ledger import Ledger

    with Ledger(deployment().ledger) as ledger:
        ledger.flow(flow).note({(LATE, ""): 1.0})
