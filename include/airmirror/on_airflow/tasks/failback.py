"""The work of the tasks of a failback: the steps of the command, each reported in its task's log. Loaded in tasks only."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from airmirror.errors import AirmirrorError, counted
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.plans import MOST_SHOWN, keep_document, log_findings, put_back_lines, signer
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow, when_free
from airmirror.report.document import Document
from airmirror.report.markdown import body, escape
from airmirror.runbooks.draining import undrained
from airmirror.runbooks.failback import steps
from airmirror.runbooks.failback.outcome import outcome_of
from airmirror.runbooks.failback.pair import Pair, check_way_back
from airmirror.runbooks.failback.plan import failback_plan
from airmirror.runbooks.failback.shown import shown_outcome, shown_plan
from airmirror.runbooks.failback.steps import Done, FailbackOrder
from airmirror.runbooks.failback.undo import CannotUndoReturn, undo, undo_plan

log = logging.getLogger(__name__)


@dataclass(eq=False)
class FailbackIncomplete(AirmirrorError):
    """A failback that was carried out, and after which something stays behind or is left. Its report is written."""

    flow: str
    headline: str

    def __str__(self) -> str:
        return f"flow {self.flow!r}: {self.headline} The report says what; applications may be started all the same."


def ask(deployment: Deployment, flow: str, order: FailbackOrder) -> Question:
    """Return the question: what diverged, and what would return. Writes only the ledger.

    Raises NoWayBack, SourceStillGone, NeverCrossed, ReturnRefused, BadKey.
    """
    signer(deployment)  # a key that is none is told before anything is done
    with opened_pair(deployment, flow) as pair:
        if over := steps.nothing_left(pair, order.topics):
            return Question(f"{flow} is open, and nothing returns", f"{escape(over)}.")
        found = shown_plan(failback_plan(pair.forward))
        _, differ = steps.look(pair, order)
    for each in differ:
        log.warning("%s: %s", each.facts.key, each.problem)
    log_findings(found.findings)
    return Question(f"{flow}: fail back? {found.headline}", question(found, order))


def question(found: Document, order: FailbackOrder) -> str:
    """Return the plan as Markdown. Every text that is not ours is escaped."""
    does = "**Approve to let records return**; applications go on, and you are asked again before they switch."
    return body(replace(found, reason=order.reason), does)


def ask_switch(deployment: Deployment, flow: str, topics: Collection[str] = ()) -> Question:
    """Return the question before applications switch: what has not returned by now of ``topics``; none: of the flow. Writes only
    the ledger."""
    with opened_pair(deployment, flow) as pair:
        names = pair.returning(topics)
        left = undrained(pair.reverse, names) if names else []
    told = [f"- {escape(each)}" for each in left[:MOST_SHOWN]] or ["- nothing: all has returned, and is verified"]
    body = "\n".join(
        [
            "**Approve, then stop the applications on the target**: nobody may write there any more. What is left to return:",
            "",
            *told,
        ]
    )
    return Question(f"{flow}: switch back? {len(left):,} partitions have more to return", body)


def ask_undo(deployment: Deployment, flow: str, reason: str, topics: Collection[str] = ()) -> Question:
    """Return the question: what ending the failback of ``topics`` (none: of the flow) would do now. Raises NoWayBack,
    CannotUndoReturn."""
    with opened_pair(deployment, flow) as pair:
        found = undo_plan(pair, topics)
    if found.reasons:
        raise CannotUndoReturn(flow, found.reasons)
    subject = f"{flow}: end the failback of {counted(len(found.topics), 'topic')}?"
    if not found.topics and not found.groups:
        return Question(f"{flow}: nothing returns", "There is nothing to undo.")
    why = f"Nothing is written yet. Why: {escape(reason)}."
    first = f"{why} **Approve**: nothing of these returns any more, and they stay closed."
    topics = [f"- {escape(remote)}, to {escape(topic)}" for remote, topic in sorted(found.topics.items())]
    return Question(subject, "\n".join([first, "", *topics[:MOST_SHOWN], *put_back_lines(found.groups)]))


def take_back(deployment: Deployment, flow: str, reason: str, by: str, topics: Collection[str] = ()) -> None:
    """Put groups back and end the return of ``topics`` (none: of the flow). Raises CannotUndoReturn, GroupsActive, FlowBusy."""
    with opened_pair(deployment, flow) as pair:
        found = when_free(pair.reverse.flow, lambda: undo(pair, topics, reason=reason, by=by, tell=phase))
    positions, over = counted(len(found.groups), "position"), counted(len(found.topics), "topic")
    log.info(
        "%s of groups put back; nothing of %s of %s returns any more, and they stay closed.", positions, over, flow
    )


def do_step(deployment: Deployment, flow: str, step: str, order: FailbackOrder) -> None:
    """Let records return, drain, close the return, or move groups.

    Raises NeverCrossed, ReturnRefused, SourceNotQuiet, NotDrained, GroupsNotBack, GroupsActive, FlowBusy.
    """
    with opened_pair(deployment, flow) as pair:
        reverse = pair.reverse.flow
        if step == "return":
            for each in when_free(reverse, lambda: steps.return_step(pair, order, phase)):
                log.info("%s returns to %s from offset %d on.", each.key, each.facts.remote_topic, each.end)
        elif step == "drain":
            when_free(reverse, lambda: steps.drain_step(pair, order, phase))
        elif step == "close":
            when_free(reverse, lambda: steps.close_step(pair, order, phase))
        else:
            for row in when_free(reverse, lambda: steps.move_step(pair, order)):
                log.info("%s in %s-%d: %s", row.group, row.remote_topic, row.partition, row.reason or row.downstream)


def finish(
    deployment: Deployment, flow: str, order: FailbackOrder, begun: datetime, run: str, show: Callable[[Path], None]
) -> None:
    """Open the flow again and write the report; ``show`` hears of its page. ``begun``: when it was approved.

    Raises ReturnNotDrained, NeverCrossed, ReturnDiffers, FlowBusy, and after the report FailbackIncomplete.
    """
    with opened_pair(deployment, flow) as pair:
        groups = when_free(pair.reverse.flow, lambda: steps.move_step(pair, order))
        continued = when_free(pair.forward.flow, lambda: steps.open_step(pair, order, phase))
        seconds = time.time() - begun.timestamp()
        done = outcome_of(pair, order, Done(groups=groups, continued=continued, seconds=seconds))
    made = shown_outcome(done)
    keep_document(deployment, "failbacks", flow, run, made, show, made.headline)
    for group, topic, partition, why in done.left:
        log.warning("%s in %s-%d was left: %s", group, topic, partition, why)
    log.info("%s", made.headline)
    if not made.is_good:
        raise FailbackIncomplete(flow, made.headline)


@contextmanager
def opened_pair(deployment: Deployment, flow: str) -> Iterator[Pair]:
    """Both flows of a failback. Raises NoWayBack."""
    with (
        opened_flow(deployment, flow, Selection()) as forward,
        opened_flow(deployment, check_way_back(forward), Selection()) as reverse,
    ):
        yield Pair(forward, reverse)
