"""The work of the tasks of a migration: the steps of the command, each told in its task's log. Loaded in tasks only."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager
from dataclasses import replace

from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.plans import log_findings
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow, when_free
from airmirror.report.document import Document
from airmirror.report.markdown import body
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.run import look, run
from airmirror.runbooks.runbook import Progress

log = logging.getLogger(__name__)

PROGRESS = Progress(phase, lambda text: log.info("%s", text))
ASKS = {step.name: step.asks for step in MIGRATION.steps}
assert MIGRATION.undo is not None
UNDO = MIGRATION.undo


def ask(deployment: Deployment, flow: str, order: MoveOrder, step: str) -> Question:
    """Return the question whether to take a step. Writes only the ledger. Raises NoSuchMove, NotMovable, a cluster's error."""
    with _opened(deployment, flow, order) as pair:
        found, asks = look(MIGRATION, pair, order, (step,), PROGRESS), ASKS[step]
        assert asks is not None
        does = asks.text(pair.flow, order)
    subject = f"{flow}: {step.replace('_', ' ')} of {order.move}? {found.headline}"
    return Question(subject, body(replace(found, reason=order.reason), does))


def tell_state(deployment: Deployment, flow: str, order: MoveOrder) -> Document:
    """Tell in the log how far a move group is, and what the next steps would meet. Writes only the ledger."""
    with _opened(deployment, flow, order) as pair:
        found = look(MIGRATION, pair, order, progress=PROGRESS)
    log_findings(found.findings)
    for section in found.sections:
        for row in section.rows:
            log.info("%s: %s", section.title, ", ".join(f"{name} {value}" for name, value in row.items()))
    log.info("%s", found.headline)
    return found


def do(deployment: Deployment, flow: str, order: MoveOrder, step: str) -> None:
    """Take a step. Raises what it raises."""
    with _opened(deployment, flow, order) as pair:
        run(MIGRATION, pair, order, (step,), PROGRESS)


def ask_undo(deployment: Deployment, flow: str, order: MoveOrder) -> Question:
    """Return the question whether to take the steps back, or the fence alone. Writes only the ledger."""
    with _opened(deployment, flow, order) as pair:
        found = UNDO.look(pair, order)
    subject = f"{flow}: {'lift the fence of' if order.fence else 'take back'} {order.move}?"
    return Question(f"{subject} {found.headline}", body(replace(found, reason=order.reason), UNDO.text))


def undo(deployment: Deployment, flow: str, order: MoveOrder) -> None:
    """Take the steps back, or the fence alone. Raises CannotUndo, GroupsActive, FenceRefused, FlowBusy."""
    with _opened(deployment, flow, order) as pair:
        found = when_free(pair.flow, lambda: UNDO.do(pair, order, PROGRESS))
    log.info("%s", found.headline)
    for row in found.rows("changes"):
        log.info("%s", row["change"])


def _opened(deployment: Deployment, flow: str, order: MoveOrder) -> AbstractContextManager[Pair]:
    return MIGRATION.opens(lambda name: opened_flow(deployment, name or flow, Selection()), order)
