"""The result of a comparison: a row for each partition, with its differences and the reservations about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airmirror.errors import AirmirrorError
from airmirror.evidence.asking import ComparisonRequest
from airmirror.evidence.comparing import REMEMBERED
from airmirror.evidence.found import Difference, Findings, Kind
from airmirror.evidence.joining import Work
from airmirror.evidence.parts import Part


@dataclass(frozen=True)
class ComparedLogs:
    """One partition, or a topic as a whole where partitions differ in number (``partition`` -1): counts and differences.

    ``ranges``: of a sample, the offsets that were compared, ``(source start, source end, target start, target end)``; ``offsets``
    how many of ``of_offsets`` these are on the source; ``withheld``: further ones of both sides that open transactions keep
    back, so that it is not known whether they are equal. ``notes`` say how sure it is; ``error`` why it could not be compared.
    """

    topic: str
    remote_topic: str
    partition: int
    counts: Mapping[Kind, int] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    keeps_offsets: bool = False
    notes: tuple[str, ...] = ()
    error: AirmirrorError | None = None
    findings: Findings | None = field(default=None, repr=False, compare=False)
    ranges: tuple[tuple[int, int, int, int], ...] = ()
    offsets: int = 0
    of_offsets: int = 0
    withheld: int = 0

    @property
    def differs(self) -> bool:
        """Return whether anything of what was compared differs, or nothing could be."""
        return self.error is not None or (self.findings is not None and not self.findings.is_equal)

    @property
    def is_whole(self) -> bool:
        """Return whether everything was compared."""
        return self.error is None and self.offsets == self.of_offsets and not self.withheld

    @property
    def is_equal(self) -> bool:
        return self.is_whole and not self.differs

    @property
    def passes(self) -> bool:
        """Return whether nothing differs, and all that was to be compared could be read."""
        return not self.differs and not self.withheld

    @property
    def result(self) -> str:
        """Say what is known, in words."""
        if self.error is not None:
            return "not compared"
        if self.differs or self.withheld:
            return "differs" if self.differs else "not known"
        return "equal" if self.is_whole else "nothing differs in the sample"

    def as_dict(self) -> dict[str, Any]:
        """For JSON: every run of differences by its offsets. ``is_equal`` is null where too little was read to know."""
        return {
            "topic": self.topic,
            "remote_topic": self.remote_topic,
            "partition": self.partition if self.partition >= 0 else None,
            "is_equal": None if not self.differs and not self.is_whole else self.is_equal,
            "records": {str(kind): self.counts.get(kind, 0) for kind in Kind},
            "keeps_offsets": self.keeps_offsets,
            "offsets_compared": self.offsets,
            "offsets": self.of_offsets,
            "offsets_withheld": self.withheld,
            "ranges": [list(each) for each in self.ranges],
            "differences": [each.as_dict() for each in self.differences],
            "notes": list(self.notes),
            "error": str(self.error) if self.error else None,
        }


def row_of(asked: ComparisonRequest, work: Work, found: Findings) -> ComparedLogs:
    """The row of a partition's findings, settled."""
    whole = work.whole
    extent = sum(each.end - each.start for each in whole.source)
    read = sum(each.end - each.start for part in work.parts for each in part.source)
    ranges = [(*part.first, *part.end) for part in work.parts] if asked.sample and not whole.is_by_key else []
    return ComparedLogs(
        work.topic,
        work.remote_topic,
        work.partition,
        counts={kind: found.counts[kind] for kind in Kind if found.counts[kind]},
        differences=tuple(found.differences),
        keeps_offsets=found.keeps_offsets and bool(found.counts[Kind.EQUAL]),
        notes=(*_withheld(whole), *(_by_key_notes(asked, whole) if whole.is_by_key else _notes(asked, work, found))),
        findings=found,
        ranges=tuple((one, end, other, its_end) for one, other, end, its_end in ranges),
        offsets=read,
        of_offsets=extent,
        withheld=sum(each.withheld for each in (*whole.source, *whole.target)),
    )


def _withheld(whole: Part) -> tuple[str, ...]:
    return tuple(
        f"{side}: an open transaction keeps back {each.withheld:,} offsets of partition {each.partition.partition} from "
        f"{each.until} on: whether they are equal is not known; compare again when it has ended"
        for side, bounds in (("source", whole.source), ("target", whole.target))
        for each in bounds
        if each.withheld
    )


def _by_key_notes(asked: ComparisonRequest, whole: Part) -> tuple[str, ...]:
    note = (
        f"{len(whole.source)} partitions on the source, {len(whole.target)} on the target: compared by key, in the order of each "
        "key; no offsets are named"
    )
    return (note, "not sampled: all of it was compared") if asked.sample else (note,)


def _notes(asked: ComparisonRequest, work: Work, found: Findings) -> Iterator[str]:
    """Yield the reservations about the counts."""
    source, target = work.whole.source[0], work.whole.target[0]
    if not asked.times:
        yield "timestamps were not compared"
    if found.counts[Kind.EXTRA]:
        yield f"extra records were looked for among the {REMEMBERED:,} source offsets before them"
    for name, open_ in (("missing", found.missing), ("extra", found.extra)):
        if open_.given_up:
            yield (
                f"{open_.given_up:,} records that are {name} so far were given up, since more than {open_.most:,} were open at "
                "once: they are counted by their place; if the other side has them much later, or in another partition, it "
                "is counted as twice, extra or missing there"
            )
    if found.counts[Kind.LAGGING]:
        yield "lagging records come after all that the target has: they are still to come, or lost at its end"
    if found.counts[Kind.EXPIRED]:
        yield f"the logs start at {source.log_start} and {target.log_start}: what came before was not compared"
    if asked.sample and (found.counts[Kind.MISSING] or found.counts[Kind.EXTRA]):
        yield "of a sample: what is missing or extra may lie in what was not read; compare without --sample to know"
    if not found.are_all_named:
        yield "more differences than are named"


def totals(rows: Sequence[ComparedLogs]) -> Counter[Kind]:
    """Records of every kind, over all rows."""
    return sum((Counter(row.counts) for row in rows), Counter())
