"""The steps that windows, orders and people share: leases, transactions, copying, judging, groups.

A step reads or writes what others see once; between any two steps everybody else may act, and a process may stand still for as
long as you like. A lease is granted to whoever wants it: its holder may have slept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from airmirror.clusters.protocol.groups import Group
from airmirror.offsets.translation import Reason, Translated
from airmirror.runbooks.moving import PutBack
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import Owner
from model.estate import (
    BACK,
    FLOWS,
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
    is_apart,
    is_exact,
    put,
    read_after,
    translation,
    unread_before,
    why_not,
)
from model.order_rules import OrderRules

Outcome = tuple[str, World, Process]
Step = Callable[[World, Process, OrderRules], Outcome | None]  # None: it waits
DONE = 1_000  # past every program
MARK = "mark"  # of a move that is none: the record that a group is cut over
ALL = tuple(range(len(TOPICS)))


def on(me: Process, **changes: object) -> Process:
    """The process at its next step."""
    return me._replace(at=me.at + 1, **changes)


def over(me: Process) -> Process:
    """The process without anything that could tell states apart."""
    return Process(me.kind, me.topics, DONE)


def named(world: World, me: Process) -> tuple[int, ...]:
    """The topics that an order names: its own; none: all that no other order has named. MirrorMaker 2 takes all there are."""
    if me.kind in ("hand-back", "take-over"):
        return ALL
    return me.topics or tuple(each for each in ALL if not is_apart(world.owners, each))


def refused(world: World, me: Process, why: str, because: Collection[int]) -> Outcome:
    """An order ends with an error; ``because`` of these topics."""
    if strangers := sorted(set(because) - set(named(world, me))):
        world = world.wrongly(f"{me.kind} is refused because of {TOPICS[strangers[0]]}, which it does not name")
    return f"ends: {why}", world, over(me)


def undrained(world: World, flow: int, topics: Collection[int]) -> list[int]:
    """The topics of which the flow's source holds more than what is verified."""
    found = []
    for each in topics:
        account = world.account(flow, each)
        if (account.verified if account else 0) < len(world.logs[each][flow]):
            found.append(each)
    return found


def written_there(world: World, topics: Collection[int]) -> list[int]:
    """The topics in which others have written on west after the flow's last record."""
    return [each for each in topics if len(world.logs[each][WEST]) > (world.account(THERE, each) or Account()).end]


def lease(flow: int, *, fences: bool = True) -> Step:
    """Lease a flow, and fence its ids."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        world = world._replace(
            processes=tuple(
                each._replace(
                    leases=put(each.leases, flow, False), ids=put(each.ids, flow, False) if fences else each.ids
                )
                for each in world.processes
            )
        )
        what = "leases and fences" if fences else "leases"
        return f"{what} {FLOWS[flow]}", world, on(me, leases=put(me.leases, flow, True))

    return step


def check(flow: int) -> Step:
    """Look whether the lease still holds."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        return f"looks at its lease of {FLOWS[flow]}", world, on(me) if me.leases[flow] else over(me)

    return step


def initialise(flow: int) -> Step:
    """Initialise the id of a transaction, then look whether the lease still holds."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        world = world._replace(
            processes=tuple(each._replace(ids=put(each.ids, flow, False)) for each in world.processes)
        )
        mine = on(me, ids=put(me.ids, flow, True)) if me.leases[flow] else over(me)
        return f"initialises an id of {FLOWS[flow]}, and looks at its lease", world, mine

    return step


def look(flow: int) -> Step:
    """A window looks which topics are its own."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        own = Owner.SOURCE if flow == THERE else Owner.RETURNING
        seen = tuple(each for each in ALL if world.owner(each) is own and world.account(flow, each) is not None)
        return "looks who owns what", world, on(me, seen=seen) if seen else over(me)

    return step


def starts(flow: int) -> Step:
    """A window of the flow begins, unless it is paused."""
    leases = lease(flow)

    def step(world: World, me: Process, rules: OrderRules) -> Outcome | None:
        return None if world.paused and flow == THERE else leases(world, me, rules)

    return step


