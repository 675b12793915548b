"""The programs of the model: windows of both flows, and each procedure as the product takes it, step by step.

``PROGRAMS`` has them by name; what the steps write, and under which lease, is that of ``include/airmirror/runbooks`` and
``flows``. People stop and start applications where the procedure asks for it.
"""

from __future__ import annotations

from airmirror.offsets.translation import Translated
from airmirror.wire.owners import BACK as NOT_BACK_YET
from airmirror.wire.owners import Change, Owner
from model import steps
from model.estate import (
    BACK,
    EAST,
    FLOWS,
    NOWHERE,
    THERE,
    TOPICS,
    UNKNOWN,
    WEST,
    Account,
    Process,
    World,
    opened_by_force,
    put,
    transition,
    translated,
    translation,
)
from model.order_rules import OrderRules
from model.steps import (
    ALL,
    Outcome,
    Step,
    check,
    initialise,
    named,
    on,
    over,
    refused,
    said,
    undrained,
    written_there,
)

BEGINS = 8  # the steps of a failback that begin the return


def fenced(world: World, me: Process) -> Outcome:
    """A commit that was fenced is done again, from the look at the lease on."""
    return "is fenced, and begins its transaction again", world, me._replace(at=me.at - 1)


def change(what: Change, *, may_open: bool = False, forgets: bool = False) -> Step:
    """Commit who owns what the order names from now on; ``may_open``: a command that opens what returns too; ``forgets``: and
    leaves groups where a failover has moved them."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        if rules.transaction and not me.ids[THERE]:
            return fenced(world, me)
        which = _which(world, me, what, rules)
        owners = transition(world.owners, what, me.topics, which)
        if may_open and not rules.ends_before_unfreezing:
            owners = opened_by_force(owners, named(world, me))
        if forgets:
            world = _groups_stay(world, me, rules)
        return f"writes {what!s}", world._replace(owners=owners), on(me)

    return step


def _groups_stay(world: World, me: Process, rules: OrderRules) -> World:
    """Forget where a failover has found groups: whoever moves one from now on finds it where it is."""
    for topic in me.topics or ALL:
        if (its := world.moves[THERE][topic]) is not None and its.by == "failover":
            world = world._replace(stood=put(world.stood, topic, world.readers[topic].at[WEST]))
            world = world.with_move(THERE, topic, None) if rules.opening_forgets else world
    return world


def _which(world: World, me: Process, what: Change, rules: OrderRules) -> tuple[int, ...] | None:
    """The topics that a change is of; None: what the order names."""
    if what in (Change.BEGIN, Change.END, Change.GIVE_UP, Change.FINISH) and not rules.only_named:
        return ALL
    if what in (Change.BEGIN, Change.END, Change.GIVE_UP):
        return tuple(frozen_ones(world, me))
    return None if rules.apart or me.topics else ALL


def committing(what: Change, rules: OrderRules, *, may_open: bool = False, forgets: bool = False) -> tuple[Step, ...]:
    """The steps that commit a change under the flow's lease."""
    return (initialise(THERE) if rules.transaction else check(THERE), change(what, may_open=may_open, forgets=forgets))


def looks_no_more(world: World, me: Process, rules: OrderRules) -> Outcome:
    """A look at a lease that was taken away."""
    return "does not look at its lease", world, on(me)


def returning(world: World, me: Process, among: tuple[Owner, ...] = NOT_BACK_YET) -> list[int]:
    """The topics that the order names and that return, or did."""
    return [each for each in named(world, me) if world.owner(each) in among]


# Freezing and opening.


