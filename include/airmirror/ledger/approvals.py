"""Questions to people and their answers: kept here, because whoever may trigger a run may write what Airflow keeps of its tasks.

No topic has them: where the ledger is deleted, people are asked again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

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


def note_question(engine: Engine, asked: PendingQuestion, *, is_shown: bool = True) -> bool:
    """Note a question and forget its answer. Return False, and note nothing, where it is not known what the question shown is
    about.

    ``is_shown``: Airflow shows it as it is asked now. Otherwise it shows the first text of this run, and the question stays about
    that.
    """
    own = approvals.c
    with writing(engine, asked.flow) as connection:
        connection.execute(approvals.delete().where(own.flow == asked.flow, own.asked_ms < asked.asked_ms - KEPT_MS))
        is_this = sql.and_(own.flow == asked.flow, own.run == asked.run, own.task == asked.task)
        about = asked.about if is_shown else connection.scalar(sql.select(own.about).where(is_this))
        if about is None:  # the ledger is another one, or its row was older than it keeps them
            return False
        empty = {"option": None, "reason": None, "user": None, "by": None, "answered_ms": None}
        upsert(connection, approvals, [asdict(asked) | {"about": about} | empty])
    return True


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