def copy(flow: int) -> Step:
    """A slot commits what is new, with its account: here at once, whenever that is."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        if not me.ids[flow]:
            return "is fenced", world, over(me)
        copied = []
        for topic in me.seen:
            account, source, target = world.account(flow, topic), *_both(world, flow, topic)
            if account is None or account.position >= len(source):
                continue
            owner = world.owner(topic)
            if owner is Owner.SOURCE if flow == BACK else owner is not Owner.SOURCE:
                world = world.wrongly(f"{TOPICS[topic]} is copied {FLOWS[flow]}, and its owner is {owner.name}")
            if len(target) > account.end:
                continue  # foreign records: the partition stops
            new = range(account.position, len(source))
            pairs = tuple((each, len(target) + number) for number, each in enumerate(new))
            grown = (*target, *source[account.position :])
            world = world.with_log(topic, 1 - flow, grown).with_account(
                flow,
                topic,
                account._replace(position=len(source), end=len(grown), pairs=(*account.pairs, *pairs)),
            )
            copied.append(f"{TOPICS[topic]} {new.start} to {new.stop - 1}")
        return f"commits {', '.join(copied) or 'nothing'}", world, on(me, seen=())

    return step


def _both(world: World, flow: int, topic: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return world.logs[topic][flow], world.logs[topic][1 - flow]


def examine(flow: int, *, resumes: bool = False) -> Step:
    """A gate reads what is committed and not verified, and compares it."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        seen = []
        for topic in ALL:
            account = world.account(flow, topic)
            if account is not None and account.verified < account.position:
                seen.append((topic, account.position, account.resets))
                world = world.with_account(flow, topic, account._replace(judged=account.position))
        words = ", ".join(f"{TOPICS[topic]} up to {end - 1}" for topic, end, _ in seen)
        return f"judges {words or 'nothing'}", world, on(me, seen=tuple(seen)) if seen or resumes else over(me)

    return step


def verify(flow: int, *, resumes: bool = False) -> Step:
    """The gate writes what it has found right."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        for topic, end, resets in me.seen:
            account = world.account(flow, topic)
            if account is not None and (account.resets == resets or not rules.verdict_has_seen):
                newest = max(account.verified, end) if rules.newer_verdict_stays else end
                world = world.with_account(flow, topic, account._replace(verified=newest))
        return "writes what is verified", world, on(me, seen=()) if resumes else over(me)

    return step


def judging(flow: int, rules: OrderRules, *, resumes: bool = False) -> tuple[Step, ...]:
    """The steps of a gate, with its look at the lease."""
    return (
        examine(flow, resumes=resumes),
        *((check(flow),) if rules.gate_checks else ()),
        verify(flow, resumes=resumes),
    )


# Groups.


def rows(flow: int) -> Step:
    """Read where the order's groups stand on the flow's source, and where they would resume."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        mine = named(world, me) if rules.groups_apart or me.topics else ALL
        found = tuple((each, translation(world, flow, each)) for each in mine if world.readers[each].at[flow] >= 0)
        return f"reads where groups stand on {SIDES[flow]}", world, on(me, seen=found)

    return step


def choose(flow: int) -> Step:
    """Look at the groups on the target: whether they may be moved, and where they stand."""
    side = 1 - flow

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        active = [each[0] for each in me.seen if world.readers[each[0]].home == side]
        if active:
            return refused(world, me, f"groups have members on {SIDES[side]}", active)
        found = []
        for topic, where, *_ in me.seen:
            stands, its = world.readers[topic].at[side], world.moves[flow][topic]
            found.append((topic, where, (stands, its), why_not(where, stands, False, len(world.logs[topic][side]))))
        return f"looks at groups on {SIDES[side]}", world, on(me, seen=tuple(found))

    return step


