"""Documents on the terminal: tables, a line for each finding, the whole in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, cast

import typer
from rich.console import RenderableType
from rich.text import Text

from airmirror.cli.options import console
from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, Cell, line, print_all, print_json, table
from airmirror.report.document import Document, Finding, Row, column_title
from airmirror.report.page import value_told

# An answer that says nothing but the question again is left out, so that the lines that matter stand out.
ANSWERS = frozenset(
    ("it is", "it does", "none is", "none does", "none do", "nothing is", "they are", "there are none", "yes")
)
STYLES = {"ok": GOOD, "warn": DOUBTFUL, "stop": BAD}


def finding_lines(findings: Iterable[Finding]) -> list[Text]:
    """A line for each: its level, what it asks, what it has seen, and the way out."""
    return [line(f"{each.level:<4}", _said(each), STYLES[each.level]) for each in findings]


def _said(found: Finding) -> str:
    evidence = "" if found.evidence in ANSWERS else f": {found.evidence}"
    return found.what + evidence + (f"; {found.way_out}" if found.way_out else "")


def report_base(chosen: Path | None, what: str, flow: str, ended_ms: int) -> Path:
    """The path of a report without its ending: the one that was chosen, or <what>.<source>.<target>.<time> in this directory."""
    return chosen or Path(f"{what}.{flow.replace('->', '.')}.{ended_ms // 1000}")


def show_document(made: Document, files: Sequence[Path] = ()) -> None:
    """Show its brief sections, a line for each finding, the whole in a sentence, and where its page is.

    The findings of an outcome are on its page only: they are of how things are now, those of an undo of what it did.
    """
    shown: list[RenderableType] = []
    for section in made.sections:
        if section.brief and (section.rows or section.empty):
            columns = section.columns
            rows = [[_told(name, row[name]) for name in columns] for row in section.rows]
            marks = (">" if any(_is_number(name, row) for row in section.rows) else "" for name in columns)
            titles = [mark + column_title(name) for mark, name in zip(marks, columns, strict=True)]
            shown.append(table(section.title, titles, rows, empty=section.empty))
    findings = [] if made.by and not made.kind.endswith(" undo") else finding_lines(made.findings)
    shown += ["", *findings, Text(made.headline, GOOD if made.is_good else DOUBTFUL)]
    print_all(console, *shown, *([f"The report: {files[0]}"] if files else []))


def _is_number(name: str, row: Row) -> bool:
    return isinstance(row[name], int) and not isinstance(row[name], bool) and not name.endswith("_ms")


def _told(name: str, value: Any) -> Cell:
    """A cell; numbers and None are the table's to show."""
    if isinstance(value, bool) or name.endswith("_ms") or isinstance(value, list):
        return str(value_told(name, value))
    return cast("Cell", value)


def end(made: Document, as_json: bool, files: Sequence[Path] = (), *, done: bool | None = None, more: str = "") -> None:
    """Show a document, ``more`` after it, and end with 1 where it is not good: something is missing, left, or can't be done.

    ``done``: whether it was carried out, for programs; None: a plan, which never is.
    """
    if as_json:
        print_json(console, made.as_dict() | ({} if done is None else {"done": done}))
    else:
        show_document(made, files)
        print_all(console, *([more] if more else []))
    if not made.is_good:
        raise typer.Exit(1)
