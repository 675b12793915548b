"""Plans on the terminal and in files: what each rule has found, a line each, the whole as HTML and JSON; and undone moves."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from airmirror.cli.options import console
from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, Cell, line, show, table

if TYPE_CHECKING:  # every command would load it at its start
    from airmirror.failover.findings import Finding
    from airmirror.flows.moving import PutBack

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


def show_put_back(flow: str, groups: Sequence[PutBack], reasons: Sequence[str], done: bool) -> None:
    """Show the groups that are put back where they stood, and why they can't be."""
    rows: list[list[Cell]] = [
        [
            each.move.group,
            each.move.topic,
            each.move.partition,
            each.now,
            None if each.move.before < 0 else each.move.before,
        ]
        for each in groups
    ]
    numbers = ("partition", "stood at" if done else "stands at", "goes back to")
    show(console, table(f"{flow}: groups", ("group", "topic", *numbers), rows, right=numbers, empty="none was moved"))
    for each in reasons:
        show(console, line("stop", each, BAD))


def report_base(chosen: Path | None, what: str, flow: str, ended_ms: int) -> Path:
    """The path of a report without its ending: the one that was chosen, or <what>.<source>.<target>.<time> in this directory."""
    return chosen or Path(f"{what}.{flow.replace('->', '.')}.{ended_ms // 1000}")


def write_plan(path: Path, page: str, plan: dict[str, Any]) -> None:
    """Write ``path``.html and ``path``.json, over what is there. Raises typer.BadParameter where they can't be written."""
    for ending, text in ((".html", page), (".json", json.dumps(plan, indent=2))):
        try:
            path.with_name(path.name + ending).write_text(text)
        except OSError as error:
            raise typer.BadParameter(f"{path}{ending}: {error.strerror}", param_hint="--write") from error
