"""A migration that is taken back at each of its steps: the old state, positions to the record; or a reason why it can't be."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from airmirror.clusters.protocol import stable
from airmirror.clusters.protocol.stable import OffsetsHeld
from airmirror.flows.freezing import owners_now
from airmirror.runbooks import moving as group_moving
from airmirror.runbooks.errors import CannotUndo
from airmirror.runbooks.migration import undo as undoing
from airmirror.runbooks.migration.undo import UndoneMove, undo_move, undo_plan
from airmirror.runbooks.moving import MappingWriter
from airmirror.wire.moves import GroupMove
from airmirror_local.brokers import Broker
from support.failovers import elsewhere
from support.following import numbered
from support.groups import Protocol, a_group, commit, committed, forget_group, held, member, notes, read_with_group
from support.hostile import delete_records
from support.killing import killed_at
from support.migrations import ORDER, mirrored, move_of, moving, takes
from support.streams_groups import streams_group
from support.topics import Record, await_settled, delete_topic, end_offsets, open_transaction, produce, read_all
from support.waiting import BUSY


def undone(opened: object) -> UndoneMove:
    return undo_move(opened, move_of(opened), ORDER, lambda phase: None)  # type: ignore[arg-type]


def test_nothing_to_undo_is_no_error(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path)
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "mirror", "check_groups")
    assert undone(flow.opened).lines == []


def test_groups_go_back_to_where_they_stood(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path)
    group, new = a_group(), a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    for name in (group, new):
        commit(east, name, {(flow.topic, 0): 20})
    takes(flow.opened, "mirror")
    commit(west, group, {(flow.remote_topic, 0): 4})
    takes(flow.opened, "cut_over_consumers")
    found = undo_plan(flow.opened, move_of(flow.opened), ORDER)
    assert {each.move.before for each in found.back.groups if not each.move.is_mark} == {4, -1} and not found.reasons
    assert committed(west, group) == {(flow.remote_topic, 0): 20}, "a plan writes nothing"
    begun = time.monotonic()
    undone(flow.opened)
    assert time.monotonic() - begun < BUSY * 10
    assert committed(west, group) == {(flow.remote_topic, 0): 4} and committed(west, new) == {}
    assert committed(east, group) == {(flow.topic, 0): 20} and flow.opened.ledger.of_kind(GroupMove) == []
    takes(flow.opened, "cut_over_consumers")
    assert committed(west, group) == {(flow.remote_topic, 0): 20}


def test_a_group_that_came_after_an_earlier_cut_over_keeps_what_it_had_there(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """The undo takes nothing of it for new, but what it has committed since it was cut over itself (seed 192)."""
    flow, _ = moving(east, west, tmp_path, partitions=3)
    first, later, topic, remote = a_group(), a_group(), flow.topic, flow.remote_topic
    produce(east, topic, numbered(90))
    commit(east, first, {(topic, 0): 7})
    takes(flow.opened, "mirror", "cut_over_consumers")
    commit(east, later, {(topic, 0): 2})
    stood = {(remote, 0): 4, (remote, 1): 3}
    commit(west, later, stood)
    undone(flow.opened)
    assert (committed(west, later), committed(east, later)) == (stood, {(topic, 0): 2})
    assert (committed(west, first), committed(east, first)) == ({}, {(topic, 0): 7})
    forget_group(east, later)
    takes(flow.opened, "cut_over_consumers")
    commit(east, later, {(topic, 0): 5})
    takes(flow.opened, "cut_over_consumers")
    assert committed(west, later) == stood | {(remote, 0): 5}
    commit(west, later, {(remote, 2): 6})
    undone(flow.opened)
    assert (committed(west, later), committed(east, later)) == (stood, {(topic, 0): 5, (topic, 2): 6})


@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=pytest.mark.long)])
def test_a_group_that_has_read_on_goes_back_to_the_very_next_record(
    east: Broker, west: Broker, tmp_path: Path, protocol: Protocol
) -> None:
    """Transactions' markers lie elsewhere on both sides. Over all, every record is read once, in order."""
    flow, _ = moving(east, west, tmp_path, partitions=2)
    group = a_group()
    for begin in (0, 40, 80):
        produce(east, flow.topic, numbered(40, begin), transactional="commit" if begin != 40 else "abort")
    first = read_with_group(east, group, flow.topic, {0: 7, 1: 9}, protocol=protocol)
    takes(flow.opened, "mirror", "cut_over_consumers")
    second = read_with_group(west, group, flow.remote_topic, {0: 13, 1: 5}, protocol=protocol)
    with (
        member(west, group, flow.remote_topic, protocol),
        pytest.raises(CannotUndo, match=f"on west: {group}: rdkafka"),
    ):
        undone(flow.opened)
    undone(flow.opened)
    third = read_with_group(east, group, flow.topic, {0: 3, 1: 3}, protocol=protocol)
    takes(flow.opened, "cut_over_consumers")
    rest = read_with_group(west, group, flow.remote_topic, protocol=protocol)
    everything = read_all(east, flow.topic)
    for number in (0, 1):
        seen = [each.content for part in (first, second, third, rest) for each in part[number]]
        assert seen == [each.content for each in everything[number]], "each record once, in order"


