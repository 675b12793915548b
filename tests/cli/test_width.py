"""Every table of the commands, with long names and large offsets: no line is wider than a terminal, no digit is lost."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from rich.console import Console

from airmirror.cli import (
    handback,
    migration,
    plans,
    reset,
    show,
    takeover,
    topics,
)
from airmirror.cli.tables import Rows
from airmirror.cli.tables import show as print_all
from airmirror.failback.plan import FailbackPlan
from airmirror.failback.shown import shown_plan as shown_failback
from airmirror.failover.outcome import FailoverOutcome
from airmirror.failover.plan import FailoverPlan
from airmirror.failover.shown import shown_outcome
from airmirror.failover.shown import shown_plan as shown_failover
from airmirror.flows.handback_check import HandbackCheck
from airmirror.flows.moving import PutBack
from airmirror.flows.status import FlowStatus
from airmirror.flows.takeover_exact import ComparedCopies
from airmirror.flows.takeover_plan import TakeoverPlan
from airmirror.flows.verification import ComparedPartition
from airmirror.migration.plan import MigrationPlan
from airmirror.migration.shown import shown_plan as shown_migration
from airmirror.migration.state import MoveState
from airmirror.report.document import Document
from airmirror.topics.drift import Drift
from airmirror.topics.remote import TopicPlan
from airmirror.windows.plan import Planned
from airmirror.windows.resets import Reset
from airmirror.windows.results import WindowResult
from airmirror.wire.segments import Decision, Hold
from support.large import NAME, made


def printed(module: Any, command: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a function of a command's module shows."""
    found: list[Any] = []
    monkeypatch.setattr(module, "show", lambda _, *shown: found.extend(shown))
    command()
    return found


def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Iterable[Any]]:
    def of(module: Any, command: Callable[[], object]) -> list[Any]:
        return printed(module, command, monkeypatch)

    def document(shown: Document) -> list[Any]:
        return of(plans, lambda: plans.show_document(shown))

    window = made(WindowResult, phases={"copy": 1.0})
    return {
        "window": [show.window(window)],
        "runs": [show.runs([window])],
        "plan": show.plan(made(TopicPlan), [made(Planned)], [made(Hold)]),
        "comparison": [show.comparison([made(ComparedPartition)])],
        "status": show.status(made(FlowStatus)),
        "decisions": [show.decisions([made(Decision)])],
        "topics": [topics._table(NAME, [made(Drift)])],
        "reset": [reset._table(NAME, [made(Reset)])],
        "takeover": takeover.shown_plan(made(TakeoverPlan)),
        "history": takeover.shown_history(NAME, [made(ComparedCopies)], done=False),
        "handback": handback.shown_check(made(HandbackCheck)),
        "failover": document(shown_failover(made(FailoverPlan))),
        "failed over": document(shown_outcome(made(FailoverOutcome))),
        "failback": document(shown_failback(made(FailbackPlan))),
        "migration": document(shown_migration(made(MigrationPlan))),
        "move": of(migration, lambda: migration._show_state(made(MoveState))),
        "undo": of(plans, lambda: plans.show_put_back(NAME, [made(PutBack)], (), done=False)),
    }


def test_every_table_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, shown in tables(monkeypatch).items():
        found = [each for each in shown if isinstance(each, Rows)]
        assert found, name
        for each in found:
            written = io.StringIO()
            print_all(Console(file=written, width=80), each)
            text = written.getvalue()
            assert all(len(line) <= 80 for line in text.splitlines()), (name, text)
            for column, cell in zip(each.columns, each.rows[0], strict=True):
                if column in each.right:
                    assert cell.plain in text, (name, column, text)
                assert all(text.count(letter) >= cell.plain.count(letter) for letter in cell.plain), (
                    name,
                    column,
                    text,
                )
