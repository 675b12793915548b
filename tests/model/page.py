"""``benchmarks/MODEL.md``: the states of the model, and the shortest way to each fault that is put back."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from model.explore import Explored

HEAD = """# The states of the model

`make model` explores them and writes this page ([the protocol](../docs/protocol.md)). *All*: nothing was left to explore.
"""
SCOPES = ("| scope | states | steps | longest way |", "|---|---|---|---|")
FAULTS = ("| put back | found after | what is found |", "|---|---|---|")

Row = tuple[bool, bool, str, Explored]  # of procedures, a fault, its name


def page(rows: Sequence[Row], seconds: float) -> str:
    """The text of the page."""
    states = sum(found.states for *_, found in rows)
    lines = [HEAD, f"{states:,} states in {seconds / 60:.0f} minutes, in two processes.", ""]
    for of_procedures, title in ((False, "Windows"), (True, "Procedures that meet")):
        scopes = [found for mine, fault, _, found in rows if mine is of_procedures and not fault]
        faults = [(name, found) for mine, fault, name, found in rows if mine is of_procedures and fault]
        if scopes:
            lines += [f"## {title}", "", *SCOPES, *map(_scope, scopes), ""]
        if faults:
            lines += [*FAULTS, *(_fault(name, found) for name, found in faults), ""]
    return "\n".join(lines)


def _scope(found: Explored) -> str:
    extent = "all" if found.whole else "not all"
    return f"| {found.scope} | {found.states:,} ({extent}) | {found.steps:,} | {found.depth} |"


def _fault(name: str, found: Explored) -> str:
    return f"| {name} | {len(found.way)} steps | {found.wrong.replace('|', chr(92) + '|')} |"


def named_scopes(text: str) -> Iterable[str]:
    """The first cells of the tables of a page."""
    return re.findall(r"^\| ([^|]+) \| [\d]", text, re.MULTILINE)
