"""Following: a slot that has reached the planned ends copies what comes, until its time is up or its driver ends it.

It is the same copy, whose ends move. While nothing comes nothing is open.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from airmirror.slot.intake import Intake
from airmirror.slot.lease import LeaseLog

NO_END = 1 << 62  # more than any offset
START_SECONDS = 30.0  # from a window's lease until its slots begin: what Spark takes longer counts as followed


def seconds_left(follow_ms: int, age: float) -> float:
    """The most seconds that a slot which begins now still follows; ``age``: of its window's lease.

    A slot follows for the whole time since it began. One that Spark has started again ends soon after the others, whatever
    its own clock says.
    """
    return min(follow_ms / 1000, follow_ms / 1000 + START_SECONDS - age)


@dataclass
class Following:
    """A slot that follows ``until`` then, by ``time.monotonic``, and commits what came after ``commit_ms``.

    ``again_at``: when partitions that were left out are taken in again.
    """

    until: float
    commit_ms: int
    lease: LeaseLog
    again_at: float = math.inf

    def step(self, intakes: Sequence[Intake]) -> None:
        """End what is held, and everything when the time is up."""
        now = time.monotonic()
        for intake in intakes:
            if intake.partition.key in self.lease.held:
                intake.end_at(intake.position)
            elif now >= self.until:
                intake.end_at(max(intake.position, intake.planned))

    @property
    def takes_in_again(self) -> bool:
        """Return whether the attempt ends, whatever there is left to copy, so that the next one takes in what was left out."""
        return self.again_at <= time.monotonic() < self.until

    def is_due(self, intakes: Sequence[Intake], elapsed_ms: float) -> bool:
        """Return whether what came is to be committed; up to the planned ends it is committed as in other windows."""
        return elapsed_ms >= self.commit_ms and all(intake.position >= intake.planned for intake in intakes)
