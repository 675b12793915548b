"""Taking a flow's lease, renewing the lease, and fencing every slot that an earlier window may have left (invariant B).

Procedures (failover, failback, migration, decisions) do both by ``flows.freezing.overtaking``.
"""

from __future__ import annotations

import itertools
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.errors import RecordsWithheld
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.clusters.protocol.transactions import TransactionalId, TransactionBusy, TransactionStuck
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger import FlowLedger
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import transaction_timeout_ms, transactional_id
from airmirror.slot.lease import check_lease
from airmirror.threads import BackgroundThread
from airmirror.windows.errors import FenceStuck, FlowBusy, FlowFrozen
from airmirror.windows.index import LeasesSince, read_leases
from airmirror.windows.mirror import Journal, Mirror
from airmirror.wire.leases import LEASE_MS, holder, most_slots
from airmirror.wire.mappings import Lease, LeaseEvent
from airmirror.wire.owners import Owners

log = logging.getLogger(__name__)

FENCE_SECONDS = 60.0
RENEW_SECONDS = 10.0


class Renewal(BackgroundThread):
    """Renews a lease every ten seconds in a thread of its own while its window runs; a context manager."""

    def __init__(self, lease: Lease, append: Callable[[Lease], object]) -> None:
        super().__init__(f"lease {lease.window}")
        self.lease = lease
        self._append = append

    def end(self) -> None:
        """Renew the lease, and tell slots that follow the log to commit and end; each later renewal says so too."""
        self.lease = replace(self.lease, event=LeaseEvent.ENDING)
        self._append(self.lease)

    def grow(self, slots: int) -> None:
        """Renew the lease for more slots, from now on."""
        self.lease = replace(self.lease, slots=slots)
        self._append(self.lease)

    def _run(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            try:
                self._append(self.lease)
            except AirmirrorError as error:  # the next renewal may come in time; the fence keeps the data right
                log.warning("the lease of window %s was not renewed: %s", self.lease.window, error)


@dataclass(frozen=True)
class GrantedLease:
    """A lease that holds and is renewed; ``offset``: where it lies in the mapping topic. ``appender`` writes to that topic."""

    journal: Journal
    appender: Appender
    renewal: Renewal
    offset: int
    _since: LeasesSince = field(init=False, compare=False)  # of whoever checks: a copy for another thread has its own

    def __post_init__(self) -> None:
        object.__setattr__(self, "_since", LeasesSince(self.offset))

    @property
    def lease(self) -> Lease:
        """The lease as it was written last; as many ids must be fenced as it has slots."""
        return self.renewal.lease

    @property
    def is_ending(self) -> bool:
        """Return whether its driver has ended its slots."""
        return self.lease.event is LeaseEvent.ENDING

    @property
    def owners(self) -> Owners:
        """Who may write which topic: as it stays while the lease holds, once its ids are fenced and the index has caught up."""
        return self.journal.index.owners()

    def check_open(self) -> None:
        """Raise FlowFrozen where all topics of the flow are frozen."""
        check_not_shut(self.journal.flow, self.owners)

    def check(self) -> None:
        """Check that it still holds, by the mapping topic now. Raises SlotFenced if it is another's, or released."""
        leases = self._since.read(self.journal.target, self.journal.topics.mappings)
        check_lease(leases, self.offset, self.journal.flow.name, self.lease.window)

    def wanted_by(self) -> str:
        """Return a window that wanted the lease since, refused or not; empty: none. Whether it still holds is not asked."""
        self._since.read(self.journal.target, self.journal.topics.mappings)
        others = self._since.contenders - {self.lease.window}
        return min(others, default="")


@dataclass(frozen=True)
class HeldLease:
    """A lease that a window holds already, and a session to both clusters, for what else is written under it.

    ``check`` raises SlotFenced where the lease is another's by now.
    """

    mirror: Mirror
    check: Callable[[], None]


def new_window(purpose: str) -> str:
    """Return a name for a lease, which no other window has."""
    return f"{purpose}-{uuid.uuid4().hex[:12]}"


@contextmanager
def leased(journal: Journal, window: str, slots: int, *, frozen_too: bool = False) -> Iterator[GrantedLease]:
    """Hold the flow's lease for the time of a window, renewed; released at the end. Raises FlowBusy, FlowFrozen.

    ``frozen_too``: of whoever writes nothing to remote topics, or unfreezes the flow. FlowFrozen is raised by what is known so
    far: whoever writes to remote topics fences, catches up, and asks the owners again.
    """
    target, mappings = journal.target, journal.topics.mappings
    target.refresh([mappings, journal.topics.progress])
    with Appender(journal.flow.target, mappings) as appender:
        scanned, known = journal.seen(), journal.index.leases()  # in this order: others may read further meanwhile
        most = max([slots, *(lease.slots for _, _, lease in known)])
        owner = f"{socket.gethostname()}:{os.getpid()}"
        lease = Lease(window, LeaseEvent.TAKEN, owner, int(time.time() * 1000), LEASE_MS, most)

        def append(record: Lease) -> int:
            return appender.append([(record.encode_key(), record.encode_value())])[0]

        offset = append(lease)
        entries = read_leases(target, mappings, known, min(scanned, offset), offset + 1)
        own = next((entry for entry in entries if entry.offset == offset), None)
        if own is None:
            reason = "an answer without the lease that was written there"
            raise RecordsWithheld(target.alias, TopicPartition(mappings, 0), offset, offset + 1, reason)
        before = [entry for entry in entries if entry.offset < offset and entry.lease.window != window]
        held = holder(before, compacted=True)
        if held and held.keeps_out(own.timestamp):
            appender.append([(lease.encode_key(), None)])
            raise FlowBusy(journal.flow.name, held.lease.window, held.lease.owner, max(0, own.timestamp - held.renewed))
        # Renewed at once: so others know that it was granted, and, by the broker's clock, when.
        lease = replace(lease, slots=most_slots(entries), event=LeaseEvent.RENEWED, time_ms=own.timestamp)
        ended = sorted({entry.lease.encode_key() for entry in before})  # the topic keeps one lease only
        appender.append([(lease.encode_key(), lease.encode_value()), *((key, None) for key in ended)])
        renewal = Renewal(lease, append)

        def release() -> None:
            append(replace(renewal.lease, event=LeaseEvent.RELEASED))

        try:
            with renewal:
                granted = GrantedLease(journal, appender, renewal, offset)
                if not frozen_too:
                    granted.check_open()
                yield granted
        except BaseException:
            with suppress(AirmirrorError):  # what went wrong before says more, and the lease runs out
                release()
            raise
        release()


def check_not_shut(flow: Flow, owners: Owners) -> None:
    """Raise FlowFrozen where all topics of the flow are frozen."""
    if shut := owners.shut:
        raise FlowFrozen(flow.name, shut.by, shut.time_ms, shut.reason)


def fence(flow: Flow, target: Routes, slots: int) -> None:
    """Initialise every transactional id: earlier producers are fenced, their open transactions aborted.

    Raises FenceStuck where the end of a transaction can't be written; CoordinatorNotAvailable after sixty seconds;
    TransactionRefused.
    """
    for number in range(slots):
        stuck = _fence(flow, target, number)
        if stuck is not None:
            raise _fence_stuck(flow, stuck)


@dataclass(frozen=True)
class Fenced:
    """The ids that slots may use, and the partitions of the target that they must not write to, with the reasons."""

    numbers: tuple[int, ...]
    stuck: Mapping[TopicPartition, str] = field(default_factory=dict)


def fence_around(granted: GrantedLease, most: int) -> Fenced:
    """``fence`` that leaves out ids that are stuck; the first ``most`` that are free, new ones among them if need be.

    An id is *stuck* where a partition does not take the marker that ends its last transaction. Invariants A and B hold
    without that id and without the partitions that lack the marker, where it is in the internal topics:

    - Whether it was committed or aborted is decided, and every other partition, progress and mappings say so already. Of
      the partitions that lack the marker, which are left out, mappings tell the position too: nothing is unknown.
    - No producer writes under the id. As long as its end is not written, the coordinator lets nothing be added to another
      transaction of it; and a slot whose transaction was ended, either way, initialises and looks at the lease before it
      begins another (``slot.copy.begin_another``). When the marker is written at last, and a slot wakes that slept in
      between, it finds the lease of a later window.
    - A later window fences the id in its turn: leases keep the largest number.

    Where the marker lacks in an internal topic, the positions are unknown: there the whole flow waits. Raises what
    ``fence`` does.
    """
    flow, target, topics = granted.journal.flow, granted.journal.target, granted.journal.topics
    free: list[int] = []
    stuck: dict[TopicPartition, str] = {}
    for number in itertools.count():
        if number >= granted.lease.slots:
            if len(free) >= most:
                return Fenced(tuple(free[:most]), stuck)
            granted.renewal.grow(number + 1)  # before it is used, so that later windows fence it
        error = _fence(flow, target, number)
        if error is None:
            free.append(number)
        elif any(key.topic in (topics.mappings, topics.progress) for key in error.reasons):
            raise _fence_stuck(flow, error)
        else:
            stuck |= error.reasons
    raise AssertionError("unreachable")  # pragma: no cover


def _fence(flow: Flow, target: Routes, number: int) -> TransactionStuck | None:
    transaction = TransactionalId(target, transactional_id(flow, number), transaction_timeout_ms(flow))
    try:
        transaction.initialise(patience=FENCE_SECONDS)
    except TransactionStuck as error:
        return error
    except TransactionBusy as error:
        raise FenceStuck(flow.name, transaction.name, str(error)) from error
    return None


def _fence_stuck(flow: Flow, error: TransactionStuck) -> FenceStuck:
    return FenceStuck(flow.name, error.transactional_id, str(error), tuple(map(str, error.reasons)))


def is_of(task: str, window: str) -> bool:
    """Return whether ``window`` is that of a task, or one of those of a task that runs several."""
    return f"{window}-".startswith(f"{task}-")


def end_window(flow: Flow, index: FlowLedger, window: str) -> bool:
    """End a window from outside while no other has taken the lease since: release its lease, then fence its ids; whether it was.

    In this order: a slot that begins again after it was fenced finds the lease released, and writes nothing. A window that
    has released its lease itself, as one that was interrupted does, may have left slots in a transaction: they are fenced
    too, and the fence waits until their transactions have ended. The windows of a task that runs several, a range's, have its
    id and a number after it: they are its own too.
    """
    with Journal.open(flow, index, "end") as journal:
        target, mappings = journal.target, journal.topics.mappings
        try:
            target.refresh([mappings])
        except TopicNotFound:  # before the flow's first window
            return False
        log = TopicPartition(mappings, 0)
        end = offsets_with_patience(target, [log], LATEST)[log]
        scanned, known = journal.seen(), index.leases()
        held = holder(read_leases(target, mappings, known, scanned, end), compacted=True)
        if held is None or not is_of(window, held.lease.window):
            return False
        if not held.released:
            with Appender(flow.target, mappings) as appender:
                lease = replace(held.lease, event=LeaseEvent.RELEASED)
                appender.append([(lease.encode_key(), lease.encode_value())])
        fence(flow, target, held.lease.slots)
    return True
