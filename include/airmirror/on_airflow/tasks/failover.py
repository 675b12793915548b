"""The work of the tasks of a failover: the steps of the command, each reported in its task's log. Loaded in tasks only."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from airmirror.errors import command
from airmirror.flows.closing import NotClosed
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.plans import keep_document, log_findings, signer
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow, when_free
from airmirror.report.markdown import body
from airmirror.runbooks.errors import CannotUndo, Incomplete
from airmirror.runbooks.failover import undo
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.run import rest, run
from airmirror.runbooks.runbook import Progress

log = logging.getLogger(__name__)

PROGRESS = Progress(phase, lambda text: log.info("%s", text))
assert FAILOVER.undo is not None
UNDO = FAILOVER.undo


def ask(deployment: Deployment, flow: str, order: FailoverOrder) -> Question:
    """Return the question: what a failover would mean now. Writes only the ledger. Raises SourceAnswers, SourceGone, BadKey."""
    signer(deployment)  # a key that is none is told before anything is done
    with opened_flow(deployment, flow, Selection()) as opened:
        FAILOVER.check(opened, order)
        found = FAILOVER.look(opened, order, PROGRESS)
        asks = FAILOVER.steps[0].asks
        assert asks is not None
        does = asks.text(opened.flow, order)
    log_findings(found.findings)
    return Question(
        f"{flow}: fail over ({order.way})? {found.headline}", body(replace(found, reason=order.reason), does)
    )


def ask_undo(deployment: Deployment, flow: str, order: FailoverOrder) -> Question:
    """Return the question: what taking the failover back would do now. Raises CannotUndo, NotClosed: there is none."""
    with opened_flow(deployment, flow, Selection()) as opened:
        found = undo.look(opened, order)
    if not found.is_good:
        raise CannotUndo(
            flow, "failover", command("failover", "plan", flow=flow), tuple(each.evidence for each in found.findings)
        )
    if not any(each.rows for each in found.sections):
        raise NotClosed(flow, (), ())
    return Question(
        f"{flow}: take the failover back? {found.headline}", body(replace(found, reason=order.reason), UNDO.text)
    )


def take_back(deployment: Deployment, flow: str, order: FailoverOrder) -> None:
    """Put groups back and open the flow. Raises CannotUndo, GroupsActive, FlowBusy."""
    with opened_flow(deployment, flow, Selection()) as opened:
        found = when_free(opened.flow, lambda: undo.undo(opened, order, PROGRESS))
    log.info("%s", found.headline)


def do_step(deployment: Deployment, flow: str, step: str, order: FailoverOrder) -> None:
    """Drain, of a planned failover, or close the flow. Raises SourceNotQuiet, NotDrained, GroupsNotExact, FlowBusy."""
    with opened_flow(deployment, flow, Selection()) as opened:
        if step in FAILOVER.usual(opened.flow, order):
            run(FAILOVER, opened, order, (step,), PROGRESS)


def finish(
    deployment: Deployment, flow: str, order: FailoverOrder, begun: datetime, name: str, show: Callable[[Path], None]
) -> None:
    """Judge what is committed, of a disaster; move groups, write the report; ``show`` hears of its page.

    ``begun``: when it was approved. Raises GroupsActive, FlowBusy, and after the report Incomplete.
    """
    with opened_flow(deployment, flow, Selection()) as opened:
        ran = run(FAILOVER, opened, order, rest(FAILOVER, opened.flow, order, "move_groups"), PROGRESS)
        made = FAILOVER.outcome(opened, order, replace(ran, seconds=time.time() - begun.timestamp()))
    keep_document(deployment, "failovers", flow, name, made, show, made.headline)
    for row in made.rows("names"):
        log.info("Start applications of %s with %s.", row["on_the_source"], row["on_the_target"])
    log.info("%s", made.headline)
    if not made.is_good:
        raise Incomplete(flow, made.headline)
