"""The explored scopes: small enough to be explored whole, and for every rule one in which its absence shows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from model.explore import Explored, explore
from model.invariants import broken
from model.protocol import Scope, follow
from model.rules import Rules, holder_before

RULES = Rules()

ONE = Scope(
    "one window whose slot dies, begins twice, loses answers, times out",
    (1,),
    ("rra",),
    (("kill_slot", 1), ("double", 1), ("lose_answer", 1), ("time_out", 1)),
)
CUT = Scope(
    "a window that is cut after an aborted transaction, and another one", (1, 1), ("rar",), (("cut", 1), ("kill", 1))
)
TWO = Scope("two windows, a lease apart", (1, 1), ("rr",), (("kill", 1), ("kill_slot", 1)), terms=1)
FEWER = Scope("two slots, then one that has both partitions", (2, 1), ("r", "r"), (("kill", 1),), terms=1)
BEGIN = Scope("two windows that find a flow that has not begun", (1, 1), ("rrr",), (("kill", 1),), terms=1, begins=1)
RESET = Scope(
    "two windows, and a reset between them after foreign records",
    (1, 1, 1),
    ("rr",),
    (("foreign", 1),),
    terms=1,
    resets=(1,),
)
LATE = Scope("a reset, and a window a lease later", (1, 1), ("rr",), (("kill", 1),), terms=1, resets=(0,))
ACCEPTED = replace(RESET, name="a window, and a reset after foreign records", slots=(1, 1))
ENDED = Scope(
    "a window that is paused or killed, and ended from outside",
    (1, 1),
    ("r",),
    (("kill", 1), ("interrupt", 1)),
    enders=(0,),
)
CLOCKS = Scope("three windows whose clocks differ", (1, 1, 1), ("r",), terms=1, skew=(0, 0, -5))
PACKED = Scope("three windows, packed differently", (1, 2, 1), ("r", "r"), terms=1)
UNPOLITE = replace(RULES, courtesy=False)
DELETED = Scope(
    "mm2-offsets is deleted, the ledger rebuilt",
    (1, 1),
    ("rr",),
    (("delete_progress", 1), ("rebuild", 1), ("kill_slot", 1)),
)

QUICK = (ONE, CUT, TWO, FEWER, BEGIN, ACCEPTED, LATE, ENDED, CLOCKS, DELETED)

DEEP = (
    *QUICK,
    RESET,
    PACKED,
    *(replace(scope, name=f"{scope.name}, aggregate", aggregate=True) for scope in (TWO, FEWER, BEGIN, RESET)),
    replace(
        ENDED, name="a window that is ended from outside, its slots die", faults=(("interrupt", 1), ("kill_slot", 2))
    ),
    replace(CLOCKS, name="three windows whose clocks differ, one is killed", faults=(("kill", 1),)),
    replace(
        TWO,
        name="two windows, every fault",
        faults=(("kill", 1), ("kill_slot", 1), ("double", 1), ("lose_answer", 1), ("time_out", 1), ("cut", 1)),
    ),
    replace(TWO, name="two windows, three records, two terms", source=("rrr",), terms=2),
    replace(
        FEWER,
        name="two slots, then one; slots die and answers are lost",
        faults=(("kill", 1), ("kill_slot", 1), ("lose_answer", 1)),
    ),
    Scope("one slot, then two", (1, 2), ("r", "r"), (("kill", 1), ("kill_slot", 1)), terms=1),
    Scope("three windows", (1, 1, 1), ("rr",), (("kill", 1), ("interrupt", 1)), terms=1),
    Scope("two slots, ended from outside", (2, 1), ("r", "r"), (("kill", 1), ("interrupt", 1)), enders=(0,)),
    replace(
        BEGIN,
        name="two windows that begin a flow, slots die",
        faults=(("kill", 1), ("kill_slot", 1), ("lose_answer", 1)),
    ),
)

# By name: what is put back, in which scope, and how what goes wrong begins.
BROKEN: dict[str, tuple[Scope, Rules, str]] = {
    "B1: positions from mm2-offsets": (
        DELETED,
        replace(RULES, positions_from_mappings=False),
        "partition 0: D: the target holds source offsets [0, 1, 0]",
    ),
    "B1: a plan reads a ledger that is being rebuilt": (
        replace(DELETED, aggregate=True),
        replace(RULES, ledger_is_whole=False),
        "partition 0: D",
    ),
    "S1: a record without records has the plan's target end": (
        CUT,
        replace(RULES, carries_target_end=False),
        "a partition is accused",
    ),
    "S8: the driver commits without a look at its lease": (
        BEGIN,
        replace(RULES, driver_checks_lease=False),
        "partition 0: A",
    ),
    "S8: a reset commits without a look at its lease": (
        LATE,
        replace(RULES, driver_checks_lease=False),
        "partition 0:",
    ),
    "end_window: fenced first, released then": (
        ENDED,
        replace(RULES, release_then_fence=False),
        "window 0 was ended, and its transaction",
    ),
    "end_window: released by its driver, so nothing is fenced": (
        ENDED,
        replace(RULES, fences_released=False),
        "window 0 was ended, and its transaction",
    ),
    "M6: the lease is looked at, then the id initialised": (
        replace(ONE, aggregate=True),
        replace(RULES, initialises_first=False),
        "partition 0: D",
    ),
    "M6, not an aggregate": (ONE, replace(RULES, initialises_first=False), "a partition is accused"),
    "M5: a refused lease hides the one that is alive": (
        CLOCKS,
        replace(RULES, holder=holder_before, renews_at_once=False),
        "B: window 2 is granted",
    ),
    "a slot does not look at the lease": (
        replace(FEWER, aggregate=True),
        replace(RULES, slot_checks_lease=False),
        "partition 1: D",
    ),
    "nothing is fenced": (replace(FEWER, aggregate=True), replace(RULES, fences=False), "partition 1: D"),
    "ids of an earlier window with more slots are not fenced": (
        replace(FEWER, aggregate=True),
        replace(RULES, fences_every_id=False),
        "partition 1: D",
    ),
    "M10: an attempt begins at the plan": (
        replace(ONE, aggregate=True),
        replace(RULES, continues=False),
        "partition 0: D",
    ),
    "A: mappings outside the transaction": (ONE, replace(RULES, one_transaction=False), "partition 0: G"),
}


def explored(scope: Scope, rules: Rules, most: int = 10_000_000) -> Explored:
    """Explore a scope, at most so many states of it."""
    return explore(scope.name, scope.first(), partial(follow, scope, rules), partial(broken, scope), most)
