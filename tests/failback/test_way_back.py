"""The flow back of a migration: looked at before producers are switched, begun by that; each record once, none goes back."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from airmirror.flows.closing import close, owners_now, reopen
from airmirror.runbooks.failback.pair import NoWayBack
from airmirror.runbooks.failback.returning import ReturnRefused
from airmirror.runbooks.migration import steps
from airmirror.runbooks.migration.producers import WrittenSinceClosed, unfinished
from airmirror.runbooks.migration.reverse import is_returning, way_back
from airmirror.runbooks.migration.undo import undo_move, undo_plan
from support.following import numbered
from support.groups import read_with_group
from support.killing import killed_at
from support.migrations import ORDER, move_of, takes
from support.returns import THERE, Both, there_and_back, write
from support.sides import Sides
from support.topics import create_topic, produce

TO_SWITCH: tuple[steps.Step, ...] = ("mirror", "check_groups", "switch_consumers", "reverse")


def both_ways(sides: Sides, directory: Path, policy: str = "identity", **settings: str) -> Both:
    """Flows there and back, with a move group of one topic, its group, and 30 records."""
    topic = create_topic(sides.east, f"moves-{uuid4().hex[:8]}", 2)
    lines = {"move.shop.topics": topic, "move.quiet.ms": "0", "move.soak.ms": "0", "move.reverse": "true"}
    lines |= {key.replace("_", "."): value for key, value in settings.items()}
    given = {f"{THERE}.{key}": value for key, value in lines.items()}
    both = there_and_back(sides.east, sides.west, directory, topic=topic, policy=policy, settings=given)
    produce(sides.east, topic, numbered(30), transactional="commit")
    return both


def take(both: Both, *which: steps.Step) -> list[str]:
    return takes(both.there, *which, reverse=both.back)


def undo(both: Both) -> None:
    undo_move(both.there, move_of(both.there), ORDER, lambda phase: None, both.back)


def assert_same(both: Both, count: int) -> None:
    """Both sides hold the same records in the same order, each once."""
    here, there = both.values(both.east), both.values(both.west)
    flat = [value for its in there.values() for value in its]
    assert here == there and len(flat) == len(set(flat)) == count


@pytest.mark.parametrize("policy", ["identity", pytest.param("default", marks=pytest.mark.long)])
def test_what_is_written_after_the_switch_returns_and_undo_goes_over_it(
    sides: Sides, tmp_path: Path, policy: str
) -> None:
    both = both_ways(sides, tmp_path, policy)
    seen = [read_with_group(both.east, both.group, both.topic, {0: 5, 1: 6})]
    for _ in range(2):
        said = take(both, *TO_SWITCH)
    assert "1 topic can return" in said[-2] and way_back(both.there, move_of(both.there)) == ""
    seen.append(read_with_group(both.west, both.group, both.remote, {0: 4, 1: 4}))
    produce(both.east, both.topic, numbered(10, 30))  # producers go on on the source
    assert both.window(both.back).copied == 0 and both.now(both.back).flow.returns == {}, "looked at, and nothing more"
    for _ in range(2):
        said = take(both, "switch_producers")
    assert_same(both, 40)
    assert both.window(both.back).copied == 0, "nothing that came from there goes back"
    write(both.west, both.remote, 100, 24)
    assert both.window(both.back).copied == 24 and both.window(both.there).copied == 0
    assert_same(both, 64)
    assert unfinished(both.there, move_of(both.there)) == [], "what returned is no stranger's"
    seen.append(read_with_group(both.west, both.group, both.remote, {0: 15, 1: 3}))
    write(both.west, both.remote, 200, 6)  # the last ones there
    found = undo_plan(both.there, move_of(both.there), ORDER)
    told = "".join(found.lines)
    assert not found.reasons and len(found.returning) == 2 and "they return, and groups resume" in told
    assert both.group not in told, "its position is not put back: it goes on after what returns"
    undo(both)
    assert_same(both, 70)
    assert owners_now(both.there).closed == {} and both.now(both.back).flow.returns == {}
    produce(both.east, both.topic, numbered(10, 300))
    assert both.window(both.there).copied == 10 and both.window(both.back).copied == 0
    assert_same(both, 80)
    seen.append(read_with_group(both.east, both.group, both.topic))
    for number, its in both.records(both.east).items():
        assert [each.content for part in seen for each in part[number]] == [each.content for each in its], "each once"


@pytest.mark.long
def test_killed_after_the_closure_it_begins_at_the_same_record(sides: Sides, tmp_path: Path) -> None:
    """Also when producers did not wait, and by a ledger that has seen nothing."""
    both = both_ways(sides, tmp_path)
    take(both, *TO_SWITCH)

    with killed_at(steps, "begin"):
        take(both, "switch_producers")
    assert owners_now(both.there).closed.keys() == {both.topic}
    write(both.west, both.remote, 100, 12)
    other = both.elsewhere(tmp_path)
    result = other.window(other.back)
    assert result.copied == 0 and not any(row.error for row in result.rows), "nobody has said that it returns"
    assert "west->east has begun" in "".join(take(other, "switch_producers"))
    assert other.window(other.back).copied == 12
    assert_same(other, 42)
    produce(both.east, both.topic, [numbered(1, 900)[0]], partition=0)  # one that nobody has stopped
    with pytest.raises(WrittenSinceClosed, match=f"{both.topic}-0: 1 record after offset"):
        take(other, "finish")


@pytest.mark.parametrize("last", [pytest.param("reverse", marks=pytest.mark.long), "switch_producers"])
def test_it_is_taken_back_while_nothing_was_written_there(sides: Sides, tmp_path: Path, last: steps.Step) -> None:
    both = both_ways(sides, tmp_path)
    take(both, *TO_SWITCH)
    if last == "switch_producers":
        take(both, last)
        assert is_returning(both.there, move_of(both.there)) and both.window(both.back).copied == 0
    undo(both)
    assert both.now(both.back).flow.returns == {} and owners_now(both.there).closed == {}
    produce(both.east, both.topic, numbered(10, 100))
    assert both.window(both.there).copied == 10 and both.window(both.back).copied == 0
    take(both, *TO_SWITCH, "switch_producers")
    write(both.west, both.remote, 300, 4)
    assert both.window(both.back).copied == 4
    assert_same(both, 44)


def test_topics_that_are_closed_and_opened_before_the_switch_go_on(sides: Sides, tmp_path: Path) -> None:
    both = both_ways(sides, tmp_path)
    take(both, *TO_SWITCH)
    close(both.there, [both.topic], reason="a mistake", by="ada")
    assert both.window(both.back).copied == 0
    reopen(both.there, [both.topic], reason="a mistake", by="ada")
    produce(both.east, both.topic, numbered(10, 30))
    assert both.window(both.there).copied == 10 and both.window(both.back).copied == 0
    assert_same(both, 40)


def test_nothing_is_closed_where_the_flow_back_could_not_begin(sides: Sides, tmp_path: Path) -> None:
    both = both_ways(sides, tmp_path)
    with pytest.raises(NoWayBack):
        takes(both.there, "reverse")
    take(both, *TO_SWITCH)
    with pytest.raises(NoWayBack):
        takes(both.there, "switch_producers")
    close(both.back, (), reason="elsewhere", by="ada")
    with pytest.raises(ReturnRefused, match="'west->east' is closed"):
        take(both, "switch_producers")
    assert owners_now(both.there).closed == {}
