"""Procedures that meet: the ways that tests/model has found through the product as it was, on brokers."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer

from airmirror.flows.freezing import StillReturning, freeze, owners_now, unfreeze
from airmirror.flows.prepare import Opened
from airmirror.runbooks import moving as group_moving
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.failback import pair as failback_pair
from airmirror.runbooks.failback import steps as failback_steps
from airmirror.runbooks.failback import undo as failback_undo
from airmirror.runbooks.failback import unfreezing
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.steps import GroupsNotBack, ReturnFirst
from airmirror.runbooks.failback.undo import undo as undo_failback
from airmirror.runbooks.failover import steps as failover_steps
from airmirror.runbooks.failover import undo as failover_undo
from airmirror.runbooks.failover.steps import FreezeFirst
from airmirror.runbooks.failover.undo import undo as undo_failover
from airmirror.runbooks.migration import consumers
from airmirror.runbooks.migration import undo as migration_undo
from airmirror.runbooks.migration.chosen import session
from airmirror.runbooks.migration.consumers import GroupsNotMoved
from airmirror.runbooks.migration.order import MoveStep
from airmirror.runbooks.moving import GroupsDisplaced, GroupsReadOn, MappingWriter
from airmirror.runbooks.takeover.handback import positions, write_offsets
from airmirror.runbooks.takeover.order import HandbackOrder
from airmirror.slot.contract import transactional_id
from airmirror.slot.errors import SlotFenced
from airmirror.windows.errors import FlowFrozen
from airmirror.wire.moves import GroupMove
from airmirror_local.brokers import Broker
from support.failovers import DISASTER, PLANNED, elsewhere, fail_over, windowed, with_groups
from support.faults import at_the_last_moment
from support.flows import Mirror, mirror
from support.following import numbered
from support.groups import a_group, commit, committed, member, read_with_group
from support.killing import killed_at
from support.migrations import ORDER as MOVE
from support.migrations import move_of, moving, takes
from support.returns import FORWARD, ORDER, Both, forward_and_reverse, write
from support.sides import Sides
from support.topics import create_topic, produce
from support.waiting import short_waits

__all__ = ["short_waits"]

WHY: Any = {"reason": "not today", "by": "ada"}


def ready(east: Broker, west: Broker, directory: Path, group: str, read: int = 5) -> Mirror:
    """A flow of twenty records, of which a group has read some."""
    flow = with_groups(mirror(east, west, directory), group)
    produce(east, flow.topic, numbered(20), partition=0)
    commit(east, group, {(flow.topic, 0): read})
    windowed(flow)
    return flow


def migrating(east: Broker, west: Broker, directory: Path, group: str, *steps: MoveStep) -> Mirror:
    """A flow whose move group has read twenty of thirty records, after these steps of its migration."""
    flow, _ = moving(east, west, directory, groups=group)
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    takes(flow.opened, *steps)
    return flow


def test_a_failover_leaves_what_was_moved_by_its_name(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Its consumers are at work on west, its producers have written there: neither keeps the failover, or its undo, back."""
    moved, stays_behind = a_group(), a_group()
    flow, stays = moving(east, west, tmp_path, groups=moved)
    flow = with_groups(flow, moved, stays_behind)
    for topic in (flow.topic, stays):
        produce(east, topic, numbered(20), partition=0)
    commit(east, moved, {(flow.topic, 0): 12})
    commit(east, stays_behind, {(stays, 0): 7})
    takes(flow.opened, "mirror", "cut_over_consumers", "cut_over_producers")
    windowed(flow)
    produce(west, flow.remote_topic, numbered(5, 100), partition=0)
    with member(west, moved, flow.remote_topic):
        _, groups, _ = fail_over(flow.opened, PLANNED)
        assert [(each.group, each.topic, each.reason) for each in groups] == [(stays_behind, stays, "")]
        undo_failover(flow.opened, PLANNED)
    owners = owners_now(flow.opened)
    assert owners.whole is None and list(owners.frozen) == [flow.topic]
    assert committed(west, moved) == {(flow.remote_topic, 0): 12} and committed(west, stays_behind) == {}
    _, groups, _ = fail_over(elsewhere(flow.opened, tmp_path), replace(DISASTER, anyway=True))
    assert {each.topic for each in groups} <= {stays}


