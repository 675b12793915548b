"""The findings of a partition's parts as those of the whole; parts that may hold each other's records are compared as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from airmirror.evidence.found import Findings
from airmirror.evidence.mapped import Mapped
from airmirror.evidence.open_records import Open
from airmirror.evidence.parts import Execute, Part


@dataclass
class Work:
    """A partition, or a topic by key: its parts, and what was found of each."""

    topic: str
    remote_topic: str
    partition: int
    whole: Part
    parts: list[Part]
    found: list[Findings] = field(default_factory=list)


def compare_parts(works: Sequence[Work], execute: Execute, *, is_sample: bool) -> None:
    """Compare every part; then those once more, as one, that may hold each other's records. (Between a sample's are others.)"""
    answers = iter(execute([part for work in works for part in work.parts]))
    for work in works:
        work.found = [next(answers) for _ in work.parts]
    again = []
    for work in works if not is_sample else ():
        span = unsettled(work.found)
        if span is not None:
            first, last = span
            work.parts[first : last + 1] = [work.whole.within(work.parts[first].first, work.parts[last].end)]
            del work.found[first : last + 1]
            again.append((work, first))
    if again:
        found = execute([work.parts[number] for work, number in again])
        for (work, number), its in zip(again, found, strict=True):
            work.found.insert(number, its)


def unsettled(compared: Sequence[Findings]) -> tuple[int, int] | None:
    """The first and the last of the parts that may hold each other's records; None: no two may.

    They may if records of one side are open in any part: then each part that is not equal may have them in another place, or
    its border was taken for one of two places that look alike.
    """
    if not any(found.missing or found.extra for found in compared):
        return None
    chosen = [number for number, found in enumerate(compared) if found.differences or found.missing or found.extra]
    return (chosen[0], chosen[-1]) if len(chosen) > 1 else None


def together(work: Work) -> Findings:
    """The findings of parts in their order, as if they were compared as one; what is open stays open."""
    most = work.whole.most_open
    found = Findings(ranges=Mapped(most), missing=Open(most), extra=Open(most))
    for its in work.found:
        found.counts.update(its.counts)
        found.keeps_offsets = found.keeps_offsets and its.keeps_offsets
        found.first_pair = found.first_pair or its.first_pair
        found.last_pair = max(found.last_pair, its.last_pair)
        for each in its.differences:
            found.name(each)
        found.ranges.join(its.ranges)
        found.missing.join(its.missing)
        found.extra.join(its.extra)
    if work.parts and work.parts[-1].end[0] < work.whole.end[0]:  # the records from there on run together
        found.last_pair = max(found.last_pair, work.parts[-1].end)
    return found
