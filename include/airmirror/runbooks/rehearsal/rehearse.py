"""A failover rehearsed: its steps as they would be now, timed, but for what writes; then the proofs. Production is only read.

What the rehearsals of all runbooks are made of, and their report, lies here too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from airmirror.errors import AirmirrorError, counted
from airmirror.flows.audit import Audited, Range, audit
from airmirror.flows.freezing import check_open
from airmirror.flows.prepare import Opened, caught_up
from airmirror.partitions import TopicPartition
from airmirror.report.document import Document, Finding, Row, Section
from airmirror.rows import rows_of
from airmirror.runbooks.failover.alone import Unproven, verified_alone
from airmirror.runbooks.failover.plan import FailoverPlan, failover_plan, unreachable
from airmirror.runbooks.failover.shown import headline
from airmirror.runbooks.rehearsal.positions import Proof, prove
from airmirror.runbooks.runbook import Order, Progress
from airmirror.tell import Tell, silent
from airmirror.windows.mirror import Mirror


class RehearsalNeedsSource(AirmirrorError, transient=True):
    """A rehearsal whose source can't be reached: nothing can be compared. ``reason``: what came of asking it."""

    flow: str
    reason: str
    says = (
        "flow {0.flow!r}: a rehearsal compares with the source, which can't be reached; {airmirror:failover plan} needs only the "
        "target: {0.reason}"
    )


@dataclass(frozen=True)
class TimedStep:
    """One step. ``is_failover``: the real thing takes this time too; else it is a proof."""

    name: str
    seconds: float
    is_failover: bool


@dataclass(frozen=True)
class Clock:
    """Measures steps, those that have ended; ``tell`` hears of each when it begins."""

    tell: Tell
    steps: list[TimedStep] = field(default_factory=list)

    @contextmanager
    def __call__(self, name: str, *, is_failover: bool = False) -> Iterator[None]:
        self.tell(name)
        begun = time.monotonic()
        yield
        self.steps.append(TimedStep(name, time.monotonic() - begun, is_failover))


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """A rehearsal. ``problems``: what would go wrong on the day, a line each; ``proofs``: groups where they would resume now;
    ``compared``: the newest records."""

    flow: str
    steps: tuple[TimedStep, ...]
    problems: tuple[str, ...]
    compared: tuple[Audited, ...]
    proofs: tuple[Proof, ...]

    @property
    def is_good(self) -> bool:
        return not self.problems

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps)

    @property
    def records(self) -> int:
        """Records that were compared and are equal on both sides."""
        return sum(each.equal for each in self.compared)

    @property
    def exact(self) -> str:
        """The number of groups with exact positions alone, and whether the rehearsal has failed, in words."""
        names = {proof.point.group for proof in self.proofs}
        exact = names - {proof.point.group for proof in self.proofs if proof.wrong}
        failed = "" if self.is_good else f" The rehearsal has failed: {counted(len(self.problems), 'problem')}."
        return f"{len(exact)} of {counted(len(names), 'group')} exact.{failed}"

    @property
    def headline(self) -> str:
        return f"{self.flow} rehearsed in {self.seconds:.0f} s: {self.exact}"

    def document(
        self, kind: str, about: str, asked: Row, findings: Sequence[Finding] = (), more: Sequence[Section] = ()
    ) -> Document:
        """The document of it: first what would go wrong. ``more``: sections of its own."""
        problems = [{"problem": each} for each in self.problems]
        steps = [
            {"step": each.name, "milliseconds": round(each.seconds * 1000), "of_a_failover": each.is_failover}
            for each in self.steps
        ]
        compared = rows_of(
            self.compared,
            "topic=range.topic partition=range.partition first=range.start last equal expired error",
            last=lambda each: each.range.end - 1,
            error=lambda each: str(each.error or ""),
        )
        wrong_first = sorted(self.proofs, key=lambda each: not each.wrong)
        proofs = rows_of(
            wrong_first,
            "group=point.group topic=point.topic partition=point.partition position=point.position "
            "remote_topic=point.remote_topic translation=point.translation again=point.again wrong",
        )
        return Document(
            kind=kind,
            about=about,
            headline=self.headline,
            is_good=self.is_good,
            asked={"flow": self.flow, **asked},
            numbers={"milliseconds": round(self.seconds * 1000), "records compared and equal": self.records},
            findings=findings,
            sections=[
                Section("problems", problems, "What would go wrong", brief="*"),
                Section("steps", steps, "Steps", brief="step milliseconds"),
                Section("compared", compared, "Records compared with the source"),
                Section("groups", proofs, "Consumer groups"),
                *more,
            ],
        )


