"""A document: one sentence, the numbers that matter, findings, what is not known, and everything that it rests on.

The renderers of this room know nothing of what it is about.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from airmirror import __version__
from airmirror.rows import row_of, rows_of

FORMAT = "airmirror report 1"
Level = Literal["ok", "warn", "stop"]
Row = Mapping[str, Any]  # texts, integers, booleans, None, and lists of them


def now_ms() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True)
class Finding:
    """One rule: ``what`` it asks, what it has seen, and what to do; ``way_out`` is empty where nothing is to be done."""

    level: Level
    what: str
    evidence: str
    way_out: str = ""


def nothing_stops(findings: Sequence[Finding]) -> bool:
    """Return whether nothing has to be solved, or decided, before what they are about is done: *warn* is a risk alone."""
    return all(each.level != "stop" for each in findings)


@dataclass(frozen=True)
class Section:
    """A table. All rows have the same columns; what ends in ``_ms`` is a time (epoch milliseconds), None where it is not known.

    ``brief``: the columns that a terminal and a question show, by name, "*": all; none: the section is on the page and in the
    JSON only. ``empty``: what a terminal says where there are no rows; "": nothing.
    """

    name: str
    rows: Sequence[Row]
    title: str
    about: str = ""
    brief: str = ""
    empty: str = "none"

    @property
    def columns(self) -> list[str]:
        return list(self.rows[0]) if self.brief == "*" and self.rows else self.brief.split()


@dataclass(frozen=True)
class Document:
    """``kind``: what it is; ``headline``: the whole in a sentence or two, and ``is_good`` what it comes to.

    ``numbers`` are on the first page, in order. ``by`` and ``reason``: who carried it out, and why; empty where nothing was.
    """

    kind: str
    about: str
    headline: str
    is_good: bool
    asked: Row
    sections: Sequence[Section]
    numbers: Mapping[str, int] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    not_known: Sequence[str] = ()
    by: str = ""
    reason: str = ""
    made_ms: int = field(default_factory=now_ms)

    def rows(self, section: str) -> Sequence[Row]:
        """The rows of a section. Raises LookupError where there is none of that name."""
        return next(each.rows for each in self.sections if each.name == section)

    def as_dict(self) -> dict[str, Any]:
        """For JSON (docs/evidence.md). Keys are ours; what a stranger has named is a value."""
        return {
            "format": FORMAT,
            "version": __version__,
            **row_of(self, "kind about made_ms by reason headline is_good"),
            "asked": dict(self.asked),
            "numbers": [{"name": name, "value": value} for name, value in self.numbers.items()],
            "findings": rows_of(self.findings, "level what evidence way_out"),
            "not_known": list(self.not_known),
            "contents": rows_of(self.sections, "section=name title about"),
            "columns": {each.name: list(each.rows[0]) for each in self.sections if each.rows},
            "sections": {each.name: [dict(row) for row in each.rows] for each in self.sections},
        }


def column_title(column: str) -> str:
    """The name of a column, or of a setting, for people."""
    return column.removesuffix("_ms").replace("_", " ")


TITLES = {
    "clusters": ("Clusters", "The id is the cluster's own, written when it was made: two clusters never share one."),
    "contradictions": ("Contradictions", "What is not now as the record says that it was."),
    "partitions": (
        "Partitions",
        "A topic is a named log of records; it is split into partitions, in each of which records have numbers, their offsets. "
        "The end of a range is not included. Every offset of the source is counted once: copied, control (a mark of a "
        "transaction), aborted (its transaction was taken back), a hole (never written, or taken by compaction), or lost.",
    ),
    "windows": ("Windows", "A window is one run of replication."),
    "progress": ("Progress", ""),
    "holds": ("Held now", "Partitions that the gate, or an operator, keeps from counting as verified."),
    "decisions": ("Decisions", "What people have decided, and why."),
    "losses": ("Losses and new starts", "What was decided with `airmirror reset`."),
    "groups": (
        "Consumer groups",
        "A group is an application that reads; its position is the next offset that it reads.",
    ),
    "differences": ("Differences", "Every run of records that is not equal on both sides."),
    "ranges": ("Sample", "The ranges of offsets that were compared, the end not included. Nothing else was read."),
    "ledger": ("Ledger", "A database that mirrors the mapping topic, compared with it."),
    "expectations": ("Expectations", "The gate lets a window advance only if these hold. As they are now."),
    "versions": ("Versions and configuration", "The digest is of all settings that count; secrets are not in it."),
}


def titled(sections: Mapping[str, Sequence[Row]]) -> tuple[Section, ...]:
    """Sections by their names, in the order of the titles above. Raises KeyError for a name that is not among them."""
    return tuple(Section(name, sections[name], *TITLES[name]) for name in sorted(sections, key=list(TITLES).index))
