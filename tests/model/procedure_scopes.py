"""The explored meetings of procedures, and for every rule one in which its absence shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from airmirror.wire.owners import Change
from model.estate import EAST, NOWHERE, TOPICS, WEST, Account, Move, Process, Reader, Records, World, began, transition
from model.explore import Explored, explore
from model.order_rules import OrderRules
from model.procedures import Meeting, broken, follow

MEANT = OrderRules()
FROZEN = (Change.FREEZE,)
RETURNING = (Change.FREEZE, Change.BEGIN)
NOBODY = Reader((NOWHERE, NOWHERE), NOWHERE)
ON_EAST, ON_WEST = Reader((1, NOWHERE), EAST, 1), Reader((1, 1), WEST, 1)
MOVED = Move("move", NOWHERE, 1)
WRITE, TWICE = (("write", 1),), (("write", 2),)
W0, W1 = "window 0", "window 1"


def copied(count: int) -> Account:
    """An account of records that are copied and verified."""
    return Account((0, 0), count, count, tuple((each, each) for each in range(count)), count, count)


def back(brought: int, count: int = 0) -> Account:
    """The reverse flow's account of records that returned after those that were brought."""
    ends = brought + count
    return Account((brought, brought), ends, ends, tuple((each, each) for each in range(brought, ends)), ends, ends)


def process(words: str) -> Process:
    """``failback for shop and bill``: an order that names topics; without *for* it is for the whole flow."""
    kind, _, topics = words.partition(" for ")
    return Process(kind, tuple(map(TOPICS.index, topics.split(" and "))) if topics else ())


def one(name: str, *kinds: str, records: int = 0, **more: Any) -> Meeting:
    """Shop alone is at work, of which so many records are copied; nobody has read them."""
    log = tuple(range(records))
    known: dict[str, Any] = {
        "logs": ((log, log), ((), ())),
        "accounts": ((copied(records), Account()), (None, None)),
        "readers": (Reader(), NOBODY),
        "producers": (EAST, NOWHERE),
    }
    return Meeting(name, World(tuple(map(process, kinds)), **(known | more)))


def gone(
    name: str, *kinds: str, changes: tuple[Change, ...] = FROZEN, returned: Account | None = None, **more: Any
) -> Meeting:
    """The same when the flow was failed over: its applications are on west, where its one record was copied to and read."""
    owners: Records = transition((), Change.FREEZE, (), None)
    for each in changes[1:]:
        owners = transition(owners, each, (), (0,))
    known: dict[str, Any] = {
        "owners": owners,
        "producers": (WEST, NOWHERE),
        "readers": (ON_WEST, NOBODY),
        "moves": ((Move("failover", NOWHERE, 1), None), (None, None)),
        "accounts": ((copied(1), Account()), (returned, None)),
    }
    return one(name, *kinds, records=1, **(known | more))


def both(name: str, *kinds: str, changes: tuple[Change, ...] = FROZEN, **more: Any) -> Meeting:
    """Both topics are at work, each with a record that was copied and read; shop was moved to west by its name."""
    known: dict[str, Any] = {
        "logs": (((0,), (0,)), ((0,), (0,))),
        "accounts": ((copied(1), copied(1)), (back(1) if changes == RETURNING else None, None)),
        "readers": (ON_WEST, ON_EAST),
        "producers": (WEST, EAST),
        "moves": ((MOVED, None), (None, None)),
        "owners": began((0, changes)),
    }
    return one(name, *kinds, **(known | more))


def more(meeting: Meeting, name: str, *kinds: str, **changes: Any) -> Meeting:
    """A meeting with more processes."""
    first = meeting.first
    return Meeting(name, first._replace(processes=(*first.processes, *map(process, kinds)), **changes))


