"""Claiming a flow and fencing every slot that an earlier window may have left (invariant B)."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from kafka.protocol.admin.transactions import DescribeTransactionsRequest

from airmirror.clusters.appender import Appender
from airmirror.clusters.connection import BrokerUnreachable, UnsupportedBroker
from airmirror.clusters.log import LATEST, offsets_with_patience
from airmirror.clusters.routes import CoordinatorNotAvailable, Routes, TopicNotFound
from airmirror.clusters.transactions import TransactionalId, TransactionBusy
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.windows.claims import LEASE_MS, ClaimEntry, Renewal, holder, most_slots
from airmirror.windows.errors import FenceStuck, FlowBusy
from airmirror.windows.index import Index, InternalTopics, read_claims
from airmirror.windows.slots import transaction_timeout_ms, transactional_id
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import Claim, ClaimEvent

FENCE_SECONDS = 60.0
DESCRIBE_TRANSACTIONS = 65


@dataclass(frozen=True)
class Granted:
    """A claim that holds: where it lies in the segment topic, and how many ids must be fenced."""

    claim: Claim
    offset: int


@contextmanager
def claimed(
    flow: Flow, window: str, slots: int, target: Routes, topics: InternalTopics, index: Index, appender: Appender
) -> Iterator[Granted]:
    """Hold the flow's claim for the time of a window, renewed; released at the end. Raises FlowBusy."""
    scanned = index.scanned(topics.segments, target.topic_ids[topics.segments]).get(0, 0)
    known = index.claims()
    owner = f"{socket.gethostname()}:{os.getpid()}"
    most = max(slots, max((claim.slots for _, _, claim in known), default=0))
    claim = Claim(window, ClaimEvent.CLAIMED, owner, int(time.time() * 1000), LEASE_MS, most)

    def append(record: Claim) -> int:
        return appender.append([(record.encode_key(), record.encode_value())])[0]

    offset = append(claim)
    entries = read_claims(target, topics.segments, known, scanned, offset + 1)
    own = next((entry for entry in entries if entry.offset == offset), None)
    before = [entry for entry in entries if entry.offset < offset and entry.claim.window != window]
    held = holder(before, compacted=True)
    if own is not None and held and held.alive_at(own.timestamp):
        appender.append([(claim.encode_key(), None)])
        raise FlowBusy(flow.name, held.claim.window, held.claim.owner, max(0, own.timestamp - held.renewed))
    seen = most_slots(before)
    if seen > claim.slots:
        claim = replace(claim, slots=seen, event=ClaimEvent.RENEWED)
        append(claim)
    _forget_ended(appender, before)
    released = replace(claim, event=ClaimEvent.RELEASED)
    try:
        with Renewal(claim, append):
            yield Granted(claim, offset)
    except BaseException:
        with suppress(AirmirrorError):  # what went wrong before says more, and the claim ends with its lease
            append(released)
        raise
    append(released)


def _forget_ended(appender: Appender, entries: list[ClaimEntry]) -> None:
    """Delete the claims of windows that are over, so that the topic keeps one claim only."""
    keys = {entry.claim.encode_key() for entry in entries}
    if keys:
        appender.append([(key, None) for key in sorted(keys)])


def fence(flow: Flow, target: Routes, slots: int) -> None:
    """Initialise every transactional id: earlier producers are fenced, their open transactions aborted.

    Raises FenceStuck, with the partitions of the transaction that can't be ended, or CoordinatorNotAvailable, after sixty
    seconds; TransactionRefused.
    """
    for number in range(slots):
        transaction = TransactionalId(target, transactional_id(flow, number), transaction_timeout_ms(flow))
        try:
            transaction.initialise(patience=FENCE_SECONDS)
        except TransactionBusy as error:
            raise FenceStuck(flow.name, transaction.name, _open_partitions(target, transaction.name)) from error


def end_window(flow: Flow, window: str, segment_topic: str, index: Index) -> bool:
    """End a window from outside while the claim is its own: fence its slots, release its claim; whether it was.

    The windows of a task that runs several have its id and a number behind it: they are its own too.
    """
    with Routes(flow.target, f"airmirror|{flow.name}|end") as target:
        try:
            target.refresh([segment_topic])
        except TopicNotFound:  # before the flow's first window
            return False
        log = TopicPartition(segment_topic, 0)
        end = offsets_with_patience(target, [log], LATEST)[log]
        scanned = index.scanned(segment_topic, target.topic_ids[segment_topic]).get(0, 0)
        held = holder(read_claims(target, segment_topic, index.claims(), scanned, end), compacted=True)
        if held is None or held.released or not f"{held.claim.window}-".startswith(f"{window}-"):
            return False
        fence(flow, target, held.claim.slots)
        with Appender(flow.target, segment_topic) as appender:
            claim = replace(held.claim, event=ClaimEvent.RELEASED)
            appender.append([(claim.encode_key(), claim.encode_value())])
    return True


def _open_partitions(target: Routes, name: str) -> tuple[str, ...]:
    try:
        connection = target.connection(target.coordinator(name), "transactions")
        version = connection.version(DESCRIBE_TRANSACTIONS, 0, 0, "DescribeTransactions")
        answer = connection.request(DescribeTransactionsRequest(transactional_ids=[name]), version)
    except (BrokerUnreachable, CoordinatorNotAvailable, UnsupportedBroker):
        return ()
    return tuple(
        f"{topic.topic}-{partition}"
        for state in answer.transaction_states
        for topic in state.topics
        for partition in topic.partitions
    )
