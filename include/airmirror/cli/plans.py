"""Plans on the terminal and in files: what each rule has found, a line each, and the whole as HTML and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from airmirror.cli.tables import BAD, DOUBTFUL, GOOD, line

if TYPE_CHECKING:  # every command would load it at its start
    from airmirror.failover.findings import Finding

STYLES = {"ok": GOOD, "warn": DOUBTFUL, "stop": BAD}


def finding_lines(findings: Iterable[Finding]) -> list[Text]:
    """A line for each: its level, what it asks, what it has seen, and the way out."""
    return [
        line(
            each.level,
            f"{each.what}: {each.evidence}" + (f"; {each.way_out}" if each.way_out else ""),
            STYLES[each.level],
        )
        for each in findings
    ]


def write_plan(path: Path, page: str, plan: dict[str, Any]) -> None:
    """Write ``path``.html and ``path``.json, over what is there. Raises typer.BadParameter where they can't be written."""
    for ending, text in ((".html", page), (".json", json.dumps(plan, indent=2))):
        try:
            path.with_name(path.name + ending).write_text(text)
        except OSError as error:
            raise typer.BadParameter(f"{path}{ending}: {error.strerror}", param_hint="--write") from error
