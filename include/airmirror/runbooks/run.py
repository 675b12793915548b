"""Carrying a runbook out: its steps one after the other, each as soon as the flow's lease is free."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from airmirror.config import Flow
from airmirror.flows.holds import check_decision
from airmirror.flows.leases import when_free
from airmirror.report.document import Document
from airmirror.runbooks.errors import NoSuchStep
from airmirror.runbooks.runbook import SILENT, O, Progress, Ran, Runbook, S, Step

Done = TypeVar("Done")


def run(
    runbook: Runbook[S, O],
    site: S,
    order: O,
    only: Sequence[str] = (),
    progress: Progress = SILENT,
    *,
    is_approved: bool = False,
) -> Ran:
    """Take the steps that an order takes, or ``only`` those that are named. Killed and run again, it does what is left.
    ``is_approved``: a question has looked, and after its answer nothing refuses the order.

    Raises NoSuchStep, DecisionIncomplete, what refuses the order, and what a step raises.
    """
    steps = chosen(runbook, site.flow, order, only)
    check_decision(site.flow.name, order.reason, order.by)
    begun, gave = time.monotonic(), dict[str, Any]()
    if not only and (over := runbook.over(site, order)):
        return Ran(gave, 0.0, over)
    if not is_approved:
        runbook.check(site, order)
    for step in steps:
        progress.phase(step.does)
        gave[step.name] = _patiently(runbook, site, partial(step.do, site, order, progress), progress)
    left = tuple(step.name for step in steps if step.leaves(gave[step.name]))
    return Ran(gave, time.monotonic() - begun, left=left)


def undo(runbook: Runbook[S, O], site: S, order: O, progress: Progress = SILENT) -> Document:
    """Undo what was done, as soon as the leases are free. Raises DecisionIncomplete, CannotUndo, FlowBusy, and what an undo
    raises."""
    assert runbook.undo is not None
    check_decision(site.flow.name, order.reason, order.by)
    done = _patiently(runbook, site, partial(runbook.undo.do, site, order, progress), progress)
    return replace(done, by=order.by, reason=order.reason)


def _patiently(runbook: Runbook[S, O], site: S, work: Callable[[], Done], progress: Progress) -> Done:
    return when_free(site.flow, work, progress.phase, others=runbook.others(site))


def look(runbook: Runbook[S, O], site: S, order: O, only: Sequence[str] = (), progress: Progress = SILENT) -> Document:
    """Return what a run would meet. Nothing is written but the ledger. Raises NoSuchStep, and what refuses the order."""
    first = chosen(runbook, site.flow, order, only)[0] if only else None
    runbook.check(site, order)
    shows = (first and first.asks and first.asks.shows) or runbook.look
    return shows(site, order, progress)


def chosen(runbook: Runbook[S, O], flow: Flow, order: O, only: Sequence[str] = ()) -> list[Step[S, O]]:
    """The steps that an order takes, in the runbook's order: those that are named, else its usual ones. Raises NoSuchStep."""
    known = [step.name for step in runbook.steps]
    if strangers := [name for name in only if name not in known]:
        raise NoSuchStep(runbook.name, tuple(strangers), tuple(known))
    wanted = only or runbook.usual(flow, order)
    return [step for step in runbook.steps if step.name in wanted]


def rest(runbook: Runbook[S, O], flow: Flow, order: O, last: str) -> list[str]:
    """The steps that a process of its own takes for the outcome: the last, and again those whose results the report tells."""
    return [step.name for step in chosen(runbook, flow, order) if step.name in runbook.reported or step.name == last]


def is_whole(runbook: Runbook[S, O], flow: Flow, order: O, ran: Ran) -> bool:
    """Return whether a run has taken every step that the outcome tells of."""
    return all(name in ran.gave for name in runbook.reported if name in runbook.usual(flow, order))
