"""The steps of a failback.

What was written to remote topics since the failover returns; when applications have stopped there, all of it has returned and is
verified, the return is ended, groups are moved to their exact positions on the source, and the flow that was failed over is
unfrozen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from airmirror.clusters.protocol.groups import committed_offsets
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError, command
from airmirror.errors import named as all_named
from airmirror.flows.freezing import owners_now
from airmirror.ledger import GroupOffset
from airmirror.offsets.positions import GroupPosition, group_positions, held_back
from airmirror.offsets.translation import Reason, Translated
from airmirror.runbooks.draining import await_quiet, prove_past
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.failback.differing import differing
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import Pair, both_leased
from airmirror.runbooks.failback.returning import ReturnNotDrained, begin_return, end_return, is_over, look_ahead
from airmirror.runbooks.failback.unfreezing import came_from_target, unfreeze_after_return
from airmirror.runbooks.moving import GroupsDisplaced, MappingWriter, check_still, displaced, move_groups, not_exact
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.runbooks.stillness import ends_of
from airmirror.windows.continuing import Continuation
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Reset
from airmirror.wire.owners import Owner, named


class GroupsNotBack(RunbookError):
    """Groups whose position on the source is not exact, or differs from the one that was written. ``anyway``: the command that
    finishes it without them."""

    anyway: str
    says = (
        "groups would not resume at the very next record, so that its return was not finished; {airmirror:groups} shows them; "
        "where an undo has put them back, take the step move_groups again; else leave them out with groups.exclude, or: "
        "{0.anyway}"
    )


class ReturnFirst(AirmirrorError):
    """A step of a failback that comes after the return, of what is frozen and does not return: an undo may have ended it."""

    flow: str
    topics: tuple[str, ...]
    says = (
        "flow {0.flow!r}: nothing of what is frozen returns to its source; take the step return first: "
        "{airmirror:failback run --step return --reason … --yes}"
    )


def is_done(pair: Pair, topics: Collection[str] = ()) -> bool:
    """Return whether nothing is frozen of what an order for ``topics`` names; none: for the whole flow."""
    owners = owners_now(pair.forward)
    return not any(owners.why_frozen(topic) for topic in named(owners, topics))


def nothing_left(pair: Pair, order: FailbackOrder) -> str:
    """Return that there is nothing to fail back, in words, and what only orders that name it do; "": there is something.

    Raises NoReverseFlow.
    """
    topics, _ = order.topics, pair.reverse
    if not is_done(pair, topics):
        return ""
    flow, owners = pair.forward.flow.name, owners_now(pair.forward)
    apart = sorted(filter(owners.is_apart, owners.frozen))
    said = f"{', '.join(sorted(topics)) or flow} is not frozen, and nothing returns: there is nothing to fail back"
    run = command("failback", "run", "--reason", "…", flow=flow, topics=apart)
    return f"{said}; frozen by name: {all_named(apart)}: {run}" if apart else said


def return_step(pair: Pair, order: FailbackOrder, progress: Progress = SILENT) -> list[Continuation]:
    """Remote topics return from now on; where partitions begin that have not begun before.

    Raises what ``begin_return`` does.
    """
    begun = [] if _has_begun(pair, order.topics) else begin_return(pair, order, progress.phase)
    for each in begun:
        progress.line(f"{each.key} returns to {each.facts.remote_topic} from offset {each.end} on")
    said = "" if begun else "it has begun already; "
    progress.line(f"{said}windows of {pair.reverse.flow.name} copy back what was written, and what comes")
    return begun


def look(pair: Pair, order: FailbackOrder) -> tuple[list[Continuation], list[Reset]]:
    """Return where partitions would begin to return, and which records differ: the order must accept them.

    Nothing is written but the ledger. Raises what ``begin_return`` does.
    """
    begins = [] if _has_begun(pair, order.topics) else look_ahead(pair, order)
    return begins, differing(pair.forward, order.topics)


def drain_step(pair: Pair, order: FailbackOrder, progress: Progress = SILENT) -> None:
    """Nobody writes to the remote topics, all of them has returned and is verified, groups are exact. Of a return that has
    ended nothing is asked.

    Raises ReturnFirst, SourceNotQuiet, NotDrained, GroupsNotBack, or a cluster's error.
    """
    names, reverse = _returning(pair, order), pair.reverse
    if not names or is_over(pair, names):
        return
    still_ms = reverse.flow.settings.failover_quiet_ms
    await_quiet(reverse, still_ms=still_ms, seconds=order.wait, topics=names, tell=progress.phase)
    with Routes(reverse.flow.source, f"airmirror|{reverse.flow.name}|failback") as source:
        ends = dict(ends_of(source, names))
    for row in _positions(pair, names, order):  # in topics besides that do not return, too
        if row.source is not None:
            ends[row.key] = max(ends.get(row.key, 0), min(row.committed.offset, row.source.end))
    prove_past(reverse, ends, order.wait, progress.phase)
    if not order.inexact and (wrong := not_exact(_positions(pair, names, order))):
        raise _not_back(pair, order, wrong)


def end_step(pair: Pair, order: FailbackOrder, progress: Progress = SILENT) -> None:
    """No window copies remote topics back any more. Raises ReturnFirst, ReturnNotDrained, FlowBusy, FenceStuck."""
    if names := _returning(pair, order):
        end_return(pair, names, order, progress.phase)


def move_step(pair: Pair, order: FailbackOrder, progress: Progress = SILENT) -> list[GroupOffset]:
    """Move groups to their positions on the source; what became of each. Windows of both flows that copy other topics are ended.
    Raises ReturnFirst, ReturnNotDrained, GroupsActive, GroupsDisplaced, GroupsNotBack, GroupsReadOn, FlowBusy."""
    names, reverse = _returning(pair, order), pair.reverse
    if not names:
        return []
    if not_over := _not_over(pair, names):  # groups are moved after the step end_return
        raise ReturnNotDrained(pair.flow.name, tuple(f"{name} still returns" for name in not_over), order.topics)
    rows = _positions(pair, names, order)
    with both_leased(pair, progress.phase) as (frozen, granted):
        frozen.check()  # another failback may have leased both flows, and be about to finish
        if gone := _not_over(pair, names):  # another failback has finished it meanwhile, or an undo has given it up
            raise GroupsDisplaced(reverse.flow.name, tuple(f"{name}: its return was ended meanwhile" for name in gone))
        done = move_groups(MappingWriter.of(granted), rows)
        check_still(reverse.flow, rows, _positions(pair, names, order))
        wrong = displaced(granted.journal, rows, done)
    left = [(f"{each.group} in {each.remote_topic}-{each.partition}", each.reason) for each in done if each.reason]
    for name, reason in left:
        progress.line(f"{name} was left: {reason}")
    if not order.inexact:
        wrong += [f"{name}: {reason}" for name, reason in left]
    if wrong:
        raise _not_back(pair, order, wrong)
    return done


def unfreeze_step(pair: Pair, order: FailbackOrder, progress: Progress = SILENT) -> list[Continuation]:
    """The flow that was failed over is unfrozen, after what returned; nothing returns any more. What was accounted for.

    Raises ReturnFirst, GroupsNotBack, and what ``unfreeze_after_return`` does.
    """
    names = _returning(pair, order)

    def stand_back() -> None:
        if not order.inexact and (behind := _behind(pair, names, order)):
            raise _not_back(pair, order, behind)

    return unfreeze_after_return(pair, names, order, stand_back, progress.phase) if names else []


def _returning(pair: Pair, order: FailbackOrder) -> dict[str, str]:
    """Return what returns of an order's topics; none where nothing of them is frozen any more. Raises ReturnFirst."""
    names = pair.returning(order.topics)
    if not names and not is_done(pair, order.topics):
        raise ReturnFirst(pair.flow.name, tuple(sorted(order.topics)))
    return names


