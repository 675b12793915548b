"""The work of the tasks of a failover: the steps of the command, each reported in its task's log. Loaded in tasks only."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from airmirror.errors import AirmirrorError
from airmirror.flows.closing import NotClosed
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.plans import keep_document, log_findings, put_back_lines, signer
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow, when_free
from airmirror.report.document import Document
from airmirror.report.markdown import body, escape
from airmirror.runbooks.failover import steps
from airmirror.runbooks.failover.outcome import outcome_of
from airmirror.runbooks.failover.plan import failover_plan
from airmirror.runbooks.failover.shown import shown_outcome, shown_plan
from airmirror.runbooks.failover.steps import FailoverOrder
from airmirror.runbooks.failover.undo import CannotUndo, undo, undo_plan

log = logging.getLogger(__name__)

STEPS = {"drain": steps.drain_step, "close": steps.close_step}


@dataclass(eq=False)
class FailoverIncomplete(AirmirrorError):
    """A failover that was carried out, and after which something is missing or left. Its report is written."""

    flow: str
    headline: str

    def __str__(self) -> str:
        return f"flow {self.flow!r}: {self.headline} The report says what; applications may be started all the same."


def ask(deployment: Deployment, flow: str, order: FailoverOrder) -> Question:
    """Return the question: what a failover would mean now. Writes only the ledger. Raises SourceAnswers, SourceGone, BadKey."""
    signer(deployment)  # a key that is none is told before anything is done
    with opened_flow(deployment, flow, Selection()) as opened:
        steps.check_way(opened, order)
        found = shown_plan(failover_plan(opened))
    log_findings(found.findings)
    return Question(f"{flow}: fail over ({order.way})? {found.headline}", question(found, order))


def question(found: Document, order: FailoverOrder) -> str:
    """Return the plan as Markdown. Every text that is not ours is escaped."""
    if order.way == "planned":
        does = "**Approve, then stop the source's producers and consumers**; nothing is closed before all is verified."
    else:
        does = "**Approve to close the flow** and to move groups to what the target alone can prove."
    return body(replace(found, reason=order.reason), does)


def ask_undo(deployment: Deployment, flow: str, reason: str) -> Question:
    """Return the question: what taking the failover back would do now. Raises CannotUndo, NotClosed: there is none."""
    with opened_flow(deployment, flow, Selection()) as opened:
        found = undo_plan(opened)
    if found.reasons:
        raise CannotUndo(flow, found.reasons)
    if not found.is_closed and not found.groups:
        raise NotClosed(flow, (), ())
    first = f"Nothing is written yet. Why: {escape(reason)}. **Approve** to open the flow; groups go back as follows."
    subject = f"{flow}: take the failover back? {len(found.groups):,} positions of groups go back"
    return Question(subject, "\n".join([first, *put_back_lines(found.groups)]))


def take_back(deployment: Deployment, flow: str, reason: str, by: str) -> None:
    """Put groups back and open the flow. Raises CannotUndo, GroupsActive, FlowBusy."""
    with opened_flow(deployment, flow, Selection()) as opened:
        found = when_free(opened.flow, lambda: undo(opened, reason=reason, by=by, tell=phase))
    log.info("%d positions of groups are put back, and flow %s is open.", len(found.groups), flow)


def do_step(deployment: Deployment, flow: str, step: str, order: FailoverOrder) -> None:
    """Drain, of a planned failover, or close the flow. Raises SourceNotQuiet, NotDrained, GroupsNotExact, FlowBusy."""
    with opened_flow(deployment, flow, Selection()) as opened:
        when_free(opened.flow, lambda: STEPS[step](opened, order, phase))
    if step == "close":
        log.info("Flow %s is closed: no window writes to its remote topics any more.", flow)


def finish(
    deployment: Deployment, flow: str, order: FailoverOrder, begun: datetime, run: str, show: Callable[[Path], None]
) -> None:
    """Judge what is committed, of a disaster; move groups, write the report; ``show`` hears of its page.

    ``begun``: when it was approved. Raises GroupsActive, FlowBusy, and after the report FailoverIncomplete.
    """
    with opened_flow(deployment, flow, Selection()) as opened:
        left = when_free(opened.flow, lambda: steps.judge_step(opened, order))
        rows = when_free(opened.flow, lambda: steps.move_step(opened, order))
        seconds = time.time() - begun.timestamp()
        done = outcome_of(opened, order, left, rows, seconds)
    made = shown_outcome(done)
    keep_document(deployment, "failovers", flow, run, made, show, made.headline)
    for each in left:
        log.warning("%s-%d from offset %d on is not proven: %s", each.topic, each.partition, each.first, each.reason)
    for row in done.left:
        log.warning("%s in %s-%d was left: %s", row.group, row.topic, row.partition, row.reason)
    for topic, remote in sorted(done.plan.names.items()):
        log.info("Start applications of %s with %s.", topic, remote)
    log.info("%s", made.headline)
    if not made.is_good:
        raise FailoverIncomplete(flow, made.headline)
