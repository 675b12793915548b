"""Parts of a comparison as plain values, which can be sent to another process; the comparison of one part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.routes import Routes
from airmirror.evidence.by_key import compare_by_key
from airmirror.evidence.comparing import compare_ranges
from airmirror.evidence.found import Findings
from airmirror.evidence.logs import Log
from airmirror.evidence.open_records import MOST_OPEN
from airmirror.evidence.settling import told_apart
from airmirror.partitions import TopicPartition

CLIENT = "airmirror|compare"


@dataclass(frozen=True)
class View:
    """The records of both logs that count: as consumers with read_committed see them, with their timestamps or without."""

    is_committed: bool = True
    times: bool = True


@dataclass(frozen=True)
class Bounds:
    """The offsets ``[start, end)`` of a partition, of which ``[since, until)`` is compared; it begins at ``log_start``.

    ``withheld``: offsets from ``until`` on that were asked for, and that open transactions keep back.
    """

    partition: TopicPartition
    start: int
    end: int
    since: int
    until: int
    log_start: int
    is_compacted: bool
    withheld: int = 0

    def log(self, routes: Routes, view: View) -> Log:
        """The log of these offsets."""
        its = {name: value for name, value in vars(self).items() if name != "withheld"}
        return Log(routes, **its, is_committed=view.is_committed, times=view.times)


@dataclass(frozen=True)
class Part:
    """Ranges of both logs of a partition that are compared as one; of several partitions a side: they are compared by key.

    ``is_whole``: it is all that is compared of them. ``most_open`` records of either side are kept to be found on the other.
    """

    source: tuple[Bounds, ...]
    target: tuple[Bounds, ...]
    is_whole: bool = True
    most_open: int = MOST_OPEN

    @property
    def is_by_key(self) -> bool:
        return len(self.source) != len(self.target)

    def within(self, start: tuple[int, int], end: tuple[int, int]) -> Part:
        """The part between two places, each an offset of the source and one of the target."""
        one, other = self.source[0], self.target[0]
        is_whole = start == (one.start, other.start) and end == (one.end, other.end)
        source, target = replace(one, start=start[0], end=end[0]), replace(other, start=start[1], end=end[1])
        return Part((source,), (target,), self.is_whole and is_whole, self.most_open)

    @property
    def first(self) -> tuple[int, int]:
        """The first offset of either side."""
        return self.source[0].start, self.target[0].start

    @property
    def end(self) -> tuple[int, int]:
        """The end of either side, not included."""
        return self.source[0].end, self.target[0].end


Execute = Callable[[Sequence[Part]], list[Findings]]
"""Compares every part; what was found, in their order."""


def compare_part(here: Routes, there: Routes, view: View, part: Part) -> Findings:
    """Compare one part; of a whole one what is late or compacted is separated. Raises what reading the logs raises."""
    source, target = (
        [each.log(routes, view) for each in side] for routes, side in ((here, part.source), (there, part.target))
    )
    if part.is_by_key:
        return compare_by_key(source, target)
    found = compare_ranges(source[0], target[0], part.most_open)
    return told_apart(found, source[0], target[0]) if part.is_whole else found


def in_this_process(here: Routes, there: Routes, view: View) -> Execute:
    """One part after the other."""
    return lambda parts: [compare_part(here, there, view, part) for part in parts]
