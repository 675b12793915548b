"""The programs of the model: windows of both flows, and each procedure as the product takes it, step by step.

What the steps write, and under which lease, is that of ``include/airmirror/runbooks`` and ``flows``. People stop and start
applications where the procedure asks for it.
"""

from __future__ import annotations

from functools import lru_cache

from airmirror.wire.owners import Change
from model import migrating, orders, others, steps
from model.estate import BACK, EAST, THERE, WEST
from model.order_rules import OrderRules
from model.steps import Step, check, initialise, judging, lease, start, stop


def taking_back(rules: OrderRules) -> tuple[Step, ...]:
    """A migration's return that is taken back, as long as nobody has written."""
    return (lease(THERE), lease(BACK), migrating.nobody_has_written, *giving_up(rules))


def giving_up(rules: OrderRules) -> tuple[Step, ...]:
    """Nothing returns any more, under both leases."""
    checks = check(BACK) if rules.checks_back else orders.looks_no_more
    return (*orders.committing(Change.END, rules), checks, *orders.committing(Change.GIVE_UP, rules))


def beginning(rules: OrderRules) -> tuple[Step, ...]:
    """Records return from now on."""
    accounts = (initialise(BACK), orders.commit_accounts(BACK))
    return (lease(THERE), lease(BACK), orders.beginnings, *accounts, *orders.committing(Change.BEGIN, rules))


