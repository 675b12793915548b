"""The rehearsals of all runbooks, and their report: one sentence, everything that was not as it must be, and the proofs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from airmirror.errors import counted
from airmirror.flows.audit import Audited
from airmirror.report.document import Document, Finding, Row, Section
from airmirror.rows import rows_of
from airmirror.runbooks.rehearsal.clock import TimedStep
from airmirror.runbooks.rehearsal.positions import Proof


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
        """Return whether nothing is known that would go wrong."""
        return not self.problems

    @property
    def seconds(self) -> float:
        """The time that it took."""
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
        """All of it in a sentence or two."""
        return f"{self.flow} rehearsed in {self.seconds:.0f} s: {self.exact}"

    def document(
        self, kind: str, about: str, asked: Row, findings: Sequence[Finding] = (), more: Sequence[Section] = ()
    ) -> Document:
        """The document of it: first what would go wrong. ``more``: sections of its own."""
        numbers: Mapping[str, int] = {
            "milliseconds": round(self.seconds * 1000),
            "records compared and equal": self.records,
        }
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
            numbers=numbers,
            findings=findings,
            sections=[
                Section("problems", problems, "What would go wrong", brief=("problem",)),
                Section("steps", steps, "Steps", brief=("step", "milliseconds")),
                Section("compared", compared, "Records compared with the source"),
                Section("groups", proofs, "Consumer groups"),
                *more,
            ],
            made_ms=self.ended_ms,
        )


def found_wrong(compared: Iterable[Audited], proofs: Iterable[Proof]) -> Iterator[str]:
    """Yield what comparisons and proofs of positions have found."""
    for each in compared:
        if each.error:
            yield str(each.error)
    for proof in proofs:
        if proof.wrong:
            yield f"group {proof.group} in {proof.topic}-{proof.partition} at {proof.position}: {proof.wrong}"
