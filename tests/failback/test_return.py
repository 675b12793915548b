"""Failing back: what was written over there returns, each record once and in order, and both flows and groups resume exactly."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from airmirror.clusters.admin.client import connect, topic_configs
from airmirror.clusters.admin.creation import TopicCreationFailed, TopicCreationRefused
from airmirror.clusters.protocol import stable
from airmirror.clusters.protocol.groups import Committed
from airmirror.clusters.protocol.stable import OffsetsHeld
from airmirror.flows.freezing import StillReturning, commit_change, freeze, overtaking, owners_now, unfreeze
from airmirror.flows.prepare import prepare
from airmirror.flows.report import report_flow
from airmirror.flows.report_rows import Span
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.flows.verification import compare_all
from airmirror.offsets.positions import positions_of
from airmirror.offsets.translation import Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failback import returning, steps, unfreezing
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.outcome import returned
from airmirror.runbooks.failback.plan import failback_plan
from airmirror.runbooks.failback.rescue import rescue
from airmirror.runbooks.failback.returning import LeftOnSource, ReturnNotDrained, ReturnRefused, look_ahead
from airmirror.runbooks.failback.steps import (
    GroupsNotBack,
    drain_step,
    end_step,
    is_done,
    move_step,
    nothing_left,
    return_step,
)
from airmirror.runbooks.failback.undo import undo as undo_return
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.steps import positions as failover_positions
from airmirror.runbooks.failover.undo import undo, undo_plan
from airmirror.slot.errors import ForeignRecords, SlotFenced
from airmirror.topics.names import select
from airmirror.topics.sync import SyncReport
from airmirror.windows.errors import ReturnOver
from airmirror.windows.fence import leased
from airmirror.windows.mirror import Journal, Mirror
from airmirror.windows.resets import Choice, ResetNotPossible
from airmirror.windows.window import WindowOrder, run_window
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import WHOLE, Change
from airmirror_local.brokers import IMPATIENT, start_broker
from support.disasters import writing
from support.failovers import DISASTER, PLANNED, fail_over, without_source
from support.flows import in_this_process
from support.following import numbered
from support.groups import commit, committed, held, read_with_group
from support.hostile import delete_records
from support.killing import killed_at
from support.returns import FORWARD, ORDER, POLICIES, REVERSE, Both, forward_and_reverse, write
from support.sides import Sides
from support.topics import assert_mirrored, create_topic, delete_topic, end_offsets, produce, read_all, set_config

RESCUE = FailbackOrder(reason="INC-7", by="ada")


def flat(values: dict[int, list[bytes | None]]) -> list[bytes | None]:
    return sorted(value for its in values.values() for value in its)


def told(both: Both) -> tuple[int, int]:
    """By the report of what is there now: how many records returned, and how many of the source stay there alone."""
    found = returned(both.now(both.forward))
    return sum(each.records for each in found), sum(each.behind for each in found)


def resumes(both: Both, first: int, *, shared: list[bytes]) -> None:
    """What is produced on ``east`` next is replicated once; every ``shared`` record lies once on either side."""
    new = write(both.east, both.topic, first, 10)
    result = both.window(both.forward)
    assert result.is_verified and result.copied == 10, "nothing is copied again"
    assert flat(both.values(both.west)) == sorted([*shared, *new])
    assert all(row.error is None for row in compare_all(both.forward, []))


@pytest.mark.parametrize("kind", [TopicCreationFailed, TopicCreationRefused])
def test_a_return_whose_topics_can_t_be_made_now_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, kind: type[TopicCreationRefused]
) -> None:
    failed = kind("east", "orders", "planted")
    monkeypatch.setattr(returning, "planned_return", lambda *_: (None, None))
    monkeypatch.setattr(returning, "ensure_internal_topics", lambda _: None)
    monkeypatch.setattr(returning, "introduce", lambda *_: False)
    monkeypatch.setattr(returning, "apply", lambda *_: SyncReport({}, errors=(failed,)))
    reverse: Any = SimpleNamespace(flow=SimpleNamespace(reverse_name="east->west"))
    with pytest.raises(ReturnRefused, match="planted") as caught:
        returning.bring_about(reverse, {}, print)
    assert caught.value.transient == failed.transient


@pytest.mark.parametrize(
    "policy", [pytest.param(each, marks=[] if each == "default" else [pytest.mark.long]) for each in POLICIES]
)
def test_what_was_written_over_there_returns(
    sides: Sides, tmp_path: Path, policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Active/active: the group reads what came from there too. By the policies of ``make test-all`` twice, so that the second
    return resumes after the first one."""
    cycles = 1 if policy == "default" else 2
    stock = create_topic(sides.west, f"stock-{uuid4().hex[:8]}", 1)
    own = {f"{REVERSE}.topics": stock}
    both = forward_and_reverse(sides.east, sides.west, tmp_path, policy=policy, settings=own)
    everything = write(both.east, both.topic, 0, 30)
    produce(sides.west, stock, numbered(30), partition=0)
    read_with_group(both.east, both.group, both.topic, {0: 5, 1: 5})
    both.window(both.forward)
    both.window(both.reverse)
    brought = select(both.reverse.flow, [stock])[stock], 0
    commit(both.east, both.group, {brought: 2})
    with monkeypatch.context() as patched, held(both.east, both.group, {brought: 4}, both.group):
        patched.setattr(stable, "STABLE_SECONDS", 0.2)
        with pytest.raises(OffsetsHeld, match=f"{both.group} in {brought[0]}-0"):
            failover_positions(both.forward, PLANNED)
    for cycle in range(cycles):
        fail_over(both.forward, PLANNED)
        assert committed(both.west, both.group)[stock, 0] == 4 + 6 * cycle
        commit(both.west, both.group, {(stock, 0): 10 + 6 * cycle})
        everything += write(both.west, both.remote, 100 + 1000 * cycle, 24)
        seen = read_with_group(both.west, both.group, both.remote, {0: 11, 1: 11})
        replicated = both.values(both.west)
        done = both.fail_back()
        assert both.values(both.east) == replicated == both.values(both.west), "the same records, in the same order"
        assert sum(account.copied for each in done.continued for account in each.taken.accounts) == 24
        assert not [row for row in done.groups if row.reason] and is_done(both.pair)
        assert committed(both.east, both.group)[brought] == 10 + 6 * cycle
        lasts = both.now(both.forward).ledger.last_mappings().values()
        assert all(min(each.leader_epoch, each.target_epoch) >= 0 == each.copied for each in lasts), "a cut log is told"
        rest = read_with_group(both.east, both.group, both.topic)
        for partition, its in both.records(both.east).items():
            tail = [each.content for each in rest[partition]]
            assert [each.content for each in its][-len(tail) :] == tail, "groups resume at the very next record"
            before = its[len(its) - len(tail) - 1]
            assert before.content == seen[partition][-1].content
        everything += write(both.east, both.topic, 500 + 1000 * cycle, 10)
        result = both.window(both.forward)
        assert result.is_verified and result.copied == 10, "nothing is copied again"
        assert both.values(both.west) == both.values(both.east) and flat(both.values(both.west)) == sorted(everything)
        assert both.now(both.forward).ledger.of_kind(GroupMove) == [] and both.now(both.reverse).flow.returns == {}
    assert all(row.error is None for row in compare_all(both.forward, []))
    assert prepare(both.reverse).topics.keys() == {stock}, "nothing returns any more"
    made = report_flow(both.forward, Span())
    assert made.is_good and made.numbers["records returned"] == 24 * cycles
    assert not any("another tool" in line for line in (made.headline, *made.not_known))


