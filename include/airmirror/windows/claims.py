"""Claims: the right of one window to write for a flow (invariant B).

Who holds the claim is decided by the order of the records in the segment topic and the times the broker gave them, so
everybody who reads them comes to the same answer: a claim is granted where none is held, or the held one was released or
not renewed for its lease. A renewal counts for its holder only: it never makes an older claim the newest.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from types import TracebackType

from airmirror.errors import AirmirrorError
from airmirror.wire.segments import Claim, ClaimEvent

log = logging.getLogger(__name__)

LEASE_MS = 30_000
RENEW_SECONDS = 10.0


@dataclass(frozen=True)
class ClaimEntry:
    """A claim record as it lies in the segment topic; ``timestamp`` is the broker's (milliseconds)."""

    offset: int
    timestamp: int
    claim: Claim


@dataclass(frozen=True)
class Held:
    """The claim that counts, and when it was last renewed."""

    claim: Claim
    renewed: int
    released: bool = False

    def alive_at(self, timestamp: int) -> bool:
        return not self.released and timestamp - self.renewed <= self.claim.lease_ms


def holder(entries: Iterable[ClaimEntry], *, compacted: bool = False) -> Held | None:
    """Who holds the claim after ``entries``, in log order.

    ``compacted``: of some windows only the last record is known, as the ledger and a compacted topic keep them. A window
    that renews was granted its claim before, so the latest of those counts.
    """
    held: Held | None = None
    for entry in entries:
        claim = entry.claim
        if held and held.claim.window == claim.window:
            released = claim.event is ClaimEvent.RELEASED
            held = Held(claim, entry.timestamp, released)
        elif claim.event is ClaimEvent.CLAIMED:
            if not (held and held.alive_at(entry.timestamp)):
                held = Held(claim, entry.timestamp)
        elif compacted and claim.event is ClaimEvent.RENEWED and (held is None or held.claim.time_ms < claim.time_ms):
            held = Held(claim, entry.timestamp)
    return held


def most_slots(entries: Iterable[ClaimEntry]) -> int:
    """The largest number of slots that any claim ever had: so many transactional ids must be fenced."""
    return max((entry.claim.slots for entry in entries), default=0)


class Renewal:
    """Renews a claim every ten seconds in a thread of its own while its window runs; a context manager."""

    def __init__(self, claim: Claim, append: Callable[[Claim], object]) -> None:
        self.claim = claim
        self._append = append
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"claim {claim.window}", daemon=True)

    def __enter__(self) -> Renewal:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def grow(self, slots: int) -> None:
        """Renew the claim for more slots, from now on."""
        self.claim = replace(self.claim, slots=slots)
        self._append(replace(self.claim, event=ClaimEvent.RENEWED))

    def _run(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            try:
                self._append(replace(self.claim, event=ClaimEvent.RENEWED))
            except AirmirrorError as error:  # the next renewal may come in time; the fence keeps the data right
                log.warning("the claim of window %s was not renewed: %s", self.claim.window, error)
