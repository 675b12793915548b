"""The report of a rehearsed migration: one sentence, everything that was not as it must be, and the proofs. As page and JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from airmirror.errors import counted
from airmirror.failover.report import write_files
from airmirror.migration.rehearsal import MoveRehearsal
from airmirror.quality.page import document
from airmirror.rehearsal.report import (
    RehearsalNotWritten,
    beginning,
    compared_section,
    compared_told,
    found_wrong,
    groups_section,
    steps_told,
)


@dataclass(frozen=True)
class MoveReport:
    """A rehearsal, and what follows from it. ``problems``: what would go wrong on the day, a line each; none: all is well."""

    made: MoveRehearsal
    problems: tuple[str, ...]

    @classmethod
    def of(cls, made: MoveRehearsal) -> MoveReport:
        return cls(made, tuple(_problems(made)))

    @property
    def flow(self) -> str:
        return self.made.flow

    @property
    def of_what(self) -> str:
        return f"the migration of {self.made.move.name}"

    @property
    def is_good(self) -> bool:
        """Return whether nothing is known that would keep a step from being taken, and groups would go on exactly."""
        return not self.problems

    @property
    def seconds(self) -> float:
        """The time that the rehearsal took."""
        return sum(step.seconds for step in self.made.steps)

    @property
    def headline(self) -> str:
        """The whole rehearsal in a sentence or two."""
        made = self.made
        records = sum(each.equal for each in made.compared)
        names = {proof.group for proof in made.proofs}
        exact = len(names - {proof.group for proof in made.proofs if proof.wrong})
        failed = "" if self.is_good else f" The rehearsal has failed: {counted(len(self.problems), 'problem')}."
        return (
            f"{self.flow}: {made.move.name} rehearsed in {self.seconds:.0f} s: {counted(len(made.move.names), 'topic')}, "
            f"{counted(records, 'record')} equal on both sides, {exact} of {counted(len(names), 'group')} exact.{failed}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        made = self.made
        return {
            "flow": self.flow,
            "move": asdict(made.move),
            "ended_ms": made.ended_ms,
            "headline": self.headline,
            "is_good": self.is_good,
            "problems": list(self.problems),
            "seconds": self.seconds,
            "steps": [asdict(each) for each in made.steps],
            "groups": [asdict(each) for each in made.proofs],
            "compared": compared_told(made.compared),
        }


def _problems(made: MoveRehearsal) -> Iterator[str]:
    yield from made.reasons
    yield from found_wrong(made.compared, made.proofs)


def report_page(report: MoveReport) -> str:
    """The whole page: first what matters."""
    made = report.made
    body = "".join(
        (
            beginning(made.ended_ms, report.headline, report.problems),
            steps_told(made.steps),
            groups_section(made.proofs),
            compared_section(made.compared),
        )
    )
    return document(f"{report.flow}: rehearsal of {report.of_what}", body, "good" if report.is_good else "bad")


def write_report(report: MoveReport, base: Path) -> Path:
    """Write ``base``.html and ``base``.json, over what is there; the page. Raises RehearsalNotWritten."""

    def failed(file: str, reason: str) -> RehearsalNotWritten:
        return RehearsalNotWritten(report.flow, file, reason, report.made.move.name)

    return write_files(base, report_page(report), report.as_dict(), failed)
