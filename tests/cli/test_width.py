"""Every table of commands and demos, with long names and large offsets: no line is wider than a terminal, no digit is lost."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import pkgutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import airmirror.cli
import airmirror_local.demo
from airmirror.cli import compare, config, groups, plans, reset, show, topics, translate
from airmirror.cli.tables import Rows, print_all, table
from airmirror.config.foreign.translation import Translation
from airmirror.evidence.found import Kind
from airmirror.evidence.rows import ComparedLogs
from airmirror.flows import positions, positions_file
from airmirror.flows import reset as resetting
from airmirror.flows.positions import GroupRow
from airmirror.flows.positions_file import FileTranslation
from airmirror.flows.status import FlowStatus
from airmirror.flows.verification import ComparedPartition
from airmirror.offsets.groups import GroupOffset
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Translated
from airmirror.report.document import Document
from airmirror.runbooks.failback.outcome import FailbackOutcome
from airmirror.runbooks.failback.plan import FailbackPlan
from airmirror.runbooks.failback.shown import shown_outcome as shown_returned
from airmirror.runbooks.failback.shown import shown_plan as shown_failback
from airmirror.runbooks.failover.plan import FailoverPlan
from airmirror.runbooks.failover.shown import FailoverOutcome, shown_outcome
from airmirror.runbooks.failover.shown import shown_plan as shown_failover
from airmirror.runbooks.migration.plan import MigrationPlan
from airmirror.runbooks.migration.shown import shown_plan as shown_migration
from airmirror.runbooks.migration.shown import shown_state
from airmirror.runbooks.migration.state import MoveState
from airmirror.runbooks.moving import PutBack
from airmirror.runbooks.rehearsal.rehearse import FailoverRehearsal
from airmirror.runbooks.rehearsal.rehearse import shown as shown_rehearsal
from airmirror.runbooks.shown import put_back_section, shown_undo
from airmirror.runbooks.takeover.exact import ComparedCopies
from airmirror.runbooks.takeover.handback_check import HandbackCheck
from airmirror.runbooks.takeover.handback_shown import shown_check
from airmirror.runbooks.takeover.plan import TakeoverPlan
from airmirror.runbooks.takeover.shown import shown_history
from airmirror.runbooks.takeover.shown import shown_plan as shown_takeover
from airmirror.topics.drift import Drift
from airmirror.topics.remote import TopicPlan
from airmirror.windows.plan import Planned
from airmirror.windows.resets import Facts, Reset
from airmirror.windows.results import WindowResult
from airmirror.wire.mappings import Decision, Hold
from airmirror_local.demo import failover, migration, takeover
from airmirror_local.demo.mirror import runs
from support.large import NAME, made

OPENED: Any = SimpleNamespace(flow=SimpleNamespace(name=NAME), ledger=None)
ROW = ComparedLogs(NAME, f"east.{NAME}", 1_234, dict.fromkeys(Kind, 123_456_789_012))


def printed(module: Any, command: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a function of a command's module shows."""
    found: list[Any] = []
    monkeypatch.setattr(module, "print_all", lambda _, *shown: found.extend(shown))
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
        "runs": [runs([window])],
        "plan": show.plan(made(TopicPlan), [made(Planned)], [made(Hold)]),
        "comparison": [show.comparison([made(ComparedPartition)])],
        "status": show.status(made(FlowStatus)),
        "decisions": [show.decisions([made(Decision)])],
        "topics": [topics._table(NAME, [made(Drift)])],
        "reset": [reset._table(NAME, [made(Reset)])],
        "takeover": document(shown_takeover(made(TakeoverPlan))),
        "history": document(shown_history(NAME, [made(ComparedCopies)])),
        "handback": document(shown_check(made(HandbackCheck))),
        "failover": document(shown_failover(made(FailoverPlan))),
        "failed over": document(shown_outcome(made(FailoverOutcome))),
        "failback": document(shown_failback(made(FailbackPlan))),
        "migration": document(shown_migration(made(MigrationPlan))),
        "move": document(shown_state(made(MoveState))),
        "returned": document(shown_returned(made(FailbackOutcome))),
        "compare": of(compare, lambda: compare._show(SimpleNamespace(sample=None), [ROW], [])),
        "rehearsal": document(shown_rehearsal(made(FailoverRehearsal))),
        "problems": of(reset, lambda: reset._show_problems(OPENED, (), as_json=False)),
        "config": of(config, lambda: config.show_translation(Path(NAME), None, None, as_json=False)),
        "failover's demo": [failover._table(made(failover.FailoverRun))],
        "migration's demo": [migration._table(made(migration.MigrationRun))],
        "take-over's demo": [takeover._table(made(takeover.TakeoverRun, compared=[ROW]))],
        "groups": of(groups, lambda: groups._show(NAME, [made(GroupRow)])),
        "positions": of(translate, lambda: translate._show_group(OPENED, NAME, None, None, as_json=False)),
        "file": of(translate, lambda: translate._show_file(OPENED, Path(), Path(), "", as_json=False)),
        "apply": of(groups, lambda: groups._show_applied(NAME, NAME, [made(GroupOffset, reason="")], done=False)),
        "undo": document(
            shown_undo("failover", NAME, "", (), "", [put_back_section([made(PutBack, metadata="")])], ())
        ),
    }


def without_clusters(patch: pytest.MonkeyPatch) -> None:
    """Commands that ask clusters are told large values."""
    answers: dict[tuple[Any, str], Any] = {
        (resetting, "undecided"): [made(Facts)],
        (positions, "translate_at"): [made(GroupPosition, found=made(Translated))],
        (positions_file, "translate_file"): made(FileTranslation),
        (config.properties, "read"): "",
        (config.foreign, "is_foreign"): True,
        (config, "translated"): made(Translation, problems=()),
    }
    for (module, name), answer in answers.items():
        patch.setattr(module, name, lambda *_, answer=answer, **__: answer)


def with_tables() -> list[ModuleType]:
    """The modules that show any table."""
    packages = [airmirror.cli, airmirror_local.demo]
    names = [f"{each.__name__}.{found.name}" for each in packages for found in pkgutil.iter_modules(each.__path__)]
    found = [importlib.import_module(name) for name in names]
    return [each for each in found if getattr(each, "table", None) is table]


def called(module: Any) -> set[tuple[str, int]]:
    """The calls of ``table`` in a module, by file and line."""
    tree = ast.parse(inspect.getsource(module))
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.Call))
    return {(module.__name__, each.lineno) for each in calls if getattr(each.func, "id", "") == "table"}


def test_every_table_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    without_clusters(monkeypatch)
    modules = with_tables()
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
    assert not left, f"tables that nobody has looked at: {left}"