@pytest.mark.long  # of two topics that return one is named below
def test_a_topic_that_was_frozen_alone_returns_alone(sides: Sides, tmp_path: Path) -> None:
    """As a move group's are; the rest of the flow continues meanwhile."""
    other = create_topic(sides.east, "other-of-the-flow", 1)
    both = forward_and_reverse(sides.east, sides.west, tmp_path, settings={"east->west.topics": f"orders-.*, {other}"})
    replicated = write(both.east, both.topic, 0, 20)
    write(both.east, other, 0, 3, partitions=1)
    both.window(both.forward)
    freeze(both.forward, [both.topic], reason="moved", by="ada")
    since = write(both.west, both.remote, 100, 12)
    both.fail_back(reason="of the flow")
    assert owners_now(both.forward).frozen.keys() == {both.topic}, "an order for the flow leaves what another has named"
    named = f"frozen by name: {both.topic}: `airmirror failback run --reason '…' --topic {both.topic} --flow"
    assert named in nothing_left(both.pair, ORDER)
    with pytest.raises(ReturnRefused, match=f"{other} is not frozen"):
        both.fail_back(topics=(both.topic, other))
    both.fail_back(topics=(both.topic,))
    assert is_done(both.pair) and flat(both.values(both.east)) == sorted([*replicated, *since])
    resumes(both, 400, shared=[*replicated, *since])
    freeze(both.forward, (), reason="all", by="ada")
    both.fail_back(topics=(both.topic,))
    new = write(both.east, both.topic, 700, 4)
    write(both.east, other, 10, 3, partitions=1)
    assert both.window(both.forward).copied == len(new), (
        "unfrozen by its own record, while the rest of the flow is frozen"
    )
    write(both.west, f"east.{other}", 20, 2, partitions=1)
    both.fail_back(leave=True)
    assert owners_now(both.forward).frozen == {}, "the rest comes back too; what is back already is left as it is"
    assert [each.value for each in read_all(both.east, other)[0]][-2:] == [b"v20", b"v21"]
    write(both.east, both.topic, 800, 4)
    result = both.window(both.forward)
    assert result.is_verified and result.copied == 4 and both.values(both.east) == both.values(both.west)


