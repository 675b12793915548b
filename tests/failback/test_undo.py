"""A failback undone: nothing returns any more, groups stand where they stood, and it can be planned again; nothing goes round."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from airmirror.flows.freezing import owners_now, unfreeze
from airmirror.flows.maintenance import DAY_MS, prune
from airmirror.flows.prepare import prepare
from airmirror.flows.resuming import ReturnNotFinished
from airmirror.flows.verification import compare_all
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.failback import steps
from airmirror.runbooks.failback import undo as undoing
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.plan import failback_plan
from airmirror.runbooks.failback.rescue import rescue
from airmirror.runbooks.failback.returning import LeftOnSource
from airmirror.runbooks.failback.undo import undo, undo_plan
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.undo import undo as undo_failover
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import WHOLE
from support.failovers import DISASTER, fail_over, without_source
from support.groups import commit, committed, read_with_group
from support.killing import killed_at
from support.returns import ORDER, Both, forward_and_reverse, write
from support.sides import Sides
from support.topics import admin, await_settled, end_offsets, read_all

WHY: Any = {"reason": "not today", "by": "ada"}


def flat(values: dict[int, list[bytes | None]]) -> list[bytes | None]:
    return sorted(value for its in values.values() for value in its)


SOME = (("put_back", True),)
ALL = tuple((name, after) for name in ("put_back", "write_forgotten", "commit_change") for after in (False, True))


def undone(both: Both, directory: Path, places: tuple[tuple[str, bool], ...]) -> None:
    """Killed before or after steps, and run again by another deployment each time; done twice, nothing is left."""
    for name, after in places:
        with killed_at(undoing, name, after=after):
            undo(both.elsewhere(directory).pair, FailbackOrder(**WHY))
    undo(both.elsewhere(directory).pair, FailbackOrder(**WHY))
    assert undo(both.elsewhere(directory).pair, FailbackOrder(**WHY)).rows("topics") == []


@pytest.mark.parametrize("places", [SOME, pytest.param(ALL, marks=pytest.mark.long)], ids=["some", "all"])
def test_a_failback_is_undone_at_its_last_step_and_planned_again(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, places: tuple[tuple[str, bool], ...]
) -> None:
    """Somebody has written to the source among what returned: that was never replicated, and can be rescued now.

    Groups that the source did not keep where they were moved are named, and moved again.
    """
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    replicated = write(both.east, both.topic, 0, 20)
    read_with_group(both.east, both.group, both.topic, {0: 5, 1: 5})
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    since = write(both.west, both.remote, 100, 12)
    read_with_group(both.west, both.group, both.remote, {0: 8, 1: 8})
    for step in (steps.return_step, steps.drain_step, steps.end_step):
        step(both.pair, ORDER)
    move = steps.move_groups

    def loses_one(*given: Any) -> Any:
        done = move(*given)
        commit(both.east, both.group, {(both.topic, 1): 5})
        return done

    with monkeypatch.context() as patched:
        patched.setattr(steps, "move_groups", loses_one)
        with pytest.raises(steps.GroupsNotBack, match=f"{both.group} in {both.topic}-1 is not at"):
            steps.move_step(both.pair, ORDER)
    steps.move_step(both.pair, ORDER)
    moved = committed(both.east, both.group)
    assert moved != {(both.topic, 0): 5, (both.topic, 1): 5}
    stray = write(both.east, both.topic, 400, 4)
    shown = undo_plan(both.elsewhere(tmp_path).pair)
    assert shown.topics == {both.remote: both.topic} and len(shown.groups) == 2 and not shown.reasons
    commit(both.east, both.group, {key: offset + 1 for key, offset in moved.items()})
    with pytest.raises(CannotUndo, match=r"has committed \d+ since(?s:.*)"):
        undo(both.pair, FailbackOrder(**WHY))
    commit(both.east, both.group, moved)
    undone(both, tmp_path, places)
    assert committed(both.east, both.group) == {(both.topic, 0): 5, (both.topic, 1): 5}
    back = both.pair.now().reverse
    assert back.flow.returns == {} and back.ledger.of_kind(GroupMove) == [] and prepare(back).topics == {}
    assert owners_now(both.forward).frozen.keys() == {WHOLE, both.topic}
    opening: Any = (lambda there: unfreeze(there, (), **WHY), lambda there: undo_failover(there, FailoverOrder(**WHY)))
    for opens in opening:
        with pytest.raises(ReturnNotFinished, match=f"{both.topic}-0: up to offset"):
            opens(both.elsewhere(tmp_path).forward)
    assert owners_now(both.forward).frozen.keys() == {WHOLE, both.topic}
    since += write(both.west, both.remote, 200, 6)  # applications continue there
    assert failback_plan(both.now(both.forward)).never == len(stray), "what returned is none that was never replicated"
    with pytest.raises(LeftOnSource, match="2 records"):
        both.fail_back()
    _, plan = rescue(both.elsewhere(tmp_path).forward, FailbackOrder(reason="INC-7", by="ada"))
    assert (plan.never, plan.rescued) == (0, len(stray))
    (aside,) = {name for name in admin(both.west).list_topics(timeout=30).topics if ".rescued." in name}
    rescued = {number: [each.value for each in its] for number, its in read_all(both.west, aside).items()}
    assert flat(rescued) == sorted(stray), "and nothing of what returned"
    last = both.elsewhere(tmp_path)
    last.fail_back()
    assert flat(both.values(both.east)) == sorted([*replicated, *since, *stray]), "each once"
    assert flat(both.values(both.west)) == sorted([*replicated, *since])
    assert undo_plan(last.pair).topics == {}
    new = write(both.east, both.topic, 700, 6)
    result = last.window(last.forward)
    assert result.is_verified and result.copied == len(new)
    assert flat(both.values(both.west)) == sorted([*replicated, *since, *new])
    assert all(row.error is None for row in compare_all(last.forward, []))


@pytest.mark.long  # above it is undone later, and planned again
def test_a_failback_is_undone_while_records_return(sides: Sides, tmp_path: Path) -> None:
    """Applications never stopped; the next one resumes after what has returned."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    everything = write(both.east, both.topic, 0, 10)
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    everything += write(both.west, both.remote, 100, 8)
    steps.return_step(both.pair, ORDER)
    both.window(both.reverse)
    everything += write(both.west, both.remote, 200, 8)
    undo(both.pair, FailbackOrder(**WHY))
    ends = await_settled(both.east, both.topic)
    assert both.window(both.reverse).copied == 0 and end_offsets(both.east, both.topic) == ends
    both.fail_back()
    assert both.values(both.east) == both.values(both.west) and flat(both.values(both.east)) == sorted(everything)
    assert all(row.error is None for row in compare_all(both.forward, []))
    assert undo(both.pair, FailbackOrder(**WHY)).rows("topics") == [], "there is nothing left to undo"


def test_the_account_of_what_has_returned_is_not_pruned_when_it_may_return_again(sides: Sides, tmp_path: Path) -> None:
    """By a deployment that has seen nothing of the failback: without the account, all would be rescued to where it came from."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    write(both.east, both.topic, 0, 10)
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    steps.return_step(both.pair, ORDER)
    for first in (100, 200):  # of the second window's records the newest mapping records stay anyway
        write(both.west, both.remote, first, 8)
        both.window(both.reverse)
    undo(both.pair, FailbackOrder(**WHY))
    later = int(time.time() * 1000) + 100 * DAY_MS
    assert prune(both.elsewhere(tmp_path).reverse, 1, now_ms=later).mappings == 0
    assert failback_plan(both.now(both.forward)).never == 0
