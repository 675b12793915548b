"""Claims: the right of one window to write for a flow (invariant B).

Who holds the claim is decided by the order of the records in the segment topic and the times the broker gave them, so
everybody who reads them comes to the same answer: a claim is granted where none is held, or the held one was released or
not renewed for its lease, or is the same window's (a new attempt of it takes over). A renewal counts for its holder only,
which window and owner identify: it never makes an older claim the newest. Whoever is granted a claim renews it at once,
so a claim that was not renewed and is not the latest record was refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from airmirror.wire.segments import Claim, ClaimEvent

LEASE_MS = 30_000


@dataclass(frozen=True)
class ClaimEntry:
    """A claim record as it lies in the segment topic; ``timestamp`` is the broker's (milliseconds)."""

    offset: int
    timestamp: int
    claim: Claim


@dataclass(frozen=True)
class CurrentClaim:
    """The claim that counts, where it lies in the log, and when it was last renewed."""

    claim: Claim
    offset: int
    renewed: int
    released: bool = False

    def alive_at(self, timestamp: int) -> bool:
        return not self.released and timestamp - self.renewed <= self.claim.lease_ms

    def keeps_out(self, timestamp: int) -> bool:
        """Return whether it refuses who claims after it in the log, at that time. One that was renewed in the future does not:
        the broker's clock was set back since, and a window that lives has renewed its claim again by then."""
        return self.alive_at(timestamp) and self.renewed - timestamp <= self.claim.lease_ms


def note(entries: list[ClaimEntry], entry: ClaimEntry) -> None:
    """Append the next claim that was read. Of a holder's renewals in a row the last one counts: hours of them are few."""
    last = entries[-1].claim if entries else None
    if last is not None and replace(entry.claim, slots=last.slots) == last and last.event is ClaimEvent.RENEWED:
        entries.pop()
    entries.append(entry)


def holder(entries: Iterable[ClaimEntry], *, compacted: bool = False) -> CurrentClaim | None:
    """Return the holder of the claim after ``entries``, in log order.

    A renewal proves that its window was granted its claim: if that lies later than the held one it counts, alive or not.
    So two windows never both hold the claim, whatever made the later one believe that the earlier was over.
    ``compacted``: of some windows only the last record is known, as the ledger and a compacted topic keep them. Of those
    that were renewed, the one that was granted last counts, by the broker's time of its claim.
    """
    entries = list(entries)
    held = _granted_last(entries) if compacted else None
    if held is not None:
        since = held.claim.time_ms
        entries = [entry for entry in entries if _is_claim_of_another(entry, held) and entry.timestamp >= since]
    claimed: dict[tuple[str, str], int] = {}
    for entry in entries:
        claim = entry.claim
        who = claim.window, claim.owner
        if claim.event is ClaimEvent.CLAIMED:
            claimed[who] = entry.offset
            if not held or held.claim.window == claim.window or not held.alive_at(entry.timestamp):
                held = CurrentClaim(claim, entry.offset, entry.timestamp)
        elif held and who == (held.claim.window, held.claim.owner):
            # Who was ended from outside may renew once more.
            released = held.released or claim.event is ClaimEvent.RELEASED
            held = CurrentClaim(claim, held.offset, entry.timestamp, released)
        elif held and claimed.get(who, -1) > held.offset:
            held = CurrentClaim(claim, claimed[who], entry.timestamp, claim.event is ClaimEvent.RELEASED)
    return held


def _granted_last(entries: Sequence[ClaimEntry]) -> CurrentClaim | None:
    """Of the windows that have renewed their claim (or released it) the one that was granted it last."""
    renewed = [entry for entry in entries if entry.claim.event is not ClaimEvent.CLAIMED]
    if not renewed:
        return None
    last = max(renewed, key=lambda entry: (entry.claim.time_ms, entry.offset))
    same = [entry.claim for entry in renewed if entry.claim.window == last.claim.window]
    released = any(claim.event is ClaimEvent.RELEASED for claim in same if claim.time_ms == last.claim.time_ms)
    return CurrentClaim(last.claim, last.offset, last.timestamp, released)


def _is_claim_of_another(entry: ClaimEntry, held: CurrentClaim) -> bool:
    return entry.claim.event is ClaimEvent.CLAIMED and entry.claim.window != held.claim.window


def most_slots(entries: Iterable[ClaimEntry]) -> int:
    """The largest number of slots that any claim ever had: that many transactional ids must be fenced."""
    return max((entry.claim.slots for entry in entries), default=0)
