"""A slot's look at the mapping topic: whether its window's lease still holds, and what was committed since.

The lease is looked at after every InitProducerId and before anything is written under it (invariant B): by an attempt, and
again before each further transaction. What was committed is looked at before every commit: source offsets follow
(invariant C). Holds that are written meanwhile are seen on the way.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.transactions import TransactionFailed
from airmirror.clusters.protocol.waiting import LOOK_SECONDS
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot
from airmirror.slot.errors import SlotFenced
from airmirror.slot.limit import Commits
from airmirror.wire.leases import LeaseEntry, holder, note
from airmirror.wire.mappings import Action, Decision, Hold, Lease, LeaseEvent, MappingRecord, Record, decode
from airmirror.wire.plain import LogRecord
from airmirror.wire.primitives import MalformedRecord


def decoded_records(entries: Iterable[LogRecord]) -> Iterator[tuple[LogRecord, Record]]:
    """Yield each record of the mapping topic with what it says, but for those that make no sense."""
    for entry in entries:
        try:
            record = decode(entry.key or b"", entry.value)
        except MalformedRecord:
            continue  # the ledger counts and logs it
        yield entry, record


def check_lease(leases: Iterable[LeaseEntry], offset: int, flow: str, window: str) -> None:
    """Check that a window's lease, which lies at an offset, holds. Raises SlotFenced if it is another's by now, or released."""
    held = holder(leases)
    if held is None or held.offset != offset or held.released:
        raise SlotFenced(flow, window, "" if held is None or held.released else held.lease.window)


class LeaseLog:
    """The mapping topic from the window's lease on, read on and on, by one attempt after the other; what was committed and held
    since."""

    _target: Routes  # of the attempt

    def __init__(self, slot: Slot) -> None:
        self._slot = slot
        self._log = TopicPartition(slot.mapping_topic, 0)
        self._looked = time.monotonic()
        self._begin()
        self.is_ending = False  # whether its driver has said that slots which follow are to end
        self.held = set[TopicPartition]()  # since the lease, by the gate or an operator, whether it was lifted or not

    def _begin(self, of: tuple[UUID, int] | None = None) -> None:
        """Read from the lease on, and forget what was read before; ``of``: the log's topic id and leader epoch."""
        self._of = of
        self._leases: list[LeaseEntry] = []
        self._leases_next = self._mappings_next = self._slot.lease_offset
        self._newest: dict[TopicPartition, MappingRecord] = {}
        self.commits = Commits()  # of the window's slots

    def committed(self, target: Routes) -> dict[TopicPartition, MappingRecord]:
        """The newest mappings committed since the lease, which an attempt begins with. ``target``: how it reaches the cluster.

        Raises SlotFenced where the lease is another's by now, or released.
        """
        self._target = target
        end = self._end(read_committed=False)
        now = target.topic_ids[self._log.topic], target.leader(self._log).epoch
        if now != self._of:  # it was made again, or may have been cut: another's lease may lie before what was read
            self._begin(now)
        for entry, record in self._read(min(self._leases_next, self._mappings_next), end, read_committed=True):
            self._take(entry, record)
        self._leases_next = self._mappings_next = end
        self._looked = time.monotonic()
        self._check()
        return dict(self._newest)

    def check(self) -> None:
        """Raise SlotFenced where the lease is another's by now, or released. Leases are written outside transactions, so
        that a slot that sleeps in its own keeps no other waiting."""
        self._looked = time.monotonic()
        end = self._end(read_committed=False)
        for entry, record in self._read(self._leases_next, end, read_committed=False, mappings=False):
            self._take(entry, record)
        self._leases_next = end
        self._check()

    def look(self) -> None:
        """``check``, a second after the last time: so a slot that waits, for records or for a broker, ends soon. A courtesy."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self.check()

    def check_follows(self, starts: Mapping[TopicPartition, int], transaction: str) -> None:
        """Raise TransactionFailed where another writer has committed mappings since, so that what begins at ``starts`` does not
        follow. In an aggregate, where records of others are legal on the target, nothing else would show it.

        What an open transaction hides is not waited for: a fence comes before all this.
        """
        end = max(self._mappings_next, self._end(read_committed=True))
        for entry, record in self._read(self._mappings_next, end, read_committed=True):
            if isinstance(record, MappingRecord):
                self._take(entry, record)
        self._mappings_next = end
        for key, start in starts.items():
            newest = self._newest.get(key)
            if newest is not None and newest.source_end > start:
                reason = f"window {newest.window!r} has copied {key} up to offset {newest.source_end - 1} meanwhile"
                raise TransactionFailed(self._target.alias, transaction, f"the commit of {key} from {start} on", reason)

    def _take(self, entry: LogRecord, record: Record) -> None:
        """Take note of a record, and of a lease or mapping once: they are read by themselves, and together."""
        if isinstance(record, Lease):
            if entry.offset >= self._leases_next:
                self._leases_next = entry.offset + 1
                note(self._leases, LeaseEntry(entry.offset, entry.timestamp, record))
                is_own = record.window == self._slot.window
                self.is_ending = self.is_ending or (is_own and record.event is LeaseEvent.ENDING)
        elif isinstance(record, MappingRecord):
            if entry.offset >= self._mappings_next:
                self._mappings_next = entry.offset + 1
                self._newest[record.key] = record
                if record.window == self._slot.window:  # by the target's clock: those of the slots' machines may differ
                    self.commits.note(record.slot, entry.timestamp, record.size)
        elif isinstance(record, Hold) or (isinstance(record, Decision) and record.action is Action.HOLD):
            self.held.add(record.key)

    @property
    def age(self) -> float:
        """The seconds between the window's lease and its last renewal that was read, by the target's clock."""
        first = self._leases[0]
        who = first.lease.window, first.lease.owner
        renewed = [each.timestamp for each in self._leases if (each.lease.window, each.lease.owner) == who]
        return (renewed[-1] - first.timestamp) / 1000

    def _end(self, *, read_committed: bool) -> int:
        return offsets_with_patience(self._target, [self._log], LATEST, read_committed=read_committed)[self._log]

    def _read(
        self, start: int, end: int, *, read_committed: bool, mappings: bool = True
    ) -> Iterator[tuple[LogRecord, Record]]:
        entries = read_records(self._target, self._log, start, end, read_committed=read_committed)
        yield from decoded_records(
            each for each in entries if mappings or not each.key or each.key[0] != MappingRecord.kind
        )

    def _check(self) -> None:
        check_lease(self._leases, self._slot.lease_offset, self._slot.flow.name, self._slot.window)