def test_of_two_topics_that_return_only_those_of_an_order_are_ended(sides: Sides, tmp_path: Path) -> None:
    """As of two move groups: what an order does not name returns on, and stays frozen, with its groups where they are."""
    other = create_topic(sides.east, f"other-{uuid4().hex[:8]}", 1)
    lines = {f"{FORWARD}.topics": f"orders-.*, {other}"}
    both = forward_and_reverse(sides.east, sides.west, tmp_path, policy="identity", settings=lines)
    write(both.east, both.topic, 0, 6)
    write(both.east, other, 0, 4, partitions=1)
    read_with_group(both.east, both.group, other, {0: 1})
    both.window(both.forward)
    freeze(both.forward, [both.topic], reason="moved", by="ada")
    freeze(both.forward, [other], reason="moved", by="bob")
    write(both.west, other, 100, 4, partitions=1)
    return_step(both.pair, replace(ORDER, topics=(other,)))
    with writing(both.west, other, "busy"):  # the producers of the other one continue
        stood = committed(both.east, both.group)
        both.fail_back(topics=(both.topic,))
    assert owners_now(both.forward).frozen.keys() == {other} and committed(both.east, both.group) == stood
    assert both.pair.returning((other,)) == {other: other}
    both.window(both.reverse)
    assert undo_return(both.pair, replace(ORDER, topics=(both.topic,))).rows("topics") == []
    assert both.pair.returning((other,)) == {other: other}
    both.fail_back(topics=(other,))
    assert is_done(both.pair)
    assert_mirrored(both.west, other, both.east, other)
    moved = both.now(both.reverse).ledger.of_kind(GroupMove)
    assert undo_plan(both.now(both.reverse)).groups == () != moved, "what a failback has moved is no failover's to undo"


