"""The report of a rehearsed migration: one sentence, everything that was not as it must be, and the proofs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from airmirror.errors import counted
from airmirror.flows.prepare import Opened
from airmirror.report.document import Document
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.rehearsal import MoveRehearsal, rehearse_move
from airmirror.runbooks.rehearsal.report import (
    compared_section,
    found_wrong,
    problems_section,
    proofs_section,
    steps_section,
)
from airmirror.runbooks.runbook import Progress


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
        """Return whether nothing is known that would keep a step from being taken, and groups would resume exactly."""
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


def _problems(made: MoveRehearsal) -> Iterator[str]:
    yield from made.reasons
    yield from found_wrong(made.compared, made.proofs)


def rehearsed(opened: Opened, order: MoveOrder, progress: Progress) -> Document:
    """Rehearse a migration; the document of it. Raises what ``rehearse_move`` does."""
    return shown(MoveReport.of(rehearse_move(opened, order.move, progress.phase)))


def shown(report: MoveReport) -> Document:
    """The document of a rehearsal: first what would go wrong."""
    made = report.made
    return Document(
        kind="migration rehearsal",
        about=f"{report.flow}: rehearsal of {report.of_what}",
        headline=report.headline,
        is_good=report.is_good,
        asked={"flow": report.flow, "move": made.move.name, "topics": sorted(made.move.names)},
        numbers={"milliseconds": round(report.seconds * 1000)},
        sections=[
            problems_section(report.problems),
            steps_section(made.steps),
            proofs_section(made.proofs),
            compared_section(made.compared),
        ],
        made_ms=made.ended_ms,
    )
