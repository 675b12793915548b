"""The steps of a migration, and of its undo."""

from __future__ import annotations

from airmirror.wire.owners import BACK as NOT_BACK_YET
from airmirror.wire.owners import Owner
from model import steps
from model.estate import (
    BACK,
    EAST,
    NOWHERE,
    SIDES,
    THERE,
    TOPICS,
    WEST,
    Account,
    Process,
    World,
    is_exact,
    put,
    translated,
    translation,
)
from model.order_rules import OrderRules
from model.steps import Outcome, Step, named, on, refused, said, undrained, written_there

TAKING_BACK = 8  # steps by which a return is taken back


def await_verified(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """Windows have verified what lies before the groups' positions."""
    for topic in me.topics:
        account = world.account(THERE, topic)
        if account is None or account.verified < world.readers[topic].at[EAST]:
            return None
    return "finds verified what groups have read", world, on(me)


def left_to_cut_over(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Of the groups' positions those that are not cut over yet; each must be exact."""
    found = []
    for topic, where in me.seen:
        stands = world.readers[topic].at[WEST]
        if is_cut_over(world, topic):
            continue
        reason = steps.why_not(where, stands, world.readers[topic].home == WEST, len(world.logs[topic][WEST]))
        if reason or not is_exact(where):
            return refused(world, me, "groups are not ready", [topic])
        found.append((topic, where, stands, reason))
    return "looks at groups on west", world, on(me, seen=tuple(found))


def is_cut_over(world: World, topic: int) -> bool:
    """Return whether a group's position on east was written on west, from where its consumers may have gone further."""
    its, where = world.moves[THERE][topic], translation(world, THERE, topic)
    stands = world.readers[topic].at[WEST]
    return bool(its and its.by == "move" and is_exact(where) and its.after == where.translation and stands >= its.after)  # type: ignore[union-attr]


def cut_over(world: World, me: Process, rules: OrderRules) -> Outcome:
    """The last look: groups have no members on east, and stand on west at the very next record."""
    left = [each for each in me.topics if world.readers[each].home == EAST or not is_cut_over(world, each)]
    if left:
        return refused(world, me, "groups are not cut over", left)
    if me.kind.startswith("migrate"):
        for topic in me.topics:
            if world.readers[topic].at[WEST] >= 0 and world.readers[topic].home == NOWHERE:
                world = said(world, topic, WEST, me)
    return "finds groups cut over", world, on(me)


def can_finish(world: World, me: Process, rules: OrderRules) -> Outcome:
    """The topics are frozen, nothing was written on east since, and the soak is over."""
    for topic in me.topics:
        back = world.account(BACK, topic)
        ends = max((world.account(THERE, topic) or Account()).position, back.end if back is not None else 0)
        if world.owner(topic) is Owner.SOURCE or len(world.logs[topic][EAST]) > ends:
            return refused(world, me, "it can't be finished yet", [topic])
    moves = tuple((each, its) for each in me.topics if (its := world.moves[THERE][each]) is not None)
    return "finds that it may finish", world, on(me, seen=moves)


def plan_undo(world: World, me: Process, rules: OrderRules) -> Outcome:
    """What the undo of a migration would do: over the reverse flow where producers have written on west."""
    whole = [each for each in me.topics if world.owner(each) is not Owner.SOURCE and not _by_name(world, each)]
    if whole:
        return refused(world, me, "the whole flow is frozen", whole)
    written = written_there(world, me.topics)
    if written and all(world.owner(each) in NOT_BACK_YET for each in written):
        return "goes back over the reverse flow", world, Process("failback", me.topics)
    if written:
        return refused(world, me, "producers have written on west", written)
    if any(world.owner(each) in NOT_BACK_YET for each in me.topics):
        return "takes the return back", world, on(me)
    return "finds nothing that returns", world, me._replace(at=me.at + TAKING_BACK + 1)


def _by_name(world: World, topic: int) -> bool:
    return any(name == TOPICS[topic] and scope for name, _, scope in world.owners)


def nobody_has_written(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Asked under the leases."""
    if written := written_there(world, me.topics):
        return refused(world, me, "producers have written on west", written)
    return "looks whether anybody has written on west", world, on(me)


def going_back(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Groups that have gone further on west resume after it on east."""
    found, _, active = steps.to_put_back(world, me, THERE, "move", me.topics)
    active += [each for each, _ in found if world.readers[each].home == EAST]
    if active:
        return refused(world, me, "groups have members", active)
    seen = []
    for topic, its in found:
        stands = world.readers[topic].at[WEST]
        where = None
        if stands >= 0 and stands not in (its.before, its.after):
            account = world.account(THERE, topic)
            where = translated(account, stands, True) if account is not None else None
            if where is None or not is_exact(where):
                return refused(world, me, "a position can't be carried back", [topic])
        seen.append((topic, its, where))
    return "looks where groups go back", world, on(me, seen=tuple(seen))


def carry_back(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Write on east the positions of groups that have gone further."""
    for topic, _, where in me.seen:
        reader = world.readers[topic]
        if where is not None:
            if reader.home == EAST:
                return refused(world, me, "a group has members on east", [topic])
            world = world.with_reader(topic, at=put(reader.at, EAST, where.translation))
    return "writes positions on east", world, on(me, seen=tuple((topic, its) for topic, its, _ in me.seen))


def look_last(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Groups stand on west where they stood before, and have no members there: nobody has moved them meanwhile."""
    again = [each for each in me.topics if (its := world.moves[THERE][each]) is not None and its.by == "move"]
    again += [
        each for each, its in me.seen if world.readers[each].at[WEST] != its.before or world.readers[each].home == WEST
    ]
    if rules.undo_looks_last and again:
        return refused(world, me, "groups were moved again", again)
    return "looks whether groups were moved meanwhile", world, on(me)


def say_undone(side: int) -> Step:
    """Say that groups resume on a side at the very next record."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        by = "move" if me.kind == "undo of a migration" else "failover"
        for topic in named(world, me):
            if (its := world.moves[THERE][topic]) is not None and its.by == by:
                world = world.wrongly(f"{me.kind} says that it is done, and the group of {TOPICS[topic]} is moved")
            if world.readers[topic].home == NOWHERE and world.readers[topic].at[side] >= 0:
                world = said(world, topic, side, me)
        return f"says that groups resume on {SIDES[side]}", world, on(me)

    step.at_once = True  # type: ignore[attr-defined]
    return step


def await_drained(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """Windows have verified all of it."""
    return None if undrained(world, THERE, me.topics) else ("finds all verified", world, on(me))
