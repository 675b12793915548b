"""The state of the model of procedures: two clusters, the accounts of a flow and of its reverse flow, owners, groups, processes.

Two topics, ``shop`` and ``bill``, of one partition and one consumer group each. A record is a number, of each topic its own;
logs have no gaps. Whatever the product decides in a pure function is decided by that function here: transitions of owners,
translations of positions, whether a group is moved.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple, TypeVar
from uuid import UUID

from airmirror.clusters.protocol.groups import Committed, Group
from airmirror.offsets.groups import plan
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.replicated import Extent
from airmirror.offsets.translation import Reason, Replicated, Translated, to_source, to_target
from airmirror.partitions import TopicPartition
from airmirror.wire.mappings import MappedRange, MappingRecord
from airmirror.wire.owners import BACK as NOT_BACK_YET
from airmirror.wire.owners import Change, OrderScope, Owner, Owners, Ownership, Signed, after, changed, named

TOPICS = ("shop", "bill")
EAST, WEST, NOWHERE = 0, 1, -1
UNKNOWN = -2
THERE, BACK = 0, 1  # the flow east->west, and the reverse one: a flow's source is the side of its number
FLOWS = ("east->west", "west->east")
SIDES = ("east", "west")
SIGNED = Signed("", 0, 0, "", "")
NO_ID = UUID(int=1)

T = TypeVar("T")


class Account(NamedTuple):
    """A flow's account of a topic. ``begin``: where it begins on source and target; ``position``: the next offset to copy;
    ``end``: where the flow's last record ends on the target; ``pairs``: offsets of each record on both sides.
    ``verified``: what a gate wrote; ``judged``: what a gate has read of this account; ``resets``: how often it began again."""

    begin: tuple[int, int] = (0, 0)
    position: int = 0
    end: int = 0
    pairs: tuple[tuple[int, int], ...] = ()
    verified: int = 0
    judged: int = 0
    resets: int = 0


class Move(NamedTuple):
    """Where a group stood on a side before it was moved, and to where, by whose order."""

    by: str
    before: int
    after: int


class Reader(NamedTuple):
    """A consumer group. ``at``: its position on each side, -1: none; ``home``: where its members are; ``read``: records, a bit
    each; ``again``: how many it may read again, because an order said so."""

    at: tuple[int, int] = (0, NOWHERE)
    home: int = EAST
    read: int = 0
    again: int = 0


class Process(NamedTuple):
    """A window, an order, or a person: the ``kind`` of its program, the topics that it names (none: the flow), how far it is,
    whether it holds the lease of each flow, and its id, and what it has read so far."""

    kind: str
    topics: tuple[int, ...] = ()
    at: int = 0
    leases: tuple[bool, ...] = (False, False)
    ids: tuple[bool, ...] = (False, False)
    seen: tuple = ()  # type: ignore[type-arg]


Records = tuple[tuple[str, int, int], ...]  # who owns what: topic, owner, scope


class World(NamedTuple):
    """One state. ``logs``, ``accounts``: by topic and side, by flow and topic. ``moves``: undo records, by flow (on its target)
    and topic. ``cut_overs``: whether there is a record that the topic's group is cut over. ``stood``: where it was on west before
    any procedure, which none of them knows. ``producers``: the side on which each topic is written by its applications.
    ``lists``: ACLs, and what is known of them. ``last_seen``: a group's position on the source with its time, by ledger, and by
    the newest checkpoint."""

    processes: tuple[Process, ...]
    logs: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (((), ()), ((), ()))
    accounts: tuple[tuple[Account | None, ...], ...] = ((Account(), Account()), (None, None))
    owners: Records = ()
    readers: tuple[Reader, ...] = (Reader(), Reader())
    moves: tuple[tuple[Move | None, ...], ...] = ((None, None), (None, None))
    cut_overs: tuple[bool, ...] = (False, False)
    stood: tuple[int, ...] = (NOWHERE, NOWHERE)
    producers: tuple[int, ...] = (EAST, EAST)
    stopped_by: tuple[str, ...] = (
        "",
        "",
    )  # the order for which people have stopped the applications of each topic last
    left: tuple[int, ...] = (0, 0)  # records that an order leaves where they are, a bit each
    paused: bool = False  # no window of the flow begins: MirrorMaker 2 is to run in its place
    mirrormaker: tuple[int, ...] = ()  # where MirrorMaker 2 resumes, while it runs
    lists: tuple[bool, ...] = (False, False, False)  # a fence is written; the source denies; the target denies
    last_seen: tuple[tuple[int, int], ...] = ()
    clock: int = 0
    budget: tuple[tuple[str, int], ...] = ()
    wrong: str = ""

    def left_of(self, fault: str) -> int:
        return next((count for name, count in self.budget if name == fault), 0)

    def spend(self, fault: str) -> World:
        return self._replace(budget=tuple((name, count - (name == fault)) for name, count in self.budget))

    def account(self, flow: int, topic: int) -> Account | None:
        return self.accounts[flow][topic]

    def owner(self, topic: int) -> Owner:
        return owners_of(self.owners).owner(TOPICS[topic])

    def with_account(self, flow: int, topic: int, account: Account | None) -> World:
        return self._replace(accounts=put(self.accounts, flow, put(self.accounts[flow], topic, account)))

    def with_log(self, topic: int, side: int, log: tuple[int, ...]) -> World:
        return self._replace(logs=put(self.logs, topic, put(self.logs[topic], side, log)))

    def with_reader(self, topic: int, **changes: object) -> World:
        return self._replace(readers=put(self.readers, topic, self.readers[topic]._replace(**changes)))

    def with_cut_over(self, topic: int, value: bool) -> World:
        return self._replace(cut_overs=put(self.cut_overs, topic, value))

    def with_move(self, flow: int, topic: int, move: Move | None) -> World:
        return self._replace(moves=put(self.moves, flow, put(self.moves[flow], topic, move)))

    def wrongly(self, what: str) -> World:
        return self._replace(wrong=self.wrong or what)


def put(row: tuple[T, ...], place: int, value: T) -> tuple[T, ...]:
    """The row with another value in a place."""
    return (*row[:place], value, *row[place + 1 :])


@lru_cache(maxsize=10_000)
def owners_of(records: Records) -> Owners:
    """The product's owners."""
    return Owners.of(
        Ownership(
            topic=topic,
            owner=Owner(owner),
            scope=OrderScope(scope),
            remote=f"east.{topic}",
            window="",
            time_ms=0,
            frozen_ms=0,
            frozen_offset=0,
            reason="",
            by="",
        )
        for topic, owner, scope in records
    )


