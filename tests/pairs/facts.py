"""The facts by which procedures are decided: where another one stands (``STANDING``), and as things are (``as_things_are``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from airmirror.config import parse
from airmirror.flows.prepare import Opened
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failback.pair import Pair
from airmirror.wire.mappings import Hold, MappingRecord, Verified
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import Change, OrderScope, Owners, Signed, after, changed, named
from support.large import made
from support.returns import FORWARD, REVERSE

SHOP, BILL = "shop", "bill"
NAMES = {"east.shop": SHOP, "east.bill": BILL}
KEYS = [TopicPartition(topic, 0) for topic in NAMES.values()]
END = 20  # of each topic of the source, and of what is verified
SIGNED = Signed("w", 5, 7, "why", "ada")


def owners_of(*changes: tuple[Change, Sequence[str]]) -> Owners:
    """Who owns what after these changes, each ordered for some topics (none: for the flow)."""
    owners = Owners()
    for change, topics in changes:
        owners = changed_by(owners, change, topics)
    return owners


def changed_by(owners: Owners, change: Change, topics: Sequence[str]) -> Owners:
    """Who owns what after a change that is ordered for some topics, none: for the flow."""
    which = named(owners, topics)
    if change is Change.BEGIN:
        which = list(topics or (topic for topic in NAMES.values() if not owners.is_apart(topic)))
    elif change in (Change.END, Change.GIVE_UP):
        which = list(owners.returning_by(topics).values())
    remote = {topic: name for name, topic in NAMES.items()}
    scope = OrderScope.TOPIC if topics else OrderScope.FLOW
    return after(owners, changed(owners, change, which, SIGNED, scope=scope, remote=remote))


def moved(window: str, topic: str) -> GroupMove:
    """A group that was moved, and has not read on since."""
    return made(GroupMove, group="g", topic=f"east.{topic}", partition=0, window=window, before=-1, after=7)


@dataclass(frozen=True)
class Facts:
    """``moves``: of groups, on the target; ``uncounted``: whether records have returned that the flow has no account of;
    ``behind``: whether the source holds records that are not verified; ``estimated``: whether groups' positions are;
    ``progress``: the offset that MirrorMaker 2 says it has copied last, ``by_others``: whether it, or another, has written
    to remote topics since; ``moving``: what moves where applications are to have stopped; ``held``: whether a partition is;
    ``left``: whether the source holds records that were neither replicated nor rescued; ``append_time``: whether its brokers
    stamp what they append."""

    owners: Owners = field(default_factory=Owners)
    moves: tuple[GroupMove, ...] = ()
    uncounted: bool = False
    behind: bool = False
    estimated: bool = False
    progress: int = END - 1
    by_others: bool = False
    moving: tuple[str, ...] = ()
    held: bool = False
    left: bool = False
    has_reverse: bool = True
    is_aggregate: bool = False
    append_time: bool = False

    @property
    def shape(self) -> dict[str, object]:
        """The same as of an estate on brokers."""
        return {topic: (each.owner, each.scope) for topic, each in self.owners.records.items()} | {
            "moves": sorted((each.window.partition("-")[0], NAMES[each.topic]) for each in self.moves)
        }

    @property
    def forward(self) -> Any:
        return self._opened(FORWARD, _Ledger(self))

    @property
    def pair(self) -> Pair:
        reverse = self._opened(REVERSE, _Ledger(self, is_reverse=True)) if self.has_reverse else None
        return Pair(self.forward, reverse)

    def _opened(self, name: str, ledger: Any) -> Any:
        lines = ["clusters = east, west", "east.bootstrap.servers = one:9092", "west.bootstrap.servers = two:9092"]
        lines += [f"{each}.enabled = true\n{each}.topics = shop, bill" for each in (FORWARD, REVERSE)]
        lines += [f"{FORWARD}.aggregate = {str(self.is_aggregate).lower()}"]
        configuration = parse("\n".join(lines), "test")
        return Opened(configuration, configuration.flow(name), ledger)


@dataclass(frozen=True)
class _Ledger:
    """The part of a flow in the ledger, as far as decisions ask it."""

    facts: Facts
    is_reverse: bool = False

    def owners(self) -> Owners:
        return Owners() if self.is_reverse else self.facts.owners

    def state(self) -> State:
        verified = {key: made(Verified, topic=key.topic, partition=0, offset=END - 1) for key in KEYS}
        return State(self.last_mappings(), dict.fromkeys(KEYS, self.facts.progress), verified)

    def of_kind(self, kind: type[Any]) -> list[Any]:
        return list(self.facts.moves) if kind is GroupMove else []

    def holds(self) -> dict[Any, Any]:
        return {(BILL, 0): made(Hold, topic=BILL, partition=0)} if self.facts.held else {}

    def unverified(self) -> list[Any]:
        return []

    def last_mappings(self) -> dict[Any, MappingRecord]:
        if not self.is_reverse:  # a marker ends its transaction on the target
            return {TopicPartition(topic, 0): _mapping(topic, remote, END, END + 1) for remote, topic in NAMES.items()}
        back = {TopicPartition(remote, 0): _mapping(remote, topic, END + 5, END + 5) for remote, topic in NAMES.items()}
        return back if self.facts.uncounted else {}

    def partition_metrics(self) -> list[Any]:
        return []

    def group_lags(self) -> list[Any]:
        return []

    def mappings(self, topic: str, *_: object, **__: object) -> list[MappingRecord]:
        return [self.last_mappings()[topic, 0]]

    def other(self, name: str) -> _Ledger:
        return replace(self, is_reverse=True)


def _mapping(topic: str, remote: str, end: int, target_end: int) -> MappingRecord:
    ids = {"source_topic_id": UUID(int=1), "target_topic_id": UUID(int=1)}
    places = {"source_start": 0, "source_end": end, "target_start": 0, "target_end": target_end, "copied": 4}
    return made(MappingRecord, topic=topic, partition=0, remote_topic=remote, **ids, **places)


FREEZE, UNFREEZE, BEGIN, END_, GIVE_UP, FINISH = Change
WHOLE: tuple[str, ...] = ()
FAILED_OVER = tuple(moved("failover-groups-1", topic) for topic in NAMES.values())
CUT_OVER = (moved("move-shop", SHOP),)
STANDING: dict[str, Facts] = {
    "failover": Facts(owners_of((FREEZE, WHOLE)), FAILED_OVER),
    "undo of a failover": Facts(owners_of((FREEZE, WHOLE), (UNFREEZE, WHOLE))),
    "return": Facts(owners_of((FREEZE, WHOLE), (BEGIN, WHOLE)), FAILED_OVER, uncounted=True, behind=True),
    "failback": Facts(owners_of((FREEZE, WHOLE), (BEGIN, WHOLE), (END_, WHOLE), (FINISH, WHOLE))),
    "undo of a failback": Facts(
        owners_of((FREEZE, WHOLE), (BEGIN, WHOLE), (END_, WHOLE), (GIVE_UP, WHOLE)),
        FAILED_OVER,
        uncounted=True,
        behind=True,
    ),
    "consumers": Facts(moves=CUT_OVER),
    "producers": Facts(owners_of((FREEZE, (SHOP,))), CUT_OVER),
    "move returns": Facts(owners_of((FREEZE, (SHOP,)), (BEGIN, (SHOP,))), CUT_OVER),
    "undo of a migration": Facts(owners_of((FREEZE, (SHOP,)), (UNFREEZE, (SHOP,)))),
    "take-over": Facts(estimated=True),
    "hand-back": Facts(behind=True, progress=END + 3, by_others=True),
    "rehearsal": Facts(),
}


# What is so besides, by the names of conditions, where a procedure begins.

BEGUN: dict[str, tuple[tuple[tuple[Change, Sequence[str]], ...], tuple[GroupMove, ...]]] = {
    "undo of a failover": (((FREEZE, WHOLE),), FAILED_OVER),
    "failback": (((FREEZE, WHOLE),), FAILED_OVER),
    "undo of a failback": (((FREEZE, WHOLE), (BEGIN, WHOLE)), FAILED_OVER),
    "undo of a migration": (((FREEZE, (SHOP,)),), CUT_OVER),
}
NO_RETURN = ("one-way", "aggregate", "append time")  # conditions under which nothing can return
OPEN = ("bill-0 has an open transaction from offset 20 on",)
BESIDES: dict[str, dict[str, Any]] = {
    "held": {"held": True, "behind": True, "left": True},
    "one-way": {"has_reverse": False},
    "aggregate": {"is_aggregate": True},
    "append time": {"append_time": True},
}


def as_things_are(condition: str, order: str) -> Facts:
    """What is so where a procedure is ordered under a condition."""
    changes, moves = BEGUN.get(order, ((), ()))
    if condition == "frozen":
        changes = ((FREEZE, (BILL,)), *changes)
    besides = BESIDES.get(condition, {})
    if condition == "open":  # on the target, once applications write there
        besides = {"moving": OPEN, "by_others" if order in BEGUN else "behind": True}
    if condition in NO_RETURN and order == "undo of a failback":
        changes = changes[:1]
    return replace(Facts(owners_of(*changes), moves), **besides)
