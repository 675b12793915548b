"""``airmirror reset``: what a person decides about topics that can't go on, shown first, and carried out on order only."""

from __future__ import annotations

import getpass
import socket
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from airmirror.clusters.admin import connect
from airmirror.clusters.appender import Appender
from airmirror.clusters.deletion import delete_topics
from airmirror.clusters.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, catch_up_ledger, plan_topics, prepare
from airmirror.offsets.syncs import rewind_offset_syncs
from airmirror.topics.identity import identity, look_around
from airmirror.topics.names import select
from airmirror.topics.sync import sync_topics
from airmirror.windows.fence import Granted, claimed, fence
from airmirror.windows.index import catch_up
from airmirror.windows.resets import Choice, Reset, decide
from airmirror.windows.resetting import commit, look
from airmirror.windows.window import internal_topics
from airmirror.wire.segments import FlowIdentity, ResetRecord

Tell = Callable[[str], None]


@dataclass(eq=False)
class NotOfTheFlow(AirmirrorError):
    """A topic that the flow neither replicates nor has replicated."""

    flow: str
    topic: str

    def __str__(self) -> str:
        return f"flow {self.flow!r} neither replicates topic {self.topic!r} nor has done so; see `airmirror status`"


@dataclass(frozen=True)
class Order:
    """What is to be done, and who says so. ``partitions``: empty for all. ``recreate``: the remote topics are made anew."""

    topics: tuple[str, ...]
    partitions: tuple[int, ...]
    choice: Choice
    recreate: bool = False
    by: str = ""
    reason: str = ""


def whoami() -> str:
    """The user and host, as they stand in a decision."""
    return f"{getpass.getuser()}@{socket.gethostname()}"


def consider(opened: Opened, order: Order) -> list[Reset]:
    """What the order would do; nothing is written but the ledger. Raises ResetNotPossible, NotOfTheFlow."""
    catch_up_ledger(opened)
    topics = _remote_topics(opened, order.topics)
    flow, client = opened.flow, f"airmirror|{opened.flow.name}|reset"
    with Routes(flow.source, client) as source, Routes(flow.target, client) as target:
        source.refresh([])
        target.refresh([])
        return _decide(opened, source, target, topics, order)


def carry_out(opened: Opened, order: Order, tell: Tell = lambda phase: None) -> list[Reset]:
    """Do it, under the flow's claim: no window is at work meanwhile. Raises FlowBusy, and what ``consider`` raises."""
    prepare(opened)
    topics = _remote_topics(opened, order.topics)
    with _claim(opened, tell) as (source, target, granted, window):
        if order.recreate:
            tell(f"deleting {', '.join(sorted(topics.values()))} on {opened.flow.target.alias}, to create them anew")
            delete_topics(connect(opened.flow.target), list(topics.values()))
            sync_topics(opened.flow, tell, plan_topics(opened))
        resets = _decide(opened, source, target, topics, order)
        if resets:
            tell(f"committing {len(resets)} decisions")
            names = internal_topics(opened.flow)
            commit(opened.flow, window, granted.offset, target, names, opened.ledger, resets, order.by, order.reason)
            starts = {each.facts.key: (each.start, each.facts.target_end) for each in resets if each.start >= 0}
            rewind_offset_syncs(opened.flow, starts, tell)
    catch_up_ledger(opened)
    return resets


def replaced_identity(opened: Opened) -> FlowIdentity | None:
    """The identity that stands in the way of the flow's own; None: there is none."""
    around = look_around(opened.flow, opened.ledger)
    if around.own is None:
        return None
    theirs, ours = around.own.identity, identity(opened.flow, around)
    names = (theirs.name, theirs.source_cluster_id, theirs.target_cluster_id)
    return None if names == (ours.name, ours.source_cluster_id, ours.target_cluster_id) else theirs


def replace_identity(opened: Opened, by: str, reason: str, tell: Tell = lambda phase: None) -> FlowIdentity | None:
    """Let the flow go on with internal topics that another alias or cluster has written; which it was.

    What windows under the other names may have left open is fenced. Raises FlowBusy.
    """
    flow = opened.flow
    theirs = replaced_identity(opened)
    if theirs is None:
        return None
    around = look_around(flow, opened.ledger)
    before = replace(
        flow, source=replace(flow.source, alias=theirs.source), target=replace(flow.target, alias=theirs.target)
    )
    with _claim(opened, tell) as (_, target, granted, window):
        fence(before, target, granted.claim.slots)
        ours = identity(flow, around)
        problem = f"written by {theirs.name} ({theirs.source_cluster_id} -> {theirs.target_cluster_id})"
        decision = ResetRecord("", -1, ours.time_ms, "identity", problem, -1, -1, -1, window, by, reason)
        with Appender(flow.target, internal_topics(flow).segments) as appender:
            appender.append([(each.encode_key(), each.encode_value()) for each in (decision, ours)])
    return theirs


def _decide(opened: Opened, source: Routes, target: Routes, topics: Mapping[str, str], order: Order) -> list[Reset]:
    resets = []
    for facts in look(opened.flow, opened.ledger, source, target, topics, order.choice):
        if order.partitions and facts.partition not in order.partitions:
            continue
        reset = decide(facts, order.choice)
        if reset is not None:
            resets.append(reset)
    return resets


def _remote_topics(opened: Opened, topics: Collection[str]) -> dict[str, str]:
    """The remote topic of each topic: where it was replicated to, or where it would be."""
    known = {topic: record.remote_topic for (topic, _), record in opened.ledger.last_segments().items()}
    known |= select(opened.flow, topics)
    for topic in topics:
        if topic not in known:
            raise NotOfTheFlow(opened.flow.name, topic)
    return {topic: known[topic] for topic in topics}


@contextmanager
def _claim(opened: Opened, tell: Tell) -> Iterator[tuple[Routes, Routes, Granted, str]]:
    """The flow's claim, its slots fenced and its index brought up to date."""
    flow, client, window = opened.flow, f"airmirror|{opened.flow.name}|reset", f"reset-{uuid.uuid4().hex[:12]}"
    topics = internal_topics(flow)
    with Routes(flow.source, client) as source, Routes(flow.target, client) as target:
        source.refresh([])
        target.refresh([topics.segments, topics.progress])
        with (
            Appender(flow.target, topics.segments) as appender,
            claimed(flow, window, 1, target, topics, opened.ledger, appender) as granted,
        ):
            tell("fencing what earlier windows may have left")
            fence(flow, target, granted.claim.slots)
            catch_up(target, topics, opened.ledger, flow.source.alias)
            yield source, target, granted, window
