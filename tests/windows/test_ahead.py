"""When a window plans again: what was planned before its claim can't be relied on (docs/protocol.md)."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot, SlotPartition, SlotResult
from airmirror.windows.ahead import Ahead, Plan
from airmirror.windows.fence import Fenced, Granted
from airmirror.windows.index import InternalTopics
from airmirror.windows.mirror import Journal
from airmirror.windows.plan import Planned
from airmirror.windows.renewal import Renewal
from airmirror.wire.claims import ClaimEntry
from airmirror.wire.owners import Change, Owners, Scope, Signed, changed
from airmirror.wire.segments import Claim, ClaimEvent
from ledger.test_ledger import segment
from support.flows import a_flow

NOTHING: Any = None
FLOW, TOPICS = a_flow("east"), InternalTopics("segments", "progress")
KEY = ("orders", 0)
PART = SlotPartition(
    topic="orders",
    partition=0,
    remote_topic="east.orders",
    start=10,
    end=20,
    source_topic_id=UUID(int=1),
    target_topic_id=UUID(int=2),
    target_end=10,
    leader_epoch=0,
    compacted=False,
    max_message_bytes=1000,
)
SLOT = Slot(
    flow=FLOW,
    window="row-2",
    number=0,
    claim_offset=-1,
    max_ms=1000,
    max_bytes=None,
    progress_topic="progress",
    progress_partitions=1,
    segment_topic="segments",
    partitions=(PART,),
    since=100,
)


def claim(window: str) -> Claim:
    return Claim(window=window, event=ClaimEvent.CLAIMED, owner="me", time_ms=0, lease_ms=30_000, slots=1)


def entry(window: str, offset: int) -> ClaimEntry:
    return ClaimEntry(offset, 0, claim(window))


def granted(offset: int = 120, before: tuple[ClaimEntry, ...] = ()) -> Granted:
    journal = Journal(FLOW, NOTHING, TOPICS, NOTHING)
    return Granted(journal, NOTHING, Renewal(claim("row-2"), lambda record: 0), offset, before)


def mirror(*closed: str) -> Any:
    """A session at clusters whose ledger knows of topics that are closed."""
    signed = Signed("failover", 3, 1, "a fire", "ada")
    owners = Owners.of(changed(Owners(), Change.CLOSE, closed, signed, scope=Scope.TOPIC))
    return SimpleNamespace(flow=FLOW, index=SimpleNamespace(owners=lambda: owners))


def objection(
    claimed: Granted,
    *,
    fenced: Fenced | None = None,
    state: State | None = None,
    slots: str = "wait",
    closed: tuple[str, ...] = (),
) -> str:
    results: Future[list[SlotResult]] = Future()
    if slots == "ended":
        results.set_result([])
    planned = Planned("orders", 0, "east.orders", 10, 20, 20, 100.0)
    ahead = Ahead(
        session=ExitStack(),
        mirror=mirror(*closed),
        topics={"orders": "east.orders"},
        after="row",
        most=1,
        plan=Plan(100, [planned], [SLOT]),
        results=None if slots == "none" else results,
        end=lambda: None,
    )
    return ahead.objection(claimed, fenced or Fenced((0,)), state or State())


def test_what_nothing_speaks_against_begins() -> None:
    before = (entry("another", 99), entry("row", 40), entry("row", 110))
    assert objection(granted(before=before)) == ""


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"claimed": granted(before=(entry("another", 100),))}, "another window had the claim"),
        ({"claimed": granted(offset=99)}, "the segment topic is another one"),
        ({"closed": ("orders",)}, "a topic was closed"),
        ({"fenced": Fenced((0,), {TopicPartition("east.orders", 0): "no leader"})}, "a transaction can't be ended"),
        ({"fenced": Fenced((1,))}, "ids are not free"),
        ({"state": State(progress={KEY: 9})}, "a partition begins"),
        ({"state": State({KEY: segment(0, 10)}, {KEY: 14})}, "MirrorMaker 2's progress has moved"),
        ({"slots": "none"}, "no slots were started"),
        ({"slots": "ended"}, "its slots have ended"),
    ],
)
def test_what_speaks_against_it(given: dict[str, Any], reason: str) -> None:
    assert objection(**{"claimed": granted()} | given) == reason
