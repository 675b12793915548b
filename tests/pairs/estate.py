"""Two clusters with a flow and its reverse flow, of two topics: each is a move group, and is read by a group of its own.

``ORDERS`` carries procedures out as people do, ``PROOFS`` looks at what came of them with other clients, ``STATES`` brings
procedures to where another one meets them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from airmirror.clusters.admin.appender import Appender
from airmirror.flows.freezing import owners_now, unfreeze
from airmirror.flows.prepare import Opened
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.naming import progress_topic
from airmirror.report.document import Document
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.failback.steps import return_step
from airmirror.runbooks.failover.runbook import FAILOVER
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.runbook import MIGRATION
from airmirror.runbooks.rehearsal.rehearse import FailoverRehearsal, rehearse
from airmirror.runbooks.run import run, undo
from airmirror.runbooks.runbook import Ran, Runbook
from airmirror.runbooks.takeover.order import HandbackOrder, TakeoverOrder
from airmirror.runbooks.takeover.runbook import HANDBACK, TAKEOVER
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.names import select
from airmirror.topics.sync import apply, look
from airmirror.windows.resets import Choice
from airmirror.wire.mirrormaker import murmur2_partition, source_offset_key, source_offset_value
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import Owners
from airmirror_local.brokers import Broker
from support.failovers import PLANNED
from support.following import patiently
from support.groups import commit, committed_by_all
from support.returns import FORWARD, ORDER, REVERSE, Both, forward_and_reverse
from support.sides import Sides
from support.topics import Record, create_topic, end_offsets, produce, read_all

WHY: Any = {"reason": "they meet", "by": "ada"}
SHOP, BILL = 12, 7  # where the groups stand on the source
COUNT = 20  # records of each topic
TIME = 1_700_000_000_000  # of the first
CLEANED = (1, BILL, SHOP, SHOP + 1)  # those that a cleaner has taken from a compacted one: where groups stand, too
OTHERS = b"other"  # values of another source's records begin so, in an aggregate


@dataclass(frozen=True)
class Estate:
    """``shop`` is the topic that a migration has moved, ``bill`` the one that an order for one topic names. ``rehearsals``: what
    those that were ordered have found."""

    both: Both
    shop: str
    bill: str
    groups: Mapping[str, str]
    workers: str
    rehearsals: list[FailoverRehearsal] = field(default_factory=list)

    @property
    def pair(self) -> Pair:
        """Both flows, as a failback or a migration opens them."""
        forward = self.both.forward
        return Pair(forward, self.both.reverse if forward.configuration.has_reverse(forward.flow) else None)

    @property
    def names(self) -> dict[str, str]:
        """The remote topics of both."""
        return select(self.both.forward.flow, [self.shop, self.bill])

    @property
    def owners(self) -> Owners:
        return owners_now(self.both.forward)

    @property
    def positions(self) -> dict[str, dict[str, int]]:
        """Where the groups stand, by cluster and topic of the source."""
        found: dict[str, dict[str, int]] = {}
        for side, topics in (
            (self.both.east, {self.shop: self.shop, self.bill: self.bill}),
            (self.both.west, self.names),
        ):
            at = committed_by_all(side, self.groups.values())
            found[side.name] = {
                topic: at[group][name, 0]
                for topic, group in self.groups.items()
                if (name := topics[topic], 0) in at[group]
            }
        return found

    def of_order(self, order: str) -> str:
        """The topic that an order names, "": none."""
        return {"shop": self.shop, "bill": self.bill, "": ""}[NAMED.get(order, "")]

    def write(self, side: Broker, *topics: str, first: int = 100, count: int = 4) -> None:
        """Applications write these topics of the source, or their remote topics."""
        for topic in topics:
            name = topic if side is self.both.east else self.names[topic]
            produce(side, name, numbered(count, first), partition=0)

    def of(self, topic: str) -> tuple[object, ...]:
        """What an order that does not name the topic leaves as it is: its owner, its records, its group."""
        found, positions, remote = self.owners.records.get(topic), self.positions, self.names[topic]
        ends = end_offsets(self.both.east, topic), end_offsets(self.both.west, remote)
        return (found and (found.owner, found.scope), ends, *(positions[side].get(topic) for side in sorted(positions)))

    @property
    def shape(self) -> dict[str, object]:
        """Who owns what, by which orders, and which groups were moved: to be compared with what is asked without brokers."""
        short = {self.shop: "shop", self.bill: "bill"}
        short |= {remote: short[topic] for topic, remote in self.names.items()}
        moves = self.both.forward.ledger.of_kind(GroupMove)
        return {short.get(topic, topic): (each.owner, each.scope) for topic, each in self.owners.records.items()} | {
            "moves": sorted((each.window.partition("-")[0], short[each.topic]) for each in moves if not each.is_mark)
        }

    @property
    def everything(self) -> tuple[object, ...]:
        """What an order that is refused leaves as it is."""
        whole = self.owners.whole
        return (whole and whole.owner, self.of(self.shop), self.of(self.bill))


def numbered(count: int, first: int = 0) -> list[Record]:
    return [Record(b"v%d" % number, b"k%d" % number, timestamp=TIME + number) for number in range(first, first + count)]


def build(
    sides: Sides,
    directory: Path,
    *,
    policy: str = "default",
    settings: Mapping[str, str] | None = None,
    config: dict[str, str] | None = None,
    has_reverse: bool = True,
    transactional: str | None = None,
    is_cleaned: bool = False,
    by_mirrormaker: bool = False,
) -> Estate:
    """An estate whose records are replicated and verified; ``by_mirrormaker``: copied by MirrorMaker 2, as far as the clusters
    can tell, and by no window yet. ``config``: of its topics; ``transactional``: how its records were produced; ``is_cleaned``:
    a cleaner has taken some of them before anything was copied."""
    sides.empty()
    east, west = sides.east, sides.west
    shop, bill = (create_topic(east, f"{name}-{uuid.uuid4().hex[:8]}", 1, config) for name in ("shop", "bill"))
    groups = {topic: f"g-{topic}" for topic in (shop, bill)}
    lines = {
        f"{FORWARD}.topics": f"{shop}, {bill}",
        "groups": ", ".join(groups.values()),
        "move.quiet.ms": "0",
        "move.soak.ms": "0",
    }
    for name, topic in (("shop", shop), ("bill", bill)):
        lines |= {f"{FORWARD}.move.{name}.topics": topic, f"{FORWARD}.move.{name}.groups": groups[topic]}
    both = forward_and_reverse(east, west, directory, policy=policy, settings=lines | dict(settings or {}), topic=shop)
    if not has_reverse:
        both = replace(both, forward=_one_way(both.forward))
    workers = create_topic(west, f"connect-offsets-{uuid.uuid4().hex[:8]}", 1)
    estate = Estate(both, shop, bill, groups, workers)
    for topic, at in ((shop, SHOP), (bill, BILL)):
        produce(east, topic, numbered(COUNT), partition=0, transactional=transactional)  # type: ignore[arg-type]
        commit(east, groups[topic], {(topic, 0): at})
    if is_cleaned:
        _clean(east, (shop, bill))
    if by_mirrormaker:
        apply(both.forward.flow, look(both.forward.flow))
        ensure_internal_topics(both.forward.flow)
        copied_by_mirrormaker(estate, 0)
    else:
        assert both.window(both.forward).is_verified
    return estate


def _clean(side: Broker, topics: Sequence[str]) -> None:
    """Write some keys again, and return when the cleaner has left the newest record of each alone."""
    again = [Record(b"again-%d" % each, b"k%d" % each, timestamp=TIME + 1000) for each in CLEANED]
    roll = Record(b"roll", b"roll", timestamp=TIME + 2000)
    left = {*range(COUNT + len(again) + 1)} - {*CLEANED}
    for topic in topics:
        for records in (again, [roll]):  # each of them rolls the segment before it
            produce(side, topic, records, partition=0)
    for topic in topics:
        for attempt in patiently():
            with attempt:
                assert {each.offset for each in read_all(side, topic)[0]} == left


def _one_way(forward: Opened) -> Opened:
    """The flow of a configuration that has disabled its reverse flow."""
    flows = forward.configuration.flows
    flows = {**flows, REVERSE: replace(flows[REVERSE], enabled=False)}
    return replace(forward, configuration=replace(forward.configuration, flows=flows))


def copied_by_mirrormaker(estate: Estate, first: int) -> None:
    """What MirrorMaker 2 leaves that copies both topics from this record on: copies, and its progress."""
    both, alias = estate.both, estate.both.forward.flow.source.alias
    for topic, remote in estate.names.items():
        records = read_all(both.east, topic)[0]
        produce(both.west, remote, records[first:], partition=0)
        key = source_offset_key(alias, topic, 0)
        with Appender(both.forward.flow.target, progress_topic(alias), murmur2_partition(key, 3)) as appender:
            appender.append([(key, source_offset_value(records[-1].offset))])


# What people order. Each returns that there was nothing to do, in words, or "".


def _over(ran: Ran) -> str:
    return ran.over


def _undone(book: Runbook[Any, Any], site: Any, order: Any) -> str:
    """Look at an undo, and carry it out; nothing to do: it is said so before, and nothing is wrong with that."""
    assert book.undo is not None
    would: Document = book.undo.look(site, order)
    undo(book, site, order)
    return "" if any(section.rows for section in would.sections) else would.headline


def _fail_back(estate: Estate) -> str:
    return _over(run(FAILBACK, estate.pair, replace(ORDER, wait=3.0)))


def _move(name: str, **order: Any) -> MoveOrder:
    return MoveOrder(move=name, wait=0.0, **WHY, **order)


def _window(estate: Estate) -> str:
    result = estate.both.window(estate.both.forward)
    for row in result.rows:
        if row.error is not None:
            raise row.error
    return ""


def _reset(estate: Estate) -> str:
    order = ResetOrder((estate.bill,), (), Choice.START_AGAIN, recreate=True, **WHY)
    carry_out(estate.both.forward, order)
    return ""


def _take_over(estate: Estate) -> str:
    rows = run(TAKEOVER, estate.both.forward, TakeoverOrder(wait=0.0, **WHY)).gave["take_over"]
    for row in rows:
        if row.error is not None:
            raise row.error
    return "" if any(row.since >= 0 for row in rows) else "there is nothing to be taken over"


def _hand_back(estate: Estate) -> str:
    return _over(run(HANDBACK, estate.both.forward, HandbackOrder(into=estate.workers, **WHY)))


def _rehearse(estate: Estate) -> str:
    estate.rehearsals.append(rehearse(estate.both.forward))
    return ""


def _unfreeze(estate: Estate) -> str:
    unfreeze(estate.both.forward, (), **WHY)
    return ""


ORDERS: dict[str, Callable[[Estate], str]] = {
    "failover": lambda estate: _over(run(FAILOVER, estate.both.forward, PLANNED)),
    "undo of a failover": lambda estate: _undone(FAILOVER, estate.both.forward, PLANNED),
    "failback": _fail_back,
    "undo of a failback": lambda estate: _undone(FAILBACK, estate.pair, ORDER),
    "migration": lambda estate: _over(run(MIGRATION, estate.pair, _move("bill"))),
    "migration with a return": lambda estate: _over(run(MIGRATION, estate.pair, _move("bill", reverse=True))),
    "undo of a migration": lambda estate: _undone(MIGRATION, estate.pair, _move("shop")),
    "take-over": _take_over,
    "hand-back": _hand_back,
    "rehearsal": _rehearse,
    "window": _window,
    "unfreeze": _unfreeze,
    "reset": _reset,
}
# The topics that orders name; the others are for the flow.
NAMED = {"migration": "bill", "migration with a return": "bill", "undo of a migration": "shop", "reset": "bill"}


# How procedures are brought to where another one meets them.


def _with_order(*orders: str) -> Callable[[Estate], None]:
    def bring(estate: Estate) -> None:
        for each in orders:
            ORDERS[each](estate)

    return bring


def _failing_back(estate: Estate) -> None:
    ORDERS["failover"](estate)
    estate.write(estate.both.west, estate.shop, estate.bill)
    return_step(estate.pair, ORDER)
    estate.both.window(estate.both.reverse)


def _failback_undone(estate: Estate) -> None:
    _failing_back(estate)
    ORDERS["undo of a failback"](estate)


def _moved(*steps: str, **order: Any) -> Callable[[Estate], None]:
    def bring(estate: Estate) -> None:
        run(MIGRATION, estate.pair, _move("shop", **order), steps)

    return bring


def _move_returns(estate: Estate) -> None:
    _moved(reverse=True)(estate)
    estate.write(estate.both.west, estate.shop)
    estate.both.window(estate.both.reverse)


def _move_undone(estate: Estate) -> None:
    _moved()(estate)
    ORDERS["undo of a migration"](estate)


def _taken_over(estate: Estate) -> None:
    ORDERS["take-over"](estate)
    _window(estate)


def _handed_back(estate: Estate) -> None:
    ORDERS["hand-back"](estate)
    estate.write(estate.both.east, estate.shop, estate.bill)
    copied_by_mirrormaker(estate, COUNT)


@dataclass(frozen=True)
class State:
    """Where a procedure stands, in words of a table, and how it is brought there; ``built``: how its estate is."""

    words: str
    bring: Callable[[Estate], None]
    built: Mapping[str, Any] = field(default_factory=dict)


STATES: dict[str, State] = {
    "nothing": State("no other procedure has run", lambda estate: None),
    "failover": State("the flow is failed over", _with_order("failover")),
    "undo of a failover": State("a failover is undone", _with_order("failover", "undo of a failover")),
    "return": State("a failback has begun, records return", _failing_back),
    "failback": State("the flow is failed back", _with_order("failover", "failback")),
    "undo of a failback": State("a failback is undone", _failback_undone),
    "consumers": State("a move group's consumers are cut over", _moved("mirror", "cut_over_consumers")),
    "producers": State("its producers are cut over too", _moved()),
    "move returns": State("the same, and its records return", _move_returns),
    "undo of a migration": State("a migration is undone", _move_undone),
    "take-over": State("the flow is taken over from MirrorMaker 2", _taken_over, {"by_mirrormaker": True}),
    "hand-back": State("the flow is handed back, MirrorMaker 2 copies", _handed_back),
    "rehearsal": State("a failover is rehearsed", _with_order("rehearsal")),
}
