"""RESULTS.md by sections: the side-by-side bench writes the file, the other benches each a section of their own."""

from __future__ import annotations

from pathlib import Path

from benchmarks.report import Grid

RESULTS = Path(__file__).with_name("RESULTS.md")
OWN = (
    "Airflow",
    "Topics",
    "Groups",
    "Mappings",
    "Partitions",
    "Scaling",
    "Scaling on Kubernetes",
    "Flows",
    "Comparing",
    "Following",
    "Between windows that follow",
    "Distance",
    "TLS",
    "Failover",
)
"""Titles of sections that `make bench` leaves as they are."""


def write(grid: Grid, results: Path = RESULTS) -> None:
    """Put a bench's section into the file, in place of its last one."""
    results.write_text(replaced(results.read_text() if results.exists() else "", grid.title, grid.markdown()))


def replaced(text: str, title: str, section: str) -> str:
    """The text with a section replaced, or put at the end."""
    before, found, rest = text.partition(f"## {title}\n")
    after = rest[rest.index("\n## ") + 1 :] if found and "\n## " in rest else ""
    return f"{before.rstrip()}\n\n{section}\n{after}".strip() + "\n"


def kept(text: str) -> str:
    """The sections of the other benches, as they are."""
    return "".join(_section(text, title) for title in OWN)


def _section(text: str, title: str) -> str:
    _, found, rest = text.partition(f"## {title}\n")
    own = rest.partition("\n## ")[0].rstrip()
    return f"\n{found}{own}\n" if found else ""
