"""The report of a rehearsal: one sentence, everything that was not as it must be, and the proofs. As a page and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from airmirror.errors import AirmirrorError, command, counted
from airmirror.failover.page import MOST_ROWS, headline, known_time
from airmirror.failover.report import write_files
from airmirror.flows.audit import Audited
from airmirror.quality.page import document, table
from airmirror.rehearsal.clock import Step
from airmirror.rehearsal.positions import Proof
from airmirror.rehearsal.rehearse import Rehearsal


@dataclass(eq=False)
class RehearsalNotWritten(AirmirrorError):
    """A report of a rehearsal that can't be written; the rehearsal was carried out. ``move``: of a migration's move group, "" of
    a failover."""

    flow: str
    file: str
    reason: str
    move: str = ""

    def __str__(self) -> str:
        what = ("migration", "rehearse", "--move", self.move) if self.move else ("failover", "rehearse")
        again = command(*what, "--write", "PATH", flow=self.flow)
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
    def of_what(self) -> str:
        return "a failover"

    @property
    def is_good(self) -> bool:
        """Return whether a failover would lose nothing of what has crossed, and groups would go on exactly."""
        return not self.problems

    @property
    def seconds(self) -> float:
        """The time that the steps of a failover took."""
        return sum(step.seconds for step in self.made.steps if step.is_failover)

    @property
    def holds(self) -> str:
        """The steps that this time is of, and what a failover does besides."""
        names = ", ".join(step.name for step in self.made.steps if step.is_failover)
        return (
            f"Failed over in: {names}. Not in it, since they write: three claims, of which each fences "
            f"{counted(self.made.slots, 'transactional id')}, the closing record, and the positions of groups; and that a "
            f"planned failover waits until nobody has written for {self.made.quiet_ms / 1000:g} s (failover.quiet.ms), and "
            "copies the rest."
        )

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
            "seconds_are_of": self.holds,
            "records": self.records,
            "steps": [asdict(each) for each in made.steps],
            "compared": compared_told(made.compared),
            "groups": [asdict(each) for each in made.proofs],
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
    yield from found_wrong(made.compared, made.proofs)


def found_wrong(compared: Iterable[Audited], proofs: Iterable[Proof]) -> Iterator[str]:
    """Yield what comparisons and proofs of positions have found."""
    for each in compared:
        if each.error:
            yield str(each.error)
    for proof in proofs:
        if proof.wrong:
            yield f"group {proof.group} in {proof.topic}-{proof.partition} at {proof.position}: {proof.wrong}"


def compared_told(compared: Iterable[Audited]) -> list[dict[str, Any]]:
    """Comparisons as plain data."""
    return [
        {
            "topic": each.range.topic,
            "partition": each.range.partition,
            "first": each.range.start,
            "last": each.range.end - 1,
            "equal": each.equal,
            "expired": each.expired,
            "error": str(each.error) if each.error else None,
        }
        for each in compared
    ]


def report_page(report: RehearsalReport) -> str:
    """The whole page: first what matters."""
    made = report.made
    findings = [(each.level, each.what, each.evidence, each.way_out) for each in made.plan.findings]
    body = "".join(
        (
            beginning(made.ended_ms, report.headline, report.problems),
            steps_told(made.steps),
            f"<p>{escape(report.holds)}</p>",
            compared_section(made.compared),
            groups_section(made.proofs),
            "<h2>What was asked</h2>",
            table(("", "", "found", "way out"), findings),
        )
    )
    return document(f"Rehearsal of a failover of {report.flow}", body, "good" if report.is_good else "bad")


def beginning(ended_ms: int, headline: str, problems: Sequence[str]) -> str:
    """The top of a page: when, the whole in a sentence, what would go wrong."""
    wrong = table(("",), [(each,) for each in problems[:MOST_ROWS]]) if problems else ""
    title = "<h2>What would go wrong</h2>" if problems else ""
    return f"<p>{known_time(ended_ms)}. {escape(headline)}</p>{title}{wrong}"


def steps_told(steps: Sequence[Step]) -> str:
    """The steps, with those that a failover takes too."""
    rows = [(each.name, f"{each.seconds:.1f}", "yes" if each.is_failover else "") for each in steps]
    return "<h2>Steps</h2>" + table(("step", "seconds", "of a failover"), rows)


def compared_section(compared: Sequence[Audited]) -> str:
    """The partitions that were compared."""
    rows = [
        (each.range.topic, each.range.partition, each.range.start, each.range.end - 1, each.equal, each.expired)
        for each in compared[:MOST_ROWS]
    ]
    columns = ("topic", "partition", "first offset", "last offset", "equal", "expired")
    return "<h2>Records compared with the source</h2>" + table(columns, rows)


def groups_section(proofs: Sequence[Proof]) -> str:
    """The positions of groups, wrong ones first."""
    rows = [
        (each.group, each.topic, each.partition, each.position, each.translation, each.again, each.wrong or "exact")
        for each in sorted(proofs, key=lambda each: not each.wrong)[:MOST_ROWS]
    ]
    columns = ("group", "topic", "partition", "position", "on the target", "read again", "")
    return "<h2>Consumer groups</h2>" + table(columns, rows)


def write_report(report: RehearsalReport, base: Path) -> Path:
    """Write ``base``.html and ``base``.json, over what is there; the page. Raises RehearsalNotWritten."""
    return write_files(base, report_page(report), report.as_dict(), partial(RehearsalNotWritten, report.flow))
