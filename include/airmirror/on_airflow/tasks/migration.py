"""The work of the task that plans a migration. Loaded in tasks only."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path

from airmirror.flows.selection import Selection
from airmirror.migration.page import headline, page
from airmirror.migration.plan import DAY_MS, migration_plan
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow
from airmirror.quality.page import PAGES_KEPT, file_name, keep_newest

log = logging.getLogger(__name__)


def plan(deployment: Deployment, flow: str, days: float, run: str, show: Callable[[Path], None]) -> None:
    """Write the plan as a page and a JSON; ``show`` hears of the page. Raises what planning raises."""
    with opened_flow(deployment, flow, Selection()) as opened:
        found = migration_plan(opened, round(days * DAY_MS), phase)
    directory = deployment.data_docs / "migration" / flow.replace("->", ".")
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / file_name(run)
    file.write_text(page(found), "utf-8")
    file.with_suffix(".json").write_text(json.dumps(found.as_dict()), "utf-8")
    keep_newest(directory, PAGES_KEPT)
    show(file)
    for rule in found.rules:
        if rule.level != "ok":
            log.warning("%s %s: %s; %s", rule.level, rule.what, rule.evidence, rule.way_out)
    log.info("%s", headline(found))