def test_a_report_of_the_flow_tells_nothing_of_what_another_order_has_named(sides: Sides, tmp_path: Path) -> None:
    """As of a move group that has come back once, and has moved again."""
    other = create_topic(sides.east, f"other-{uuid4().hex[:8]}", 1)
    both = forward_and_reverse(sides.east, sides.west, tmp_path, settings={f"{FORWARD}.topics": f"orders-.*, {other}"})
    write(both.east, both.topic, 0, 6)
    write(both.east, other, 0, 4, partitions=1)
    both.window(both.forward)
    named = replace(ORDER, topics=(other,))
    for order, topic, remote in ((named, other, f"east.{other}"), (ORDER, both.topic, both.remote)):
        if order is named:
            freeze(both.forward, [other], reason="moved", by="ada")
        else:
            fail_over(both.forward, PLANNED)
        write(both.west, remote, 100, 4, partitions=1)
        read_with_group(both.west, both.group, remote, {0: 5})
        made = both.outcome(order, both.fail_back(topics=order.topics))
        assert {each.topic for each in made.returned} == {each.topic for each in made.moves} == {topic}
        if order is named:
            freeze(both.forward, [other], reason="moved again", by="ada")


def test_groups_are_moved_while_a_window_of_the_reverse_flow_is_at_work(sides: Sides, tmp_path: Path) -> None:
    """It copies other topics back, for hours: its lease is taken, as by the end of the return."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    write(both.east, both.topic, 0, 6)
    read_with_group(both.east, both.group, both.topic, {0: 1, 1: 1})
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    write(both.west, both.remote, 100, 4)
    return_step(both.pair, ORDER)
    drain_step(both.pair, ORDER)
    end_step(both.pair, ORDER)
    with Journal.open(both.reverse.flow, both.reverse.ledger, "test") as journal, leased(journal, "follows", slots=0):
        moved = move_step(both.pair, ORDER)
    assert {each.group: each.reason for each in moved} == {both.group: ""}


@pytest.mark.parametrize("which", [FORWARD, REVERSE])
def test_an_aggregate_does_not_return(sides: Sides, tmp_path: Path, which: str) -> None:
    both = forward_and_reverse(sides.east, sides.west, tmp_path, settings={f"{which}.aggregate": "true"})
    write(both.east, both.topic, 0, 4)
    both.window(both.forward)
    freeze(both.forward, (), reason="INC-7", by="ada")
    with pytest.raises(ReturnRefused, match=f"flow '{which}' is an aggregate"):
        look_ahead(both.pair, ORDER)
    (stop,) = (each for each in failback_plan(both.forward).findings if each.level == "stop")
    assert stop.evidence.startswith(f"{which} is an aggregate")


def test_what_was_deleted_before_it_returned_is_told(sides: Sides, tmp_path: Path) -> None:
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    replicated = write(both.east, both.topic, 0, 20)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    since = write(both.west, both.remote, 100, 12)
    delete_records(both.west, both.remote, 14)
    with pytest.raises(ReturnRefused, match=f"{both.remote}-0: its offsets 11 to 13, written since, were deleted"):
        both.fail_back()
    both.fail_back(leave=True)
    assert flat(both.values(both.east)) == sorted([*replicated, *(each for each in since if each not in since[0:6:2])])


def test_a_group_that_is_not_moved_keeps_the_flow_frozen(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction holds its position; or it stands further on the source than where it would resume, and could skip what
    returned."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    write(both.east, both.topic, 0, 20)
    read_with_group(both.east, both.group, both.topic, {0: 5, 1: 5})
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    write(both.west, both.remote, 100, 12)
    stands = committed(both.west, both.group)
    monkeypatch.setattr(stable, "STABLE_SECONDS", 0.2)
    with held(both.west, both.group, stands, both.group), pytest.raises(OffsetsHeld):
        both.fail_back()
    monkeypatch.undo()
    commit(both.east, both.group, {(both.topic, 0): 10, (both.topic, 1): 10})
    with pytest.raises(GroupsNotBack, match=f"{both.group} in {both.topic}-0"):
        both.fail_back()
    assert owners_now(both.forward).frozen.keys() == {WHOLE, both.topic}
    both.fail_back(inexact=True)  # whoever says so has read which group may skip what
    assert is_done(both.pair) and set(committed(both.east, both.group).values()) == {10}


def test_what_was_never_replicated_is_refused_rescued_or_left(sides: Sides, tmp_path: Path) -> None:
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    replicated = write(both.east, both.topic, 0, 20)
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    never = write(both.east, both.topic, 100, 6)
    since = write(both.west, both.remote, 200, 12)
    with pytest.raises(LeftOnSource, match="3 records"):
        both.fail_back()
    assert both.now(both.reverse).flow.returns == {}
    _, plan = rescue(both.forward, RESCUE)
    assert (plan.never, plan.rescued, plan.since) == (0, 6, 12)
    begun = look_ahead(both.pair, ORDER)
    assert [each.target_end for each in begun] == list(end_offsets(both.east, both.topic).values())
    return_step(both.pair, ORDER)
    both.window(both.reverse)
    during = failback_plan(both.now(both.forward))
    assert during.never == 0, "what returned never counts as what was never replicated"
    with pytest.raises(StillReturning):
        rescue(both.forward, RESCUE)
    more = write(both.west, both.remote, 300, 4)
    done = both.fail_back()
    assert sum(each.lost for each in done.continued) == 6
    assert told(both) == (len(since) + len(more), 0), "what was never replicated was rescued"
    assert flat(both.values(both.east)) == sorted([*replicated, *never, *since, *more])
    assert flat(both.values(both.west)) == sorted([*replicated, *since, *more])
    resumes(both, 400, shared=[*replicated, *since, *more])
    left = write(both.east, both.topic, 500, 4)
    freeze(both.forward, (), reason="again", by="ada")
    again = write(both.west, both.remote, 600, 2)
    with pytest.raises(LeftOnSource, match="2 records"):
        both.fail_back()
    both.fail_back(leave=True)
    assert told(both) == (len(again), len(left))
    assert set(left) <= set(flat(both.values(both.east))) and not set(left) & set(flat(both.values(both.west)))
    assert set(again) <= set(flat(both.values(both.east)))


@pytest.mark.parametrize(
    "made_again", [pytest.param(True, id="made again", marks=pytest.mark.long), pytest.param(False, id="missing")]
)
def test_a_source_that_is_empty_gets_everything(sides: Sides, tmp_path: Path, made_again: bool) -> None:
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    everything = write(both.east, both.topic, 0, 20)
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    everything += write(both.west, both.remote, 100, 10)
    read_with_group(both.west, both.group, both.remote, {0: 12, 1: 7})
    set_config(both.west, both.remote, "segment.ms", "7654321")
    delete_topic(both.east, both.topic)
    if made_again:
        create_topic(both.east, both.topic, 2, {"segment.ms": "1234567"})
    both.fail_back()
    configs = topic_configs(connect(both.forward.flow.source), [both.topic])[both.topic]
    assert configs["segment.ms"].value == ("1234567" if made_again else "7654321"), (
        "an original topic keeps its configs"
    )
    assert both.values(both.east) == both.values(both.west) and flat(both.values(both.east)) == sorted(everything)
    rest = read_with_group(both.east, both.group, both.topic)
    assert {number: len(its) for number, its in rest.items()} == {0: 3, 1: 8}
    resumes(both, 200, shared=everything)


def test_positions_are_right_both_ways_while_records_return_and_after(sides: Sides, tmp_path: Path) -> None:
    """Every position of either log is translated to the record that lies there."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    write(both.east, both.topic, 0, 12, partitions=1)
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    write(both.east, both.topic, 50, 3, partitions=1)
    write(both.west, both.remote, 100, 9, partitions=1)
    return_step(both.pair, steps.FailbackOrder(reason="INC-7", by="ada", leave=True))
    both.window(both.reverse)

    def translated(opened: Any, topic: str, offsets: list[int]) -> list[Translated]:
        opened = both.now(opened)
        asked = {f"g{each}": {TopicPartition(topic, 0): Committed(each)} for each in offsets}
        with Mirror.open(opened.flow, opened.ledger) as mirror:
            mirror.refresh()
            rows = positions_of(mirror, asked)
        found = {int(row.group[1:]): row.found for row in rows}
        return [found[each] for each in offsets]  # type: ignore[misc]

    def check(opened: Any, here: tuple[Any, str], there: tuple[Any, str]) -> None:
        mine, theirs = read_all(*here)[0], read_all(*there)[0]
        shared = {each.value for each in mine} & {each.value for each in theirs}
        at = {each.value: each.offset for each in theirs}
        asked = [each for each in mine if each.value in shared]
        found = translated(opened, here[1], [each.offset for each in asked])
        assert [each.translation for each in found] == [at[each.value] for each in asked]
        assert all(each.exact and not each.again for each in found)

    check(both.reverse, (both.west, both.remote), (both.east, both.topic))
    both.fail_back(leave=True)
    check(both.forward, (both.east, both.topic), (both.west, both.remote))
    check(both.reverse, (both.west, both.remote), (both.east, both.topic))