def _not_over(pair: Pair, names: Mapping[str, str]) -> list[str]:
    """Return those of these remote topics whose return has not ended, or that do not return any more."""
    return sorted(names.keys() - owners_now(pair.forward).returning((Owner.RETURNED,)).keys())


def _has_begun(pair: Pair, topics: Collection[str]) -> bool:
    """Return whether nothing is left to begin: all of it is unfrozen, or has returned."""
    return is_done(pair, topics) or is_over(pair, pair.returning(topics))


def _not_back(pair: Pair, order: FailbackOrder, wrong: Collection[str]) -> GroupsNotBack:
    words = ("failback", "run", "--inexact", "--reason", "…", "--yes")
    anyway = command(*words, flow=pair.flow.name, topics=sorted(order.topics))
    return GroupsNotBack(pair.reverse.flow.name, tuple(wrong), anyway)


def _positions(pair: Pair, names: Mapping[str, str], order: FailbackOrder) -> list[GroupPosition]:
    """The groups that read what returns, and those that a failover of the flow has moved in topics that came from the target; and
    where each would resume. Raises OffsetsHeld."""
    if order.groups is not None and not order.groups:
        return []
    now = pair.now()
    moved = () if order.topics else came_from_target(now.forward.ledger)
    besides = {(each.group, each.topic) for each in moved}
    with Mirror.open(now.reverse.flow, now.reverse.ledger, "failback") as mirror:
        mirror.refresh()
        rows = group_positions(mirror, order.groups or (), {*names, *(topic for _, topic in besides)})
        ours = [row for row in rows if row.topic in names or (row.group, row.topic) in besides]
        return held_back(mirror, [row for row in ours if row.found is not Reason.NOT_REPLICATED])


def _behind(pair: Pair, names: Mapping[str, str], order: FailbackOrder) -> list[str]:
    """Return the groups that stand before where they were moved to, in words: an undo that broke off may have put them back; and
    those that were never moved, as the source may break on it."""
    rows, source = _positions(pair, names, order), pair.flow.source
    with Routes(source, f"airmirror|{pair.reverse.flow.name}|failback") as routes:
        there = committed_offsets(routes, {row.group for row in rows})
    found = not_exact([row for row in rows if row.found is Reason.STREAMS_AHEAD])
    for row in rows:
        at = there.get(row.group, {}).get(row.remote)
        if isinstance(row.found, Translated) and (at is None or at.offset < row.found.translation):
            found.append(
                f"{row.group} in {row.remote} is at {at.offset if at else 'none'}, not at {row.found.translation}"
            )
    return found