def last_look(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Everything of the order's topics is verified, asked under the lease."""
    if left := undrained(world, THERE, named(world, me)):
        return refused(world, me, "not all is verified", left)
    return "looks whether all is verified", world, on(me)


def look_again(world: World, me: Process, rules: OrderRules) -> Outcome:
    """After the freeze: whether anything came that is never replicated; and say that all of it is on west."""
    left = undrained(world, THERE, named(world, me))
    if left and rules.looks_after_freezing:
        return refused(world, me, "written while it was frozen", left)
    if left:
        world = world.wrongly(f"{me.kind} says that every record of east is on west, and one is not")
    return "says that every record of east is on west", world, on(me)


def await_drained(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """Windows have verified all of it, and groups are exact."""
    mine = named(world, me)
    if undrained(world, THERE, mine):
        return None
    if wrong := steps.not_exact(world, THERE, mine if rules.groups_apart or me.topics else ALL):
        return refused(world, me, "groups are not exact", wrong)
    return "finds all verified", world, on(me)


def nothing_returns(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Nothing of it returns, or has returned without an account: who unfreezes a flow asks so."""
    if rules.ends_before_unfreezing and (left := returning(world, me)):
        return refused(world, me, "it returns", left)
    uncounted = []
    for topic in named(world, me) if rules.groups_apart or me.topics else ALL:
        there, back = world.account(THERE, topic), world.account(BACK, topic)
        position = there.position if there else 0
        if back is not None and any(target >= position for _, target in back.pairs):
            uncounted.append(topic)
    if rules.ends_before_unfreezing and uncounted:
        return refused(world, me, "records have returned that the flow has no account of", uncounted)
    return "looks whether anything returns", world, on(me)


def check_frozen(world: World, me: Process, rules: OrderRules) -> Outcome:
    """A failover's later steps: the flow is frozen, and no topic was unfrozen by its name since."""
    found = [each for each in named(world, me) if world.owner(each) is Owner.SOURCE]
    if found and (rules.all_frozen or len(found) == len(named(world, me))):
        return "ends: something is open", world, over(me)
    return "finds the flow frozen", world, on(me)


# Failover.


def look_at_undo(world: World, me: Process, rules: OrderRules) -> Outcome:
    """What the undo of a failover puts back, and whether it can."""
    mine = named(world, me)
    found, gone, active = steps.to_put_back(world, me, THERE, "failover", ALL)
    if active or gone:
        return refused(world, me, "groups have gone further", [*active, *gone])
    if others := written_there(world, mine if rules.groups_apart else ALL):
        return refused(world, me, "others have written on west", others)
    return "looks what it puts back", world, on(me, seen=tuple(found))


def looks_last(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Groups stand where they were put back to, as a cut-over takes no lease, and no failover has moved any again."""
    again = [topic for topic, its in me.seen if world.readers[topic].at[WEST] != its.before]
    again += [each for each in named(world, me) if (its := world.moves[THERE][each]) and its.by == "failover"]
    if rules.failovers_undo_looks_last and again:
        return refused(world, me, "groups were moved again", again)
    return "looks whether groups were moved meanwhile", world, on(me)


def last_seen(world: World, me: Process, rules: OrderRules) -> Outcome:
    """After a disaster: where groups were last seen, by the ledger ``at hand`` (that of another deployment) or a checkpoint."""
    ledger, checkpoint = world.last_seen[1], world.last_seen[2]
    newest = max((ledger, checkpoint), key=lambda each: each[1])
    position = newest[0] if rules.newest_counts else max(ledger[0], checkpoint[0])
    account = world.account(THERE, 0)
    seen = ((0, translated(account, position)),) if account is not None else ()
    return f"finds that the group was last seen at {position}", world, on(me, seen=seen)


def judge_alone(world: World, me: Process, rules: OrderRules) -> Outcome:
    """What is committed is judged from west alone, and all of it is right."""
    for topic in named(world, me):
        account = world.account(THERE, topic)
        if account is not None:
            ends = account.position
            world = world.with_account(THERE, topic, account._replace(judged=ends, verified=ends))
    return "judges what is committed", world, on(me)


# Failback.


def frozen_ones(world: World, me: Process) -> list[int]:
    """The topics that may return: of an order for the flow without those that were opened by their names."""
    return [each for each in named(world, me) if me.topics or world.owner(each) is not Owner.SOURCE]


def returnable(world: World, me: Process, rules: OrderRules) -> Outcome:
    """The order's topics are frozen, else their records would go round."""
    if open_ := [each for each in frozen_ones(world, me) if world.owner(each) is Owner.SOURCE]:
        return refused(world, me, "it is open", open_)
    return "looks whether it may return", world, on(me)


def end_the_first(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Whoever runs a failback again has killed the first run, or it has ended. If three orders meet, of which one stops what
    another one starts, nobody knows when applications read: Kafka has no fence for positions."""
    left = tuple(steps.over(each) if each.kind == "failback" else each for each in world.processes)
    return "begins, and the first run is over", world._replace(processes=left), on(me)


def begin_or_skip(world: World, me: Process, rules: OrderRules) -> Outcome:
    """The same, and where all has returned already there is nothing to begin: the next step is that of applications' stop."""
    mine = named(world, me)
    if all(world.owner(each) is Owner.SOURCE for each in mine):
        return "ends: there is nothing to fail back", world, over(me)
    mine = frozen_ones(world, me)
    if all(world.owner(each) is Owner.RETURNED for each in mine) and not undrained(world, BACK, mine):
        return "finds that all has returned", world, me._replace(at=me.at + BEGINS)
    return returnable(world, me, rules)


def beginnings(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Under both leases: where partitions begin to return; east must hold nothing that neither replicated nor returned."""
    mine = frozen_ones(world, me)
    if open_ := [each for each in mine if world.owner(each) is Owner.SOURCE]:
        return refused(world, me, "it is open", open_)
    found = []
    for topic in mine:
        there, back = world.account(THERE, topic) or Account(), world.account(BACK, topic)
        east = world.logs[topic][EAST]
        returned = {target for _, target in back.pairs} if back is not None else set()
        if any(each not in returned for each in range(there.position, len(east))):
            return refused(world, me, "records of east are not on west", [topic])
        if back is None:
            begin = (there.end, len(east))
            account = Account(begin, there.end, len(east), (), there.end, there.end)
            found.append((topic, account))
        elif back.position < there.end:
            more = tuple((west, east_) for east_, west in there.pairs if west >= back.position)
            grown = back._replace(position=there.end, end=len(east), pairs=(*back.pairs, *more))
            found.append((topic, grown))
    return "reads where topics begin to return", world, on(me, seen=tuple(found))


def commit_accounts(flow: int) -> Step:
    """Commit accounts that resume after what lies on both sides."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        if me.seen and not me.ids[flow]:
            return fenced(world, me)
        for topic, account in me.seen:
            world = world.with_account(flow, topic, account)
        return f"commits {len(me.seen)} accounts of {FLOWS[flow]}", world, on(me, seen=())

    return step


def await_returned(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """All that west holds has returned and is verified, and groups are exact."""
    mine = returning(world, me)
    if first := return_first(world, me, rules):
        return first
    if undrained(world, BACK, mine):
        return None
    if wrong := steps.not_exact(world, BACK, mine):
        return refused(world, me, "groups are not exact", wrong)
    return "finds that all has returned", world, on(me)


def last_look_back(world: World, me: Process, rules: OrderRules) -> Outcome:
    """The same, under both leases."""
    if first := return_first(world, me, rules):
        return first
    if left := undrained(world, BACK, returning(world, me)):
        return refused(world, me, "not all has returned", left)
    return "looks whether all has returned", world, on(me)


def returned_accounts(world: World, me: Process, rules: OrderRules) -> Outcome:
    """What returned, as the flow's own account: the reverse flow's, read backwards; nothing else may be on east."""
    found = []
    if not_over := returning(world, me, (Owner.RETURNING,)):
        return refused(world, me, "it returns again", not_over)
    for topic in returning(world, me, (Owner.RETURNED,)):
        there, back = world.account(THERE, topic) or Account(), world.account(BACK, topic)
        if back is None:
            continue
        west, east = world.logs[topic][WEST], world.logs[topic][EAST]
        if back.position < len(west):
            return refused(world, me, "not all has returned", [topic])
        if there.position >= back.end:
            continue
        new = tuple((target, source) for source, target in back.pairs if target >= there.position)
        known = {source for source, _ in new}
        if any(each not in known for each in range(there.position, back.end)) and east:
            return refused(world, me, "records of east are not on west", [topic])
        account = there._replace(position=back.end, end=len(west), pairs=(*there.pairs, *new))
        found.append((topic, account))
    return "reads what returned backwards", world, on(me, seen=tuple(found))


def returned_rows(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Where the groups stand of what has returned, and would resume on east."""
    if not_over := returning(world, me, (Owner.RETURNING,)):
        return refused(world, me, "it returns still", not_over)
    mine = [each for each in returning(world, me) if world.readers[each].at[WEST] >= 0]
    if not mine:
        words, world, mine = is_anything_back(world, me, rules)
        return words, world, mine._replace(seen=())
    return (
        "reads where groups stand on west",
        world,
        on(me, seen=tuple((each, translation(world, BACK, each)) for each in mine)),
    )


def still_over(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Under both leases: its return has ended, and nobody has finished it, or given it up."""
    if any(world.owner(each) is not Owner.RETURNED for each, _ in me.seen):
        return "ends: its return was ended meanwhile", world, over(me)
    return "finds its return over", world, on(me)


def return_first(world: World, me: Process, rules: OrderRules) -> Outcome | None:
    """A refusal where nothing returns of what is frozen: an undo may have ended it."""
    frozen = [each for each in named(world, me) if world.owner(each) is not Owner.SOURCE]
    if rules.return_first and frozen and not returning(world, me):
        return refused(world, me, "nothing returns of what is frozen", frozen)
    return None


def is_anything_back(world: World, me: Process, rules: OrderRules) -> Outcome:
    """Whether anything is left to open; it is done where nothing is."""
    if first := return_first(world, me, rules):
        return first
    names = tuple(returning(world, me))
    if not names:
        if frozen := [each for each in named(world, me) if world.owner(each) is not Owner.SOURCE]:
            world = world.wrongly(f"{me.kind} says that it is done, and {TOPICS[frozen[0]]} is frozen")
        return "ends: nothing is left to open", world, over(me)
    return "finds what returned", world, on(me, seen=names)


def stand_back(world: World, me: Process, rules: OrderRules) -> Outcome:
    """All has returned still, and groups are on east where they were moved to, or further: an undo that broke off may have put
    them back."""
    if rules.still_returned and (gone := [each for each in me.seen if world.owner(each) is not Owner.RETURNED]):
        return refused(world, me, "it returns no more, or again", gone)
    found = [
        (each, translation(world, BACK, each)) for each in returning(world, me) if world.readers[each].at[WEST] >= 0
    ]
    behind = [
        each
        for each, where in found
        if not isinstance(where, Translated) or world.readers[each].at[EAST] < where.translation
    ]
    if rules.stand_back and behind:
        return refused(world, me, "groups stand before where they were moved to", behind)
    return "looks whether groups stand where they were moved to", world, on(me)


def finish_moves(world: World, me: Process, rules: OrderRules) -> Outcome:
    """The last change of a failback: the source owns it again; how to put groups back is forgotten in the same transaction."""
    gone = returning(world, me, (Owner.RETURNED,))
    frozen = [each for each in named(world, me) if world.owner(each) is Owner.TARGET]
    done = change(Change.FINISH)(world, me, rules)
    assert done is not None
    words, after, mine = done
    if mine.at < me.at:
        return done
    for topic in written_there(after, frozen):
        if after.owner(topic) is Owner.SOURCE:
            after = after.wrongly(f"{me.kind} opens {TOPICS[topic]}, and records of west have not returned")
    for topic in gone:
        after = after.with_move(THERE, topic, None)
        after = after._replace(
            stood=put(after.stood, topic, UNKNOWN)
        )  # what was before the failover is nobody's any more
        if after.readers[topic].home == NOWHERE and after.readers[topic].at[EAST] >= 0:
            after = said(after, topic, EAST, me)
        if after.owner(topic) is not Owner.SOURCE:
            after = after.wrongly(f"{me.kind} says that {TOPICS[topic]} is open, and it is not")
    return words, after, mine


def look_at_failback_undo(world: World, me: Process, rules: OrderRules) -> Outcome:
    """What the undo of a failback puts back on east, and whether it can."""
    names = returning(world, me) if rules.only_named else [each for each in ALL if world.owner(each) in NOT_BACK_YET]
    if not names:
        return "ends: nothing returns", world, over(me)
    found, gone, active = steps.to_put_back(world, me, BACK, "return", names)
    if active or gone:
        return refused(world, me, "groups have gone further", [*active, *gone])
    return "looks what it puts back", world, on(me, seen=tuple(found))