def test_records_do_not_go_round(sides: Sides, tmp_path: Path) -> None:
    """While they return nobody unfreezes the flow that brought them; where somebody has, by force, they return no more."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    write(both.east, both.topic, 0, 10)
    both.window(both.forward)
    with pytest.raises(ReturnRefused, match="is not frozen"):
        return_step(both.pair, ORDER) or look_ahead(both.pair, ORDER)
    fail_over(both.forward, PLANNED)
    write(both.west, both.remote, 100, 4)
    return_step(both.pair, ORDER)
    why: Any = {"reason": "by mistake", "by": "ada"}
    opening: Any = (lambda there: unfreeze(there, (), **why), lambda there: undo(there, FailoverOrder(**why)))
    for opens in opening:
        with pytest.raises(StillReturning):
            opens(both.forward)
    assert WHOLE in owners_now(both.forward).frozen
    before = prepare(both.reverse)
    with overtaking(both.forward, "by-force") as granted:
        for change in (Change.END, Change.FINISH):
            commit_change(granted, change, (), reason="by force", by="ada")
    late = run_window(
        before.opened.flow, both.reverse.ledger, before.topics, in_this_process, WindowOrder("slept", slots=lambda _: 1)
    )
    assert {type(row.error) for row in late.rows} == {ReturnOver}, "it had looked at topics before"
    assert prepare(both.reverse).topics == {}
    assert len(flat(both.values(both.east))) == 10


@pytest.mark.parametrize("opens", [unfreeze, pytest.param(undo, marks=pytest.mark.long)], ids=["unfreeze", "undo"])
def test_a_flow_that_is_opened_after_a_rescue_copies_nothing_of_it_again(
    sides: Sides, tmp_path: Path, opens: Callable[..., object]
) -> None:
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    replicated = write(both.east, both.topic, 0, 10)
    both.window(both.forward)
    freeze(both.forward, (), reason="INC-7", by="ada")
    write(both.east, both.topic, 100, 6)
    rescue(both.forward, RESCUE)
    later = write(both.east, both.topic, 200, 4)
    why = {"reason": "it is back", "by": "ada"}
    if opens is unfreeze:
        unfreeze(both.forward, (), **why)
    else:
        undo(both.forward, FailoverOrder(**why))
    result = both.window(both.forward)
    assert result.is_verified and result.copied == 4
    assert flat(both.values(both.west)) == sorted([*replicated, *later])
    assert all(row.error is None for row in compare_all(both.forward, []))


@pytest.mark.long  # test_unfrozen.py has one that was empty
def test_a_topic_that_was_empty_returns_too(sides: Sides, tmp_path: Path) -> None:
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    since = write(both.west, both.remote, 100, 6)
    both.fail_back()
    assert flat(both.values(both.east)) == sorted(since)
    resumes(both, 200, shared=since)


STEPS = (
    (returning, "bring_about"),
    (returning, "commit"),
    (returning, "commit_change"),
    (steps, "await_quiet"),
    (steps, "prove_past"),
    (steps, "end_return"),
    (steps, "move_groups"),
    (unfreezing, "commit"),
    (unfreezing, "prove"),
    (unfreezing, "write_forgotten"),
    (unfreezing, "commit_change"),
)


@pytest.mark.long  # test_in_parts is killed after each commit, tests/migration/test_steps.py while groups move
@pytest.mark.timeout(900)
def test_killed_at_each_step_and_run_again(sides: Sides, tmp_path: Path) -> None:
    """Each time by a ledger that has seen nothing, as another Airflow would; in the end as if nothing had happened."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    shared = write(both.east, both.topic, 0, 20)
    read_with_group(both.east, both.group, both.topic, {0: 5, 1: 5})
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    never = write(both.east, both.topic, 50, 4)
    shared += write(both.west, both.remote, 100, 12)
    read_with_group(both.west, both.group, both.remote, {0: 8, 1: 8})
    rescue(both.forward, RESCUE)

    for module, name in STEPS:
        for after in (False, True):
            if (name, after) != ("write_forgotten", True):  # nothing is left then
                with killed_at(module, name, after=after):
                    both.elsewhere(tmp_path).fail_back()
    last = both.elsewhere(tmp_path)
    last.fail_back()
    assert last.fail_back().continued == []
    assert flat(last.values(both.east)) == sorted([*shared, *never])
    assert flat(last.values(both.west)) == sorted(shared)
    assert committed(both.east, both.group) == {
        (both.topic, number): its[-3].offset for number, its in last.records(both.east).items()
    }
    assert [each.before for each in last.now(last.reverse).ledger.of_kind(GroupMove)] == [5, 5], (
        "where they stood at the first"
    )
    assert told(last) == (12, 0), "whichever run has accounted for it"
    resumes(last, 300, shared=shared)