RETURN_OF_BOTH: Mapping[str, Any] = {
    "owners": began((0, RETURNING), (1, RETURNING)),
    "accounts": ((copied(1), copied(1)), (back(1), back(1))),
    "readers": (ON_WEST, ON_WEST),
    "producers": (WEST, WEST),
    "moves": ((MOVED, MOVED), (None, None)),
    "budget": WRITE,
}
ALL_OVER: Mapping[str, Any] = {  # shop was moved and finished, then the flow was failed over
    "owners": transition(began((0, FROZEN)), Change.FREEZE, (), None),
    "producers": (WEST, WEST),
    "readers": (ON_WEST, ON_WEST),
    "moves": ((None, Move("failover", NOWHERE, 1)), (None, None)),
    "budget": WRITE,
}
CUT_OVER: Mapping[str, Any] = {  # shop's consumers are on west, its producers on east
    "owners": (),
    "producers": (EAST, EAST),
    "readers": (ON_WEST, ON_EAST),
}
THERE_BEFORE: Mapping[str, Any] = {"readers": (Reader((1, 0), EAST, 1), NOBODY), "stood": (0, NOWHERE)}
UNJUDGED = copied(1)._replace(verified=0, judged=0)
STRAY, STRAY_THERE = (("stray on east", 1),), (("stray on west", 1),)

