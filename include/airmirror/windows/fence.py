"""Claiming a flow, renewing the claim, and fencing every slot that an earlier window may have left (invariant B)."""

from __future__ import annotations

import itertools
import logging
import os
import socket
import time
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
from airmirror.slot.errors import SlotFenced
from airmirror.threads import BackgroundThread
from airmirror.windows.errors import FenceStuck, FlowBusy, FlowClosed
from airmirror.windows.index import ClaimsSince, read_claims
from airmirror.windows.mirror import Journal, Mirror
from airmirror.wire.claims import LEASE_MS, holder, most_slots
from airmirror.wire.owners import Owners, Ownership
from airmirror.wire.segments import Claim, ClaimEvent

log = logging.getLogger(__name__)

FENCE_SECONDS = 60.0
RENEW_SECONDS = 10.0


class Renewal(BackgroundThread):
    """Renews a claim every ten seconds in a thread of its own while its window runs; a context manager."""

    def __init__(self, claim: Claim, append: Callable[[Claim], object]) -> None:
        super().__init__(f"claim {claim.window}")
        self.claim = claim
        self._append = append

    def end(self) -> None:
        """Renew the claim, and tell slots that follow the log to end; each later renewal says so too."""
        self.claim = replace(self.claim, event=ClaimEvent.ENDING)
        self._append(self.claim)

    def grow(self, slots: int) -> None:
        """Renew the claim for more slots, from now on."""
        self.claim = replace(self.claim, slots=slots)
        self._append(self.claim)

    def _run(self) -> None:
        while not self._ended.wait(RENEW_SECONDS):
            try:
                self._append(self.claim)
            except AirmirrorError as error:  # the next renewal may come in time; the fence keeps the data right
                log.warning("the claim of window %s was not renewed: %s", self.claim.window, error)


@dataclass(frozen=True)
class GrantedClaim:
    """A claim that holds and is renewed; ``offset``: where it lies in the segment topic. ``appender`` writes to that topic."""

    journal: Journal
    appender: Appender
    renewal: Renewal
    offset: int
    _since: ClaimsSince = field(init=False, compare=False)  # of whoever checks: a copy for another thread has its own

    def __post_init__(self) -> None:
        object.__setattr__(self, "_since", ClaimsSince(self.offset))

    @property
    def claim(self) -> Claim:
        """The claim as it was written last; as many ids must be fenced as it has slots."""
        return self.renewal.claim

    def grow(self, slots: int) -> None:
        """Claim more slots."""
        self.renewal.grow(slots)

    @property
    def is_ending(self) -> bool:
        """Return whether its driver has ended its slots."""
        return self.claim.event is ClaimEvent.ENDING

    def end(self) -> None:
        """Tell slots that follow the log to commit what is open, and end."""
        self.renewal.end()

    @property
    def owners(self) -> Owners:
        """Who may write which topic: as it stays while the claim holds, once its ids are fenced and the index has caught up."""
        return self.journal.index.owners()

    def check_open(self) -> None:
        """Raise FlowClosed where no topic of the flow is open."""
        if shut := self.owners.shut:
            raise flow_closed(self.journal.flow, shut)

    def check(self) -> None:
        """Check that it still holds, by the segment topic now. Raises SlotFenced if it is another's, or released."""
        held = holder(self._since.read(self.journal.target, self.journal.topics.segments))
        if held is None or held.offset != self.offset or held.released:
            by = "(released)" if held is None or held.released else held.claim.window
            raise SlotFenced(self.journal.flow.name, self.claim.window, by)

    def wanted_by(self) -> str:
        """Return a window that wanted the claim since, refused or not; empty: none. Whether it still holds is not asked."""
        self._since.read(self.journal.target, self.journal.topics.segments)
        others = self._since.claimants - {self.claim.window}
        return min(others, default="")


@dataclass(frozen=True)
class HeldClaim:
    """A claim that a window holds already, and a session to both clusters, for what else is written under it.

    ``check`` raises SlotFenced where the claim is another's by now.
    """

    mirror: Mirror
    check: Callable[[], None]


@contextmanager
def claimed(journal: Journal, window: str, slots: int, *, closed_too: bool = False) -> Iterator[GrantedClaim]:
    """Hold the flow's claim for the time of a window, renewed; released at the end. Raises FlowBusy, FlowClosed.

    ``closed_too``: of whoever writes nothing to remote topics, or opens the flow again. FlowClosed is raised by what is known so
    far: whoever writes to remote topics fences, catches up, and asks the owners again.
    """
    journal.target.refresh([journal.topics.segments, journal.topics.progress])
    with (
        Appender(journal.flow.target, journal.topics.segments) as appender,
        _claimed(journal, window, slots, appender, closed_too=closed_too) as granted,
    ):
        yield granted


