"""The ends of windows, and the failures since. Only the ledger has them: the internal topics hold no errors.

A rebuild leaves it as it is; a ledger that was deleted begins again, and then reports since when *it* has seen a failure. The
time of a partition's last commit is in the log in any case (its newest mapping record).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import sqlalchemy as sql
from sqlalchemy.engine import Connection

from airmirror.errors import AirmirrorError
from airmirror.ledger.database import delete, key_of, objects_of, upsert
from airmirror.ledger.tables import failures, window_ends
from airmirror.partitions import PartitionFacts, TopicPartition

WHOLE = TopicPartition("", -1)  # the key of an error that ends a window

MOST_ENDS = 50  # windows kept
MOST_ERROR = 4_000  # characters kept of an error
STUBBORN = 3  # windows in a row after which even what should pass by itself needs an operator


@dataclass(frozen=True)
class Failure(PartitionFacts):
    """An error of every window that tried it, ``windows`` in all; times in epoch milliseconds.

    Without a topic (partition -1) it is an error that ended whole windows.
    """

    since_ms: int
    last_ms: int
    windows: int
    first_window: str
    window: str
    transient: bool
    error: str

    @property
    def needs_somebody(self) -> bool:
        return not self.transient or self.windows >= STUBBORN


@dataclass(frozen=True)
class WindowEnd:
    """The end of a window: partitions that failed, or the error that ended it (else empty)."""

    window: str
    time_ms: int
    failed: int
    error: str


def note_failures(
    connection: Connection,
    flow: str,
    window: str,
    errors: Mapping[TopicPartition, AirmirrorError],
    passed: Callable[[TopicPartition], bool],
    *,
    now: int,
) -> None:
    """Note what is wrong after a window, by partition; of what was wrong before, what has ``passed`` is so no longer."""
    before = {each.key: each for each in failures_of(connection, flow)}
    rows = []
    for key, error in errors.items():
        known = before.get(key)
        rows.append(
            key_of(failures, flow, key)
            | {
                "since_ms": known.since_ms if known else now,
                "last_ms": now,
                "windows": known.windows + 1 if known else 1,
                "first_window": known.first_window if known else window,
                "window": window,
                "transient": error.transient,
                "error": _kept(error),
            }
        )
    upsert(connection, failures, rows)
    over = [key for key in before if key not in errors and passed(key)]
    delete(connection, failures, [key_of(failures, flow, key) for key in over])


def note_end(
    connection: Connection, flow: str, window: str, errors: Mapping[TopicPartition, AirmirrorError], *, now: int
) -> None:
    """Note how a window ended that did something, or tried to."""
    failed, whole = len(errors.keys() - {WHOLE}), errors.get(WHOLE)
    row = {"flow": flow, "window": window, "time_ms": now, "failed": failed}
    upsert(connection, window_ends, [row | {"error": _kept(whole) if whole else ""}])
    of_flow = window_ends.c.flow == flow
    times = sql.select(window_ends.c.time_ms).where(of_flow).order_by(window_ends.c.time_ms.desc())
    oldest = connection.scalar(times.offset(MOST_ENDS - 1).limit(1))
    if oldest is not None:
        connection.execute(window_ends.delete().where(of_flow, window_ends.c.time_ms < oldest))


def failures_of(connection: Connection, flow: str) -> list[Failure]:
    """Return the failures of every window since, by topic and partition."""
    return sorted(objects_of(connection, failures, Failure, flow), key=lambda failure: failure.key)


def ends_of(connection: Connection, flow: str) -> dict[str, WindowEnd]:
    """Return the ends of the last windows that did something, by window."""
    return {each.window: each for each in objects_of(connection, window_ends, WindowEnd, flow)}


def _kept(error: AirmirrorError) -> str:
    """An error's text as a database takes it: no NUL, which PostgreSQL refuses, nothing that is not Unicode, not too long."""
    text = str(error).replace("\x00", "\\x00").encode(errors="backslashreplace").decode()
    return text[:MOST_ERROR]
