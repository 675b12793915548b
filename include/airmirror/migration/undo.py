"""Undoing a migration's steps while producers are on the source: groups go back, topics are opened, the fence comes down.

A group that has not gone on stands where it stood before. One that has read on the target goes on at the very next record on
the source: its position there is translated back by the flow's own segments. Once producers have written on the target it is
too late: the way back is a flow in the other direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.groups import Committed, Group, commit_offsets, list_groups
from airmirror.errors import AirmirrorError, command, counted, listed
from airmirror.flows.closing import closures_now, reopen
from airmirror.flows.holds import check_decision
from airmirror.flows.moving import PutBack, not_exact, put_back, to_put_back, unclaimed
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.flows.written import written_since
from airmirror.migration import fence
from airmirror.migration.chosen import Move, session
from airmirror.migration.consumers import members_in_words
from airmirror.migration.order import MoveOrder
from airmirror.offsets.positions import GroupPosition, positions_on_source
from airmirror.offsets.translation import Translated
from airmirror.partitions import TopicPartition
from airmirror.windows.errors import open_command
from airmirror.windows.mirror import Mirror
from airmirror.wire.closures import WHOLE, Fence

Tell = Callable[[str], None]


@dataclass(eq=False)
class CannotUndoMove(AirmirrorError):
    """A migration that can't be undone as things are. Nothing was changed."""

    flow: str
    move: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        back = command("failback", "plan", flow=self.flow)
        return (
            f"flow {self.flow!r}: the migration of {self.move!r} can't be undone now; where producers have written on the target "
            f"already, {back} shows the way back\n{listed(self.reasons)}"
        )


@dataclass(frozen=True)
class UndoneMove:
    """An undo that would be done, or was. ``groups``: put back on the target; ``back``: positions that are written on the source,
    of those that have gone on; ``closed``: topics to open; ``reasons``: why it can't be done."""

    groups: tuple[PutBack, ...]
    back: tuple[GroupPosition, ...]
    closed: tuple[str, ...]
    fences: tuple[Fence, ...]
    reasons: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """Everything in words, one each; nothing where there is nothing to undo."""
        again = {(row.group, row.topic, row.partition): row for row in self.back}
        found = []
        for each in self.groups:
            row = again.get((each.move.group, each.move.topic, each.move.partition))
            before = "nowhere" if each.move.before < 0 else str(each.move.before)
            line = f"{each.name}: from {each.now} to {before}"
            if row is not None and isinstance(row.found, Translated):
                line += f"; it has read on there, and goes on in {row.remote} at {row.found.translation}"
            found.append(line)
        found += [f"{topic or 'the flow'} is open again" for topic in self.closed]
        return found + [f"the fence comes down: {fence.str_of(each)}" for each in self.fences]


def undo_plan(opened: Opened, move: Move, order: MoveOrder) -> UndoneMove:
    """Return what an undo would do now. Nothing is written but the ledger."""
    closed = sorted(closures_now(opened).keys() & {WHOLE, *move.names})
    with session(opened) as mirror:
        groups = to_put_back(mirror, lambda each: each.window == order.window)
        gone_on = [each for each in groups if each.now not in (each.move.before, each.move.after)]
        back = _on_source(mirror, move, gone_on)
        reasons = [f"the whole flow is closed: {open_command(opened.flow.name)}"] if WHOLE in closed else []
        reasons += _members(mirror, {each.move.group for each in groups}) + not_exact(back)
        if closed:
            reasons += written_since(mirror, move.names.values())
        fences = fence.standing(mirror, move)
    return UndoneMove(tuple(groups), tuple(back), tuple(closed), tuple(fences), tuple(reasons))


def undo_move(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> UndoneMove:
    """Do it; done again, it does what is left. Raises CannotUndoMove, DecisionIncomplete, GroupsActive, FenceRefused, FlowBusy,
    or a cluster's error.
    """
    flow = opened.flow
    check_decision(flow.name, order.reason, order.by)
    found = undo_plan(opened, move, order)
    if found.reasons:
        raise CannotUndoMove(flow.name, move.name, found.reasons)
    if found.closed:
        reopen(opened, found.closed, reason=f"{move.name} moves back: {order.reason}", by=order.by, tell=tell)
    if found.groups:
        _put_back(opened, move, order, found, tell)
    tell("taking the fence down")
    fence.take_down(opened, move, order)
    catch_up_ledger(opened)
    return found


def fence_plan(opened: Opened, move: Move) -> UndoneMove:
    """Return the fence that would come down, and nothing else."""
    with session(opened) as mirror:
        return UndoneMove((), (), (), tuple(fence.standing(mirror, move)), ())


def undo_fence(opened: Opened, move: Move, order: MoveOrder) -> UndoneMove:
    """Take down the fence alone, also when producers have written on the target: what returns from there must get in.

    Raises DecisionIncomplete, FenceRefused, or a cluster's error.
    """
    check_decision(opened.flow.name, order.reason, order.by)
    down = fence.take_down(opened, move, order)
    catch_up_ledger(opened)
    return UndoneMove((), (), (), tuple(down), ())


def _put_back(opened: Opened, move: Move, order: MoveOrder, found: UndoneMove, tell: Tell) -> None:
    with session(opened) as mirror, unclaimed(mirror, order.window) as pen:
        tell(f"putting {counted(len(found.groups), 'position')} of groups back")
        errors = commit_offsets(mirror.source, _written(found.back))
        if errors:
            alias = opened.flow.source.alias
            refused = tuple(f"{group} in {key}: {alias} refused its position" for group, key in errors)
            raise CannotUndoMove(opened.flow.name, move.name, refused)
        put_back(pen, found.groups)


def _on_source(mirror: Mirror, move: Move, gone_on: Sequence[PutBack]) -> list[GroupPosition]:
    at: dict[str, dict[TopicPartition, Committed]] = {}
    for each in gone_on:
        if each.now >= 0:
            key = TopicPartition(each.move.topic, each.move.partition)
            at.setdefault(each.move.group, {})[key] = Committed(each.now)
    return positions_on_source(mirror, at, move.names) if at else []


def _members(mirror: Mirror, groups: set[str]) -> list[str]:
    """Return who is still in these groups, on either side: positions of a group with members can't be written."""
    found = []
    for routes in (mirror.target, mirror.source):
        there = list_groups(routes)
        active = sorted(name for name in groups if name in there and not Group(name, there[name].state).is_idle)
        if active:
            found += [f"on {routes.alias}: {each}" for each in members_in_words(routes.cluster, active)]
    return found


def _written(rows: Sequence[GroupPosition]) -> dict[str, dict[TopicPartition, Committed]]:
    offsets: dict[str, dict[TopicPartition, Committed]] = {}
    for row in rows:
        if isinstance(row.found, Translated):
            offsets.setdefault(row.group, {})[row.remote] = Committed(row.found.translation)
    return offsets
