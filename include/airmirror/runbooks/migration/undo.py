"""Undoing a migration's steps while producers are on the source: they are unblocked, groups go back, topics are unfrozen.

A group that has not gone further stands where it stood before. One that has read on the target resumes at the very next record on
the source: its position there is translated back by the flow's own mappings. Once producers have written on the target it is
too late: what is left is a reverse flow.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.groups import commit_offsets
from airmirror.errors import command, counted
from airmirror.flows.freezing import owners_now, unfreeze
from airmirror.flows.prepare import Opened
from airmirror.offsets.translation import Translated
from airmirror.partitions import TopicPartition
from airmirror.report.document import Document, Section
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.migration import blocking
from airmirror.runbooks.migration.carrying import GroupsToPutBack, going_back
from airmirror.runbooks.migration.chosen import Move, chosen_move, session
from airmirror.runbooks.migration.consumers import members_in_words, with_members
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.reverse import is_returning, take_back, undo_over
from airmirror.runbooks.moving import moved_again, put_back, remember_again, unleased
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.runbooks.shown import shown_undo
from airmirror.runbooks.written import written_since
from airmirror.tell import Tell
from airmirror.windows.errors import unfreeze_command
from airmirror.windows.mirror import Mirror
from airmirror.wire.moves import ProducerBlock
from airmirror.wire.owners import Owners

NOTHING = GroupsToPutBack((), (), ())


def _way_out(flow: str, move: Move) -> str:
    unblock = command("migration", "undo", "--move", move.name, "--unblock", "--reason", "…", "--yes", flow=flow)
    back = command("failback", "run", "--reason", "…", flow=flow, topics=sorted(move.names))
    return f"where producers have written on the target already, fail its topics back: {unblock}, then {back}"


def _cannot(flow: str, move: Move, reasons: Collection[str]) -> CannotUndo:
    return CannotUndo(flow, tuple(reasons), f"migration of {move.name!r}", _way_out(flow, move))


@dataclass(frozen=True)
class UndoneMove:
    """An undo that would be done, or was. ``frozen``: topics to unfreeze; ``reasons``: why it can't be done; ``returning``: what
    producers have written on the target, and what the reverse flow copies to the source before anything else."""

    back: GroupsToPutBack
    frozen: tuple[str, ...]
    blocks: tuple[ProducerBlock, ...]
    reasons: tuple[str, ...]
    returning: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        """Return whether nothing of the move group was cut over, or blocked."""
        return not (self.back.groups or self.frozen or self.blocks)

    @property
    def lines(self) -> list[str]:
        """Everything in words, one each; nothing where there is nothing to undo."""
        again = {(row.group, row.key): row for row in self.back.rows}
        found = []
        for each in () if self.returning else self.back.groups:  # what returns takes its groups with it
            if each.move.is_mark:
                continue
            row = again.get((each.move.group, TopicPartition(each.move.topic, each.move.partition)))
            before = "nowhere" if each.move.before < 0 else str(each.move.before)
            line = f"{each.name}: from {each.now if each.now >= 0 else 'nowhere'} to {before}"
            if row is not None and isinstance(row.found, Translated):
                why = "it has read on there, and" if each.has_gone_on else "its position has expired on the source: it"
                line += f"; {why} resumes in {row.remote} at {row.found.translation}"
            found.append(line)
        found += [f"{each}; they return, and groups resume after them" for each in self.returning]
        found += [f"{topic or 'the flow'} is unfrozen" for topic in self.frozen]
        return [*(f"producers are unblocked: {blocking.str_of(each)}" for each in self.blocks), *found]


def look(pair: Pair, order: MoveOrder) -> Document:
    move = chosen_move(pair.forward, order.move)
    return _shown(pair.flow.name, move, order, undo_plan(pair.forward, move, order), done=False)


def undo(pair: Pair, order: MoveOrder, progress: Progress = SILENT) -> Document:
    """Take a move group's steps back, or its block alone. Raises what ``undo_move`` does."""
    move = chosen_move(pair.forward, order.move)
    found = undo_move(pair.forward, move, order, progress.phase, pair.reverse_or_none)
    return _shown(pair.flow.name, move, order, found, done=True)


def _shown(flow: str, move: Move, order: MoveOrder, found: UndoneMove, *, done: bool) -> Document:
    if not found.lines:
        headline = f"{order.move}: {'no producer is blocked' if order.unblock else 'nothing was cut over'}."
    else:
        state = "without its block" if order.unblock else "undone"
        headline = f"{order.move} {'is' if done else 'would be'} {state}: {counted(len(found.lines), 'change')}."
    rows = [{"change": each} for each in found.lines]
    changes = Section("changes", rows, "Changes", brief="*", empty="")
    return shown_undo("migration", flow, headline, found.reasons, _way_out(flow, move), [changes], found.back.groups)