@lru_cache(maxsize=10_000)
def is_apart(records: Records, topic: int) -> bool:
    """Whether another order, that named the topic, counts for it."""
    return owners_of(records).is_apart(TOPICS[topic])


@lru_cache(maxsize=10_000)
def transition(records: Records, change: Change, topics: tuple[int, ...], which: tuple[int, ...] | None) -> Records:
    """The records after an order for ``topics`` (none: the flow) took a change; ``which``: topics in its place."""
    owners, names = owners_of(records), [TOPICS[each] for each in topics]
    chosen = named(owners, names) if which is None else [TOPICS[each] for each in which]
    scope = OrderScope.TOPIC if topics else OrderScope.FLOW
    remote = {topic: f"east.{topic}" for topic in chosen}
    found = after(owners, changed(owners, change, chosen, SIGNED, scope=scope, remote=remote)).records
    return tuple(sorted((topic, int(each.owner), int(each.scope)) for topic, each in found.items()))


def opened_by_force(records: Records, which: Collection[int]) -> Records:
    """The records as a command would write them that opens topics while they return."""
    names = {TOPICS[each] for each in which}
    return tuple(
        (topic, int(Owner.SOURCE) if topic in names and Owner(owner) in NOT_BACK_YET else owner, scope)
        for topic, owner, scope in records
    )


