"""Whatever can be put back or taken away: each field is a rule of the protocol, and False breaks it.

Decisions that the product takes in pure functions are taken by those functions here: who holds the claim.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from airmirror.wire import claims
from airmirror.wire.claims import ClaimEntry, CurrentClaim
from airmirror.wire.segments import Claim, ClaimEvent
from model.world import ClaimRecord

EVENTS = {
    "claimed": ClaimEvent.CLAIMED,
    "renewed": ClaimEvent.RENEWED,
    "released": ClaimEvent.RELEASED,
}
LEASE = 0  # a claim lives as long as the clock stands; the model's clock goes on in leases

Holder = Callable[..., CurrentClaim | None]


@dataclass(frozen=True)
class Rules:
    """The protocol as it is meant. The letters are the invariants (docs/protocol.md) and the findings that a rule closes."""

    positions_from_segments: bool = True  # B1: and not from mm2-offsets
    ledger_is_whole: bool = True  # B1: no plan reads a ledger that is being rebuilt
    driver_checks_claim: bool = True  # S8: initialise, look at the claim, write, as slots do
    initialises_first: bool = True  # B: a slot initialises, then looks at the claim
    slot_checks_claim: bool = True  # B
    renews_at_once: bool = True  # B: a claim that was granted is renewed at once, and says when by the broker's clock
    courtesy: bool = True  # a newcomer waits while a claim is alive (what is copied must be right without)
    fences: bool = True  # B
    fences_every_id: bool = True  # B: those of earlier windows that had more slots too
    release_then_fence: bool = True  # who ends a window releases its claim, then fences its ids
    fences_released: bool = True  # who ends a window fences it where its driver has released the claim already
    continues: bool = True  # C: an attempt goes on after what is committed, not at the plan
    carries_target_end: bool = (
        True  # S1: a segment record without records says where the last one ended, not the plan's end
    )
    one_transaction: bool = True  # A: records and segments are committed together
    holder: Holder = claims.holder  # who holds the claim


def holder_before(entries: Sequence[ClaimEntry], *, compacted: bool = False) -> CurrentClaim | None:
    """As it was (M5): a refused claim that nobody deleted hides the living one, and clocks of claimants are compared."""
    held: CurrentClaim | None = None
    for entry in entries:
        claim = entry.claim
        if held and held.claim.window == claim.window:
            held = CurrentClaim(claim, entry.offset, entry.timestamp, claim.event is ClaimEvent.RELEASED)
        elif claim.event is ClaimEvent.CLAIMED:
            if not (held and held.alive_at(entry.timestamp)):
                held = CurrentClaim(claim, entry.offset, entry.timestamp)
        elif compacted and claim.event is ClaimEvent.RENEWED and (held is None or held.claim.time_ms < claim.time_ms):
            held = CurrentClaim(claim, entry.offset, entry.timestamp)
    return held


@dataclass(frozen=True)
class Holding:
    """Who holds the claim, when it was last renewed, and whether it was released."""

    window: int
    renewed: int
    released: bool

    def alive(self, clock: int) -> bool:
        return not self.released and clock - self.renewed <= LEASE


@lru_cache(maxsize=100_000)
def holding(holder: Holder, entries: tuple[tuple[int, ClaimRecord], ...], compacted: bool) -> Holding | None:
    """The product's answer for (offset, record) of claims."""
    found = holder(
        [
            ClaimEntry(
                offset,
                record.time,
                Claim(
                    window=str(record.window),
                    event=EVENTS[record.event],
                    owner="",
                    time_ms=record.said,
                    lease_ms=LEASE,
                    slots=record.slots,
                ),
            )
            for offset, record in entries
            if record.event in EVENTS
        ],
        compacted=compacted,
    )
    return None if found is None else Holding(int(found.claim.window), found.renewed, found.released)


def known_claims(log: tuple[ClaimRecord, ...], scanned: int) -> tuple[tuple[int, ClaimRecord], ...]:
    """What a ledger that has read so much of the log knows of claims: the last record of each window that is not deleted."""
    last = {record.window: (offset, record) for offset, record in enumerate(log[:scanned])}
    return tuple(sorted(found for found in last.values() if found[1].event != "deleted"))


def seen_claims(log: tuple[ClaimRecord, ...], scanned: int, end: int) -> tuple[tuple[int, ClaimRecord], ...]:
    """What a driver sees of the claims below ``end``: those its ledger knows, and the tail."""
    tail = ((offset, log[offset]) for offset in range(scanned, end) if log[offset].event != "deleted")
    return (*known_claims(log, scanned), *tail)


def truly_holds(log: tuple[ClaimRecord, ...], clock: int) -> int | None:
    """Whose claim is alive, told by the whole log and nothing else: the answer that every other one is measured by."""
    holder, renewed, over = -1, 0, True
    for record in log:
        if record.window == holder and not over:
            over = record.event == "released"
            renewed = record.time
        elif record.event == "claimed" and (over or record.time - renewed > LEASE):
            holder, renewed, over = record.window, record.time, False
    return holder if not over and clock - renewed <= LEASE else None
