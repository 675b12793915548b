"""The flow's limit (``throttle.bytes.per.second``) in one slot: a token bucket for the bytes that it fetches.

Its share of the limit fills it. Slots know nothing of each other but what they commit, and each reads that in the mapping topic
before its own commits. From it all of them work out the same shares, whose sum is the limit: a slot is given what it has used
lately and as much again, where there is enough; slots that want more than that share the rest equally; what none wants is
spread over all. So a slot that has little to copy, has not begun or has ended leaves its part to the others within seconds, and
gets it back as it needs it.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from airmirror.slot.contract import Slot

SAMPLE_MS = 15_000  # what was committed in this time tells what a slot needs
COMMIT_MS = 5_000  # a slot that is limited commits at least so often, or the others would not know
BURST_SECONDS = 0.25  # of its share, which a slot may save up, and fetches at once
LEAST_BYTES = 16 << 10  # fetched at once
GROWTH = 2.0  # of what a slot has used lately
LEAST_PART = 1 / 16  # of an equal share, which an idle slot has in any case


class Commits:
    """The bytes that the slots of a window have committed lately, by slot."""

    def __init__(self) -> None:
        self._of: dict[int, deque[tuple[int, int]]] = {}
        self._newest = 0

    def note(self, slot: int, time_ms: int, size: int) -> None:
        """Take note of a commit of a slot at a time of the target's clock (epoch milliseconds), which may jump back."""
        self._newest = max(self._newest, time_ms)
        commits = self._of.setdefault(slot, deque())
        commits.append((time_ms, size))
        while commits and commits[0][0] < self._newest - SAMPLE_MS:
            commits.popleft()

    def rates(self) -> dict[int, float]:
        """The bytes a second of each slot that has committed anything, up to the newest commit."""
        since = self._newest - SAMPLE_MS
        return {
            slot: sum(size for time_ms, size in commits if time_ms >= since) / SAMPLE_MS * 1000
            for slot, commits in self._of.items()
        }


def fair_share(limit: float, own: float, others: Sequence[float]) -> float:
    """The part of ``limit`` of a slot, from the bytes a second that it and the others have used lately."""
    slots = len(others) + 1
    wants = [max(GROWTH * rate, LEAST_PART * limit / slots) for rate in (own, *others)]
    left = limit
    for number, want in enumerate(sorted(wants)):
        level = left / (slots - number)
        if want > level:
            return min(wants[0], level)
        left -= want
    return wants[0] + left / slots


@dataclass
class Limit:
    """Of one slot, kept from attempt to attempt. ``waited``: the seconds in which it could have fetched but for the limit."""

    flow: float  # bytes a second; infinite: there is no limit
    number: int
    slots: int
    waited: float = 0.0
    share: float = field(init=False)
    _tokens: float = 0.0
    _filled: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.share = self.flow / self.slots

    @classmethod
    def of(cls, slot: Slot) -> Limit:
        limit = slot.flow.window.throttle_bytes_per_second
        return cls(math.inf if limit is None else float(limit), slot.number, slot.slots)

    @property
    def is_set(self) -> bool:
        return self.flow < math.inf

    @property
    def most(self) -> float:
        """The most bytes to fetch at once."""
        return max(LEAST_BYTES, self.share * BURST_SECONDS)

    @property
    def commit_ms(self) -> float:
        """After how long the slot commits, so that the others know."""
        return COMMIT_MS if self.is_set and self.slots > 1 else math.inf

    def took(self, size: int) -> None:
        """Take note of bytes that were fetched."""
        if self.is_set:
            self._fill()
            self._tokens -= size

    @property
    def seconds(self) -> float:
        """The time until something may be fetched again."""
        if not self.is_set:
            return 0.0
        self._fill()
        return max(0.0, -self._tokens / self.share)

    def wait(self, most: float) -> None:
        """Wait until something may be fetched again, or for ``most`` seconds."""
        if seconds := min(self.seconds, most):
            time.sleep(seconds)  # nothing happens but that time passes
            self.waited += seconds

    def share_out(self, commits: Commits) -> None:
        """Work out the slot's share again."""
        if self.is_set and self.slots > 1:
            rates = commits.rates()
            own = rates.pop(self.number, 0.0)
            idle = [0.0] * (self.slots - 1 - len(rates))
            self._fill()
            self.share = fair_share(self.flow, own, [*rates.values(), *idle])

    def _fill(self) -> None:
        now = time.monotonic()
        self._tokens = min(self._tokens + (now - self._filled) * self.share, self.share * BURST_SECONDS)
        self._filled = now
