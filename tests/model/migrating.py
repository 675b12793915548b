"""The steps of a migration, and of its undo."""

from __future__ import annotations

from collections.abc import Collection

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
    UNKNOWN,
    WEST,
    Account,
    Move,
    Process,
    World,
    is_exact,
    put,
    translated,
    translation,
)
from model.order_rules import OrderRules
from model.steps import ALL, Outcome, Step, named, on, refused, said, undrained, written_there

TAKING_BACK = 8  # steps by which a return is taken back
OPENING = 5  # and by which topics are opened
PUTTING_BACK = 6  # and groups put back
MOVING = 4  # steps by which a cut-over moves groups


def await_verified(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """Windows have verified what lies before the groups' positions."""
    for topic in me.topics:
        account = world.account(THERE, topic)
        if account is None or account.verified < world.readers[topic].at[EAST]:
            return None
    return "finds verified what groups have read", world, on(me)


def left_to_cut_over(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Of the groups' positions those that are not cut over yet; each must be exact."""
    left = [(topic, where) for topic, where in me.seen if not is_cut_over(world, topic)]
    if wrong := [topic for topic, where in left if not is_exact(where)]:
        return refused(world, me, "groups are not ready", wrong)
    return "looks which groups are left to cut over", world, on(me, seen=tuple(left))


def marked(world: World, me: Process, rules: OrderRules) -> tuple[bool, ...]:
    """Which groups are said to be cut over: each by a record of its own, or all of a move group by one."""
    each_its_own, one = world.cut_overs, any(world.cut_overs[each] for each in me.topics)
    return each_its_own if rules.marks_each else tuple(one and each in me.topics for each in ALL)


def mark(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Write once of each group that it is cut over, and where it is on west before any is moved."""
    if whole := _whole(world, me):
        return refused(world, me, "the whole flow is frozen", whole)
    known = marked(world, me, rules)
    for topic in me.topics:
        stands = world.readers[topic].at[WEST]
        if not known[topic] and rules.marks_positions and stands >= 0 and world.moves[THERE][topic] is None:
            world = world.with_move(THERE, topic, Move("move", stands, NOWHERE))
        world = world.with_cut_over(topic, True)
    return "writes that groups are cut over", world, on(me)


def says_it_was_done(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Where nothing was left to cut over that is said; but after another look."""
    if me.seen:
        return "continues", world, on(me)
    there = me._replace(at=me.at + MOVING)  # at the last look
    return ("moves none", world, on(there)) if rules.cut_over_looks_last else _say_cut_over(world, on(there))


says_it_was_done.at_once = True  # type: ignore[attr-defined]


def remember_again(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Write all of that again that an undo has forgotten meanwhile, which takes no lease; not where groups are by now."""
    if not rules.remembers_first:
        world = mark(world, me, rules)[1]
    for topic, _, its, _ in me.seen if rules.remembers_again else ():
        if isinstance(its, Move) and world.moves[THERE][topic] is None:
            world = world.with_move(THERE, topic, its)
        world = world.with_cut_over(topic, True)
    return "writes again where groups stood", _overtaken(world, [each[0] for each in me.seen]), on(me)


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
    return _say_cut_over(world, me) if me.kind.startswith("migrate") else ("finds groups cut over", world, on(me))


def _say_cut_over(world: World, me: Process) -> Outcome:
    for topic in me.topics:
        if not is_cut_over(world, topic):
            world = world.wrongly(f"{me.kind} says that the group of {TOPICS[topic]} is cut over, and it is not")
        elif world.readers[topic].home == NOWHERE:
            world = said(world, topic, WEST, me)
    return "says that groups are cut over", world, on(me, seen=())


def can_finish(world: World, me: Process, rules: OrderRules) -> Outcome:
    """The topics are frozen, nothing was written on east since, and the soak is over."""
    for topic in me.topics:
        back = world.account(BACK, topic)
        ends = max((world.account(THERE, topic) or Account()).position, back.end if back is not None else 0)
        if world.owner(topic) is Owner.SOURCE or len(world.logs[topic][EAST]) > ends:
            return refused(world, me, "it can't be finished yet", [topic])
        world = world._replace(stood=put(world.stood, topic, UNKNOWN))  # its people want no undo any more
    moves = tuple((each, its, True) for each in me.topics if (its := world.moves[THERE][each]) is not None)
    return "finds that it may finish", world, on(me, seen=moves)


def await_others(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """Who undoes again waits for the others to end. If a cut-over and an undo meet, and one of them is killed when it has moved
    groups, and the other one has just forgotten them, nobody knows where they stood: Kafka has no fence for positions."""
    return ("begins", world, on(me)) if sum(each.at != steps.DONE for each in world.processes) == 1 else None


def plan_undo(world: World, me: Process, rules: OrderRules) -> Outcome:
    """What the undo of a migration would do: over the reverse flow where producers have written on west."""
    if whole := _whole(world, me):
        return refused(world, me, "the whole flow is frozen", whole)
    written = written_there(world, me.topics)
    if written and all(world.owner(each) in NOT_BACK_YET for each in written):
        return "goes back over the reverse flow", world, Process("failback", me.topics)
    if written:
        return refused(world, me, "producers have written on west", written)
    if any(world.owner(each) in NOT_BACK_YET for each in me.topics):
        return "takes the return back", world, on(me)
    if any(world.owner(each) is not Owner.SOURCE for each in me.topics):
        return "finds nothing that returns", world, me._replace(at=me.at + TAKING_BACK + 1)
    there = me.at + TAKING_BACK + OPENING + 1
    if any(world.cut_overs[each] or _is_moved(world, each, "move") for each in me.topics):
        return "finds nothing that is frozen", world, me._replace(at=there)
    return "finds nothing that was cut over", world, me._replace(at=there + PUTTING_BACK)


def _whole(world: World, me: Process) -> list[int]:
    """The topics that an order for the flow keeps frozen."""
    return [each for each in me.topics if world.owner(each) is not Owner.SOURCE and not _by_name(world, each)]


def _by_name(world: World, topic: int) -> bool:
    return any(name == TOPICS[topic] and scope for name, _, scope in world.owners)


def nobody_has_written(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Asked under the leases."""
    if written := written_there(world, me.topics):
        return refused(world, me, "producers have written on west", written)
    return "looks whether anybody has written on west", world, on(me)


def going_back(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Groups that have gone further on west resume after it on east."""
    if whole := _whole(world, me):  # asked again
        return refused(world, me, "the whole flow is frozen by now", whole)
    found, _, active = steps.to_put_back(world, me, THERE, "move", me.topics)
    known, marks = {each for each, _ in found}, marked(world, me, rules)
    for topic in (each for each in me.topics if marks[each] and each not in known):
        is_there = world.readers[topic].at[WEST] >= 0  # for the first time since it was cut over
        found.append((topic, Move("move" if is_there else steps.MARK, NOWHERE, NOWHERE)))
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
            only_new = rules.carries_no_group_back or its.after == NOWHERE
            if only_new and world.readers[topic].at[EAST] >= where.translation:  # type: ignore[union-attr]
                where = None  # it has read as far on east
        seen.append((topic, its, where, marks[topic]))
    return "looks where groups go back", world, on(me, seen=tuple(seen))


def carry_back(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Write on east the positions of groups that have gone further."""
    for topic, _, where, _ in me.seen:
        reader = world.readers[topic]
        if where is not None:
            if reader.home == EAST:
                return refused(world, me, "a group has members on east", [topic])
            world = world.with_reader(topic, at=put(reader.at, EAST, where.translation))
    return (
        "writes positions on east",
        world,
        on(me, seen=tuple((topic, its, marked) for topic, its, _, marked in me.seen)),
    )


def forget_marks(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Delete what says that groups are cut over."""
    for topic, _, is_marked in me.seen:
        if is_marked:
            world = world.with_cut_over(topic, False)
    return "forgets that groups are cut over", world, on(me)


def look_last(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Groups stand on west where they stood before, and have no members there: nobody has moved them meanwhile. Where somebody
    has, it is written again where they stood first, and the undo ends with an error."""
    again = {each for each in me.topics if _is_moved(world, each, "move") or world.cut_overs[each]}
    for topic, its, _ in me.seen:
        reader = world.readers[topic]
        if its.by != steps.MARK and (reader.at[WEST] != its.before or reader.home == WEST):
            again.add(topic)
    if not rules.undo_looks_last or not again:
        return "looks whether groups were moved meanwhile", world, on(me)
    for topic, its, marked in me.seen if rules.keeps_first else ():
        if its.by != steps.MARK and world.moves[THERE][topic] is None:
            world = world.with_move(THERE, topic, its)
        world = world.with_cut_over(topic, marked or world.cut_overs[topic])
    return refused(_overtaken(world, again), me, "groups were moved again", again)


def _overtaken(world: World, topics: Collection[int]) -> World:
    """Where a failover has found groups while a cut-over and its undo met, nobody knows any more where they stood first."""
    for topic in topics:
        if _is_moved(world, topic, "failover"):
            world = world._replace(stood=put(world.stood, topic, UNKNOWN))
    return world


def _is_moved(world: World, topic: int, by: str) -> bool:
    its = world.moves[THERE][topic]
    return its is not None and its.by == by


def _moving(world: World, topic: int) -> bool:
    """Whether a cut-over or its undo is at work: while both are, nobody may know where a group stood (``await_others``)."""
    return any(
        each.kind in ("migrate consumers", "undo of a migration") and topic in each.topics and 0 < each.at < steps.DONE
        for each in world.processes
    )


def say_undone(side: int) -> Step:
    """Say that groups resume on a side at the very next record, and are on west where they were."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        by = "failover" if me.kind == "undo of a failover" else "move"
        put_back = {topic for topic, *_ in me.seen} if by == "failover" else set(me.topics)
        for topic in named(world, me):
            reader, stood = world.readers[topic], world.stood[topic]
            if _is_moved(world, topic, by):
                world = world.wrongly(f"{me.kind} says that it is done, and the group of {TOPICS[topic]} is moved")
            known = by != "failover" or not _moving(world, topic)
            if known and topic in put_back and not world.moves[THERE][topic] and reader.at[WEST] != stood != UNKNOWN:
                at = f"at {reader.at[WEST]} on west, and it was at {stood}"
                world = world.wrongly(f"{me.kind} leaves the group of {TOPICS[topic]} {at}")
            if reader.home == NOWHERE and reader.at[side] >= 0:
                world = said(world, topic, side, me)
        return f"says that groups resume on {SIDES[side]}", world, on(me)

    step.at_once = True  # type: ignore[attr-defined]
    return step


def await_drained(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """Windows have verified all of it."""
    return None if undrained(world, THERE, me.topics) else ("finds all verified", world, on(me))
