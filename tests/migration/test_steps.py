"""A migration's steps on real clusters: consumers first, exact, nothing twice; refused where something is not as it must be."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airmirror.config import MoveGroup
from airmirror.flows import freezing
from airmirror.flows.freezing import owners_now
from airmirror.flows.holds import DecisionIncomplete
from airmirror.offsets.translation import Reason
from airmirror.runbooks import moving as group_moving
from airmirror.runbooks.draining import DrainStopped, NotDrained, SourceNotQuiet
from airmirror.runbooks.migration import producers
from airmirror.runbooks.migration.chosen import MoveGroupUnfit, NoSuchMove, chosen_move
from airmirror.runbooks.migration.consumers import GroupsHaveMembers, GroupsNotReady
from airmirror.runbooks.migration.order import MoveOrder, MoveStep
from airmirror.runbooks.migration.producers import ConsumersNotCutOver, MoveNotFinished, WrittenSinceFrozen
from airmirror.runbooks.migration.state import move_state
from airmirror.runbooks.migration.undo import undo_move
from airmirror.runbooks.moving import MappingWriter
from airmirror.wire.moves import GroupMove
from airmirror_local.brokers import Broker
from support.failovers import elsewhere
from support.faults import at_the_last_moment
from support.following import numbered
from support.groups import Protocol, a_group, commit, committed, member, read_with_group
from support.killing import killed_at
from support.migrations import IDENTITY, ORDER, mirrored, move_of, moving, takes
from support.post_window import reverse_of, sync
from support.topics import (
    Record,
    assert_mirrored,
    create_topic,
    delete_topic,
    end_offsets,
    open_transaction,
    produce,
    read_all,
)

FOUR: tuple[MoveStep, ...] = ("mirror", "check_groups", "cut_over_consumers", "cut_over_producers")


@pytest.mark.parametrize(
    ("protocol", "policy"),
    [("classic", ""), pytest.param("consumer", IDENTITY, marks=pytest.mark.long)],
)
def test_a_move_group_moves_and_the_rest_of_the_flow_resumes(
    east: Broker, west: Broker, tmp_path: Path, protocol: Protocol, policy: str
) -> None:
    """Every record once, in order; each read once by the group; and every step is taken twice."""
    settings = {"replication_policy_class": policy} if policy else {}
    flow, stays = moving(east, west, tmp_path, partitions=2, **settings)
    group, remote = a_group(), flow.topic if policy else flow.remote_topic
    produce(east, flow.topic, numbered(60), transactional="commit")
    produce(east, stays, numbered(20))
    read = read_with_group(east, group, flow.topic, {0: 11, 1: 12}, protocol=protocol)
    for _ in range(2):
        takes(flow.opened, "mirror")
        assert f"{group}: 2 positions, exact: 0 records are read again" in takes(flow.opened, "check_groups")[0]
    for _ in range(2):
        said = takes(flow.opened, "cut_over_consumers")
    assert "0 positions of 1 group written" in said[0] and f"  bootstrap.servers = {west.bootstrap}" in said
    rest = read_with_group(west, group, remote, protocol=protocol)
    produce(east, flow.topic, numbered(40, 60))
    written = []
    for _ in range(2):
        said = takes(flow.opened, "cut_over_producers")
        written.append(owners_now(flow.opened))
    assert said[1] == "start your producers on west:" and owners_now(flow.opened).frozen.keys() == {flow.topic}
    assert written[0] == written[1], "frozen once"
    assert assert_mirrored(east, flow.topic, west, remote) == 100
    after = read_with_group(west, group, remote, protocol=protocol)
    everything = read_all(east, flow.topic)
    for number in (0, 1):
        seen = [each.content for part in (read, rest, after) for each in part[number]]
        assert seen == [each.content for each in everything[number]], "each record once, in order"
    produce(west, remote, [Record(b"new")], partition=0)  # producers continue over there
    produce(east, stays, numbered(20, 20))
    result = flow.run()
    assert {row.topic for row in result.rows} == {stays} and result.is_verified
    assert assert_mirrored(east, stays, west, stays if policy else f"{flow.flow.source.alias}.{stays}") == 40
    for _ in range(2):
        said = takes(flow.opened, "finish")
    assert f", {flow.topic}; and take out {flow.flow.name}.move.shop" in said[1] and group in said[2]
    assert flow.opened.ledger.of_kind(GroupMove) == []


def test_a_reverse_flow_that_synchronises_groups_keeps_no_cut_over_back(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """Its consumers are at work on west; moved after them on east, they would count as not cut over. Set back there, they read
    again: no window of the flow moves them past that."""
    flow, group = mirrored(east, west, tmp_path)
    takes(flow.opened, "check_groups", "cut_over_consumers")
    commit(west, group, {(flow.remote_topic, 0): 5})
    assert [row.reason for row in sync(flow.opened, group)] == [Reason.CUT_OVER]
    with pytest.raises(ConsumersNotCutOver, match="or were set back on the target"):
        takes(flow.opened, "cut_over_producers")
    assert committed(west, group) == {(flow.remote_topic, 0): 5}
    commit(west, group, {(flow.remote_topic, 0): 25})
    sync(reverse_of(flow), group)
    takes(flow.opened, "cut_over_producers")
    assert owners_now(flow.opened).frozen.keys() == {flow.topic} and committed(east, group) == {(flow.topic, 0): 20}


@pytest.mark.long  # a further case of what is frozen, and of WrittenSinceFrozen
def test_an_empty_topic_is_frozen_too(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, stays = moving(east, west, tmp_path)
    produce(east, stays, numbered(5), partition=0)
    takes(flow.opened, "mirror", "check_groups", "cut_over_consumers", "cut_over_producers")
    assert owners_now(flow.opened).frozen.keys() == {flow.topic}
    produce(east, flow.topic, numbered(5), partition=0)
    flow.run()
    assert end_offsets(west, flow.remote_topic) == {0: 0}
    with pytest.raises(WrittenSinceFrozen, match=f"{flow.topic}-0: verified up to 0, the source ends at 5"):
        takes(flow.opened, "finish")


@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=pytest.mark.long)])
def test_a_group_with_members_is_named_and_not_cut_over(
    east: Broker, west: Broker, tmp_path: Path, protocol: Protocol
) -> None:
    flow, _ = moving(east, west, tmp_path)
    group = a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    read_with_group(east, group, flow.topic, {0: 10}, protocol=protocol)
    with (
        member(east, group, flow.topic, protocol),
        pytest.raises(GroupsHaveMembers, match=f"{group}: rdkafka at 127.0.0.1") as refused,
    ):
        takes(flow.opened, "cut_over_consumers")
    assert refused.value.transient and committed(west, group) == {}
    takes(flow.opened, "cut_over_consumers")
    assert committed(west, group) == {(flow.remote_topic, 0): 10}
    with member(west, group, flow.remote_topic, protocol):  # they consume there: again is no error (a marker counts)
        assert f"{group}: consumes, 21 offsets to read" in takes(flow.opened, "cut_over_consumers")
        state = move_state(flow.opened, move_of(flow.opened), ORDER)
        assert state.groups[0].there.is_active and state.next == "cut_over_producers" and state.behind == 0


def test_a_group_that_had_read_to_the_end_stays_cut_over_when_more_is_written(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """Its position is another offset by then: after the marker of the commit that lies between."""
    flow, _ = moving(east, west, tmp_path)
    group, remote = a_group(), flow.remote_topic
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 30})
    takes(flow.opened, "mirror", "cut_over_consumers")
    assert committed(west, group) == {(remote, 0): 30}
    produce(east, flow.topic, numbered(10, 30), partition=0)
    takes(flow.opened, "mirror", "check_groups", "cut_over_consumers")
    assert committed(west, group) == {(remote, 0): 30}, "not moved again"
    assert len(read_with_group(west, group, remote)[0]) == 10
    takes(flow.opened, "cut_over_consumers", "cut_over_producers")
    assert owners_now(flow.opened).frozen.keys() == {flow.topic}


def test_an_undo_while_producers_are_waited_for_freezes_nothing(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, _ = moving(east, west, tmp_path)
    group, real = a_group(), producers.prove_past
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 10})
    takes(flow.opened, "mirror", "cut_over_consumers")

    def undone_meanwhile(*given: Any) -> None:
        real(*given)
        undo_move(flow.opened, move_of(flow.opened), ORDER, lambda phase: None)

    monkeypatch.setattr(producers, "prove_past", undone_meanwhile)
    with pytest.raises(ConsumersNotCutOver):
        takes(flow.opened, "cut_over_producers")
    assert owners_now(flow.opened).frozen == {}


def test_consumers_on_the_target_that_were_not_cut_over_are_refused(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, group = mirrored(east, west, tmp_path, at=10)
    with member(west, group, flow.remote_topic), pytest.raises(GroupsNotReady, match="active on the target"):
        takes(flow.opened, "check_groups")
    commit(west, group, {(flow.remote_topic, 0): 25})
    with pytest.raises(GroupsNotReady, match="ahead on the target already"):
        takes(flow.opened, "cut_over_consumers")
    assert committed(west, group) == {(flow.remote_topic, 0): 25}


def test_producers_wait_for_their_consumers(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path)
    group = a_group()
    produce(east, flow.topic, numbered(30), partition=0)
    commit(east, group, {(flow.topic, 0): 10})
    with pytest.raises(ConsumersNotCutOver, match=f"{group} in {flow.topic}-0 at 10"):
        takes(flow.opened, "cut_over_producers")
    takes(flow.opened, "cut_over_consumers")
    commit(east, group, {(flow.topic, 0): 12})  # somebody has read on
    with pytest.raises(ConsumersNotCutOver, match=f"{group} in {flow.topic}-0 at 12"):
        takes(flow.opened, "cut_over_producers")
    takes(flow.opened, "cut_over_consumers", "cut_over_producers")
    assert committed(west, group) == {(flow.remote_topic, 0): 12}


def test_a_producer_that_continues_writing_is_named(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path)
    produce(east, flow.topic, numbered(10), partition=0)
    with (
        open_transaction(east, flow.topic, numbered(5), partition=0),
        pytest.raises(
            SourceNotQuiet, match=r"open transaction from offset 10 on, by producer \d+ of transactional id test"
        ),
    ):
        takes(flow.opened, "cut_over_producers")
    assert owners_now(flow.opened).frozen == {}


def test_what_is_written_at_the_last_moment_keeps_the_topics_open(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow, _ = moving(east, west, tmp_path)
    produce(east, flow.topic, numbered(10), partition=0)
    one = numbered(1, 10)
    at_the_last_moment(monkeypatch, producers, "prove_past", after=lambda: produce(east, flow.topic, one, partition=0))
    with pytest.raises(NotDrained, match=f"{flow.topic}-0: verified up to 10, the source ends at 11"):
        takes(flow.opened, "cut_over_producers")
    assert owners_now(flow.opened).frozen == {}
    monkeypatch.undo()
    more = numbered(3, 11)
    at_the_last_moment(
        monkeypatch, freezing, "commit_change", before=lambda: produce(east, flow.topic, more, partition=0)
    )
    with pytest.raises(WrittenSinceFrozen, match=f"{flow.topic}-0"):  # after the last look: it is frozen, and says so
        takes(flow.opened, "cut_over_producers")


def test_a_topic_that_was_made_again_is_not_mirrored(east: Broker, west: Broker, tmp_path: Path) -> None:
    """On either side: not all that was verified is there, or is what was verified."""
    flow, _ = mirrored(east, west, tmp_path, at=10)
    delete_topic(west, flow.remote_topic)
    for _ in range(2):  # the first one makes it anew, empty
        with pytest.raises(DrainStopped, match="30 was committed"):
            takes(flow.opened, "mirror")
    delete_topic(east, flow.topic)
    produce(east, create_topic(east, flow.topic), numbered(5), partition=0)
    with pytest.raises(DrainStopped, match="the topic was deleted and created again"):
        takes(flow.opened, "mirror")


def test_groups_that_would_read_again_or_skip_are_refused(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, group = mirrored(east, west, tmp_path, at=10)
    commit(east, group, {(flow.topic, 0): 40})
    with pytest.raises(GroupsNotReady, match=rf"{group} in {flow.topic}-0 at 40: position beyond the log end"):
        takes(flow.opened, "check_groups")


def test_what_can_not_be_asked_for(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path, groups="")
    with pytest.raises(NoSuchMove, match="no move group 'shelf', but shop"):
        chosen_move(flow.opened, "shelf")
    with pytest.raises(DecisionIncomplete, match="a reason"):
        takes(flow.opened, "mirror", order=replace(ORDER, reason=" "))
    with pytest.raises(MoveNotFinished, match="not cut over"):
        takes(flow.opened, "finish")
    group = a_group()
    commit(east, group, {(flow.topic, 0): 0})
    assert move_of(flow.opened).groups == (), "none is configured, and nothing is discovered then"
    nothing, _ = moving(east, west, tmp_path, move_shop_topics="no-such-topic")
    with pytest.raises(MoveGroupUnfit, match="replicates none of no-such-topic"):
        chosen_move(nothing.opened, "shop")


def test_a_soak_is_waited_for(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow, _ = moving(east, west, tmp_path, move_soak_ms="3600000")
    produce(east, flow.topic, numbered(10), partition=0)
    takes(flow.opened, "cut_over_producers")
    with pytest.raises(MoveNotFinished, match=r"move.soak.ms ends at"):
        takes(flow.opened, "finish")


Place = tuple[MoveStep, object, str, tuple[bool, ...]]  # the last: killed before it (False), and after it
PLACES: tuple[Place, ...] = (
    ("cut_over_consumers", MappingWriter, "write", (False, True)),
    ("cut_over_consumers", group_moving, "commit_offsets", (False, True)),
    ("cut_over_producers", freezing, "commit_change", (False, True)),
)


@pytest.mark.long  # tests/runbooks/test_run.py kills at each step of any runbook; above each step is taken twice
def test_killed_at_each_step_and_run_again(east: Broker, west: Broker, tmp_path: Path) -> None:
    """Each time by a ledger that has seen nothing, as another Airflow would; in the end as if nothing had happened."""
    flow, group = mirrored(east, west, tmp_path)
    commit(west, group, {(flow.remote_topic, 0): 4})

    for step, place, name, times in PLACES:
        for after in times:
            with killed_at(place, name, after=after):
                takes(elsewhere(flow.opened, tmp_path), step)
        if name != "write":
            takes(elsewhere(flow.opened, tmp_path), step)
    first, last = owners_now(flow.opened), elsewhere(flow.opened, tmp_path)
    takes(last, "cut_over_producers")
    assert first.frozen.keys() == {flow.topic} and last.ledger.owners() == first, "frozen once"
    assert [each.before for each in last.ledger.of_kind(GroupMove) if not each.is_mark] == [4], (
        "where it stood at the very first"
    )
    assert committed(west, group) == {(flow.remote_topic, 0): 20} and flow.assert_equal() == 30
    assert takes(last, "finish")


def test_a_second_move_group_moves_after_the_first(east: Broker, west: Broker, tmp_path: Path) -> None:
    """The first one's frozen topics are no concern of the second."""
    flow, stays = moving(east, west, tmp_path)
    moves = (*flow.flow.moves, MoveGroup("rest", (".*",)))  # what two name is the first one's
    flow = replace(flow, opened=replace(flow.opened, flow=replace(flow.flow, moves=moves)))
    for topic in (flow.topic, stays):
        produce(east, topic, numbered(10), partition=0)
    takes(flow.opened, *FOUR)
    assert chosen_move(flow.opened, "rest").names.keys() == {stays}
    takes(flow.opened, *FOUR, order=MoveOrder(move="rest", reason="moving day", by="ada", wait=0.0))
    assert owners_now(flow.opened).frozen.keys() == {flow.topic, stays} and flow.assert_equal() == 10