def test_a_group_whose_position_was_synchronised_goes_back_too(east: Broker, west: Broker, tmp_path: Path) -> None:
    """It stood where it was to go already, and has read on since."""
    flow, group = mirrored(east, west, tmp_path)
    commit(west, group, {(flow.remote_topic, 0): 20})
    takes(flow.opened, "cut_over_consumers")
    read_with_group(west, group, flow.remote_topic, {0: 5})
    undone(flow.opened)
    assert committed(east, group) == {(flow.topic, 0): 25} and committed(west, group) == {(flow.remote_topic, 0): 20}


def test_an_undo_moves_no_group_back_on_the_source(east: Broker, west: Broker, tmp_path: Path) -> None:
    """A synchronisation that slept writes where the group stood long ago."""
    flow, group = mirrored(east, west, tmp_path)
    takes(flow.opened, "cut_over_consumers")
    commit(west, group, {(flow.remote_topic, 0): 3})
    undone(flow.opened)
    assert committed(east, group) == {(flow.topic, 0): 20} and committed(west, group) == {}


def test_positions_that_the_source_does_not_have_go_back_too(east: Broker, west: Broker, tmp_path: Path) -> None:
    """First committed over there, or expired here; with their metadata. What stood there before stays."""
    group, other, new = a_group(), a_group(), a_group()
    flow, stays = moving(east, west, tmp_path, partitions=3, groups=f"{group}, {other}, {new}")
    topic, remote = flow.topic, flow.remote_topic
    produce(east, topic, numbered(90), transactional="commit")
    ends = await_settled(east, topic)
    commit(east, group, {(topic, 0): 7}, "note 0")
    commit(east, other, {(topic, 0): 5}, "kept")
    commit(east, new, {(stays, 0): 0})
    takes(flow.opened, "mirror")
    commit(west, group, {(remote, 2): 4}, "before")
    takes(flow.opened, "cut_over_consumers")
    assert notes(west, group) == {(remote, 0): "note 0", (remote, 2): "before"}
    commit(west, group, {(remote, 0): 9}, "note 1")
    commit(west, group, {(remote, 1): 6}, "note 2")
    commit(west, new, {(remote, 1): end_offsets(west, remote)[1]})
    forget_group(east, other)
    takes(flow.opened, "cut_over_consumers")
    said = "\n".join(undo_plan(flow.opened, move_of(flow.opened), ORDER).lines)
    assert f"{group} in {remote}-1: from 6 to nowhere; it has read on there, and resumes in {topic}-1 at 6" in said
    assert f"its position has expired on the source: it resumes in {topic}-0 at 5" in said
    undone(flow.opened)
    assert committed(east, group) == {(topic, 0): 9, (topic, 1): 6}
    assert notes(east, group) == {(topic, 0): "note 1", (topic, 1): "note 2"}
    assert committed(east, other) == {(topic, 0): 5} and notes(east, other) == {(topic, 0): "kept"}
    assert committed(east, new) == {(topic, 1): ends[1], (stays, 0): 0}
    assert committed(west, group) == {(remote, 2): 4} and notes(west, group) == {(remote, 2): "before"}
    assert committed(west, other) == committed(west, new) == {} and flow.opened.ledger.of_kind(GroupMove) == []


