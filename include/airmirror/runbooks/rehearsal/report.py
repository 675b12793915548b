"""The report of a rehearsal: one sentence, everything that was not as it must be, and the proofs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass

from airmirror.errors import counted
from airmirror.flows.audit import Audited
from airmirror.flows.prepare import Opened
from airmirror.report.document import Document, Section
from airmirror.runbooks.failover.shown import headline
from airmirror.runbooks.rehearsal.clock import TimedStep
from airmirror.runbooks.rehearsal.positions import Proof
from airmirror.runbooks.rehearsal.rehearse import Rehearsal, rehearse
from airmirror.runbooks.runbook import Order, Progress


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
        """Return whether a failover would lose nothing of what has been replicated, and groups would resume exactly."""
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
            f"Failed over in: {names}. Not in it, since they write: three leases, of which each fences "
            f"{counted(self.made.slots, 'transactional id')}, the freezing record, and the positions of groups; and that a "
            f"planned failover waits until no application has written for {self.made.quiet_ms / 1000:g} s (failover.quiet.ms), "
            "and copies the rest."
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


def rehearsed(opened: Opened, order: Order, progress: Progress) -> Document:
    """Rehearse a failover; the document of it. Raises what ``rehearse`` does."""
    return shown(RehearsalReport.of(rehearse(opened, progress.phase)))


def shown(report: RehearsalReport) -> Document:
    """The document of a rehearsal: first what would go wrong."""
    made = report.made
    return Document(
        kind="failover rehearsal",
        about=f"Rehearsal of a failover of {report.flow}",
        headline=report.headline,
        is_good=report.is_good,
        asked={"flow": report.flow, "seconds_are_of": report.holds},
        numbers={"milliseconds": round(report.seconds * 1000), "records compared and equal": report.records},
        findings=made.plan.findings,
        sections=[
            problems_section(report.problems),
            steps_section(made.steps),
            compared_section(made.compared),
            proofs_section(made.proofs),
            Section("not_proven", [asdict(each) for each in made.not_judged], "Committed, not proven"),
        ],
        made_ms=made.ended_ms,
    )


def problems_section(problems: Sequence[str]) -> Section:
    """The problems that the day would bring."""
    return Section("problems", [{"problem": each} for each in problems], "What would go wrong", brief=("problem",))


def steps_section(steps: Sequence[TimedStep]) -> Section:
    """The steps and their times, and which of them a failover takes too."""
    rows = [
        {"step": each.name, "milliseconds": round(each.seconds * 1000), "of_a_failover": each.is_failover}
        for each in steps
    ]
    return Section("steps", rows, "Steps", brief=("step", "milliseconds"))


def compared_section(compared: Sequence[Audited]) -> Section:
    """The partitions that were compared."""
    rows = [
        {
            "topic": each.range.topic,
            "partition": each.range.partition,
            "first": each.range.start,
            "last": each.range.end - 1,
            "equal": each.equal,
            "expired": each.expired,
            "error": str(each.error) if each.error else "",
        }
        for each in compared
    ]
    return Section("compared", rows, "Records compared with the source")


def proofs_section(proofs: Sequence[Proof]) -> Section:
    """The positions of groups, wrong ones first."""
    rows = [asdict(each) for each in sorted(proofs, key=lambda each: not each.wrong)]
    return Section("groups", rows, "Consumer groups")
