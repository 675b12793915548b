"""The work of the tasks that rehearse a failover, or a migration. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airmirror.errors import AirmirrorError, listed
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.tasks.plans import keep_document
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow
from airmirror.runbooks.migration.rehearsal import rehearse_move
from airmirror.runbooks.migration.rehearsal_report import MoveReport
from airmirror.runbooks.migration.rehearsal_report import shown as shown_move
from airmirror.runbooks.rehearsal.rehearse import rehearse
from airmirror.runbooks.rehearsal.report import RehearsalReport, shown

log = logging.getLogger(__name__)


@dataclass(eq=False)
class RehearsalFailed(AirmirrorError):
    """A failover, or the migration of a move group, that would go wrong, by its rehearsal, whose report is written. Nothing of
    production was touched."""

    flow: str
    problems: tuple[str, ...]
    move: str = ""

    def __str__(self) -> str:
        what = f"the migration of {self.move!r}" if self.move else "a failover"
        return f"flow {self.flow!r}: {what} would go wrong now; the report says more\n{listed(self.problems)}"


def rehearse_failover(deployment: Deployment, flow: str, run: str, show: Callable[[Path], None]) -> None:
    """Rehearse and write the report; ``show`` hears of its page. Raises RehearsalFailed after it, and what rehearsing does."""
    with opened_flow(deployment, flow, Selection()) as opened:
        report = RehearsalReport.of(rehearse(opened, phase))
    keep_document(deployment, "rehearsals", flow, run, shown(report), show)
    log.info("%s", report.headline)
    if not report.is_good:
        raise RehearsalFailed(flow, report.problems)


def rehearse_migration(deployment: Deployment, flow: str, move: str, run: str, show: Callable[[Path], None]) -> None:
    """The same of the migration of a move group. Raises RehearsalFailed after its report, and what rehearsing does."""
    with opened_flow(deployment, flow, Selection()) as opened:
        report = MoveReport.of(rehearse_move(opened, move, phase))
    keep_document(deployment, f"rehearsals/{move}", flow, run, shown_move(report), show)
    log.info("%s", report.headline)
    if not report.is_good:
        raise RehearsalFailed(flow, report.problems, move)