@pytest.mark.long  # test_in_parts.py is killed after each commit; tests/runbooks/test_meetings.py has who overtakes whom
def test_of_two_failbacks_at_once_nothing_comes_twice(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one overtakes the first in the middle of a step; that one ends as fenced, or finds nothing left."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path)
    shared = write(both.east, both.topic, 0, 20)
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    shared += write(both.west, both.remote, 100, 12)
    overtakes: list[tuple[Any, Callable[[Both], object]]] = [
        (returning, lambda other: return_step(other.pair, ORDER)),
        (unfreezing, lambda other: other.fail_back()),
    ]
    for module, overtake in overtakes:
        real, left = module.commit, [overtake]

        def interrupted(*given: Any, real: Any = real, left: list[Any] = left, **named: Any) -> None:
            if left:
                left.pop()(both.elsewhere(tmp_path))
            real(*given, **named)

        with monkeypatch.context() as patched, pytest.raises(SlotFenced):
            patched.setattr(module, "commit", interrupted)
            both.fail_back()
    last = both.elsewhere(tmp_path)
    last.fail_back()
    assert is_done(last.pair)
    assert last.values(both.east) == last.values(both.west) and flat(last.values(both.east)) == sorted(shared)
    assert told(last) == (12, 0), "whichever run has accounted for it"
    resumes(last, 300, shared=shared)


def test_who_writes_there_after_the_return_was_ended_keeps_the_flow_frozen(sides: Sides, tmp_path: Path) -> None:
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    write(both.east, both.topic, 0, 10, partitions=1)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    write(both.west, both.remote, 100, 4, partitions=1)
    return_step(both.pair, ORDER)
    drain_step(both.pair, ORDER)
    steps.end_step(both.pair, ORDER)
    write(both.west, both.remote, 200, 1, partitions=1)
    with pytest.raises(ReturnNotDrained):
        steps.unfreeze_step(both.pair, ORDER)
    assert WHOLE in owners_now(both.forward).frozen
    both.fail_back()
    assert both.values(both.east) == both.values(both.west) and len(flat(both.values(both.east))) == 15


def test_who_writes_to_the_source_among_what_returns_is_told(sides: Sides, tmp_path: Path) -> None:
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    write(both.east, both.topic, 0, 10, partitions=1)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    write(both.west, both.remote, 100, 4, partitions=1)
    return_step(both.pair, ORDER)
    both.window(both.reverse)
    write(both.east, both.topic, 400, 1, partitions=1)
    write(both.west, both.remote, 500, 1, partitions=1)
    (row,) = both.window(both.reverse).rows
    assert isinstance(row.error, ForeignRecords) and row.error.remote_topic == both.topic
    assert "--start-again" not in str(row.error) and f"failback undo --topic {both.topic}" in str(row.error)
    its = read_all(both.east, both.topic)
    for choice, recreate in ((Choice.START_AGAIN, True), (Choice.START_AGAIN, False), (Choice.NEW_TOPIC, False)):
        with pytest.raises(ResetNotPossible, match=f"it returns to {both.topic}, the original topic"):
            carry_out(both.reverse, ResetOrder((both.remote,), (), choice, recreate, by="ada", reason="as it said"))
    assert read_all(both.east, both.topic) == its, "nothing of the original was deleted"
    with pytest.raises(LeftOnSource):
        both.fail_back(wait=0.0)
    assert WHOLE in owners_now(both.forward).frozen


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_source_that_has_lost_a_part_gets_it_back(tmp_path: Path) -> None:
    """SIGKILL; one partition has lost its log and is written to again, the other one is whole. All that was lost returns."""
    brokers = [start_broker(tmp_path, name, IMPATIENT) for name in ("source", "target")]
    try:
        both = forward_and_reverse(*brokers, tmp_path)
        everything = write(both.east, both.topic, 0, 40)
        both.window(both.forward)
        both.east.kill()
        fail_over(both.forward, DISASTER)
        since = write(both.west, both.remote, 100, 10)
        (log,) = both.east.directory.rglob(f"{both.topic}-1")
        shutil.rmtree(log)
        both.east.restart()
        again = write(both.east, both.topic, 200, 6)
        rescue(both.forward, RESCUE)
        both.fail_back()
        east = both.values(both.east)
        assert flat(east) == sorted([*everything, *again, *since]), "each once"
        assert len(east[0]) == len(east[1])
        assert flat(both.values(both.west)) == sorted([*everything, *since])
        resumes(both, 300, shared=[*everything, *since])
    finally:
        for broker in brokers:
            broker.kill()


def test_what_retention_deletes_while_records_return_does_not_stay_behind(sides: Sides, tmp_path: Path) -> None:
    """Of a long return, the source has deleted what was rescued, the markers between, and some of what has returned."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    replicated = write(both.east, both.topic, 0, 10, partitions=1)
    both.window(both.forward)
    fail_over(without_source(both.forward), DISASTER)
    for first in (50, 52):
        produce(both.east, both.topic, numbered(2, first), partition=0, transactional="commit")
    rescue(both.forward, RESCUE)
    since = write(both.west, both.remote, 100, 6, partitions=1)
    return_step(both.pair, ORDER)
    both.window(both.reverse)
    first = next(each.offset for each in both.records(both.east)[0] if each.value == since[2])
    delete_records(both.east, both.topic, first)
    (done,) = both.fail_back().continued
    assert not len(done.alone) and done.lost > 4
    assert both.values(both.east)[0] == since[2:] and both.values(both.west)[0] == [*replicated, *since]
    new = write(both.east, both.topic, 300, 4, partitions=1)
    result = both.window(both.forward)
    assert result.is_verified and both.values(both.west)[0] == [*replicated, *since, *new]


def test_what_the_target_has_lost_is_on_the_list_and_rescued(sides: Sides, tmp_path: Path) -> None:
    """It had been replicated; the remote topic was deleted and made again."""
    both = forward_and_reverse(sides.east, sides.west, tmp_path, partitions=1)
    replicated = write(both.east, both.topic, 0, 10, partitions=1)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    delete_topic(both.west, both.remote)
    create_topic(both.west, both.remote, 1)
    since = write(both.west, both.remote, 100, 6, partitions=1)
    (row,) = failback_plan(both.now(both.forward)).partitions
    assert (row.never.runs, row.since.records, row.lost) == (((0, 9),), 6, 0)
    with pytest.raises(LeftOnSource, match="10 records"):
        both.fail_back()
    rescue(both.forward, RESCUE)
    both.fail_back()
    assert both.values(both.east)[0] == [*replicated, *since]
    new = write(both.east, both.topic, 300, 4, partitions=1)
    assert both.window(both.forward).is_verified and both.values(both.west)[0] == [*since, *new]