CLOSURE = one("a freeze, and windows", "freeze for shop", W0, W0, budget=WRITE)
FAILOVER = one("a failover, and windows", "failover", W0, W0, budget=WRITE)
WRITTEN = one("a failover while somebody writes on east", "failover", W0, budget=STRAY)
UNDONE = one("a failover, its undo, and a window", "failover", "undo of a failover", W0, budget=WRITE)
AGAIN = one("a failover, run again, and its undo", "failover", "failover", "undo of a failover", records=1)
SYNCED = one("a failover, and groups that are synchronised", "failover", "groups 0", W0, records=1)
FAILBACK = gone("a failback, and windows of both directions", "failback", W1, W0, budget=WRITE)
FAILBACK_WRITTEN = gone("a failback while somebody writes on west", "failback", W1, W0, budget=STRAY_THERE)
LAST_STEP = gone(
    "a failback that loses a lease, and its last step", "failback", "last step of a failback", W1, budget=STRAY_THERE
)
FAILBACK_AGAIN = gone("a failback, killed and run again", "failback", "failback", W1, budget=WRITE)
FAILBACK_UNDONE = gone("a failback, and its undo", "failback", "undo of a failback", W1, budget=WRITE)
ENDED = gone(
    "the last step of a failback, and its undo",
    "last step of a failback",
    "undo of a failback",
    changes=(*RETURNING, Change.END),
    returned=back(1),
    producers=(NOWHERE, NOWHERE),
    readers=(Reader((1, 1), NOWHERE, 1), NOBODY),
    moves=((Move("failover", NOWHERE, 1), None), (Move("return", 1, 1), None)),
    budget=WRITE,
)
FAILBACKS_MEET = gone(
    "two failbacks of what has returned, and an undo",
    "failback",
    "failback",
    "undo of a failback",
    changes=(*RETURNING, Change.END),
    returned=back(1),
    budget=WRITE,
)
OPENED = gone(
    "a failback, and the flow opened", "failback", "open", W1, changes=RETURNING, returned=back(1), budget=STRAY_THERE
)
TO_AND_FRO = one("a failover, and a failback", "failover", "failback", W0, W1, budget=WRITE)
UNDO_BOTH = gone(
    "the undo of a failback, and that of the failover",
    "undo of a failback",
    "undo of a failover",
    W1,
    changes=RETURNING,
    returned=back(1),
    budget=STRAY_THERE,
)
MOVE = one(
    "consumers and producers move, and windows",
    "migrate consumers for shop",
    "cut over producers for shop",
    W0,
    W0,
    budget=WRITE,
)
MOVE_UNDONE = one(
    "a move group, its undo, and a window",
    "migrate consumers for shop",
    "cut over producers for shop",
    "undo of a migration for shop",
    W0,
    records=1,
    budget=WRITE,
)
MOVES_TWICE = ("migrate consumers for shop", "undo of a migration for shop", "undo of a migration again for shop")
KILLED = one("a cut-over of a group that is on west already, and undone", *MOVES_TWICE[:2], records=1, **THERE_BEFORE)
TWICE_UNDONE = one("a cut-over, undone twice", *MOVES_TWICE, records=1, readers=(ON_EAST, NOBODY))
CUT_AGAIN = one(
    "a cut-over that is done again, undone twice",
    *MOVES_TWICE,
    records=1,
    readers=(ON_WEST, NOBODY),
    moves=((MOVED, None), (None, None)),
    cut_overs=(True, False),
)
CAME_LATER = both(  # bill's group is of shop's move group, and was on west before any procedure
    "a cut-over of a group that came after an earlier one, and undone",
    *(f"{each} for shop and bill" for each in ("migrate consumers", "undo of a migration")),
    **(CUT_OVER | {"readers": (ON_WEST, Reader((1, 0), EAST, 1)), "stood": (NOWHERE, 0), "cut_overs": (True, False)}),
)
UNDONE_BY_TWO = one(
    "a cut-over of a group that was on west before, undone by two",
    *(MOVES_TWICE[1],) * 2,
    records=1,
    readers=(ON_WEST, NOBODY),
    moves=((Move("move", 0, 1), None), (None, None)),
    cut_overs=(True, False),
    stood=(0, NOWHERE),
)
MOVE_RETURNS = both(
    "a move group's return, and its undo",
    "cut over producers for shop",
    "begin a return for shop",
    "undo of a migration for shop",
    W1,
    budget=WRITE,
    **CUT_OVER,
)
OVER_MOVED = both(
    "a failover of the flow over a move group, and its undo", "failover", "undo of a failover", W0, budget=WRITE
)
OVER_UNDONE = both("a failover of the flow, and the undo of a move group", "failover", "undo of a migration for shop")
OVER_UNDONE_TWICE = more(OVER_UNDONE, "a failover of the flow, and both undos", "undo of a failover")
OVER_FINISHED = both(
    "a failover of the flow over a finished migration", "failover", W0, budget=WRITE, moves=((None, None), (None, None))
)
OVER_RETURN = both(
    "a failover of the flow over a return, and its undo",
    "failover",
    "undo of a failover",
    W1,
    changes=RETURNING,
    budget=WRITE,
    accounts=((copied(1), copied(1)), (back(1, 1), None)),
    logs=(((0, 1), (0, 1)), ((0,), (0,))),
)
BACK_OVER_FINISHED = both("a failback of the flow over a finished migration", "failback", W1, **ALL_OVER)
ONE_OF_TWO = both("the undo of a move group, another one returns", "undo of a migration for shop", W1, **RETURN_OF_BOTH)
ONE_BACK = both("a failback of a topic, another one returns", "failback for shop", W1, **RETURN_OF_BOTH)
TWO_GROUPS = both(
    "two move groups, and a window",
    "cut over producers for shop",
    "migrate consumers for bill",
    "undo of a migration for shop",
    W0,
    budget=WRITE,
    **CUT_OVER,
)
RESET = one(
    "a reset, a window, and a gate that sleeps",
    "reset 0 for shop",
    W0,
    "gate 0",
    records=1,
    accounts=((UNJUDGED, Account()), (None, None)),
)
RESET_OF_RETURN = gone(
    "a reset of what returns",
    "reset 1 for shop",
    W1,
    changes=RETURNING,
    returned=back(1, 1),
    logs=(((0, 1), (0, 1)), ((), ())),
)
HANDBACK = one("a hand-back, and a window that sleeps", "hand-back", W0, records=1, budget=WRITE)
TAKEOVER = one("a hand-back, a take-over, and windows", "hand-back", "take-over", W0, W0, records=1, budget=TWICE)
HANDBACK_OF_RETURN = both("a hand-back while a topic returns", "hand-back", W1, changes=RETURNING, budget=WRITE)
BLOCK = one("a block, and a window that copies ACLs", "block, and its end", "ACLs")
SLEPT = one(
    "a failover, and a gate that sleeps",
    "failover",
    "gate 0",
    W0,
    records=1,
    accounts=((UNJUDGED, Account()), (None, None)),
    budget=WRITE,
)
CUT_OVER_KILLED = one(
    "a cut-over of a group that is on west already, a failover, both undone",
    *MOVES_TWICE[:2],
    "failover",
    "undo of a failover",
    records=1,
    **THERE_BEFORE,
)
CUT_OVER_MEANWHILE = one(
    "a cut-over, a failover, and its undo", MOVES_TWICE[0], "failover", "undo of a failover", records=1, **THERE_BEFORE
)
MOVE_SYNCED = one("a cut-over, its undo, and groups that are synchronised", *MOVES_TWICE[:2], "groups 0", records=1)
SET_BACK = one(
    "a group that was cut over and is set back, and groups that are synchronised",
    W0,
    "groups 0",
    records=1,
    readers=(ON_WEST, NOBODY),
    moves=((MOVED, None), (None, None)),
    cut_overs=(True, False),
    budget=(*WRITE, ("set back on west", 1), ("start on west", 1)),
)
UNFROZEN = gone(
    "a failover, the flow opened, failed over again, and the undo",
    "open",
    "failover",
    "undo of a failover",
    producers=(NOWHERE, NOWHERE),
    readers=(Reader((1, 1), NOWHERE, 1), NOBODY),
)
DISASTER = one(
    "a disaster, seen by two deployments",
    "deployment 0",
    "deployment 1",
    "deployment 0",
    "disaster",
    records=2,
    budget=(("rewind", 1),),
    last_seen=((0, 0), (0, 0), (0, 0)),
)

