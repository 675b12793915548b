"""Whatever can be put back or taken away: each field is a rule of the protocol, and False breaks it.

Decisions that the product takes in pure functions are taken by those functions here: who holds the lease.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from airmirror.wire import leases
from airmirror.wire.leases import CurrentLease, LeaseEntry
from airmirror.wire.mappings import Lease, LeaseEvent
from model.world import LeaseRecord

EVENTS = {
    "taken": LeaseEvent.TAKEN,
    "renewed": LeaseEvent.RENEWED,
    "released": LeaseEvent.RELEASED,
}
TERM = 0  # a lease lives as long as the clock stands; the model's clock moves on by terms

Holder = Callable[..., CurrentLease | None]


@dataclass(frozen=True)
class Rules:
    """The protocol as it is meant. The letters are the invariants (docs/protocol.md) and the findings that a rule closes."""

    positions_from_mappings: bool = True  # B1: and not from mm2-offsets
    ledger_is_whole: bool = True  # B1: no plan reads a ledger that is being rebuilt
    driver_checks_lease: bool = True  # S8: initialise, look at the lease, write, as slots do
    initialises_first: bool = True  # B: a slot initialises, then looks at the lease
    slot_checks_lease: bool = True  # B
    renews_at_once: bool = True  # B: a lease that was granted is renewed at once, and says when by the broker's clock
    courtesy: bool = True  # a newcomer waits while a lease is alive (what is copied must be right without)
    fences: bool = True  # B
    fences_every_id: bool = True  # B: those of earlier windows that had more slots too
    release_then_fence: bool = True  # who ends a window releases its lease, then fences its ids
    fences_released: bool = True  # who ends a window fences it where its driver has released the lease already
    continues: bool = True  # C: an attempt resumes after what is committed, not at the plan
    carries_target_end: bool = (
        True  # S1: a mapping record without records says where the last one ended, not the plan's end
    )
    one_transaction: bool = True  # A: records and mappings are committed together
    holder: Holder = leases.holder  # who holds the lease


def holder_before(entries: Sequence[LeaseEntry], *, compacted: bool = False) -> CurrentLease | None:
    """As it was (M5): a refused lease that nobody deleted hides the living one, and clocks of those that take leases are
    compared."""
    held: CurrentLease | None = None
    for entry in entries:
        lease = entry.lease
        if held and held.lease.window == lease.window:
            held = CurrentLease(lease, entry.offset, entry.timestamp, lease.event is LeaseEvent.RELEASED)
        elif lease.event is LeaseEvent.TAKEN:
            if not (held and held.alive_at(entry.timestamp)):
                held = CurrentLease(lease, entry.offset, entry.timestamp)
        elif compacted and lease.event is LeaseEvent.RENEWED and (held is None or held.lease.time_ms < lease.time_ms):
            held = CurrentLease(lease, entry.offset, entry.timestamp)
    return held


@dataclass(frozen=True)
class Holding:
    """Who holds the lease, when it was last renewed, and whether it was released."""

    window: int
    renewed: int
    released: bool

    def alive(self, clock: int) -> bool:
        return not self.released and clock - self.renewed <= TERM


@lru_cache(maxsize=100_000)
def holding(holder: Holder, entries: tuple[tuple[int, LeaseRecord], ...], compacted: bool) -> Holding | None:
    """The product's answer for (offset, record) of leases."""
    found = holder(
        [
            LeaseEntry(
                offset,
                record.time,
                Lease(
                    window=str(record.window),
                    event=EVENTS[record.event],
                    owner="",
                    time_ms=record.said,
                    duration_ms=TERM,
                    slots=record.slots,
                ),
            )
            for offset, record in entries
            if record.event in EVENTS
        ],
        compacted=compacted,
    )
    return None if found is None else Holding(int(found.lease.window), found.renewed, found.released)


def known_leases(log: tuple[LeaseRecord, ...], scanned: int) -> tuple[tuple[int, LeaseRecord], ...]:
    """What a ledger that has read so much of the log knows of leases: the last record of each window that is not deleted."""
    last = {record.window: (offset, record) for offset, record in enumerate(log[:scanned])}
    return tuple(sorted(found for found in last.values() if found[1].event != "deleted"))


def seen_leases(log: tuple[LeaseRecord, ...], scanned: int, end: int) -> tuple[tuple[int, LeaseRecord], ...]:
    """What a driver sees of the leases below ``end``: those its ledger knows, and the tail."""
    tail = ((offset, log[offset]) for offset in range(scanned, end) if log[offset].event != "deleted")
    return (*known_leases(log, scanned), *tail)


def truly_holds(log: tuple[LeaseRecord, ...], clock: int) -> int | None:
    """Whose lease is alive, told by the whole log and nothing else: the answer that every other one is measured by."""
    holder, renewed, over = -1, 0, True
    for record in log:
        if record.window == holder and not over:
            over = record.event == "released"
            renewed = record.time
        elif record.event == "taken" and (over or record.time - renewed > TERM):
            holder, renewed, over = record.window, record.time, False
    return holder if not over and clock - renewed <= TERM else None