def began(*taken: tuple[int, tuple[Change, ...]]) -> Records:
    """The records when each topic was taken so far by an order that named it."""
    records: Records = ()
    for topic, changes in taken:
        for change in changes:
            records = transition(records, change, (topic,), None)
    return records


@lru_cache(maxsize=50_000)
def known(account: Account) -> Replicated:
    """An account as the product translates by it."""
    proven = [pair for pair in account.pairs if pair[0] < account.verified]
    there = sum(account.begin[0] <= source < account.position for source, _ in account.pairs)
    record = MappingRecord(
        source_topic_id=NO_ID,
        topic="",
        partition=0,
        source_start=account.begin[0],
        window="",
        slot=0,
        time_ms=0,
        source_end=account.position,
        target_topic_id=NO_ID,
        remote_topic="",
        target_start=account.begin[1],
        target_end=account.end,
        copied=there,
        control=0,
        aborted=0,
        holes=0,
        lost=account.position - account.begin[0] - there,
        size=0,
        max_timestamp=0,
        leader_epoch=0,
        digest=bytes(16),
        ranges=tuple(_runs(account.pairs)),
    )
    return Replicated(
        source_start=account.begin[0],
        target_start=account.begin[1],
        verified=account.verified - 1,
        verified_end=proven[-1][1] + 1 if proven else account.begin[1],
        records=(record,) if account.position > account.begin[0] else (),
    )


def _runs(pairs: Iterable[tuple[int, int]]) -> list[MappedRange]:
    runs: list[MappedRange] = []
    for source, target in pairs:
        if runs and (runs[-1].source_end, runs[-1].target_end) == (source, target):
            runs[-1] = MappedRange(runs[-1].source_first, runs[-1].target_first, runs[-1].count + 1)
        else:
            runs.append(MappedRange(source, target, 1))
    return runs


@lru_cache(maxsize=50_000)
def translated(account: Account, position: int, backwards: bool = False) -> Translated | Reason:
    """Where a position of the flow's source is on its target, or one of its target on its source."""
    return (to_source if backwards else to_target)(known(account), position)


def translation(world: World, flow: int, topic: int) -> Translated | Reason:
    """Where the group of a topic would resume on the flow's target (``offsets.positions.positions_of``)."""
    position, own = world.readers[topic].at[flow], world.account(flow, topic)
    if position < 0:
        return Reason.NOT_REPLICATED
    if own is not None and (flow == THERE or position >= own.begin[0]):
        return translated(own, position)
    brought = world.account(1 - flow, topic)
    return translated(brought, position, True) if brought is not None else Reason.NOT_REPLICATED


@lru_cache(maxsize=50_000)
def why_not(found: Translated | Reason, on_target: int, active: bool, end: int) -> str:
    """The reason why a group is not moved, as the product has it; empty: it is."""
    row = GroupPosition("group", "topic", 0, Committed(0), "topic", found, target=Extent(0, end))
    groups = {"group": Group("group", "Stable" if active else "Empty")}
    there = {"group": {TopicPartition("topic", 0): Committed(on_target)}} if on_target >= 0 else {}
    return plan([row], groups, there)[0].reason


def is_exact(found: Translated | Reason) -> bool:
    return isinstance(found, Translated) and found.exact and not found.again


def bits(records: Iterable[int]) -> int:
    """Records as a set that is quick to compare: a bit each."""
    return sum(1 << each for each in set(records))


def unread_before(world: World, topic: int, side: int) -> list[int]:
    """The records that the group of a topic would skip if it resumed there."""
    reader = world.readers[topic]
    before = world.logs[topic][side][: max(0, reader.at[side])]
    return [each for each in before if not (reader.read | world.left[topic]) >> each & 1]


def read_after(world: World, topic: int, side: int) -> list[int]:
    """The records that it would read again."""
    reader = world.readers[topic]
    return [each for each in world.logs[topic][side][max(0, reader.at[side]) :] if reader.read >> each & 1]
