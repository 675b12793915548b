"""The work of a runbook's tasks: its plan, its questions, its steps, its undo. Loaded in tasks only."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

from airmirror.config import Flow
from airmirror.errors import AirmirrorError, listed
from airmirror.flows.selection import Selection
from airmirror.ledger.pages import PagePlace
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.plans import Show, keep_document, log_findings, signer
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow
from airmirror.report.document import Document
from airmirror.report.markdown import body
from airmirror.runbooks.errors import CannotUndo, Incomplete
from airmirror.runbooks.run import chosen, is_whole, look, rest, run, undo
from airmirror.runbooks.runbook import Order, Progress, Runbook

log = logging.getLogger(__name__)

PROGRESS = Progress(phase, lambda text: log.info("%s", text))


@dataclass(frozen=True)
class RunbookRequest:
    """What a run is to do: a runbook of a flow, and its order."""

    deployment: Deployment
    flow: str
    runbook: Runbook[Any, Any]
    order: Order

    def opened(self) -> AbstractContextManager[Any]:
        """The place where it is carried out."""
        return self.runbook.opens(lambda name: opened_flow(self.deployment, name or self.flow, Selection()), self.order)

    def title(self, asks: str) -> str:
        """The question, with the ways that were chosen, or the part of the flow that it is for."""
        ways = ", ".join(str(getattr(self.order, each.name)) for each in self.runbook.options("run") if each.choices)
        part = self.runbook.part(self.order)
        what = (asks or self.runbook.title) + (f" of {part}" if part else "") + (f" ({ways})" if ways else "")
        return f"{self.flow}: {what}?"


class NothingLeft(AirmirrorError):
    """A runbook of which nothing is left to do, or to undo."""

    flow: str
    runbook: str
    why: str
    says = (
        "flow {0.flow!r}: nothing of its {0.runbook} is left: {0.why}; {airmirror:.runbook plan} shows how things are"
    )


class RehearsalFailed(AirmirrorError):
    """A failover, or the migration of a move group, that would go wrong, by its rehearsal, whose report is written. Nothing of
    production was touched."""

    flow: str
    runbook: str
    part: str
    problems: tuple[str, ...]

    def __str__(self) -> str:
        what = f"{self.runbook} of {self.part!r}" if self.part else self.runbook
        return f"flow {self.flow!r}: a {what} would go wrong now; the report says more\n{listed(self.problems)}"


def plan(request: RunbookRequest, verb: str, named: Collection[str], run_id: str, show: Show) -> None:
    """Write what the verb would do as a page and a JSON; ``show`` hears of the page. ``named``: as ``take`` has them.

    Raises what looking and checking raise."""
    runbook, order = request.runbook, request.order
    if verb == "plan":
        with opened_flow(request.deployment, request.flow, Selection()) as opened:
            made = runbook.plan(opened, order, PROGRESS)
    else:
        with request.opened() as site:
            is_undo = verb == "undo"
            made = _undo_of(request, site) if is_undo else look(runbook, site, order, tuple(named), PROGRESS)
    log_findings(each for each in made.findings if each.level != "ok")
    _keep(request, f"{runbook.name}-plans", run_id, made, show)


def rehearse(request: RunbookRequest, run_id: str, show: Show) -> None:
    """Rehearse and write the report; ``show`` hears of its page. Raises RehearsalFailed after it, and what rehearsing does."""
    runbook, part = request.runbook, request.runbook.part(request.order)
    assert runbook.rehearse is not None
    with opened_flow(request.deployment, request.flow, Selection()) as opened:
        made = runbook.rehearse(opened, request.order, PROGRESS)
    kind = "-".join(filter(None, (runbook.name, part, "rehearsals")))
    _keep(request, kind, run_id, made, show)
    if not made.is_good:
        problems = tuple(row["problem"] for row in made.rows("problems"))
        raise RehearsalFailed(request.flow, runbook.name, part, problems)


def ask(request: RunbookRequest, step: str) -> Question:
    """Return the question before a step: what it and those after it would do now. Writes only the ledger.

    Raises BadKey, NothingLeft, and what refuses the order.
    """
    signer(request.deployment)  # a key that is none is told before anything is done
    runbook, order = request.runbook, request.order
    (asks,) = (each.asks for each in runbook.steps if each.name == step)
    assert asks is not None
    with request.opened() as site:
        if why := runbook.over(site, order):
            raise NothingLeft(request.flow, runbook.name, why)
        found = look(runbook, site, order, (), PROGRESS) if asks.shows is None else asks.shows(site, order, PROGRESS)
        first = asks.text(site.flow, order)
    log_findings(found.findings)
    return Question(f"{request.title(asks.title)} {found.headline}", body(replace(found, reason=order.reason), first))


def take(request: RunbookRequest, step: str, named: Collection[str], begun: float, run_id: str, show: Show) -> None:
    """Take a step; after the last one write the report, whose page ``show`` hears of. ``named``: the steps that the form wants,
    none: the usual ones; ``begun``: when it was approved, in epoch seconds.

    Raises what the step raises; Incomplete after the report, or after the last one that was named, where something is left.
    """
    runbook, order = request.runbook, request.order
    with request.opened() as site:
        steps = steps_of(runbook, site.flow, order, named)
        if step not in steps:
            log.info("The run does not take this step.")
            return
        is_last = not named and step == chosen(runbook, site.flow, order)[-1].name
        only = rest(runbook, site.flow, order, step) if is_last else [step]
        ran = run(runbook, site, order, only, PROGRESS, is_approved=True)
        if named and ran.left and step == steps[-1]:
            raise Incomplete(request.flow, f"its step {step!r} has left something; the log of its task says what")
        if not is_last or not is_whole(runbook, site.flow, order, ran):
            return
        made = runbook.outcome(site, order, replace(ran, seconds=time.time() - begun))
    _keep(request, f"{runbook.name}s", run_id, made, show)
    for section in made.sections:
        if section.name == "names":
            for row in section.rows:
                log.info("Start applications of %s with %s.", row["on_the_source"], row["on_the_target"])
    if not made.is_good:
        raise Incomplete(
            request.flow, f"{made.headline} The report says what; applications may be started all the same."
        )


def steps_of(runbook: Runbook[Any, Any], flow: Flow, order: Order, named: Collection[str]) -> list[str]:
    """The steps of a run: those that are named, else the usual ones, and those that are offered after them. Raises NoSuchStep."""
    steps = [each.name for each in chosen(runbook, flow, order, tuple(named))]
    last = [each.name for each in runbook.steps].index(steps[-1])
    more = [] if named else [each.name for each in runbook.steps[last + 1 :] if each.is_offered]
    return steps + more


def ask_undo(request: RunbookRequest) -> Question:
    """Return the question: what an undo would do now. Raises BadKey, CannotUndo, NothingLeft."""
    signer(request.deployment)
    runbook = request.runbook
    assert runbook.undo is not None
    with request.opened() as site:
        found = _undo_of(request, site)
    if not found.is_good:
        stops = [each for each in found.findings if each.level == "stop"]
        raise CannotUndo(request.flow, tuple(each.evidence for each in stops), runbook.name, stops[0].way_out)
    if not any(each.rows for each in found.sections):
        raise NothingLeft(request.flow, runbook.name, "there is nothing to undo")
    subject = f"{request.flow}: take the {runbook.name} back? {found.headline}"
    return Question(subject, body(replace(found, reason=request.order.reason), runbook.undo.text))


def take_back(request: RunbookRequest, run_id: str, show: Show) -> None:
    """Undo what was done, as soon as the flow is free, and write the report. Raises CannotUndo, GroupsActive, FlowBusy."""
    with request.opened() as site:
        made = undo(request.runbook, site, request.order, PROGRESS)
    _keep(request, f"{request.runbook.name}-undos", run_id, made, show)


def _keep(request: RunbookRequest, kind: str, run_id: str, made: Document, show: Show) -> None:
    log.info("%s", made.headline)  # first: what is done is done, whatever becomes of the page
    keep_document(request.deployment, PagePlace(kind, request.flow), run_id, made, show)


def _undo_of(request: RunbookRequest, site: Any) -> Document:
    assert request.runbook.undo is not None
    return request.runbook.undo.look(site, request.order)