def remember(flow: int, by: str, *, under: bool = True) -> Step:
    """Write where the groups stand that are to be moved: of those that were moved before, their first place stays."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        if under and not me.leases[flow]:
            return "looks at its lease: it is another's", world, over(me)
        found = list(me.seen)
        for number, (topic, where, (stands, its), reason) in enumerate(me.seen):
            before = world.moves[flow][topic]
            if rules.looks_for_forgotten and its is not None and before is None:
                return refused(world, me, "a group was put back meanwhile", [topic])
            if reason or not isinstance(where, Translated):
                continue
            whose = before.by if before is not None and rules.stays_the_first_ones else by
            its = Move(whose, before.before if before is not None else stands, where.translation)
            world = world.with_move(flow, topic, its)
            found[number] = (topic, where, its, reason)
        return "writes where groups stood", world, on(me, seen=tuple(found))

    return step


def move(flow: int, *, under: bool = True) -> Step:
    """Write the positions of groups on the target, right after a look at the lease: Kafka has no fence for them."""
    side = 1 - flow

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        if under and not me.leases[flow]:
            return "looks at its lease: it is another's", world, over(me)
        for topic, where, _, reason in me.seen:
            reader = world.readers[topic]
            if reason or not isinstance(where, Translated):
                continue
            if reader.home == side:  # the broker refuses it
                return refused(world, me, f"a group has members on {SIDES[side]}", [topic])
            world = world.with_reader(topic, at=put(reader.at, side, where.translation))
        return f"moves groups on {SIDES[side]}", world, on(me)

    return step


def say_moved(flow: int, *, may_repeat: bool = False) -> Step:
    """While the lease holds still: say that groups resume at the very next record; where one was left, an error says so."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        if rules.checks_after_moving and not me.leases[flow]:
            return "looks at its lease: it is another's", world, over(me)
        for topic, where, _, reason in me.seen:
            if reason or not isinstance(where, Translated):
                return "ends: a group was left", world, over(me)
            if rules.rows_once_more and not may_repeat and translation(world, flow, topic) != where:
                return refused(world, me, f"a group has read on on {SIDES[flow]}", [topic])
            if rules.looks_where_they_stand and world.readers[topic].at[1 - flow] != where.translation:
                return refused(world, me, "a group was moved meanwhile", [topic])
            if flow == THERE and world.owner(topic) is Owner.SOURCE:
                world = world.wrongly(f"{me.kind} says that its groups are moved, and {TOPICS[topic]} is open")
            unseen = world.readers[topic].at[flow] - where.position if may_repeat else 0
            world = said(world, topic, 1 - flow, me, again=max(0, unseen), inexact=may_repeat)
        return "says that groups resume at the very next record", world, on(me, seen=())

    return step


def said(world: World, topic: int, side: int, me: Process, *, again: int = 0, inexact: bool = False) -> World:
    """What an order says of a group: no record is skipped, none is read again; where it says so, ``again`` are."""
    name = f"group of {TOPICS[topic]} on {SIDES[side]}"
    if skipped := unread_before(world, topic, side):
        world = world.wrongly(f"{me.kind} moves the {name} past {len(skipped)} records that it has not read")
    repeated = len(read_after(world, topic, side))
    if repeated > again:
        more = "more than it says" if inexact else "and says none"
        world = world.wrongly(f"{me.kind} lets the {name} read {repeated} records again, {more}")
    return world.with_reader(topic, again=again)


def to_put_back(
    world: World, me: Process, flow: int, by: str, topics: Collection[int]
) -> tuple[list[tuple[int, Move]], list[int], list[int]]:
    """The moves of an order's kind, those of groups that have gone further, and those of groups with members on the target."""
    found, gone, active = [], [], []
    for topic in topics:
        its = world.moves[flow][topic]
        if its is None or its.by != by:
            continue
        found.append((topic, its))
        reader = world.readers[topic]
        each = PutBack(
            GroupMove("group", "topic", 0, by, its.before, its.after, 0, ""),
            reader.at[1 - flow],
            "Stable" if reader.home == 1 - flow else "Empty",
            SIDES[1 - flow],
        )
        if not Group("group", each.state).is_idle:
            active.append(topic)
        elif each.why_not:
            gone.append(topic)
    return found, gone, active


