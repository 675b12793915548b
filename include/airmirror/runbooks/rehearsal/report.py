"""The rehearsals of all runbooks, and their report: the steps with how long each took, the newest records compared, the proofs,
and everything that was not as it must be."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from airmirror.errors import counted
from airmirror.flows.audit import Audited, Range, audit
from airmirror.flows.prepare import Opened
from airmirror.partitions import TopicPartition
from airmirror.report.document import Document, Finding, Row, Section
from airmirror.rows import rows_of
from airmirror.runbooks.rehearsal.positions import Proof
from airmirror.tell import Tell


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
    """A rehearsal that ended at ``ended_ms`` (epoch milliseconds). ``problems``: what would go wrong on the day, a line each;
    ``proofs``: groups where they would resume now; ``compared``: the newest records."""

    flow: str
    ended_ms: int
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
        names = {proof.group for proof in self.proofs}
        exact = names - {proof.group for proof in self.proofs if proof.wrong}
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
        proofs = [asdict(each) for each in sorted(self.proofs, key=lambda each: not each.wrong)]
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
            made_ms=self.ended_ms,
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
            yield f"group {proof.group} in {proof.topic}-{proof.partition} at {proof.position}: {proof.wrong}"