@lru_cache(maxsize=64)
def programs(rules: OrderRules) -> dict[str, tuple[Step, ...]]:
    """The steps of each kind of process."""
    freezing = orders.committing(Change.FREEZE, rules)
    opening = orders.committing(Change.UNFREEZE, rules, may_open=True)
    opening_alone = orders.committing(Change.UNFREEZE, rules, may_open=True, forgets=True)
    fences_reverse = (lease(BACK),) if rules.fences_reverse else ()
    last_step = (
        orders.is_anything_back,
        lease(THERE),
        *fences_reverse,
        orders.stand_back,
        orders.returned_accounts,
        initialise(THERE),
        orders.commit_accounts(THERE),
        *judging(THERE, rules, resumes=True),
        initialise(THERE) if rules.transaction else check(THERE),
        orders.finish_moves,
    )
    moves = (
        lease(THERE, fences=rules.fences_before_moving),
        *((orders.check_frozen,) if rules.frozen_under_lease else ()),
        steps.choose(THERE),
        steps.remember(THERE, "failover"),
        steps.move(THERE),
    )
    unfreezing = (lease(THERE), orders.nothing_returns, migrating.nobody_has_written, *opening_alone)
    moving = (
        steps.choose(THERE),
        steps.remember(THERE, "move", under=False),
        steps.move(THERE, under=False),
        migrating.remember_again,
    )
    forgetting = (migrating.forget_marks, steps.forget_moves(THERE, under=False))
    found: dict[str, tuple[Step, ...]] = {
        f"window {flow}": (
            *((steps.look(flow), steps.starts(flow)) if looks_first else (steps.starts(flow), steps.look(flow))),
            initialise(flow),
            steps.copy(flow),
            *judging(flow, rules),
        )
        for flow, looks_first in ((THERE, False), (BACK, not rules.looks_under_lease))
    }
    found |= {f"gate {flow}": (lease(flow, fences=False), *judging(flow, rules)) for flow in (THERE, BACK)}
    found |= {f"groups {flow}": (steps.sync_look(flow), steps.sync_write(flow)) for flow in (THERE, BACK)}
    found |= {f"deployment {each}": (others.sees(each),) for each in (0, 1)}
    found |= {
        "freeze": (lease(THERE), *freezing),
        "open": (orders.nothing_returns, lease(THERE), orders.nothing_returns, *opening_alone),
        "failover": (
            stop(),
            orders.await_drained,
            lease(THERE),
            orders.last_look,
            *freezing,
            orders.look_again,
            orders.check_frozen,
            steps.rows(THERE),
            *moves,
            steps.say_moved(THERE),
            start(WEST),
        ),
        "disaster": (
            stop(),
            lease(THERE),
            *freezing,
            orders.judge_alone,
            orders.last_seen,
            *moves,
            steps.say_moved(THERE, may_repeat=True),
            start(WEST),
        ),
        "undo of a failover": (
            stop(),
            orders.nothing_returns,
            lease(THERE),
            orders.nothing_returns,
            orders.look_at_undo,
            steps.put_back(THERE),
            steps.forget_moves(THERE),
            *opening,
            orders.looks_last,
            migrating.say_undone(EAST),
            start(EAST),
        ),
        "failback": (
            orders.begin_or_skip,
            *beginning(rules),
            stop(),
            orders.await_returned,
            lease(THERE),
            lease(BACK),
            orders.last_look_back,
            *orders.committing(Change.END, rules),
            check(BACK),
            orders.returned_rows,
            *(
                (lease(THERE), lease(BACK), check(THERE), orders.still_over)
                if rules.moves_under_both
                else (lease(BACK),)
            ),
            steps.choose(BACK),
            steps.remember(BACK, "return"),
            steps.move(BACK),
            steps.say_moved(BACK),
            *last_step,
            start(EAST),
        ),
        "last step of a failback": (*last_step, start(EAST)),
        "undo of a failback": (
            stop(),
            lease(THERE),
            lease(BACK),
            orders.look_at_failback_undo,
            steps.put_back(BACK),
            steps.forget_moves(BACK),
            *giving_up(rules),
            start(WEST),
        ),
        "migrate consumers": (
            stop(producers=False),
            migrating.await_verified,
            steps.rows(THERE),
            migrating.left_to_cut_over,
            migrating.mark,
            migrating.says_it_was_done,
            *moving,
            migrating.cut_over,
            start(WEST, producers=False),
        ),
        "cut over producers": (
            stop(readers=False),
            migrating.await_drained,
            lease(THERE),
            migrating.cut_over,
            orders.last_look,
            *freezing,
            orders.look_again,
            start(WEST, readers=False),
        ),
        "begin a return": (orders.returnable, *beginning(rules)),
        "finish": (migrating.can_finish, *forgetting),
        "undo of a migration": (
            stop(),
            migrating.plan_undo,
            *taking_back(rules),
            *unfreezing,
            migrating.going_back,
            migrating.carry_back,
            steps.put_back(THERE, under=False),
            *(forgetting if rules.forgets_marks_first else reversed(forgetting)),
            migrating.look_last,
            migrating.say_undone(EAST),
            start(EAST),
        ),
        "reset 0": (
            lease(THERE),
            others.may_reset(THERE),
            others.recreate(THERE),
            initialise(THERE),
            orders.commit_accounts(THERE),
        ),
        "reset 1": (
            lease(BACK),
            others.may_reset(BACK),
            others.recreate(BACK),
            initialise(BACK),
            orders.commit_accounts(BACK),
        ),
        "hand-back": (
            others.pause,
            lease(THERE, fences=rules.handback_fences),
            others.copied_positions,
            check(THERE),
            others.hand_over,
        ),
        "take-over": (
            others.stop_mirrormaker,
            lease(THERE),
            others.follow_copies,
            initialise(THERE),
            orders.commit_accounts(THERE),
            others.go_on,
        ),
        "block, and its end": (
            others.access(0, True, "writes its record"),
            others.access(1, True, "denies on the source"),
            others.access(1, False, "denies no more"),
            others.access(0, False, "deletes its record"),
        ),
        "ACLs": (
            others.read(0, "reads which blocks there are"),
            others.read(1, "reads what the source denies"),
            *((others.read(0, "reads which blocks there are"),) if rules.copies_no_block else ()),
            *((others.read(1, "reads what the source denies"),) if rules.reads_acls_again else ()),
            others.copy_acls,
        ),
    }
    assert found["failback"][orders.BEGINS].__qualname__.startswith("stop."), "what begins a return has other steps"
    jumps = migrating.TAKING_BACK, migrating.OPENING, migrating.MOVING
    assert (len(taking_back(rules)), len(unfreezing), len(moving)) == jumps
    found["failback again"] = (orders.end_the_first, *found["failback"])
    found["undo of a migration again"] = (migrating.await_others, *found["undo of a migration"])
    return found
