"""The work of the tasks of a failback: the steps of the command, each reported in its task's log. Loaded in tasks only."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from airmirror.errors import command
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.plans import keep_document, log_findings, signer
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow, when_free
from airmirror.report.document import Document
from airmirror.report.markdown import body, escape
from airmirror.runbooks.errors import CannotUndo, Incomplete
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.run import look, rest, run
from airmirror.runbooks.runbook import Progress

log = logging.getLogger(__name__)


PROGRESS = Progress(phase, lambda text: log.info("%s", text))
STEPS = {step.name: step for step in FAILBACK.steps}
assert FAILBACK.undo is not None
UNDO = FAILBACK.undo


def ask(deployment: Deployment, flow: str, order: FailbackOrder) -> Question:
    """Return the question: what diverged, and what would return. Writes only the ledger.

    Raises NoWayBack, SourceStillGone, NeverCrossed, ReturnRefused, BadKey.
    """
    signer(deployment)  # a key that is none is told before anything is done
    with opened_pair(deployment, flow, order) as pair:
        if over := FAILBACK.over(pair, order):
            return Question(f"{flow} is open, and nothing returns", f"{escape(over)}.")
        found = look(FAILBACK, pair, order, progress=PROGRESS)
    log_findings(found.findings)
    return Question(f"{flow}: fail back? {found.headline}", _body(found, order, "return"))


def ask_switch(deployment: Deployment, flow: str, order: FailbackOrder) -> Question:
    """Return the question before applications switch: what has not returned by now. Writes only the ledger."""
    with opened_pair(deployment, flow, order) as pair:
        found = look(FAILBACK, pair, order, ("drain",), PROGRESS)
    return Question(f"{flow}: switch back? {found.headline}", _body(found, order, "drain"))


def _body(found: Document, order: FailbackOrder, step: str) -> str:
    asks = STEPS[step].asks
    assert asks is not None
    return body(replace(found, reason=order.reason), asks.text(None, order))  # type: ignore[arg-type]


def ask_undo(deployment: Deployment, flow: str, order: FailbackOrder) -> Question:
    """Return the question: what ending the failback would do now. Raises NoWayBack, CannotUndo."""
    with opened_pair(deployment, flow, order) as pair:
        found = UNDO.look(pair, order)
    if not found.is_good:
        way_out = command("failback", "plan", flow=flow)
        raise CannotUndo(flow, "failback", way_out, tuple(each.evidence for each in found.findings))
    if not any(each.rows for each in found.sections):
        return Question(f"{flow}: nothing returns", "There is nothing to undo.")
    return Question(f"{flow}: end the failback? {found.headline}", body(replace(found, reason=order.reason), UNDO.text))


def take_back(deployment: Deployment, flow: str, order: FailbackOrder) -> None:
    """Put groups back and end the return. Raises CannotUndo, GroupsActive, FlowBusy."""
    with opened_pair(deployment, flow, order) as pair:
        found = when_free(pair.flow, lambda: UNDO.do(pair, order, PROGRESS))
    log.info("%s", found.headline)


def do_step(deployment: Deployment, flow: str, step: str, order: FailbackOrder) -> None:
    """Take a step. Raises what it raises."""
    with opened_pair(deployment, flow, order) as pair:
        run(FAILBACK, pair, order, (step,), PROGRESS)


def finish(
    deployment: Deployment, flow: str, order: FailbackOrder, begun: datetime, name: str, show: Callable[[Path], None]
) -> None:
    """Open the flow again and write the report; ``show`` hears of its page. ``begun``: when it was approved.

    Raises ReturnNotDrained, NeverCrossed, ReturnDiffers, FlowBusy, and after the report Incomplete.
    """
    with opened_pair(deployment, flow, order) as pair:
        ran = run(FAILBACK, pair, order, rest(FAILBACK, pair.flow, order, "open"), PROGRESS)
        made = FAILBACK.outcome(pair, order, replace(ran, seconds=time.time() - begun.timestamp()))
    keep_document(deployment, "failbacks", flow, name, made, show, made.headline)
    log.info("%s", made.headline)
    if not made.is_good:
        raise Incomplete(flow, made.headline)


def opened_pair(deployment: Deployment, flow: str, order: FailbackOrder) -> AbstractContextManager[Pair]:
    """Both flows of a failback."""
    return FAILBACK.opens(lambda name: opened_flow(deployment, name or flow, Selection()), order)
