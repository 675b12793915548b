"""Following: a slot that has reached the planned ends goes on with what comes, until its time is up.

It is the same copy, whose ends move. While nothing comes nothing is open: the slot looks at its claim all the same, so that a
newer window, or whoever ends this one, does not wait for it (invariant B).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from airmirror.slot.claim import ClaimLog
from airmirror.slot.intake import Intake

CLAIM_SECONDS = 1.0  # between two looks at the claim
NO_END = 1 << 62  # more than any offset


@dataclass
class Following:
    """A slot that follows ``until`` then, by ``time.monotonic``, and commits what came after ``commit_ms``."""

    until: float
    commit_ms: int
    claim: ClaimLog
    looked: float = field(default_factory=time.monotonic)

    def step(self, intakes: Sequence[Intake]) -> None:
        """Look at the claim if it is time to; end what is held, and everything when the time is up. Raises SlotFenced."""
        now = time.monotonic()
        if now - self.looked >= CLAIM_SECONDS:
            self.looked = now
            self.claim.check()
        for intake in intakes:
            if intake.partition.source in self.claim.held:
                intake.end_at(intake.position)
            elif now >= self.until:
                intake.end_at(max(intake.position, intake.planned))

    def is_due(self, intakes: Sequence[Intake], elapsed_ms: float) -> bool:
        """Return whether what came is to be committed; up to the planned ends it is committed as in other windows."""
        return elapsed_ms >= self.commit_ms and all(intake.position >= intake.planned for intake in intakes)
