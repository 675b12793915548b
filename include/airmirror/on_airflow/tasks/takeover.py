"""The work of the tasks that ask whether to take over from MirrorMaker 2, and do it. Loaded in tasks only."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from airmirror.errors import AirmirrorError, counted, listed
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.plans import log_findings
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow
from airmirror.report.markdown import body
from airmirror.runbooks.run import run
from airmirror.runbooks.runbook import Progress
from airmirror.runbooks.takeover.order import TakeoverOrder
from airmirror.runbooks.takeover.runbook import TAKEOVER

log = logging.getLogger(__name__)

PROGRESS = Progress(phase, lambda text: log.info("%s", text))


@dataclass(eq=False)
class NotTakenOver(AirmirrorError):
    """Partitions that could not be taken over; the others are."""

    flow: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: {counted(len(self.reasons), 'partition')} can't be taken over\n{listed(self.reasons)}"
        )


def ask(deployment: Deployment, flow: str) -> Question:
    """Return the question: what a take-over would do now. Writes only the ledger. Raises a cluster's error."""
    asks, order = TAKEOVER.steps[0].asks, TakeoverOrder()
    assert asks is not None
    with opened_flow(deployment, flow, Selection()) as opened:
        found, does = TAKEOVER.look(opened, order, PROGRESS), asks.text(opened.flow, order)
    log_findings(found.findings)
    return Question(f"{flow}: take over from MirrorMaker 2? {found.headline}", body(found, does))


def take_over(deployment: Deployment, flow: str, order: TakeoverOrder, selection: Selection) -> None:
    """Wait until MirrorMaker 2 is stopped, then take over. Raises MirrorMakerRuns, NotTakenOver, or a cluster's error."""
    with opened_flow(deployment, flow, selection) as opened:
        rows = run(TAKEOVER, opened, order, ("take_over",), PROGRESS).gave["take_over"]
    if errors := tuple(str(row.error) for row in rows if row.error is not None):
        raise NotTakenOver(flow, errors)
