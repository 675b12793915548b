"""A report: one verdict, the numbers that matter, what is not known, and everything that it rests on, as plain values."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airmirror import __version__
from airmirror.times import utc

FORMAT = "airmirror report 1"
Row = Mapping[str, Any]  # texts, integers, booleans, None, and lists of them


def now_ms() -> int:
    return int(time.time() * 1000)


@dataclass(frozen=True)
class Report:
    """One report. ``verdict`` is one sentence, ``is_good`` what it comes to; ``numbers`` stand on the first page, in order.

    ``sections``: rows by the section's name. What ends in ``_ms`` is a time (epoch milliseconds).
    """

    kind: str  # flow or compare
    about: str
    verdict: str
    is_good: bool
    asked: Row
    numbers: Mapping[str, int]
    not_known: tuple[str, ...]
    sections: Mapping[str, Sequence[Row]]
    made_ms: int = field(default_factory=now_ms)

    def as_dict(self) -> dict[str, Any]:
        """For JSON. Keys are ours; what a stranger has named is a value."""
        return {
            "format": FORMAT,
            "version": __version__,
            "kind": self.kind,
            "about": self.about,
            "made_ms": self.made_ms,
            "verdict": self.verdict,
            "is_good": self.is_good,
            "asked": dict(self.asked),
            "numbers": [{"name": name, "value": value} for name, value in self.numbers.items()],
            "not_known": list(self.not_known),
            "columns": {name: list(rows[0]) for name, rows in self.sections.items() if rows},
            "sections": {name: [dict(row) for row in rows] for name, rows in self.sections.items()},
        }


def when(time_ms: int) -> str:
    """A time for people."""
    return utc(time_ms)