def undo_plan(opened: Opened, move: Move, order: MoveOrder) -> UndoneMove:
    """Return what an undo would do now. Nothing is written but the ledger. Raises OffsetsHeld."""
    if order.unblock:
        with session(opened) as mirror:
            return UndoneMove(NOTHING, (), tuple(blocking.standing(mirror, move)), ())
    owners = owners_now(opened)
    frozen = sorted(topic for topic in move.names if owners.is_apart(topic))
    with session(opened) as mirror:
        back = going_back(mirror, move, order, ahead_allowed=_may_be_ahead(opened))
        # Groups were cut over there, or the topics frozen: others may have written there.
        written = _written_there(mirror, move, is_frozen=bool(frozen)) if frozen or back.groups else []
        returning = tuple(written) if frozen and written and is_returning(opened, move) else ()
        if returning:  # groups are moved by the reverse flow
            back, written = replace(back, rows=(), reasons=()), []
        blocks, reasons = blocking.standing(mirror, move), list[str]()
        if back.groups or frozen or blocks:
            reasons += _frozen(opened, owners)
        reasons += _members(mirror, back.names) + list(back.reasons) + written
    return UndoneMove(back, tuple(frozen), tuple(blocks), tuple(reasons), returning)


def undo_move(opened: Opened, move: Move, order: MoveOrder, tell: Tell, reverse: Opened | None = None) -> UndoneMove:
    """Do it; done again, it does what is left. Producers are unblocked alone also when they have written on the target: they are
    to come back. ``reverse``: the reverse flow, over which producers come back that have written there. Raises CannotUndo,
    GroupsActive, OffsetsHeld, BlockRefused, FlowBusy, what a failback raises, or a cluster's error.
    """
    flow = opened.flow
    found = undo_plan(opened, move, order)
    if found.reasons:
        raise _cannot(flow.name, move, found.reasons)
    if found.is_nothing:  # what returns of its topics does so by an order for the flow
        return found
    tell("unblocking producers")
    blocking.unblock_producers(opened, move, order)  # first: it may keep out what returns; applications are stopped
    if order.unblock:
        return found
    if found.returning:
        groups = {*move.groups, *(each.move.group for each in found.back.groups)}
        undo_over(Pair(opened, reverse), move, order, groups, tell)
        return found

    def nobody_has_written() -> None:
        with session(opened) as mirror:
            if found.frozen and (written := _written_there(mirror, move, is_frozen=True)):
                raise _cannot(flow.name, move, tuple(written))

    take_back(Pair(opened, reverse), move, order, nobody_has_written, tell)
    if found.frozen:
        why = f"{move.name} moves back: {order.reason}"
        unfreeze(opened, found.frozen, reason=why, by=order.by, last=nobody_has_written, tell=tell)
    back = _put_back(opened, move, order, tell) if found.back.groups else NOTHING
    with session(opened) as mirror:
        again = moved_again(mirror, lambda each: each.window == order.window, back.groups)
    if again:  # no lease is taken where groups are cut over: who was doing so may have slept
        with session(opened) as mirror, unleased(mirror, order.window) as writer:
            remember_again(writer, [each.move for each in back.groups])
        raise _cannot(flow.name, move, again)
    return found


def _frozen(opened: Opened, owners: Owners) -> list[str]:
    return [f"the whole flow is frozen: {unfreeze_command(opened.flow.name)}"] if owners.whole else []


def _may_be_ahead(opened: Opened) -> bool:
    """Return whether the source takes positions of streams groups that it does not have: the reverse flow says so, if any."""
    reverse = opened.configuration.flows.get(opened.flow.reverse_name)
    return reverse is not None and reverse.settings.streams_groups_ahead_allowed


def _put_back(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> GroupsToPutBack:
    """Write what goes back on the source, then put groups back on the target, as they stand now; those that do."""
    with session(opened) as mirror, unleased(mirror, order.window) as writer:
        back = going_back(mirror, move, order, ahead_allowed=_may_be_ahead(opened))
        if reasons := [*_frozen(opened, mirror.index.owners()), *back.reasons]:  # a failover moves groups too
            raise _cannot(opened.flow.name, move, reasons)
        tell(f"putting {counted(len(back.groups), 'position')} of groups back")
        errors = commit_offsets(mirror.source, back.written)
        if errors:
            alias = opened.flow.source.alias
            refused = tuple(f"{group} in {key}: {alias}: {error_name(code)}" for (group, key), code in errors.items())
            raise _cannot(opened.flow.name, move, refused)
        return replace(back, groups=tuple(put_back(writer, back.groups)))


def _written_there(mirror: Mirror, move: Move, *, is_frozen: bool) -> list[str]:
    """Return where others have written in the topics on the target; windows write to them as long as they are not frozen."""
    found = written_since(mirror, move.names.values())
    known = {topic for topic, _ in mirror.index.state().known}  # of others there is nothing to freeze
    if found and not is_frozen and (topics := sorted(known.intersection(move.names))):
        freeze = command("flow", "freeze", "--reason", "…", "--yes", flow=mirror.flow.name, topics=topics)
        found.append(f"what applications have written there can return when its topics are frozen: {freeze}")
    return found


def _members(mirror: Mirror, groups: set[str]) -> list[str]:
    """Return who is still in these groups, on either side: positions of a group with members can't be written."""
    found = []
    for routes in (mirror.target, mirror.source):
        if active := with_members(routes, groups):
            found += [f"on {routes.alias}: {each}" for each in members_in_words(routes.cluster, active)]
    return found
