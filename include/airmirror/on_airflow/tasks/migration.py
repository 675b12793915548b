"""The work of the task that plans a migration. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks.plans import keep_document, log_findings
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow
from airmirror.runbooks.migration.plan import DAY_MS, migration_plan
from airmirror.runbooks.migration.shown import shown_plan

log = logging.getLogger(__name__)


def plan(deployment: Deployment, flow: str, days: float, run: str, show: Callable[[Path], None]) -> None:
    """Write the plan as a page and a JSON; ``show`` hears of the page. Raises what planning raises."""
    with opened_flow(deployment, flow, Selection()) as opened:
        made = shown_plan(migration_plan(opened, round(days * DAY_MS), phase))
    keep_document(deployment, "migration", flow, run, made, show)
    log_findings(each for each in made.findings if each.level != "ok")
    log.info("%s", made.headline)
