"""The reverse flow of a migration: looked at before producers are cut over, begun by that; each record once, none goes back."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.flows.freezing import freeze, owners_now, unfreeze
from airmirror.runbooks.failback.pair import NoReverseFlow
from airmirror.runbooks.failback.returning import ReturnRefused
from airmirror.runbooks.migration import steps
from airmirror.runbooks.migration.order import MoveStep
from airmirror.runbooks.migration.producers import WrittenSinceFrozen, unfinished
from airmirror.runbooks.migration.reverse import is_returning, reverse_state
from airmirror.runbooks.migration.undo import undo_move, undo_plan
from support.following import numbered
from support.groups import commit, committed, read_with_group
from support.killing import killed_at
from support.migrations import ORDER, move_of, takes
from support.returns import FORWARD, REVERSE, Both, forward_and_reverse, write
from support.sides import Sides
from support.topics import await_settled, create_topic, produce

TO_CUT_OVER: tuple[MoveStep, ...] = ("mirror", "check_groups", "cut_over_consumers", "reverse")


def both_ways(sides: Sides, directory: Path, policy: str = "identity", **settings: str) -> Both:
    """Flows there and back, with a move group of one topic, its group, which the reverse flow does not select, and 30 records."""
    topic = create_topic(sides.east, f"moves-{uuid4().hex[:8]}", 2)
    lines = {"move.shop.topics": topic, "move.quiet.ms": "0", "move.soak.ms": "0", "move.reverse": "true"}
    lines |= {key.replace("_", "."): value for key, value in settings.items()}
    given = {f"{FORWARD}.{key}": value for key, value in lines.items()} | {f"{REVERSE}.groups": "other-.*"}
    both = forward_and_reverse(sides.east, sides.west, directory, topic=topic, policy=policy, settings=given)
    produce(sides.east, topic, numbered(30), transactional="commit")
    await_settled(sides.east, topic)
    return both


def take(both: Both, *which: MoveStep) -> list[str]:
    return takes(both.forward, *which, reverse=both.reverse)


def undo(both: Both) -> None:
    undo_move(both.forward, move_of(both.forward), ORDER, lambda phase: None, both.reverse)


def assert_same(both: Both, count: int) -> None:
    """Both sides hold the same records in the same order, each once."""
    here, there = both.values(both.east), both.values(both.west)
    flat = [value for its in there.values() for value in its]
    assert here == there and len(flat) == len(set(flat)) == count


@pytest.mark.parametrize("policy", ["identity", pytest.param("default", marks=pytest.mark.long)])
def test_what_is_written_after_the_cut_over_returns_and_undo_goes_over_it(
    sides: Sides, tmp_path: Path, policy: str
) -> None:
    both, other = both_ways(sides, tmp_path, policy), f"other-{uuid4().hex[:8]}"
    seen = [read_with_group(both.east, both.group, both.topic, {0: 5, 1: 6})]
    for _ in range(2):
        said = take(both, *TO_CUT_OVER)
    assert "1 topic can return" in said[-2] and reverse_state(both.forward, move_of(both.forward)) == ""
    for cluster, topic, at in ((both.east, both.topic, 2), (both.west, both.remote, 4)):
        commit(cluster, other, {(topic, 0): at})  # reads on either side, and is none of the move group's
    seen.append(read_with_group(both.west, both.group, both.remote, {0: 4, 1: 4}))
    produce(both.east, both.topic, numbered(10, 30))  # producers continue on the source
    assert both.window(both.reverse).copied == 0 and both.now(both.reverse).flow.returns == {}, (
        "looked at, and nothing more"
    )
    for _ in range(2):
        said = take(both, "cut_over_producers")
    assert_same(both, 40)
    assert both.window(both.reverse).copied == 0, "nothing that came from there goes back"
    write(both.west, both.remote, 100, 24)
    assert both.window(both.reverse).copied == 24 and both.window(both.forward).copied == 0
    assert_same(both, 64)
    assert unfinished(both.forward, move_of(both.forward)) == [], "what returned is no stranger's"
    seen.append(read_with_group(both.west, both.group, both.remote, {0: 15, 1: 3}))
    write(both.west, both.remote, 200, 6)  # the last ones there
    found = undo_plan(both.forward, move_of(both.forward), ORDER)
    told = "".join(found.lines)
    assert not found.reasons and len(found.returning) == 2 and "they return, and groups resume" in told
    assert both.group not in told, "its position is not put back: it resumes after what returns"
    undo(both)
    assert committed(both.east, other) == {(both.topic, 0): 2}, "an order changes nothing that it does not name"
    assert_same(both, 70)
    assert owners_now(both.forward).frozen == {} and both.now(both.reverse).flow.returns == {}
    produce(both.east, both.topic, numbered(10, 300))
    assert both.window(both.forward).copied == 10 and both.window(both.reverse).copied == 0
    assert_same(both, 80)
    seen.append(read_with_group(both.east, both.group, both.topic))
    for number, its in both.records(both.east).items():
        assert [each.content for part in seen for each in part[number]] == [each.content for each in its], "each once"


@pytest.mark.long
def test_killed_after_the_freeze_it_begins_at_the_same_record(sides: Sides, tmp_path: Path) -> None:
    """Also when producers did not wait, and by a ledger that has seen nothing."""
    both = both_ways(sides, tmp_path)
    take(both, *TO_CUT_OVER)

    with killed_at(steps, "begin"):
        take(both, "cut_over_producers")
    assert owners_now(both.forward).frozen.keys() == {both.topic}
    write(both.west, both.remote, 100, 12)
    other = both.elsewhere(tmp_path)
    result = other.window(other.reverse)
    assert result.copied == 0 and not any(row.error for row in result.rows), "nobody has said that it returns"
    assert "west->east has begun" in "".join(take(other, "cut_over_producers"))
    assert other.window(other.reverse).copied == 12
    assert_same(other, 42)
    produce(both.east, both.topic, [numbered(1, 900)[0]], partition=0)  # one that nobody has stopped
    with pytest.raises(WrittenSinceFrozen, match=f"{both.topic}-0: 1 record after offset"):
        take(other, "finish")


@pytest.mark.parametrize("last", [pytest.param("reverse", marks=pytest.mark.long), "cut_over_producers"])
def test_it_is_taken_back_while_nothing_was_written_there(sides: Sides, tmp_path: Path, last: MoveStep) -> None:
    both = both_ways(sides, tmp_path)
    take(both, *TO_CUT_OVER)
    if last == "cut_over_producers":
        take(both, last)
        assert is_returning(both.forward, move_of(both.forward)) and both.window(both.reverse).copied == 0
    undo(both)
    assert both.now(both.reverse).flow.returns == {} and owners_now(both.forward).frozen == {}
    produce(both.east, both.topic, numbered(10, 100))
    assert both.window(both.forward).copied == 10 and both.window(both.reverse).copied == 0
    assert_same(both, 40)
    if last == "cut_over_producers":
        return
    take(both, *TO_CUT_OVER, "cut_over_producers")
    write(both.west, both.remote, 300, 4)
    assert both.window(both.reverse).copied == 4
    assert_same(both, 44)


@pytest.mark.long  # tests/flows/test_freezing.py has both
def test_topics_that_are_frozen_and_unfrozen_before_the_cut_over_continue(sides: Sides, tmp_path: Path) -> None:
    both = both_ways(sides, tmp_path)
    take(both, *TO_CUT_OVER)
    freeze(both.forward, [both.topic], reason="a mistake", by="ada")
    assert both.window(both.reverse).copied == 0
    unfreeze(both.forward, [both.topic], reason="a mistake", by="ada")
    produce(both.east, both.topic, numbered(10, 30))
    assert both.window(both.forward).copied == 10 and both.window(both.reverse).copied == 0
    assert_same(both, 40)


@pytest.mark.long  # tests/migration/test_moving.py: what a step is about
def test_a_topic_that_comes_to_match_is_cut_over_while_the_others_return(sides: Sides, tmp_path: Path) -> None:
    both = both_ways(sides, tmp_path, topics="moves-.*", move_shop_topics="moves-.*")
    commit(both.east, both.group, {(both.topic, 0): 5})
    take(both, *TO_CUT_OVER, "cut_over_producers")
    write(both.west, both.remote, 100, 6)
    assert both.window(both.reverse).copied == 6
    new = create_topic(both.east, f"moves-{uuid4().hex}")
    produce(both.east, new, numbered(10), partition=0)
    with killed_at(steps, "begin"):
        take(both, *TO_CUT_OVER, "cut_over_producers")
    assert unfinished(both.forward, move_of(both.forward)) == [], (
        "what returned is no stranger's, beside one that does not return"
    )
    assert "1 topic frozen" in "".join(take(both, "cut_over_producers"))
    assert owners_now(both.forward).returning() == {both.remote: both.topic, new: new}


def test_nothing_is_frozen_where_the_reverse_flow_could_not_begin(sides: Sides, tmp_path: Path) -> None:
    both = both_ways(sides, tmp_path)
    with pytest.raises(NoReverseFlow):
        takes(both.forward, "reverse")
    take(both, *TO_CUT_OVER)
    with pytest.raises(NoReverseFlow):
        takes(both.forward, "cut_over_producers")
    freeze(both.reverse, (), reason="elsewhere", by="ada")
    with pytest.raises(ReturnRefused, match="'west->east' is frozen"):
        take(both, "cut_over_producers")
    assert owners_now(both.forward).frozen == {}