QUICK = (
    CLOSURE,
    FAILOVER,
    WRITTEN,
    UNDONE,
    SYNCED,
    FAILBACK,
    FAILBACK_WRITTEN,
    LAST_STEP,
    ENDED,
    OPENED,
    UNDO_BOTH,
    MOVE,
    KILLED,
    TWICE_UNDONE,
    CUT_AGAIN,
    CAME_LATER,
    UNDONE_BY_TWO,
    OVER_MOVED,
    OVER_UNDONE,
    OVER_UNDONE_TWICE,
    OVER_FINISHED,
    OVER_RETURN,
    BACK_OVER_FINISHED,
    ONE_OF_TWO,
    ONE_BACK,
    RESET,
    RESET_OF_RETURN,
    HANDBACK,
    HANDBACK_OF_RETURN,
    BLOCK,
    SLEPT,
    CUT_OVER_MEANWHILE,
    MOVE_SYNCED,
    SET_BACK,
    UNFROZEN,
    DISASTER,
)


DEEP = (
    *QUICK,
    AGAIN,
    FAILBACK_AGAIN,
    FAILBACK_UNDONE,
    TO_AND_FRO,
    MOVE_UNDONE,
    MOVE_RETURNS,
    TWO_GROUPS,
    TAKEOVER,
    more(UNDONE, "a failover, its undo, synchronised groups, two windows", "groups 0", W0, budget=TWICE),
    more(WRITTEN, "a failover, its undo, and somebody writes on east", "undo of a failover"),
    more(FAILBACK_UNDONE, "a failback, its undo, and it is run again", "failback again"),
    more(FAILBACK_UNDONE, "a failback, its undo, and that of the failover", "undo of a failover"),
    more(FAILBACK, "a failback, and groups that are synchronised both ways", "groups 0", "groups 1", budget=TWICE),
    more(TO_AND_FRO, "a failover, a failback, and its undo", "undo of a failback"),
    more(MOVE_UNDONE, "a move group, its undo, groups that are synchronised", "groups 0"),
    more(MOVE_RETURNS, "a move group's return, its undo, and it is finished", "finish for shop"),
    more(OVER_RETURN, "a failover over a return, its undo, the move group's undo", "undo of a migration for shop"),
    more(OVER_MOVED, "a failover over a move group, its undo, the move group's undo", "undo of a migration for shop"),
    more(ONE_OF_TWO, "both move groups are undone", "undo of a migration for bill"),
    more(ONE_BACK, "a failback of each topic", "failback for bill"),
    more(BACK_OVER_FINISHED, "a failback over a finished migration, and its undo", "undo of a failback"),
    more(RESET, "a reset, windows, and gates that sleep", W0, "gate 0", budget=WRITE),
    more(HANDBACK, "a hand-back, a failover, and a window", "failover"),
    CUT_OVER_KILLED,
    FAILBACKS_MEET,
    more(TAKEOVER, "a hand-back, a take-over, and a move group", "migrate consumers for shop", budget=WRITE),
)