@contextmanager
def _claimed(
    journal: Journal, window: str, slots: int, appender: Appender, *, closed_too: bool
) -> Iterator[GrantedClaim]:
    target, segments = journal.target, journal.topics.segments
    scanned = journal.index.scanned(segments, target.topic_ids[segments]).get(0, 0)
    known = journal.index.claims()
    owner = f"{socket.gethostname()}:{os.getpid()}"
    most = max([slots, *(claim.slots for _, _, claim in known)])
    claim = Claim(
        window=window,
        event=ClaimEvent.CLAIMED,
        owner=owner,
        time_ms=int(time.time() * 1000),
        lease_ms=LEASE_MS,
        slots=most,
    )

    def append(record: Claim) -> int:
        return appender.append([(record.encode_key(), record.encode_value())])[0]

    offset = append(claim)
    entries = read_claims(target, segments, known, min(scanned, offset), offset + 1)
    own = next((entry for entry in entries if entry.offset == offset), None)
    if own is None:
        reason = "an answer without the claim that was written there"
        raise RecordsWithheld(target.alias, TopicPartition(segments, 0), offset, offset + 1, reason)
    before = [entry for entry in entries if entry.offset < offset and entry.claim.window != window]
    held = holder(before, compacted=True)
    if held and held.keeps_out(own.timestamp):
        appender.append([(claim.encode_key(), None)])
        raise FlowBusy(journal.flow.name, held.claim.window, held.claim.owner, max(0, own.timestamp - held.renewed))
    # Renewed at once: so others know that it was granted, and, by the broker's clock, when.
    claim = replace(claim, slots=most_slots(entries), event=ClaimEvent.RENEWED, time_ms=own.timestamp)
    ended = sorted({entry.claim.encode_key() for entry in before})  # the topic keeps one claim only
    appender.append([(claim.encode_key(), claim.encode_value()), *((key, None) for key in ended)])
    renewal = Renewal(claim, append)

    def release() -> None:
        append(replace(renewal.claim, event=ClaimEvent.RELEASED))

    try:
        with renewal:
            granted = GrantedClaim(journal, appender, renewal, offset)
            if not closed_too:
                granted.check_open()
            yield granted
    except BaseException:
        with suppress(AirmirrorError):  # what went wrong before says more, and the claim ends with its lease
            release()
        raise
    release()


def flow_closed(flow: Flow, shut: Ownership) -> FlowClosed:
    """Return the error of whoever wants to write for a flow that is closed."""
    return FlowClosed(flow.name, shut.by, shut.time_ms, shut.reason)


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


def fence_around(granted: GrantedClaim, most: int) -> Fenced:
    """``fence`` that leaves out ids that are stuck; the first ``most`` that are free, new ones among them if need be.

    An id is *stuck* where a partition does not take the marker that ends its last transaction. Invariants A and B hold
    without that id and without the partitions that lack the marker, where it is in the internal topics:

    - Whether it was committed or aborted is decided, and every other partition, progress and segments say so already. Of
      the partitions that lack the marker, which are left out, segments tell the position too: nothing is unknown.
    - No producer writes under the id. As long as its end is not written, the coordinator lets nothing be added to another
      transaction of it; and a slot whose transaction was ended, either way, initialises and looks at the claim before it
      begins another (``slot.copy.begin_another``). When the marker is written at last, and a slot wakes that slept in
      between, it finds the claim of a later window.
    - A later window fences the id in its turn: claims keep the largest number.

    Where the marker lacks in an internal topic, the positions are unknown: there the whole flow waits. Raises what
    ``fence`` does.
    """
    flow, target, topics = granted.journal.flow, granted.journal.target, granted.journal.topics
    free: list[int] = []
    stuck: dict[TopicPartition, str] = {}
    for number in itertools.count():
        if number >= granted.claim.slots:
            if len(free) >= most:
                return Fenced(tuple(free[:most]), stuck)
            granted.grow(number + 1)  # before it is used, so that later windows fence it
        error = _fence(flow, target, number)
        if error is None:
            free.append(number)
        elif any(key.topic in (topics.segments, topics.progress) for key in error.reasons):
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
    """End a window from outside while no other has claimed since: release its claim, then fence its ids; whether it was.

    In this order: a slot that begins again after it was fenced finds the claim released, and writes nothing. A window that
    has released its claim itself, as one that was interrupted does, may have left slots in a transaction: they are fenced
    too, and the fence waits until their transactions have ended. The windows of a task that runs several, a range's, have its
    id and a number after it: they are its own too.
    """
    with Journal.open(flow, index, "end") as journal:
        target, segments = journal.target, journal.topics.segments
        try:
            target.refresh([segments])
        except TopicNotFound:  # before the flow's first window
            return False
        log = TopicPartition(segments, 0)
        end = offsets_with_patience(target, [log], LATEST)[log]
        scanned = index.scanned(segments, target.topic_ids[segments]).get(0, 0)
        held = holder(read_claims(target, segments, index.claims(), scanned, end), compacted=True)
        if held is None or not is_of(window, held.claim.window):
            return False
        if not held.released:
            with Appender(flow.target, segments) as appender:
                claim = replace(held.claim, event=ClaimEvent.RELEASED)
                appender.append([(claim.encode_key(), claim.encode_value())])
        fence(flow, target, held.claim.slots)
    return True
