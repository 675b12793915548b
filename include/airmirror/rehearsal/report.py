"""The report of a rehearsal: one sentence, everything that was not as it must be, and the proofs. As a page and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from airmirror.errors import AirmirrorError, command, counted
from airmirror.failover.page import MOST_ROWS, headline, known_time
from airmirror.failover.report import write_files
from airmirror.quality.page import document, table
from airmirror.rehearsal.rehearse import Rehearsal


@dataclass(eq=False)
class RehearsalNotWritten(AirmirrorError):
    """A report of a rehearsal that can't be written; the rehearsal was carried out."""

    flow: str
    file: str
    reason: str

    def __str__(self) -> str:
        again = command("failover", "rehearse", "--write", "PATH", flow=self.flow)
        return f"flow {self.flow!r}: {self.file} can't be written: {self.reason}; {again} rehearses again"


@dataclass(frozen=True)
class RehearsalReport:
    """A rehearsal, and what follows from it. ``problems``: what would go wrong on the day, a line each; none: all is well."""

    made: Rehearsal
    problems: tuple[str, ...]

    @classmethod
    def of(cls, made: Rehearsal) -> RehearsalReport:
        return cls(made, tuple(_problems(made)))

    @property
    def flow(self) -> str:
        return self.made.plan.flow

    @property
    def is_good(self) -> bool:
        """Return whether a failover would lose nothing of what has crossed, and groups would go on exactly."""
        return not self.problems

    @property
    def seconds(self) -> float:
        """The time that the steps of a failover took."""
        return sum(step.seconds for step in self.made.steps if step.is_failover)

    @property
    def records(self) -> int:
        """Records that were compared and are equal on both sides."""
        return sum(each.equal for each in self.made.compared)

    @property
    def exact(self) -> int:
        """Groups of which every position is exact."""
        wrong = {proof.group for proof in self.made.proofs if proof.wrong}
        return len({proof.group for proof in self.made.proofs} - wrong)

    @property
    def headline(self) -> str:
        """The whole rehearsal in two sentences."""
        differing = sum(1 for each in self.made.compared if each.error)
        whole = f"0 of {self.records:,} records missing"
        if differing:
            whole = f"{counted(differing, 'partition')} not whole ({self.records:,} records are)"
        groups = counted(len({proof.group for proof in self.made.proofs}), "group")
        exact = f"{groups} exact" if self.is_good else f"{self.exact} of {groups} exact"
        failed = "" if self.is_good else f" The rehearsal has failed: {counted(len(self.problems), 'problem')}."
        return (
            f"{self.flow} rehearsed: failed over in {self.seconds:.0f} s, {whole}, {exact}.{failed} "
            f"{headline(self.made.plan)}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        made = self.made
        return {
            "flow": self.flow,
            "ended_ms": made.ended_ms,
            "headline": self.headline,
            "is_good": self.is_good,
            "problems": list(self.problems),
            "seconds": self.seconds,
            "records": self.records,
            "steps": [asdict(each) for each in made.steps],
            "compared": [
                {
                    "topic": each.range.topic,
                    "partition": each.range.partition,
                    "first": each.range.start,
                    "last": each.range.end - 1,
                    "equal": each.equal,
                    "expired": each.expired,
                    "error": str(each.error) if each.error else None,
                }
                for each in made.compared
            ],
            "groups": [asdict(each) for each in made.proofs],
            "shadows": [asdict(each) for each in made.shadowed],
            "not_judged": [asdict(each) for each in made.not_judged],
            "plan": made.plan.as_dict(),
        }


def _problems(made: Rehearsal) -> Iterator[str]:
    """Yield what would go wrong on the day."""
    for finding in made.plan.findings:
        if finding.level == "stop":
            yield f"{finding.what}: {finding.evidence}"
    for each in made.not_judged:
        yield f"{each.topic}-{each.partition} from offset {each.first} on is not proven: {each.reason}"
    for compared in made.compared:
        if compared.error:
            yield str(compared.error)
    for proof in made.proofs:
        if proof.wrong:
            yield f"group {proof.group} in {proof.topic}-{proof.partition} at {proof.position}: {proof.wrong}"
    for shadowed in made.shadowed:
        if shadowed.wrong:
            yield f"{shadowed.shadow}, as {shadowed.remote_topic}: {shadowed.wrong}"


def report_page(report: RehearsalReport) -> str:
    """The whole page: first what matters."""
    made = report.made
    compared = [
        (each.range.topic, each.range.partition, each.range.start, each.range.end - 1, each.equal, each.expired)
        for each in made.compared
    ]
    proofs = [
        (each.group, each.topic, each.partition, each.position, each.translation, each.again, each.wrong or "exact")
        for each in sorted(made.proofs, key=lambda each: not each.wrong)
    ]
    shadowed = [(each.remote_topic, each.shadow, each.partitions, each.records, each.wrong) for each in made.shadowed]
    steps = [(each.name, f"{each.seconds:.1f}", "yes" if each.is_failover else "") for each in made.steps]
    findings = [(each.level, each.what, each.evidence, each.way_out) for each in made.plan.findings]
    groups = ("group", "topic", "partition", "position", "shadow's position", "read again", "")
    body = "".join(
        (
            f"<p>{known_time(made.ended_ms)}. {escape(report.headline)}</p>",
            "<h2>What would go wrong</h2>" if report.problems else "",
            table(("",), [(each,) for each in report.problems[:MOST_ROWS]]) if report.problems else "",
            "<h2>Steps</h2>",
            table(("step", "seconds", "of a failover"), steps),
            "<h2>Records compared with the source</h2>",
            table(("topic", "partition", "first offset", "last offset", "equal", "expired"), compared[:MOST_ROWS]),
            "<h2>Consumer groups</h2>",
            table(groups, proofs[:MOST_ROWS]),
            "<h2>Written and read</h2>",
            table(("as", "shadow topic", "partitions", "records", ""), shadowed[:MOST_ROWS]),
            "<h2>What was asked</h2>",
            table(("", "", "found", "way out"), findings),
        )
    )
    return document(f"Rehearsal of a failover of {report.flow}", body, "good" if report.is_good else "bad")


def write_report(report: RehearsalReport, base: Path) -> Path:
    """Write ``base``.html and ``base``.json, over what is there; the page. Raises RehearsalNotWritten."""
    return write_files(base, report_page(report), report.as_dict(), partial(RehearsalNotWritten, report.flow))