@dataclass(frozen=True)
class Fault:
    """A meeting in which a fault shows that is put back, and how what is wrong begins."""

    meeting: Meeting
    rules: OrderRules
    wrong: str


def fault(meeting: Meeting, wrong: str, **rules: bool) -> Fault:
    """A fault: these rules are false."""
    return Fault(meeting, replace(MEANT, **rules), wrong)


BROKEN: dict[str, Fault] = {
    "A8: a freeze is appended by one who slept": fault(CLOSURE, "shop is copied east->west", transaction=False),
    "a window looks before its lease": fault(FAILBACK_WRITTEN, "shop is copied west->east", looks_under_lease=False),
    "what returns is unfrozen before it ended": fault(
        OPENED, "shop is copied west->east", ends_before_unfreezing=False
    ),
    "a return is finished without a fence": fault(LAST_STEP, "shop is copied west->east", fences_reverse=False),
    "a return is given up by one who slept": fault(UNDO_BOTH, "shop is copied west->east", checks_back=False),
    "A1: a failback ends the return of other topics": fault(ONE_BACK, "failback changes bill", only_named=False),
    "A1: the undo of a move group ends others' return": fault(
        ONE_OF_TWO, "undo of a migration changes bill", only_named=False
    ),
    "A1: a failback opens topics of a finished migration": fault(
        BACK_OVER_FINISHED, "failback changes shop", apart=False
    ),
    "a failover moves groups that were moved by name": fault(
        OVER_FINISHED, "failover is refused because of shop", groups_apart=False
    ),
    "A6: a block is copied": fault(BLOCK, "the target denies", copies_no_block=False),
    "a block is copied that went up and came down": fault(BLOCK, "the target denies", reads_acls_again=False),
    "A7: a record comes between the last look and the freeze": fault(
        WRITTEN, "failover says", looks_after_freezing=False
    ),
    "A9: a gate that slept verifies what no gate has seen": fault(
        RESET, "east->west of shop: F: verified up to 1", gate_checks=False, verdict_has_seen=False
    ),
    "a gate that slept verifies less than another one": fault(
        SLEPT, "failover lets the group of shop on west read 1 records again", newer_verdict_stays=False
    ),
    "A9: a gate sleeps after its look at the lease": fault(
        RESET, "east->west of shop: F: verified up to 1", verdict_has_seen=False
    ),
    "A10: after a disaster the further position counts": fault(DISASTER, "disaster moves", newest_counts=False),
    "A18: a reset begins again what returns": fault(
        RESET_OF_RETURN, "east->west of shop: G", reset_leaves_returns=False
    ),
    "a hand-back without a fence": fault(HANDBACK, "D: shop on west", handback_fences=False),
    "a hand-back of what returns": fault(HANDBACK_OF_RETURN, "D: shop on west", handback_refuses_returns=False),
    "groups are moved without a fence": fault(
        UNDONE, "failover says that its groups are moved", fences_before_moving=False
    ),
    "groups are moved when the flow is unfrozen": fault(
        UNDONE, "failover says that its groups are moved", frozen_under_lease=False
    ),
    "groups are moved of what was unfrozen by its name": fault(
        OVER_UNDONE, "failover says that its groups are moved", all_frozen=False
    ),
    "a failover says that groups are moved that an undo puts back": fault(
        OVER_UNDONE, "failover lets the group of shop on west read 1 records again", looks_where_they_stand=False
    ),
    "a failover remembers where an undo has found a group": fault(
        OVER_UNDONE_TWICE, "undo of a failover leaves the group of shop at 1", looks_for_forgotten=False
    ),
    "groups are moved back while another failback finishes": fault(
        FAILBACKS_MEET, "failback lets the group of shop on east", moves_under_both=False
    ),
    "a failover takes a group for its own that a migration was about to move": fault(
        CUT_OVER_KILLED, "undo of a migration leaves the group of shop at -1 on west", stays_the_first_ones=False
    ),
    "a failover's undo says that groups are put back that are moved": fault(
        CUT_OVER_MEANWHILE, "undo of a failover says that it is done", failovers_undo_looks_last=False
    ),
    "an undo moves a group back on the source": fault(
        MOVE_SYNCED, "undo of a migration lets the group of shop on east", carries_no_group_back=False
    ),
    "groups are moved by one who has lost his lease": fault(
        UNDONE,
        "failover says that its groups are moved",
        checks_after_moving=False,
        looks_where_they_stand=False,
    ),
    "groups read on while they are moved": fault(UNDONE, "failover lets the group of shop", rows_once_more=False),
    "a failback's undo looks at one lease": fault(
        FAILBACK_UNDONE, "failback lets the group of shop", checks_both_leases=False
    ),
    "a failback is finished over groups that were put back": fault(
        FAILBACK_UNDONE, "failback lets the group of shop", stand_back=False
    ),
    "a migration is undone while its groups are cut over": fault(
        CUT_AGAIN, "undo of a migration says that it is done", undo_looks_last=False
    ),
    "a step of a failback that an undo has ended is done": fault(
        ENDED, "last step of a failback says that it is done", return_first=False
    ),
    "a return is finished that was given up meanwhile": fault(
        ENDED, "last step of a failback opens shop", still_returned=False
    ),
    "a cut-over writes that it has begun, and not where its groups are": fault(
        KILLED, "undo of a migration leaves the group of shop", marks_positions=False
    ),
    "a cut-over's record is of all groups of its move group": fault(
        CAME_LATER, "undo of a migration leaves the group of bill", marks_each=False
    ),
    "an undo forgets first where groups stood": fault(
        UNDONE_BY_TWO, "undo of a migration leaves the group of shop", forgets_marks_first=False
    ),
    "a cut-over takes where it has moved groups for where they stood": fault(
        TWICE_UNDONE, "undo of a migration again leaves the group of shop", remembers_first=False
    ),
    "an undo forgets moves while groups are moved": fault(
        TWICE_UNDONE, "undo of a migration again leaves the group of shop", remembers_again=False
    ),
    "an undo forgets where groups stood that were moved again": fault(
        CUT_AGAIN, "undo of a migration again leaves the group of shop", keeps_first=False
    ),
    "a group that was cut over is synchronised": fault(
        SET_BACK, "the group of shop on west reads past", sync_leaves_cut_over=False
    ),
    "a flow is opened, and where a failover found groups is kept": fault(
        UNFROZEN, "undo of a failover leaves the group of shop at -1", opening_forgets=False
    ),
    "a cut-over that was done says so after it is undone": fault(
        CUT_AGAIN, "migrate consumers says that the group of shop", cut_over_looks_last=False
    ),
}


def explored(meeting: Meeting, rules: OrderRules, most: int = 10_000_000) -> Explored:
    """Explore a meeting, at most so many states of it."""
    return explore(meeting.name, meeting.first, partial(follow, rules), partial(broken, rules), most)
