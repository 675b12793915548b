"""The state of a migration: how far a move group is, what each step would meet now, and what it can't take back."""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.members import members_of
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import counted
from airmirror.flows.prepare import Opened
from airmirror.offsets.translation import Translated
from airmirror.partitions import CopyFacts
from airmirror.runbooks.draining import last_writers
from airmirror.runbooks.migration import blocking
from airmirror.runbooks.migration.access import lacking
from airmirror.runbooks.migration.chosen import PURPOSE, Move, session
from airmirror.runbooks.migration.consumers import GroupThere, look_at_groups, on_target
from airmirror.runbooks.migration.order import MoveOrder, MoveStep
from airmirror.runbooks.migration.producers import is_frozen, unfinished
from airmirror.runbooks.migration.reverse import reverse_state
from airmirror.runbooks.stillness import ends_of

UNDO_WITHOUT_REVERSE = (
    "Undo works until producers have written on the target: groups go back, also those that have read on there, and producers "
    "are unblocked. What was written there does not come back by undo."
)
UNDO_WITH_REVERSE = (
    "Undo works also when producers have written on the target: what they wrote returns, and groups resume after it."
)


@dataclass(frozen=True)
class PartitionState(CopyFacts):
    """A partition of the source: what is ``verified`` on the target ends before that offset, the log before ``end``."""

    verified: int
    end: int


@dataclass(frozen=True)
class GroupState:
    """A group: its positions in the topics, those not cut over yet, the offsets that it would read again, who is in it."""

    group: str
    positions: int
    left: int
    again: int
    members: tuple[str, ...]
    there: GroupThere


@dataclass(frozen=True)
class MoveState:
    """A move group now. ``reasons``: why groups can't be cut over; ``writers``: the last producer of each partition that brokers
    remember; ``access``: rights and quotas that the target lacks; ``unfinished``: why it can't be finished;
    ``reverse``: how the reverse flow stands."""

    flow: str
    move: Move
    partitions: tuple[PartitionState, ...]
    groups: tuple[GroupState, ...]
    reasons: tuple[str, ...]
    writers: tuple[str, ...]
    blocks: tuple[str, ...]
    access: tuple[str, ...]
    is_frozen: bool
    unfinished: tuple[str, ...]
    reverse: str

    @property
    def undo(self) -> str:
        return f"{self.reverse}. {UNDO_WITH_REVERSE}" if self.reverse else UNDO_WITHOUT_REVERSE

    @property
    def behind(self) -> int:
        return sum(max(0, each.end - each.verified) for each in self.partitions)

    @property
    def next(self) -> MoveStep:
        if self.is_frozen:
            return "finish"
        return "cut_over_consumers" if any(each.left for each in self.groups) else "cut_over_producers"

    @property
    def headline(self) -> str:
        left = sum(each.left for each in self.groups)
        again = sum(each.again for each in self.groups)
        stands = "frozen, its producers are cut over" if self.is_frozen else f"{self.behind:,} offsets not verified yet"
        return (
            f"{self.move.name}: {counted(len(self.move.names), 'topic')}, {stands}; {counted(len(self.groups), 'group')}, "
            f"{counted(left, 'position')} to cut over, {counted(again, 'record')} would be read again"
        )


def move_state(opened: Opened, move: Move, order: MoveOrder) -> MoveState:
    """Look at both clusters. Nothing is written but the ledger."""
    groups = look_at_groups(opened, move, order)
    there = {each.group: each for each in on_target(opened, move)}
    with Routes(opened.flow.source, f"airmirror|{opened.flow.name}|{PURPOSE}") as source:
        ends = ends_of(source, move.names)
        writers = last_writers(source, ends) or {}
    with session(opened) as mirror:
        blocks = tuple(map(blocking.str_of, blocking.standing(mirror, move)))
        access = tuple(lacking(mirror, move).lines)
    verified = opened.ledger.state().verified
    partitions = [
        PartitionState(*key, move.names[key.topic], verified[key].offset + 1 if key in verified else 0, end)
        for key, end in sorted(ends.items())
    ]
    members = members_of(connect(opened.flow.source), move.groups)[0]
    states = []
    for group in move.groups:
        rows = [row for row in groups.rows if row.group == group]
        left = [row for row in groups.left if row.group == group]
        again = sum(row.found.again for row in left if isinstance(row.found, Translated))
        its = tuple(f"{each.client_id} at {each.host}" for each in members if each.group == group)
        states.append(GroupState(group, len(rows), len(left), again, its, there[group]))
    return MoveState(
        flow=opened.flow.name,
        move=move,
        partitions=tuple(partitions),
        groups=tuple(states),
        reasons=groups.reasons,
        writers=tuple(f"{key}: {each}" for key, each in sorted(writers.items())),
        blocks=blocks,
        access=access,
        is_frozen=is_frozen(opened, move),
        unfinished=tuple(unfinished(opened, move)),
        reverse=reverse_state(opened, move),
    )
