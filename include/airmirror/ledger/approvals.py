"""Questions to people and their answers: kept here, because whoever may trigger a run may write what Airflow keeps of its tasks.

No topic has them: where the ledger is deleted, people are asked again.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sql
from sqlalchemy.engine import Engine

from airmirror.ledger.database import columns_of, reading, upsert, writing
from airmirror.ledger.tables import approvals

KEPT_MS = 90 * 86_400_000  # questions; an answer counts for less (on_airflow.tasks.approvals)


@dataclass(frozen=True)
class PendingQuestion:
    """A question of a task of a run. ``scope``: what an answer takes the place of all other runs' in; ``about``: what it is for,
    as JSON."""

    flow: str
    run: str
    task: str
    scope: str
    about: str
    asked_ms: int


@dataclass(frozen=True)
class Answered:
    """An answer to it: the option, the reason, and who gave it, by id and as they are called."""

    about: str
    option: str
    reason: str
    user: str
    by: str
    answered_ms: int


def note_question(engine: Engine, asked: PendingQuestion) -> bool:
    """Note a question and forget its answer; whether it was asked before: Airflow still shows it as it was then, so that it
    stays about the same."""
    own, key = approvals.c, {"flow": asked.flow, "run": asked.run, "task": asked.task}
    with writing(engine, asked.flow) as connection:
        connection.execute(approvals.delete().where(own.flow == asked.flow, own.asked_ms < asked.asked_ms - KEPT_MS))
        is_this = sql.and_(own.flow == asked.flow, own.run == asked.run, own.task == asked.task)
        about = connection.scalar(sql.select(own.about).where(is_this))
        row = key | {"scope": asked.scope, "about": about or asked.about, "asked_ms": asked.asked_ms}
        empty = {"option": None, "reason": None, "user": None, "by": None, "answered_ms": None}
        upsert(connection, approvals, [row | empty])
    return about is not None


def note_answer(engine: Engine, flow: str, run: str, task: str, given: Answered) -> None:
    """Note the answer to a question that was noted; those of other runs in its scope count no more."""
    own = approvals.c
    is_this = sql.and_(own.flow == flow, own.run == run, own.task == task)
    values = {name: getattr(given, name) for name in ("option", "reason", "user", "by", "answered_ms")}
    with writing(engine, flow) as connection:
        scope = connection.scalar(sql.select(own.scope).where(is_this))
        connection.execute(approvals.update().where(is_this).values(values))
        others = sql.and_(own.flow == flow, own.scope == scope, own.run != run, own.answered_ms.is_not(None))
        connection.execute(approvals.delete().where(others))


def answer_to(engine: Engine, flow: str, run: str, task: str) -> Answered | None:
    """Return the answer to a question of a run; None: there is none."""
    own = approvals.c
    query = sql.select(*columns_of(approvals, Answered)).where(own.flow == flow, own.run == run, own.task == task)
    with reading(engine) as connection:
        row = connection.execute(query.where(own.answered_ms.is_not(None))).first()
    return Answered(*row) if row is not None else None


def open_questions(engine: Engine, flow: str) -> dict[str, str]:
    """Return what is asked about a flow and has no answer: by run what it is about, as JSON."""
    own = approvals.c
    query = sql.select(own.run, own.about).where(own.flow == flow, own.answered_ms.is_(None))
    with reading(engine) as connection:
        return {row.run: row.about for row in connection.execute(query)}
