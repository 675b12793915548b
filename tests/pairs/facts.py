"""The facts by which procedures are decided: where another one stands (``STANDING``), and as things are (``as_things_are``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from airmirror.config import parse
from airmirror.flows.prepare import Opened
from airmirror.ledger.state import State
from airmirror.offsets.translation import Replicated, Sync
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failback.pair import Pair
from airmirror.wire.mappings import Hold, MappedRange, MappingRecord, Verified
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import Change, OrderScope, Owners, Signed, after, changed, named
from pairs.conditions import ON_TARGET
from support.large import made
from support.returns import FORWARD, POLICIES, REVERSE

SHOP, BILL = "shop", "bill"
KEYS = [TopicPartition(topic, 0) for topic in (SHOP, BILL)]
END = 20  # of each topic of the source, and of what is verified
AT = 7  # where the group stands on the source
SIGNED = Signed("w", 5, 7, "why", "ada")


def names_by(policy: str = "default") -> dict[str, str]:
    """The remote topics, each with its topic of the source."""
    return {topic if policy == "identity" else f"east.{topic}": topic for topic in (SHOP, BILL)}


def owners_of(*changes: tuple[Change, Sequence[str]], names: Mapping[str, str] | None = None) -> Owners:
    """Who owns what after these changes, each ordered for some topics (none: for the flow)."""
    owners = Owners()
    for change, topics in changes:
        owners = changed_by(owners, change, topics, names or names_by())
    return owners


def changed_by(owners: Owners, change: Change, topics: Sequence[str], names: Mapping[str, str]) -> Owners:
    """Who owns what after a change that is ordered for some topics, none: for the flow."""
    which = named(owners, topics)
    if change is Change.BEGIN:
        which = list(topics or (topic for topic in names.values() if not owners.is_apart(topic)))
    elif change in (Change.END, Change.GIVE_UP):
        which = list(owners.returning_by(topics).values())
    remote = {topic: name for name, topic in names.items()}
    scope = OrderScope.TOPIC if topics else OrderScope.FLOW
    return after(owners, changed(owners, change, which, SIGNED, scope=scope, remote=remote))


@dataclass(frozen=True)
class Facts:
    """``moves``: of groups, on the target, that have not read on since: by whom, and in which topic of the source;
    ``uncounted``: whether records have returned that the flow has no account of; ``behind``: whether the source holds records
    that are not verified; ``estimated``: whether groups' positions are; ``ahead``: how many records MirrorMaker 2 says it has
    copied after the flow's last, ``by_others``: whether it, or another, has written to remote topics since; ``moving``: what
    moves where applications are to have stopped; ``held``: whether a partition is; ``left``: whether the source holds records
    that were neither replicated nor rescued; ``append_time``: whether its brokers stamp what they append; ``cleaned``: whether
    the record that the group reads next was compacted away; ``marked``: whether the source's logs end with the marker of a
    transaction; ``follows``: the flow of which a window follows the log; ``policy``: by which remote topics are named."""

    owners: Owners = field(default_factory=Owners)
    moves: tuple[tuple[str, str], ...] = ()
    uncounted: bool = False
    behind: bool = False
    estimated: bool = False
    ahead: int = 0
    by_others: bool = False
    moving: tuple[str, ...] = ()
    held: bool = False
    left: bool = False
    has_reverse: bool = True
    is_aggregate: bool = False
    append_time: bool = False
    cleaned: bool = False
    marked: bool = False
    follows: str = ""
    policy: str = "default"

    @property
    def shape(self) -> dict[str, object]:
        """The same as of an estate on brokers."""
        return {topic: (each.owner, each.scope) for topic, each in self.owners.records.items()} | {
            "moves": sorted((window.partition("-")[0], topic) for window, topic in self.moves)
        }

    @property
    def names(self) -> dict[str, str]:
        return names_by(self.policy)

    @property
    def remote(self) -> dict[str, str]:
        return {topic: name for name, topic in self.names.items()}

    @property
    def end(self) -> int:
        """Where each topic of the source ended when it was verified last."""
        return END + self.marked

    @property
    def replicated(self) -> Replicated:
        """What is known of the topic that the group reads; after a take-over, of what was copied before, an offset sync alone."""
        record, start = self.mapping(BILL), END if self.estimated else 0
        return Replicated(
            source_start=start,
            target_start=start,
            verified=self.end - 1,
            verified_end=END - self.cleaned,
            records=() if self.estimated else (record,),
            history=(Sync(0, 0),) if self.estimated else (),
        )

    def mapping(self, topic: str) -> MappingRecord:
        """The account of a topic: of all that it holds. A marker ends its transaction on the target."""
        whole = (MappedRange(0, 0, END),)
        parts = (MappedRange(0, 0, AT), MappedRange(AT + 1, AT, END - AT - 1))
        copied = END - self.cleaned
        counts = {"copied": copied, "holes": int(self.cleaned), "control": int(self.marked), "lost": 0}
        its = {"ranges": parts if self.cleaned else whole, "source_end": self.end, "target_end": copied + 1}
        return _mapping(topic, self.remote[topic], **its, **counts)

    @property
    def forward(self) -> Any:
        return self._opened(FORWARD, _Ledger(self))

    @property
    def pair(self) -> Pair:
        reverse = self._opened(REVERSE, _Ledger(self, is_reverse=True)) if self.has_reverse else None
        return Pair(self.forward, reverse)

    def _opened(self, name: str, ledger: Any) -> Any:
        lines = ["clusters = east, west", "east.bootstrap.servers = one:9092", "west.bootstrap.servers = two:9092"]
        lines += [f"{FORWARD}.enabled = true", f"{FORWARD}.topics = shop, bill"]
        lines += [f"{REVERSE}.enabled = true", f"{REVERSE}.topics = nothing-of-its-own"]
        lines += [f"{FORWARD}.aggregate = {str(self.is_aggregate).lower()}"]
        lines += [f"replication.policy.class = {POLICIES[self.policy]}"]
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
        last = self.facts.end - 1
        verified = {key: made(Verified, topic=key.topic, partition=0, offset=last) for key in KEYS}
        return State(self.last_mappings(), dict.fromkeys(KEYS, last + self.facts.ahead), verified)

    def of_kind(self, kind: type[Any]) -> list[Any]:
        if kind is not GroupMove:
            return []
        moves = ((window, self.facts.remote[topic]) for window, topic in self.facts.moves)
        return [
            made(GroupMove, group="g", topic=remote, partition=0, window=window, before=-1, after=AT)
            for window, remote in moves
        ]

    def holds(self) -> dict[Any, Any]:
        return {(BILL, 0): made(Hold, topic=BILL, partition=0)} if self.facts.held else {}

    def unverified(self) -> list[Any]:
        return []

    def last_mappings(self) -> dict[Any, MappingRecord]:
        if not self.is_reverse:
            return {key: self.facts.mapping(key.topic) for key in KEYS}
        back = {"source_end": END + 5, "target_end": END + 5, "copied": 4, "ranges": ()}
        names = self.facts.names if self.facts.uncounted else {}
        return {TopicPartition(remote, 0): _mapping(remote, topic, **back) for remote, topic in names.items()}

    def partition_metrics(self) -> list[Any]:
        return []

    def group_lags(self) -> list[Any]:
        return []

    def mappings(self, topic: str, *_: object, **__: object) -> list[MappingRecord]:
        return [self.last_mappings()[topic, 0]]

    def other(self, name: str) -> _Ledger:
        return replace(self, is_reverse=True)


def _mapping(topic: str, remote: str, **its: Any) -> MappingRecord:
    ids = {"source_topic_id": UUID(int=1), "target_topic_id": UUID(int=1)}
    return made(
        MappingRecord, topic=topic, partition=0, remote_topic=remote, source_start=0, target_start=0, **ids, **its
    )


FREEZE, UNFREEZE, BEGIN, END_, GIVE_UP, FINISH = Change
WHOLE: tuple[str, ...] = ()
FAILED_OVER = tuple(("failover-groups-1", topic) for topic in (SHOP, BILL))
CUT_OVER = (("move-shop", SHOP),)
STANDING: dict[str, Facts] = {
    "nothing": Facts(),
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
    "hand-back": Facts(behind=True, ahead=4, by_others=True),
    "rehearsal": Facts(),
}


# What is so besides, by the names of conditions, where a procedure begins.

BEGUN: dict[str, tuple[tuple[tuple[Change, Sequence[str]], ...], tuple[tuple[str, str], ...]]] = {
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
    "compacted": {"cleaned": True},
    "aggregate": {"is_aggregate": True},
    "append time": {"append_time": True},
    "transactional": {"marked": True},
    "identity": {"policy": "identity"},
}
# Conditions of which no decision knows, and why: clusters alone are asked about them.
UNKNOWN = {
    "reset": "the account of a remote topic that was made again begins at its first record, as that of any other",
    "prefix": "remote topics are named so wherever nothing else is said, in all that is asked besides",
}


def as_things_are(condition: str, order: str) -> Facts:
    """What is so where a procedure is ordered under a condition."""
    changes, moves = BEGUN.get(order, ((), ()))
    if condition == "frozen":
        changes = ((FREEZE, (BILL,)), *changes)
    besides = BESIDES.get(condition, {})
    if condition == "open":  # on the target, once applications write there
        besides = {"moving": OPEN, "by_others" if order in BEGUN else "behind": True}
    if condition == "following":
        besides = {"follows": REVERSE if order in ON_TARGET else FORWARD}
    if condition in NO_RETURN and order == "undo of a failback":
        changes = changes[:1]
    names = names_by(besides.get("policy", "default"))
    return replace(Facts(owners_of(*changes, names=names), moves), **besides)
