"""``benchmarks/MODEL.md``: the states of the model, and the shortest way to each fault that is put back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from model.explore import Explored

HEAD = """# The states of the model

`make model` explores them and writes this page ([the protocol](../docs/protocol.md)). *All*: nothing was left to explore.
"""
SCOPES = ("| scope | states | steps | longest way |", "|---|---|---|---|")
FAULTS = ("| put back | found after | what is found |", "|---|---|---|")


def page(parts: Mapping[str, tuple[Sequence[str], Sequence[str]]], found: Mapping[str, str], before: str) -> str:
    """The text of the page. ``parts``: by title the names of scopes and of faults; ``found``: the rows of what was explored; of
    what was not, the row of the page ``before`` stays."""
    rows = {name: line for line in before.splitlines() if (name := _name(line))} | found
    lines = [HEAD]
    for title, (scopes, faults) in parts.items():
        lines += [f"## {title}", ""]
        for head, names in ((SCOPES, scopes), (FAULTS, faults)):
            lines += [*head, *(rows[name] for name in names if name in rows), ""]
    return "\n".join(lines)


def row(name: str, found: Explored, *, is_fault: bool) -> str:
    """The row of a scope, or of a fault that was put back."""
    if is_fault:
        return f"| {name} | {len(found.way)} steps | {found.wrong} |"
    extent = "all" if found.whole else "not all"
    return f"| {name} | {found.states:,} ({extent}) | {found.steps:,} | {found.depth} |"


def named_scopes(text: str) -> Iterable[str]:
    """The first cells of the tables of a page."""
    return filter(None, map(_name, text.splitlines()))


def _name(line: str) -> str:
    found = re.match(r"\| ([^|]+) \| \d", line)
    return found[1] if found else ""
