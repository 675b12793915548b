"""Slots that were started before their window's claim: they wait for *go*, which its driver says after the fence (invariant B).

Until then such a slot initialises nothing. One that began after the fence of its own id alone could read positions while an
earlier window's slot, under an id that is not fenced yet, commits one of its partitions.
"""

from __future__ import annotations

import time
from dataclasses import replace

from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.errors import PartitionMoved
from airmirror.clusters.protocol.log import read_next
from airmirror.clusters.protocol.routes import LeaderNotAvailable, Routes, patiently
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot
from airmirror.slot.errors import NotBegun, SlotFenced
from airmirror.slot.follow import START_SECONDS
from airmirror.wire.plain import LogRecord
from airmirror.wire.primitives import MalformedRecord
from airmirror.wire.segments import Claim, ClaimEvent, decode

# More than the rest of the window before takes, whose slots may have begun late, and a claim and its fence. Another slot may wait
# for the core.
GO_SECONDS = START_SECONDS + 15.0
WAIT_MS = 500  # of a fetch for which nothing comes


def await_go(slot: Slot) -> Slot:
    """The slot under its window's claim: at once, or when its driver has said go.

    Raises SlotFenced where the claim was released; NotBegun after GO_SECONDS; a cluster's error.
    """
    if slot.claim_offset >= 0:
        return slot
    until = time.monotonic() + GO_SECONDS
    claimed, position, log = -1, slot.since, TopicPartition(slot.segment_topic, 0)
    with Routes(slot.flow.target, f"airmirror|{slot.flow.name}|{slot.number}") as target:
        while time.monotonic() < until:
            for attempt in patiently(GO_SECONDS, PartitionMoved, LeaderNotAvailable, BrokerUnreachable):
                with attempt:
                    if not target.is_led(log):
                        target.refresh([log.topic])
                    records, position = read_next(target, log, position, max_wait_ms=WAIT_MS)
            for record in records:
                event = _event_of(record, slot.window)
                if event is ClaimEvent.CLAIMED:
                    claimed = record.offset
                elif event is ClaimEvent.RELEASED:
                    raise SlotFenced(slot.flow.name, slot.window, "(released)")
                elif event is ClaimEvent.GO and claimed >= 0:
                    return replace(slot, claim_offset=claimed)
    raise NotBegun(slot.flow.name, slot.window, GO_SECONDS)


def _event_of(record: LogRecord, window: str) -> ClaimEvent | None:
    """The event of a claim record of the window; None of any other record."""
    if not record.key or record.key[0] != Claim.kind:
        return None
    try:
        claim = decode(record.key, record.value)
    except MalformedRecord:
        return None  # the ledger counts and logs it
    return claim.event if isinstance(claim, Claim) and claim.window == window else None