def test_a_flow_is_opened_whatever_has_returned_of_what_was_moved_by_its_name(sides: Sides, tmp_path: Path) -> None:
    """A topic's records return; the flow is failed over, and that is undone. Without its name, nobody means that topic."""
    east, west = sides.east, sides.west
    bill = create_topic(east, f"bill-{uuid.uuid4().hex[:8]}", 1)
    shop = create_topic(east, f"shop-{uuid.uuid4().hex[:8]}", 1)
    both = forward_and_reverse(east, west, tmp_path, topic=shop, settings={f"{FORWARD}.topics": f"{shop}, {bill}"})
    for topic in (shop, bill):
        write(east, topic, 0, 10, 1)
    both.window(both.forward)
    freeze(both.forward, [shop], reason="it moves", by="ada")
    write(west, both.remote, 100, 4, 1)
    failback_steps.return_step(both.pair, replace(ORDER, topics=(shop,)))
    both.window(both.reverse)
    fail_over(both.forward, PLANNED)
    undo_failover(both.forward, PLANNED)
    owners = owners_now(both.forward)
    assert owners.whole is None and list(owners.frozen) == [shop] == list(owners.returning().values())


def test_a_failover_moves_no_group_of_a_flow_that_was_opened_again(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An undo comes between its look at the flow and its lease."""
    group = a_group()
    flow = ready(east, west, tmp_path, group)
    failover_steps.freeze_step(flow.opened, PLANNED)
    other = elsewhere(flow.opened, tmp_path)
    at_the_last_moment(monkeypatch, failover_steps, "positions", after=lambda: undo_failover(other, PLANNED))
    with pytest.raises(FreezeFirst):
        failover_steps.move_step(flow.opened, PLANNED)
    assert committed(west, group) == {}


def test_a_failover_fences_an_undo_that_sleeps(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The undo has initialised its id and looked at its lease, and writes when it wakes: it is refused."""
    group = a_group()
    flow = ready(east, west, tmp_path, group)
    failover_steps.freeze_step(flow.opened, PLANNED)
    name = transactional_id(flow.flow, 0)
    producer = Producer({"bootstrap.servers": west.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    failover_steps.move_step(flow.opened, PLANNED)
    producer.begin_transaction()
    with pytest.raises(KafkaException):
        producer.produce(flow.remote_topic, b"late")
        producer.commit_transaction(30)
    assert committed(west, group) == {(flow.remote_topic, 0): 5}


def test_a_failover_says_no_group_is_moved_that_lost_its_lease_meanwhile(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = a_group()
    flow = ready(east, west, tmp_path, group)
    failover_steps.freeze_step(flow.opened, PLANNED)
    other, write_them = elsewhere(flow.opened, tmp_path), group_moving.commit_offsets

    def sleeps(*given: Any) -> Any:
        monkeypatch.setattr(group_moving, "commit_offsets", write_them)
        undo_failover(other, PLANNED)
        return write_them(*given)

    monkeypatch.setattr(group_moving, "commit_offsets", sleeps)
    with pytest.raises(SlotFenced):
        failover_steps.move_step(flow.opened, PLANNED)


def test_who_reads_on_while_groups_are_moved_is_named(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = a_group()
    flow = ready(east, west, tmp_path, group)
    failover_steps.freeze_step(flow.opened, PLANNED)
    with monkeypatch.context() as patched:
        at_the_last_moment(
            patched, failover_steps, "move_groups", after=lambda: commit(east, group, {(flow.topic, 0): 9})
        )
        with pytest.raises(GroupsReadOn, match=f"{group} in {flow.topic}-0 was at 5 and is at 9"):
            failover_steps.move_step(flow.opened, PLANNED)
    failover_steps.move_step(flow.opened, PLANNED)
    assert committed(west, group) == {(flow.remote_topic, 0): 9}


def test_a_failover_takes_again_what_was_unfrozen_by_its_name(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Its groups are moved when it is frozen again, after what was written meanwhile; the other topic stays as it is."""
    group = a_group()
    flow, other = moving(east, west, tmp_path, groups=group)
    flow = with_groups(flow, group)
    for topic in (flow.topic, other):
        produce(east, topic, numbered(10), partition=0)
    windowed(flow)
    fail_over(flow.opened, PLANNED)
    unfreeze(flow.opened, [flow.topic], **WHY)
    produce(east, flow.topic, numbered(5, 10), partition=0)
    commit(east, group, {(flow.topic, 0): 15})
    with pytest.raises(FreezeFirst, match=f"not frozen: {flow.topic}; "):
        failover_steps.move_step(flow.opened, PLANNED)
    fail_over(flow.opened, PLANNED)
    assert committed(west, group) == {(flow.remote_topic, 0): 16}, "a transaction's marker lies between"
    owners = owners_now(flow.opened)
    assert owners.shut is not None and not owners.is_apart(flow.topic)


def test_a_failover_says_no_group_is_moved_that_another_command_has_moved_too(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The undo of a migration takes no lease for groups; it may have looked at them before the flow was frozen."""
    group = a_group()
    flow = ready(east, west, tmp_path, group)
    failover_steps.freeze_step(flow.opened, PLANNED)
    with monkeypatch.context() as patched:
        undone = partial(commit, west, group, {(flow.remote_topic, 0): 2})
        at_the_last_moment(patched, failover_steps, "move_groups", after=undone)
        with pytest.raises(GroupsDisplaced, match=f"{group} in {flow.remote_topic}-0 is not at 5"):
            failover_steps.move_step(flow.opened, PLANNED)
    failover_steps.move_step(flow.opened, PLANNED)
    assert committed(west, group) == {(flow.remote_topic, 0): 5}


def test_a_failover_does_not_remember_where_an_undo_has_found_a_group(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The group was cut over when the failover looked at it; it is put back before the failover writes where it stood."""
    group = a_group()
    flow = migrating(east, west, tmp_path, group, "mirror", "cut_over_consumers")
    flow = with_groups(flow, group)
    other = elsewhere(flow.opened, tmp_path)
    failover_steps.freeze_step(flow.opened, PLANNED)

    def puts_back() -> None:
        monkeypatch.setattr(migration_undo, "_frozen", lambda *_: [])  # it looked before the freeze
        migration_undo.undo_move(other, move_of(other), MOVE, lambda phase: None)

    at_the_last_moment(monkeypatch, group_moving, "plan", before=puts_back)
    with pytest.raises(GroupsDisplaced, match=f"{group}: it was put back"):
        failover_steps.move_step(flow.opened, PLANNED)
    assert committed(west, group) == {} and flow.opened.ledger.of_kind(GroupMove) == []


def test_a_failovers_undo_says_that_a_cut_over_has_moved_its_groups_meanwhile(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes no lease: it may have slept since before the failover."""
    group = a_group()
    flow = ready(east, west, tmp_path, group)
    fail_over(flow.opened, PLANNED)
    slept = partial(commit, west, group, {(flow.remote_topic, 0): 4})
    at_the_last_moment(monkeypatch, failover_undo, "put_back", after=slept)
    with pytest.raises(GroupsDisplaced, match=f"{group} in {flow.remote_topic}-0: it was moved again meanwhile"):
        undo_failover(flow.opened, PLANNED)
    undo_failover(flow.opened, PLANNED)
    assert owners_now(flow.opened).whole is None and committed(west, group) == {(flow.remote_topic, 0): 4}


def test_a_migration_is_not_undone_that_a_failover_has_overtaken(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flow is frozen after the undo has looked at it: it leaves the groups that the failover moves."""
    group = a_group()
    flow = migrating(east, west, tmp_path, group, "mirror", "cut_over_consumers")
    stood = committed(west, group)
    with monkeypatch.context() as patched:
        at_the_last_moment(
            patched, migration_undo, "undo_plan", after=lambda: freeze(elsewhere(flow.opened, tmp_path), (), **WHY)
        )
        with pytest.raises(CannotUndo, match="the whole flow is frozen"):
            migration_undo.undo_move(flow.opened, move_of(flow.opened), MOVE, lambda phase: None)
    assert committed(west, group) == stood == {(flow.remote_topic, 0): 20}


def gone_over(east: Broker, west: Broker, directory: Path) -> Both:
    """Failed over, written and read on west, returned and its groups moved back: all but the last step of the failback."""
    both = forward_and_reverse(east, west, directory, partitions=1)
    write(east, both.topic, 0, 10, 1)
    read_with_group(east, both.group, both.topic, {0: 5})
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    write(west, both.remote, 100, 6, 1)
    read_with_group(west, both.group, both.remote, {0: 8})
    failback_steps.return_step(both.pair, ORDER)
    both.window(both.reverse)
    for step in (failback_steps.drain_step, failback_steps.end_step):
        step(both.pair, ORDER)
    return both


def test_no_group_is_moved_back_after_another_failback_has_finished(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finishes between a look at the groups and the leases: applications may be at work on the source by then."""
    both = gone_over(sides.east, sides.west, tmp_path)
    positions_of = failback_steps._positions

    def finishes() -> None:
        monkeypatch.setattr(failback_steps, "_positions", positions_of)
        failback_steps.move_step(both.pair, ORDER)
        failback_steps.unfreeze_step(both.pair, ORDER)

    at_the_last_moment(monkeypatch, failback_steps, "_positions", after=finishes)
    with pytest.raises(GroupsDisplaced, match=f"{both.remote}: its return was ended meanwhile"):
        failback_steps.move_step(both.pair, ORDER)
    assert failback_steps.move_step(both.pair, ORDER) == []


def test_a_failback_is_not_finished_over_groups_that_an_undo_has_put_back(sides: Sides, tmp_path: Path) -> None:
    """The undo broke off after that; the failback, approved before, is run again."""
    east, west = sides.east, sides.west
    both = gone_over(east, west, tmp_path)
    failback_steps.move_step(both.pair, ORDER)
    with killed_at(failback_undo, "give_up"):
        undo_failback(both.elsewhere(tmp_path).pair, FailbackOrder(**WHY))
    assert committed(east, both.group) == {(both.topic, 0): 5}
    with pytest.raises(GroupsNotBack, match=f"{both.group} in {both.topic}-0 is at 5"):
        failback_steps.unfreeze_step(both.pair, ORDER)
    assert owners_now(both.forward).frozen, "it stays frozen"
    failback_steps.move_step(both.pair, ORDER)
    failback_steps.unfreeze_step(both.pair, ORDER)
    assert not owners_now(both.forward).frozen and committed(east, both.group) != {(both.topic, 0): 5}


def test_the_undo_of_a_failback_puts_nothing_back_without_the_lease_of_both_flows(
    sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failback leases both, and has looked at its groups for the last time, while the undo sleeps between its two leases."""
    east, west = sides.east, sides.west
    both = gone_over(east, west, tmp_path)
    failback_steps.move_step(both.pair, ORDER)
    moved, other, overtakes = committed(east, both.group), both.elsewhere(tmp_path), failback_pair.overtaking
    leased = list[str]()

    def sleeps(opened: Opened, *given: Any) -> Any:
        leased.append(opened.flow.name)
        if len(leased) == 2:
            with killed_at(unfreezing, "write_forgotten"):
                failback_steps.unfreeze_step(other.pair, ORDER)
        return overtakes(opened, *given)

    monkeypatch.setattr(failback_pair, "overtaking", sleeps)
    with pytest.raises(SlotFenced):
        undo_failback(both.pair, FailbackOrder(**WHY))
    assert committed(east, both.group) == moved


def test_a_failback_that_an_undo_has_ended_is_not_said_to_be_done(sides: Sides, tmp_path: Path) -> None:
    """The failback has slept before its next step, whichever that is."""
    both = gone_over(sides.east, sides.west, tmp_path)
    undo_failback(both.elsewhere(tmp_path).pair, FailbackOrder(**WHY))
    steps = failback_steps.drain_step, failback_steps.end_step, failback_steps.move_step, failback_steps.unfreeze_step
    for step in steps:
        with pytest.raises(ReturnFirst, match=r"nothing of what is frozen returns .* --step return"):
            step(both.pair, ORDER)


@pytest.mark.parametrize("slept_until", ["put_back", "forget"])
def test_a_migration_is_not_undone_while_its_groups_are_cut_over_again(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slept_until: str
) -> None:
    """No lease is taken for that: the other one has slept until moves were forgotten, or until they were about to be."""
    group = a_group()
    flow = migrating(east, west, tmp_path, group, "mirror", "cut_over_consumers")
    other = elsewhere(flow.opened, tmp_path)
    with monkeypatch.context() as patched:
        if slept_until == "put_back":
            at_the_last_moment(patched, migration_undo, "put_back", after=lambda: takes(other, "cut_over_consumers"))
        else:
            at_the_last_moment(patched, group_moving, "forget", before=lambda: takes(other, "cut_over_consumers"))
        with pytest.raises(CannotUndo, match=f"{group} in {flow.remote_topic}-0: it was moved again meanwhile"):
            migration_undo.undo_move(flow.opened, move_of(flow.opened), MOVE, lambda phase: None)
    migration_undo.undo_move(flow.opened, move_of(flow.opened), MOVE, lambda phase: None)
    assert committed(west, group) == {} and flow.opened.ledger.of_kind(GroupMove) == []


def test_groups_that_are_cut_over_while_that_is_undone_go_back_to_where_they_stood(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cut-over sleeps before it moves them: the undo finds them where they stood, and forgets that they are to be moved."""
    group = a_group()
    flow = migrating(east, west, tmp_path, group, "mirror")
    other, write_them = elsewhere(flow.opened, tmp_path), group_moving.commit_offsets

    def sleeps(*given: Any) -> Any:
        monkeypatch.setattr(group_moving, "commit_offsets", write_them)
        migration_undo.undo_move(other, move_of(other), MOVE, lambda phase: None)
        return write_them(*given)

    monkeypatch.setattr(group_moving, "commit_offsets", sleeps)
    takes(flow.opened, "cut_over_consumers")
    assert committed(west, group) == {(flow.remote_topic, 0): 20}
    migration_undo.undo_move(flow.opened, move_of(flow.opened), MOVE, lambda phase: None)
    assert committed(west, group) == {} and flow.opened.ledger.of_kind(GroupMove) == []


def test_groups_that_were_cut_over_before_are_not_said_to_be_while_that_is_undone(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cut-over has looked, and finds nothing left to do."""
    group = a_group()
    flow = migrating(east, west, tmp_path, group, "mirror", "cut_over_consumers")
    other = elsewhere(flow.opened, tmp_path)

    def undoes() -> None:
        migration_undo.undo_move(other, move_of(other), MOVE, lambda phase: None)

    at_the_last_moment(monkeypatch, consumers, "remember_cut_over", before=undoes)
    with pytest.raises(GroupsNotMoved, match=f"{group} in {flow.topic}-0 at 20"):
        takes(flow.opened, "cut_over_consumers")
    assert committed(west, group) == {}


def test_a_cut_over_does_not_take_where_it_has_moved_groups_for_where_they_stood(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An undo has put them back before they were moved, and forgets that after it."""
    group, undone = a_group(), list[GroupMove]()
    flow, remembers = migrating(east, west, tmp_path, group, "mirror"), group_moving.remember_again

    def forgets(writer: MappingWriter, moves: Collection[GroupMove]) -> None:
        remembers(writer, moves)
        undone.extend(group_moving.moved(writer.journal).values())
        group_moving.forget(writer, undone)

    with monkeypatch.context() as patched:
        patched.setattr(group_moving, "remember_again", forgets)
        with pytest.raises(GroupsNotMoved):
            takes(flow.opened, "cut_over_consumers")
    with session(flow.opened) as journal, group_moving.unleased(journal, MOVE.window) as writer:
        remembers(writer, undone)  # as that undo does when it has looked
    migration_undo.undo_move(flow.opened, move_of(flow.opened), MOVE, lambda phase: None)
    assert committed(west, group) == {} and flow.opened.ledger.of_kind(GroupMove) == []


def killed_before_it_moved(east: Broker, west: Broker, directory: Path) -> tuple[Mirror, str]:
    """A flow whose cut-over has written that a group is cut over, which stood at 3 on the target before, and nothing more."""
    group = a_group()
    flow = migrating(east, west, directory, group, "mirror")
    commit(west, group, {(flow.remote_topic, 0): 3})
    with killed_at(consumers, "move_groups"):
        takes(flow.opened, "cut_over_consumers")
    return flow, group


def test_a_cut_over_that_is_killed_before_it_moves_groups_leaves_them_where_they_stood(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """It has written that they are cut over; they stood somewhere on the target before."""
    flow, group = killed_before_it_moved(east, west, tmp_path)
    migration_undo.undo_move(flow.opened, move_of(flow.opened), MOVE, lambda phase: None)
    assert committed(west, group) == {(flow.remote_topic, 0): 3} and flow.opened.ledger.of_kind(GroupMove) == []


def test_a_group_that_a_migration_was_about_to_move_stays_the_migrations(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """A failover moves it, and is undone: where it stood at the very first is known until the migration is undone."""
    flow, group = killed_before_it_moved(east, west, tmp_path)
    failed_over = with_groups(flow, group).opened
    fail_over(failed_over, PLANNED)
    undo_failover(failed_over, PLANNED)
    assert committed(west, group) == {(flow.remote_topic, 0): 20}
    migration_undo.undo_move(flow.opened, move_of(flow.opened), MOVE, lambda phase: None)
    assert committed(west, group) == {(flow.remote_topic, 0): 3} and flow.opened.ledger.of_kind(GroupMove) == []


def test_where_groups_stood_is_asked_by_their_names(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A coordinator that was just started lists none of its groups for a moment, and names no error."""
    group = a_group()
    flow = ready(east, west, tmp_path, group)
    commit(west, group, {(flow.remote_topic, 0): 3})
    with monkeypatch.context() as patched:
        patched.setattr(group_moving, "list_groups", lambda routes: {})
        fail_over(flow.opened, PLANNED)
    assert committed(west, group) == {(flow.remote_topic, 0): 5}
    undo_failover(flow.opened, PLANNED)
    assert committed(west, group) == {(flow.remote_topic, 0): 3}


def test_what_a_window_that_sleeps_would_commit_after_a_handback_is_fenced(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, numbered(10), partition=0)
    assert flow.run().is_verified
    name = transactional_id(flow.flow, 0)
    producer = Producer({"bootstrap.servers": west.bootstrap, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    into = create_topic(west, f"connect-offsets-{uuid.uuid4()}", 1)
    write_offsets(flow.opened, HandbackOrder(into=into, connector="m"))
    producer.begin_transaction()
    with pytest.raises(KafkaException):
        producer.produce(flow.remote_topic, b"late")
        producer.commit_transaction(30)


def test_what_returns_is_not_handed_back(sides: Sides, tmp_path: Path) -> None:
    east, west = sides.east, sides.west
    both = forward_and_reverse(east, west, tmp_path, partitions=1)
    write(east, both.topic, 0, 10, 1)
    both.window(both.forward)
    fail_over(both.forward, PLANNED)
    with pytest.raises(FlowFrozen):
        positions(both.forward)
    failback_steps.return_step(both.pair, ORDER)
    with pytest.raises(StillReturning, match=both.topic):
        positions(both.forward)
