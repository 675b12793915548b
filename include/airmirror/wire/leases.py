"""Leases: the right of one window to write for a flow (invariant B).

Who holds the lease is decided by the order of the records in the mapping topic and the times the broker gave them, so
everybody who reads them comes to the same answer: a lease is granted where none is held, or the held one was released or
not renewed for its duration, or is the same window's (a new attempt of it takes over). A renewal counts for its holder only,
which window and owner identify: it never makes an older lease the newest. Whoever is granted a lease renews it at once,
so a lease that was not renewed and is not the latest record was refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from airmirror.wire.mappings import Lease, LeaseEvent

LEASE_MS = 30_000


@dataclass(frozen=True)
class LeaseEntry:
    """A lease record as it lies in the mapping topic; ``timestamp`` is the broker's (milliseconds)."""

    offset: int
    timestamp: int
    lease: Lease


@dataclass(frozen=True)
class CurrentLease:
    """The lease that counts, where it lies in the log, and when it was last renewed."""

    lease: Lease
    offset: int
    renewed: int
    released: bool = False

    def alive_at(self, timestamp: int) -> bool:
        return not self.released and timestamp - self.renewed <= self.lease.duration_ms

    def keeps_out(self, timestamp: int) -> bool:
        """Return whether it refuses who leases after it in the log, at that time. One that was renewed in the future does not:
        the broker's clock was set back since, and a window that lives has renewed its lease again by then."""
        return self.alive_at(timestamp) and self.renewed - timestamp <= self.lease.duration_ms


def note(entries: list[LeaseEntry], entry: LeaseEntry) -> None:
    """Append the next lease that was read. Of a holder's renewals in a row the last one counts: hours of them are few."""
    last = entries[-1].lease if entries else None
    if last is not None and replace(entry.lease, slots=last.slots) == last and last.event is LeaseEvent.RENEWED:
        entries.pop()
    entries.append(entry)


def holder(entries: Iterable[LeaseEntry], *, compacted: bool = False) -> CurrentLease | None:
    """Return the holder of the lease after ``entries``, in log order.

    A renewal proves that its window was granted its lease: if that lies later than the held one it counts, alive or not.
    So two windows never both hold the lease, whatever made the later one believe that the earlier was over.
    ``compacted``: of some windows only the last record is known, as the ledger and a compacted topic keep them. Of those
    that were renewed, the one that was granted last counts, by the broker's time of its lease.
    """
    entries = list(entries)
    held = _granted_last(entries) if compacted else None
    if held is not None:
        since = held.lease.time_ms
        entries = [entry for entry in entries if _is_lease_of_another(entry, held) and entry.timestamp >= since]
    taken: dict[tuple[str, str], int] = {}
    for entry in entries:
        lease = entry.lease
        who = lease.window, lease.owner
        if lease.event is LeaseEvent.TAKEN:
            taken[who] = entry.offset
            if not held or held.lease.window == lease.window or not held.alive_at(entry.timestamp):
                held = CurrentLease(lease, entry.offset, entry.timestamp)
        elif held and who == (held.lease.window, held.lease.owner):
            # Who was ended from outside may renew once more.
            released = held.released or lease.event is LeaseEvent.RELEASED
            held = CurrentLease(lease, held.offset, entry.timestamp, released)
        elif held and taken.get(who, -1) > held.offset:
            held = CurrentLease(lease, taken[who], entry.timestamp, lease.event is LeaseEvent.RELEASED)
    return held


def _granted_last(entries: Sequence[LeaseEntry]) -> CurrentLease | None:
    """Of the windows that have renewed their lease (or released it) the one that was granted it last."""
    renewed = [entry for entry in entries if entry.lease.event is not LeaseEvent.TAKEN]
    if not renewed:
        return None
    last = max(renewed, key=lambda entry: (entry.lease.time_ms, entry.offset))
    same = [entry.lease for entry in renewed if entry.lease.window == last.lease.window]
    released = any(lease.event is LeaseEvent.RELEASED for lease in same if lease.time_ms == last.lease.time_ms)
    return CurrentLease(last.lease, last.offset, last.timestamp, released)


def _is_lease_of_another(entry: LeaseEntry, held: CurrentLease) -> bool:
    return entry.lease.event is LeaseEvent.TAKEN and entry.lease.window != held.lease.window


def most_slots(entries: Iterable[LeaseEntry]) -> int:
    """The largest number of slots that any lease ever had: that many transactional ids must be fenced."""
    return max((entry.lease.slots for entry in entries), default=0)
