"""Every table of the commands, with long names and large offsets: no line is wider than a terminal, no digit is lost."""

from __future__ import annotations

import ast
import inspect
import io
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from airmirror.cli import (
    compare,
    failback,
    failover,
    groups,
    handback,
    migration,
    plans,
    rehearsal,
    reset,
    show,
    takeover,
    topics,
)
from airmirror.cli.tables import Rows, table
from airmirror.cli.tables import show as print_all
from airmirror.evidence.found import Kind
from airmirror.evidence.rows import ComparedLogs
from airmirror.failback.plan import FailbackPlan
from airmirror.failback.report import FailbackReport
from airmirror.failback.rescue import ToRescue
from airmirror.failover.plan import FailoverPlan
from airmirror.failover.report import FailoverReport
from airmirror.flows.handback_check import Checked
from airmirror.flows.moving import PutBack
from airmirror.flows.positions import GroupRow
from airmirror.flows.positions_file import FileTranslation
from airmirror.flows.status import FlowStatus
from airmirror.flows.takeover_exact import Compared
from airmirror.flows.takeover_plan import TakeoverPlan
from airmirror.flows.verification import ComparedPartition
from airmirror.migration.plan import MigrationPlan
from airmirror.migration.state import MoveState
from airmirror.offsets.groups import GroupOffset
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Translated
from airmirror.rehearsal.report import RehearsalReport
from airmirror.topics.drift import Drift
from airmirror.topics.remote import TopicPlan
from airmirror.windows.continuing import Continuation
from airmirror.windows.plan import Planned
from airmirror.windows.resets import Facts, Reset
from airmirror.windows.results import WindowResult
from airmirror.wire.segments import Decision, Hold
from support.large import NAME, made

OPENED: Any = SimpleNamespace(flow=SimpleNamespace(name=NAME), ledger=None)
ON: tuple[Any, Any] = (None, OPENED)  # a console, and a flow
ROW = ComparedLogs(NAME, f"east.{NAME}", 1_234, dict.fromkeys(Kind, 123_456_789_012))
APART = {"airmirror.cli.handback"}  # its table of three numbers is inside the command


def printed(module: Any, command: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a function of a command's module shows."""
    found: list[Any] = []
    monkeypatch.setattr(module, "show", lambda _, *shown: found.extend(shown))
    command()
    return found


def tables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Iterable[Any]]:
    def of(module: Any, command: Callable[[], object]) -> list[Any]:
        return printed(module, command, monkeypatch)

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
        "history": takeover.shown_history(NAME, [made(Compared)], done=False),
        "handback": handback.shown_check(made(Checked)),
        "failover": of(failover, lambda: failover._show(made(FailoverPlan))),
        "failed over": of(failover, lambda: failover._show_done(made(FailoverReport), "report", "kafka.west:9092")),  # type: ignore[arg-type]
        "failback": of(failback, lambda: failback._show(made(FailbackPlan))),
        "migration": of(migration, lambda: migration._show(made(MigrationPlan))),
        "move": of(migration, lambda: migration._show_state(made(MoveState))),
        "returned": of(failback, lambda: failback._show_done(made(FailbackReport), Path("report"))),
        "begun": of(failback, lambda: failback._show_begun(NAME, [made(Continuation)], [], done=False, as_json=False)),
        "rescue": of(failback, lambda: failback._show_rescue(made(FailbackPlan), [made(ToRescue)], done=False)),
        "compare": of(compare, lambda: compare._show(SimpleNamespace(sample=None), [ROW], [])),
        "rehearsal": of(rehearsal, lambda: rehearsal._show(made(RehearsalReport), Path("report"), "")),
        "problems": of(reset, lambda: reset.show_problems(*ON, (), as_json=False)),
        "groups": of(groups, lambda: groups.show_groups(*ON, (), as_json=False)),
        "positions": of(groups, lambda: groups.show_translation(*ON, NAME, None, None, as_json=False)),
        "file": of(groups, lambda: groups.show_file_translation(*ON, Path(), Path(), "", as_json=False)),
        "apply": of(groups, lambda: groups.apply_groups(*ON, NAME, yes=False, as_json=False)),
        "undo": of(plans, lambda: plans.show_put_back(NAME, [made(PutBack)], (), done=False)),
    }


def without_clusters(patch: pytest.MonkeyPatch) -> None:
    """Commands that ask clusters are told large values."""
    answers: dict[tuple[Any, str], Any] = {
        (reset, "undecided"): [made(Facts)],
        (groups, "list_positions"): [made(GroupRow)],
        (groups, "translate_at"): [made(GroupPosition, found=made(Translated))],
        (groups, "translate_file"): made(FileTranslation),
        (groups, "sync_group_offsets"): [made(GroupOffset, reason="")],
        (groups, "undo_commands"): [],
        (groups, "caught_up"): OPENED,
    }
    for (module, name), answer in answers.items():
        patch.setattr(module, name, lambda *_, answer=answer, **__: answer)


def called(module: Any) -> set[tuple[str, int]]:
    """The calls of ``table`` in a module, by file and line."""
    tree = ast.parse(inspect.getsource(module))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {(module.__name__, each.lineno) for each in calls if getattr(each.func, "id", "") == "table"}


def test_every_table_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    without_clusters(monkeypatch)
    modules = (
        compare,
        failback,
        failover,
        groups,
        handback,
        migration,
        plans,
        rehearsal,
        reset,
        show,
        takeover,
        topics,
    )
    shown_by: set[tuple[str, int]] = set()

    def spied(*given: Any, **more: Any) -> Any:
        frame = sys._getframe(1)
        shown_by.add((frame.f_globals["__name__"], frame.f_lineno))
        return table(*given, **more)

    for module in modules:
        monkeypatch.setattr(module, "table", spied)
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
    left = set[tuple[str, int]]().union(*map(called, modules)) - shown_by
    assert {module for module, _ in left} == set(APART) and len(left) == 1, f"tables that nobody has looked at: {left}"