def compare_newest(opened: Opened, ends: Mapping[TopicPartition, int], most: int, tell: Tell) -> list[Audited]:
    """Compare ``most`` source offsets of each partition before ``ends``, where what is verified of it ends, as an audit does.

    What lies before the first replicated offset, or has expired on either side, is no difference. Raises what ``audit`` does.
    """
    ranges = [Range(*key, max(0, end - most), end) for key, end in sorted(ends.items()) if end]
    if not ranges:
        return []
    return list(audit(opened, ranges, refuse_before=False, refuse_missing=True, tell=tell).partitions)


def found_wrong(compared: Iterable[Audited], proofs: Iterable[Proof]) -> Iterator[str]:
    for each in compared:
        if each.error:
            yield str(each.error)
    for proof in proofs:
        if proof.wrong:
            yield f"group {proof.point.group} in {proof.point.key} at {proof.point.position}: {proof.wrong}"


@dataclass(frozen=True, kw_only=True)
class FailoverRehearsal(Rehearsal):
    """A failover rehearsed. ``slots``: the transactional ids that each lease of a failover fences; ``quiet_ms``: how long a
    planned one waits at least."""

    plan: FailoverPlan
    unproven: tuple[Unproven, ...]
    slots: int
    quiet_ms: int

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps if step.is_failover)

    @property
    def holds(self) -> str:
        """The steps that this time is of, and what a failover does besides."""
        names = ", ".join(step.name for step in self.steps if step.is_failover)
        return (
            f"Failed over in: {names}. Not in it, since they write: three leases, of which each fences "
            f"{counted(self.slots, 'transactional id')}, the freezing record, and the positions of groups; and that a planned "
            f"failover waits until no application has written for {self.quiet_ms / 1000:g} s (failover.quiet.ms), and copies the "
            "rest."
        )

    @property
    def headline(self) -> str:
        differing = sum(1 for each in self.compared if each.error)
        whole = f"0 of {self.records:,} records missing"
        if differing:
            whole = f"{counted(differing, 'partition')} not whole ({self.records:,} records are)"
        return (
            f"{self.flow} rehearsed: failed over in {self.seconds:.0f} s, {whole}, {self.exact} {headline(self.plan)}"
        )


def rehearsed(opened: Opened, order: Order, progress: Progress) -> Document:
    return shown(rehearse(opened, progress.phase))


def shown(made: FailoverRehearsal) -> Document:
    not_proven = Section("not_proven", [asdict(each) for each in made.unproven], "Committed, not proven")
    about, asked = f"Rehearsal of a failover of {made.flow}", {"seconds_are_of": made.holds}
    return made.document("failover rehearsal", about, asked, made.plan.findings, [not_proven])


def rehearse(opened: Opened, tell: Tell = silent) -> FailoverRehearsal:
    """Rehearse a failover of the flow. What is not as it must be is in the answer.

    Raises FlowFrozen, RehearsalNeedsSource, or a cluster's error.
    """
    opened = caught_up(opened, soon=True)
    flow = opened.flow
    check_open(opened)
    if error := unreachable(opened):
        raise RehearsalNeedsSource(flow.name, error)
    step = Clock(tell)
    with step("looking at both clusters", is_failover=True):
        plan = failover_plan(opened)
    with Mirror.open(flow, opened.ledger, "rehearsal") as mirror:
        with step("judging what is committed", is_failover=True):
            copied = opened.ledger.last_mappings()
            unproven = verified_alone(mirror, mirror.current_state(), "rehearsal")[1] if copied else []
        with step("reading the next record of each group on both sides"):
            proofs = prove(mirror, plan.groups)
    ends = {each.key: each.verified_end for each in plan.partitions if each.remote_topic}
    with step("comparing records with the source"):
        compared = compare_newest(opened, ends, flow.settings.failover_rehearsal_records, tell)
    return FailoverRehearsal(
        flow=flow.name,
        steps=tuple(step.steps),
        problems=(*_problems(plan, unproven), *found_wrong(compared, proofs)),
        plan=plan,
        unproven=tuple(unproven),
        compared=tuple(compared),
        proofs=tuple(proofs),
        slots=max([1, *(lease.slots for _, _, lease in opened.ledger.leases())]),
        quiet_ms=flow.settings.failover_quiet_ms,
    )


def _problems(plan: FailoverPlan, unproven: Sequence[Unproven]) -> Iterator[str]:
    """Yield what would go wrong on the day, by the plan."""
    for finding in plan.findings:
        if finding.level == "stop":
            yield f"{finding.what}: {finding.evidence}"
    for each in unproven:
        yield f"{each.topic}-{each.partition} from offset {each.first} on is not proven: {each.reason}"
