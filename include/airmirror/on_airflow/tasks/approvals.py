"""Approvals of any runbook: what people are asked and have answered, written by the task that asks, read by the steps after it.

Whoever may trigger a DAG may write its XComs and mark its tasks as done, so that neither says anything. Airflow gives an answer,
and who gave it, to the task that asked and to no other; that task writes it into the ledger. Loaded in tasks only.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow.sdk import Context
from tenacity import Retrying, before_sleep_log, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.errors import AirmirrorError
from airmirror.ledger import Ledger, LedgerUnavailable
from airmirror.ledger.approvals import Answered, PendingQuestion, answer_to, note_answer, note_question, open_questions
from airmirror.on_airflow.deployment import Deployment

COUNTS_SECONDS = 86_400.0  # an answer: steps that are cleared later are another day's decision
PATIENCE_SECONDS, PAUSE_SECONDS = 600.0, 5.0  # with a ledger that is away: as a database that fails over
log = logging.getLogger(__name__)


class NotApproved(AirmirrorError):
    """A step without an approval of its own, by a user who may give it. It did nothing."""

    flow: str
    question: str
    run: str
    why: str
    asks_again: bool = True  # in this run

    def __str__(self) -> str:
        said = f"flow {self.flow!r}: task {self.question!r} of run {self.run} has no answer that counts: {self.why}. "
        if not self.asks_again:
            dag = self.run.partition(" ")[0]
            return f"{said}Airflow keeps the first question of a run, and who may answer it: start another run of {dag}"
        return (
            f"{said}The ledger says so, whatever XCom and task states say: clear {self.question!r} with its downstream tasks, "
            "and it asks again"
        )


@dataclass(frozen=True)
class Approval:
    """An answer that counts: the option, the reason, the person, when, and what was shown."""

    option: str
    reason: str
    by: str
    at: datetime
    shown: Any


def note_asked(
    deployment: Deployment,
    flow: str,
    context: Context,
    question: str,
    scope: str,
    shown: object = None,
    *,
    is_shown: bool = True,
) -> None:
    """Note a question before it can be answered. ``scope``: what an answer takes the place of other runs' in; ``shown``: what it
    is about, besides what the run was triggered with; ``is_shown``: Airflow shows it so, and not as this run has asked it first.

    Raises NotApproved: the ledger does not know what the first question of this run was about.
    """
    about = json.dumps([_order(context), shown])
    asked = PendingQuestion(flow, _run(context), question, scope, about, int(time.time() * 1000))
    with Ledger(deployment.ledger) as ledger:
        if not note_question(ledger.engine, asked, is_shown=is_shown):
            why = (
                "Airflow shows what this run has asked first, and the ledger does not know any more what that was about"
            )
            raise NotApproved(flow, question, _run(context), why, asks_again=False)


def note_answered(
    deployment: Deployment, flow: str, context: Context, question: str, given: Mapping[str, Any], users: Collection[str]
) -> None:
    """Note an answer as Airflow has given it to the task that asked. Raises NotApproved: by none of ``users``.

    Airflow gives it once: the task's next attempt would ask again. So a ledger that is away is waited for.
    """
    who = given.get("responded_by_user") or {}
    user = str(who.get("id") or "")
    _check_user(flow, context, question, user, users)
    answered = Answered(
        about="",  # stays as it was noted
        option=given["chosen_options"][0],
        reason=str((given.get("params_input") or {}).get("reason") or ""),
        user=user,
        by=str(who.get("name") or user),
        answered_ms=int(given["responded_at"].timestamp() * 1000),
    )
    for attempt in Retrying(
        retry=retry_if_exception_type(LedgerUnavailable),
        stop=stop_after_delay(PATIENCE_SECONDS),
        wait=wait_fixed(PAUSE_SECONDS),
        before_sleep=before_sleep_log(log, logging.WARNING),
        reraise=True,
    ):
        with attempt, Ledger(deployment.ledger) as ledger:
            note_answer(ledger.engine, flow, _run(context), question, answered)


def approval(deployment: Deployment, flow: str, context: Context, question: str, users: Collection[str]) -> Approval:
    """Return the answer to a question of this run. ``users``: who may give one; none: all who may answer in Airflow.

    Raises NotApproved: there is none that counts now, for what this run was triggered with.
    """
    with Ledger(deployment.ledger) as ledger:
        found = answer_to(ledger.engine, flow, _run(context), question)
    if found is None:
        raise NotApproved(flow, question, _run(context), "there is no answer, or another run was answered since")
    _check_user(flow, context, question, found.user, users)
    if time.time() - found.answered_ms / 1000 > COUNTS_SECONDS:
        raise NotApproved(flow, question, _run(context), f"the answer of {found.by} is older than a day")
    order, shown = json.loads(found.about)
    if order != _order(context):
        raise NotApproved(
            flow, question, _run(context), f"{found.by} has answered for another configuration of the run"
        )
    return Approval(found.option, found.reason, found.by, datetime.fromtimestamp(found.answered_ms / 1000, UTC), shown)


def asked_in(ledger: Ledger, flow: str, dag_id: str) -> dict[str, Any]:
    """Return what the open questions of a DAG's runs are about, by run; not by XCom, where whoever may trigger may write."""
    found = open_questions(ledger.engine, flow).items()
    return {
        run.removeprefix(f"{dag_id} "): json.loads(about)[1] for run, about in found if run.startswith(f"{dag_id} ")
    }


def _check_user(flow: str, context: Context, question: str, user: str, users: Collection[str]) -> None:
    """Raise NotApproved of an answer by nobody, or by none of those who may."""
    if users and user not in users:
        why = f"{user or 'nobody'} has answered, who is none of decide.users"
        raise NotApproved(flow, question, _run(context), why, asks_again=False)
    if not user:
        raise NotApproved(flow, question, _run(context), "no user has answered")


def _order(context: Context) -> Any:
    """Return what the run was triggered with, as JSON has it."""
    return json.loads(json.dumps(context["dag_run"].conf or {}, default=str))


def _run(context: Context) -> str:
    """The run among those of all DAGs."""
    return f"{context['dag_run'].dag_id} {context['run_id']}"