def put_back(flow: int, *, under: bool = True) -> Step:
    """Write where groups stood before they were moved, right after a look at the lease; ``seen``: the moves."""
    side = 1 - flow

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        lost = flow == BACK and rules.checks_both_leases and not me.leases[THERE]
        if under and (lost or not me.leases[flow]):
            return "looks at its lease: it is another's", world, over(me)
        for topic, its, *_ in me.seen:
            reader = world.readers[topic]
            if its.by == MARK:
                continue
            if reader.home == side:
                return refused(world, me, f"a group has members on {SIDES[side]}", [topic])
            world = world.with_reader(topic, at=put(reader.at, side, its.before))
        return f"puts groups back on {SIDES[side]}", world, on(me)

    return step


def forget_moves(flow: int, *, under: bool = True) -> Step:
    """Delete the moves that were undone."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        if under and not me.leases[flow]:
            return "looks at its lease: it is another's", world, over(me)
        for topic, its, *_ in me.seen:
            if its.by != MARK:
                world = world.with_move(flow, topic, None)
        return "forgets where groups stood", world, on(me)

    return step


# People.


def stop(*, producers: bool = True, readers: bool = True) -> Step:
    """People stop the applications of the order's topics."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        for topic in named(world, me):
            world = world._replace(stopped_by=put(world.stopped_by, topic, me.kind))
            if producers:
                world = world._replace(producers=put(world.producers, topic, NOWHERE))
            if readers:
                world = world.with_reader(topic, home=NOWHERE)
        who = " and ".join([*(["producers"] if producers else []), *(["consumers"] if readers else [])])
        return f"its people stop {who}", world, on(me)

    return step


def start(side: int, *, producers: bool = True, readers: bool = True) -> Step:
    """People start them on a side as soon as the order has said that they may, unless another order has stopped them since."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        for topic in named(world, me):
            if world.stopped_by[topic] not in ("", me.kind):
                continue
            if producers:
                world = world._replace(producers=put(world.producers, topic, side))
            if readers and world.readers[topic].at[side] >= 0:
                world = world.with_reader(topic, home=side)
        return f"its people start applications on {SIDES[side]}", world, on(me)

    step.at_once = True  # type: ignore[attr-defined]
    return step


def sync_look(flow: int) -> Step:
    """The synchronisation of group offsets after a window: where groups stand on the source, and would on the target."""

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        found = tuple((each, translation(world, flow, each)) for each in ALL if world.readers[each].at[flow] >= 0)
        return f"reads where groups stand on {SIDES[flow]}", world, on(me, seen=found)

    return step


def sync_write(flow: int) -> Step:
    """Groups without members go forward on the target, but those of topics that windows do not write by now, and those that a
    migration has cut over."""
    side = 1 - flow

    def step(world: World, me: Process, rules: OrderRules) -> Outcome:
        for topic, where in me.seen:
            reader, owner = world.readers[topic], world.owner(topic)
            shut = owner is not Owner.SOURCE if flow == THERE else owner is not Owner.RETURNING
            its = world.moves[flow][topic]
            shut |= rules.sync_leaves_cut_over and its is not None and its.by == "move"
            reason = why_not(where, reader.at[side], reader.home == side, len(world.logs[topic][side]))
            if not shut and not reason and isinstance(where, Translated):
                world = world.with_reader(topic, at=put(reader.at, side, where.translation))
                world = world._replace(stood=put(world.stood, topic, UNKNOWN))
        return f"synchronises groups on {SIDES[side]}", world, over(me)

    return step


def not_exact(world: World, flow: int, topics: Collection[int]) -> list[int]:
    """The topics whose groups would not resume at the very next record."""
    found = [(each, translation(world, flow, each)) for each in topics if world.readers[each].at[flow] >= 0]
    return [each for each, where in found if not is_exact(where) and where is not Reason.NOT_REPLICATED]