def test_a_remote_topic_that_is_gone_keeps_no_undo_from_its_end(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Nothing can stand there as it did before, and no right changes that."""
    flow, group = mirrored(east, west, tmp_path)
    commit(west, group, {(flow.remote_topic, 0): 4})
    takes(flow.opened, "cut_over_consumers")
    delete_topic(west, flow.remote_topic)
    undone(flow.opened)
    assert committed(east, group) == {(flow.topic, 0): 20} and committed(west, group) == {}
    assert flow.opened.ledger.of_kind(GroupMove) == []


def test_what_can_not_be_carried_back_is_named_first(east: Broker, west: Broker, tmp_path: Path) -> None:
    """The source has deleted what a group would read next there."""
    flow, _ = moving(east, west, tmp_path)
    group = a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 10})
    takes(flow.opened, "cut_over_consumers")
    commit(west, group, {(flow.remote_topic, 0): 15})
    delete_records(east, flow.topic, 20)
    with pytest.raises(CannotUndo, match=f"{group} in {flow.remote_topic}-0 at 15: .* deleted on the source"):
        undone(flow.opened)
    assert committed(east, group) == {(flow.topic, 0): 10} and committed(west, group) == {(flow.remote_topic, 0): 15}


def test_groups_that_consume_on_the_source_again_are_named_first(east: Broker, west: Broker, tmp_path: Path) -> None:
    """What they commit there would be written over what goes back."""
    flow, _ = moving(east, west, tmp_path)
    group = a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 10})
    takes(flow.opened, "cut_over_consumers")
    commit(west, group, {(flow.remote_topic, 0): 15})
    with (
        member(east, group, flow.topic),
        pytest.raises(CannotUndo, match=f"on {flow.flow.source.alias}: {group}: rdkafka"),
    ):
        undone(flow.opened)
    assert committed(east, group) == {(flow.topic, 0): 10} and committed(west, group) == {(flow.remote_topic, 0): 15}


@pytest.mark.long  # tests/failback/test_return.py has a group that is held
def test_a_position_that_a_transaction_holds_is_waited_for(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, group = mirrored(east, west, tmp_path, at=10)
    monkeypatch.setattr(stable, "STABLE_SECONDS", 0.2)
    with (
        held(east, group, {(flow.topic, 0): 12}, group),
        pytest.raises(OffsetsHeld, match=f"{group} in {flow.topic}-0"),
    ):
        takes(flow.opened, "cut_over_consumers")
    monkeypatch.setattr(stable, "STABLE_SECONDS", 30.0)
    takes(flow.opened, "cut_over_consumers")
    assert committed(west, group) == {(flow.remote_topic, 0): 12}
    monkeypatch.setattr(stable, "STABLE_SECONDS", 0.2)
    with held(west, group, {(flow.remote_topic, 0): 14}, group), pytest.raises(OffsetsHeld):
        undone(flow.opened)
    monkeypatch.setattr(stable, "STABLE_SECONDS", 30.0)
    undone(flow.opened)
    assert committed(east, group) == {(flow.topic, 0): 14} and committed(west, group) == {}


def test_topics_are_opened_while_nobody_has_written_there(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path)
    group = a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    takes(flow.opened, "cut_over_consumers", "cut_over_producers")
    read_with_group(west, group, flow.remote_topic)
    undone(flow.opened)
    assert owners_now(flow.opened).frozen == {} and committed(east, group) == {(flow.topic, 0): 30}
    produce(east, flow.topic, numbered(10, 30), partition=0)
    assert flow.run().is_verified and flow.assert_equal() == 40


def test_it_is_too_late_once_producers_have_written_there(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path)
    group = a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    takes(flow.opened, "cut_over_consumers", "cut_over_producers")
    produce(west, flow.remote_topic, [Record(b"new")] * 3, partition=0)
    with pytest.raises(CannotUndo, match=f"{flow.remote_topic}-0: 3 records were written there"):
        undone(flow.opened)
    assert owners_now(flow.opened).frozen.keys() == {flow.topic}
    assert committed(west, group) == {(flow.remote_topic, 0): 20}


def test_what_is_written_there_while_topics_are_open_is_found(east: Broker, west: Broker, tmp_path: Path) -> None:
    """By whoever started with the consumers; not what a window of the flow has under way."""
    flow, _ = moving(east, west, tmp_path)
    group, alias = a_group(), flow.flow.source.alias
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    takes(flow.opened, "cut_over_consumers")
    own = Producer(
        {"bootstrap.servers": west.bootstrap, "transactional.id": f"airmirror.{alias}.{flow.flow.target.alias}.7"}
    )
    own.init_transactions(30)
    own.begin_transaction()
    own.produce(flow.remote_topic, b"under way")
    own.flush(30)
    assert undo_plan(flow.opened, move_of(flow.opened), ORDER).reasons == ()
    own.abort_transaction(30)
    with open_transaction(west, flow.remote_topic, [Record(b"new")], partition=0):
        [open_, freeze] = undo_plan(flow.opened, move_of(flow.opened), ORDER).reasons
        assert "a transaction is open" in open_ and f"--topic {flow.topic}" in freeze
    produce(west, flow.remote_topic, [Record(b"new")] * 3, partition=0)
    with pytest.raises(CannotUndo, match=f"{flow.remote_topic}-0: 3 records were written there"):
        undone(flow.opened)
    assert committed(west, group) == {(flow.remote_topic, 0): 20}


@pytest.mark.long  # above it is too late already; tests/failback/test_return.py has who writes at the end
def test_what_is_written_at_the_last_moment_keeps_topics_frozen(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, _ = moving(east, west, tmp_path)
    group, real = a_group(), undoing.unfreeze
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    takes(flow.opened, "cut_over_consumers", "cut_over_producers")

    def written_meanwhile(*given: Any, **named: Any) -> None:
        produce(west, flow.remote_topic, [Record(b"new")] * 3, partition=0)
        real(*given, **named)

    monkeypatch.setattr(undoing, "unfreeze", written_meanwhile)
    with pytest.raises(CannotUndo, match=f"{flow.remote_topic}-0: 3 records were written there"):
        undone(flow.opened)
    assert owners_now(flow.opened).frozen.keys() == {flow.topic}
    assert committed(west, group) == {(flow.remote_topic, 0): 20}


@pytest.mark.long  # tests/runbooks/test_run.py kills any undo; tests/failback/test_undo.py that of a failback
def test_an_undo_that_is_killed_is_done_again(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path)
    group = a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 20})
    takes(flow.opened, "cut_over_consumers", "cut_over_producers")
    read_with_group(west, group, flow.remote_topic, {0: 5})
    places = (
        (undoing, "unfreeze"),
        (undoing, "commit_offsets"),
        (group_moving, "delete_offsets"),
        (MappingWriter, "write"),
    )
    for place, name in places:
        for after in (False, True):
            with killed_at(place, name, after=after):
                undone(elsewhere(flow.opened, tmp_path))
    undone(elsewhere(flow.opened, tmp_path))
    assert committed(east, group) == {(flow.topic, 0): 25} and committed(west, group) == {}
    assert owners_now(flow.opened).frozen == {}


@pytest.mark.long  # tests/migration/test_streams_groups.py has who is named, without brokers
def test_a_streams_group_that_the_source_has_forgotten_is_not_made_there(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """Kafka 4.2.0 can't load a streams group whose positions came before its topology (KAFKA-20254)."""
    flow, group = mirrored(east, west, tmp_path)
    streams_group(west, group, flow.remote_topic)
    takes(flow.opened, "cut_over_consumers")
    commit(west, group, {(flow.remote_topic, 0): 25})
    forget_group(east, group)
    with pytest.raises(CannotUndo, match=f"{group} in {flow.remote_topic}-0: .*KAFKA-20254"):
        undone(flow.opened)
    assert committed(east, group) == {} and committed(west, group) == {(flow.remote_topic, 0): 25}
    streams_group(east, group, flow.topic)  # its application was started there once
    undone(flow.opened)
    assert committed(east, group) == {(flow.topic, 0): 25} and committed(west, group) == {}
