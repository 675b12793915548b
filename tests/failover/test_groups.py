"""The groups of a failover: of every kind, and where they stand when only others have seen them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.groups import list_every_group
from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import catch_up_ledger
from airmirror.offsets.groups import sync_group_offsets
from airmirror.offsets.positions import held_back
from airmirror.offsets.translation import Reason
from airmirror.runbooks.failover.findings import kinds_finding
from airmirror.runbooks.failover.groups import maybe_streams, rows_as_last_seen
from airmirror.runbooks.failover.plan import failover_plan
from airmirror.runbooks.failover.shown import outcome_of, shown_outcome
from airmirror.runbooks.failover.steps import GroupsNotExact
from airmirror.runbooks.moving import GroupsActive
from airmirror.windows.mirror import Journal
from airmirror.wire.checkpoints import Checkpoint
from airmirror_local.brokers import Broker
from support.failovers import (
    DISASTER,
    PLANNED,
    elsewhere,
    fail_over,
    windowed,
    with_a_group,
    with_groups,
    without_source,
)
from support.flows import Mirror, mirror
from support.following import numbered
from support.groups import commit, committed, member
from support.streams_groups import streams_group
from support.topics import create_topic, produce

KINDS = "groups of every kind are followed"
EXACT = "consumer groups resume at the very next record"


def setting(flow: Mirror, **settings: object) -> Mirror:
    changed = replace(flow.flow, settings=replace(flow.flow.settings, **settings))  # type: ignore[arg-type]
    return replace(flow, opened=replace(flow.opened, flow=changed))


def kind_on(flow: Mirror, group: str) -> str:
    with Routes(flow.flow.target, "test") as routes:
        return next((each.kind for each in list_every_group(routes) if each.name == group), "")


def test_a_streams_group_is_followed_and_never_made_on_a_target_that_it_would_break(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """Kafka 4.2.0 can't load a streams group whose positions came before its topology (KAFKA-20254)."""
    application = topic("application")
    flow = with_groups(mirror(east, west, tmp_path), application)
    produce(east, flow.topic, numbered(30), partition=0)
    streams_group(east, application, flow.topic)
    commit(east, application, {(flow.topic, 0): 20})
    windowed(flow)
    (row,) = sync_group_offsets(flow.flow, flow.opened.ledger)
    assert (row.position, row.reason) == (20, Reason.STREAMS_AHEAD)
    found = {each.what: each for each in failover_plan(flow.opened).findings}
    assert found[EXACT].level == "stop" and "streams.groups.ahead.allowed" in found[EXACT].evidence
    assert (found[KINDS].level, found[KINDS].evidence) == ("ok", "1 streams")
    with pytest.raises(GroupsNotExact, match="KAFKA-20254"):
        fail_over(flow.opened, PLANNED)
    assert not owners_now(flow.opened).frozen and not committed(west, application) and not kind_on(flow, application)
    # Where the source is gone the ledger knows what the group was; a ledger that does not, goes by streams.applications.
    gone = without_source(flow.opened)
    assert {each.reason for each in failover_plan(gone).groups} == {Reason.STREAMS_AHEAD}
    allowed = setting(flow, streams_groups_ahead_allowed=True)
    assert [(each.translation, each.reason) for each in failover_plan(allowed.opened).groups] == [(20, "")]
    streams_group(west, application, flow.remote_topic)  # it has run there before: nothing is made
    made = outcome_of(flow.opened, PLANNED, *fail_over(flow.opened, PLANNED))
    assert made.is_good and committed(west, application) == {(flow.remote_topic, 0): 20}, made
    assert kind_on(flow, application) == "streams" and shown_outcome(made).rows("kinds") == [
        {"kind": "streams", "group": application}
    ]


def test_after_a_disaster_the_newer_position_counts_not_the_further_one(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """The standby's ledger saw the group on Monday; since then people let it read again, as the deployment at work knows."""
    group = topic("group")
    flow = with_groups(mirror(east, west, tmp_path), group)
    standby = replace(flow, opened=elsewhere(flow.opened, tmp_path))
    produce(east, flow.topic, numbered(100), partition=0)
    commit(east, group, {(flow.topic, 0): 90})
    windowed(standby)
    commit(east, group, {(flow.topic, 0): 10})
    windowed(flow)
    unknown = replace(flow, opened=elsewhere(flow.opened, tmp_path / "..")).opened
    catch_up_ledger(unknown)
    named = setting(flow, streams_applications=(group,)).flow
    with Journal.open(named, unknown.ledger, "test") as journal:
        rows, _ = rows_as_last_seen(journal)
        assert [row.committed.offset for row in rows] == [10], "by checkpoints alone"
        assert [row.found for row in held_back(journal, rows)] == [Reason.STREAMS_AHEAD], "it may be a streams group"
        assert maybe_streams(journal, rows) == []
    with Journal.open(flow.flow, unknown.ledger, "test") as journal:
        assert maybe_streams(journal, rows) == [group], "as far as anybody knows"
    fail_over(without_source(standby.opened), DISASTER)
    assert committed(west, group) == {(flow.remote_topic, 0): 10}, "80 records would be skipped"
    fail_over(without_source(standby.opened), DISASTER)  # done again, nothing moves
    assert committed(west, group) == {(flow.remote_topic, 0): 10}


def test_a_group_that_was_rewound_on_the_source_keeps_a_planned_failover_back(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """It is not moved back on the target, and would skip what it is to read again."""
    flow, group = with_a_group(east, west, tmp_path)
    commit(west, group, {(flow.remote_topic, 0): 25})
    with pytest.raises(GroupsNotExact, match=f"{group} in {flow.topic}-0 at 20: {Reason.AHEAD}"):
        fail_over(flow.opened, PLANNED)
    assert owners_now(flow.opened).frozen == {}
    _, (left,), _ = fail_over(flow.opened, replace(PLANNED, inexact=True))
    assert left.reason == Reason.AHEAD and committed(west, group) == {(flow.remote_topic, 0): 25}


def test_a_disaster_moves_a_group_in_topics_that_came_from_the_target_and_leaves_out_who_is_excluded(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """Active/active. The one that is excluded has members on the target."""
    group, out = topic("group"), topic("out")
    flow, own = with_groups(mirror(east, west, tmp_path), group, out), create_topic(west, topic("stock"))
    produce(east, flow.topic, numbered(30), partition=0)
    produce(west, own, numbered(30), partition=0)
    for name in (group, out):
        commit(east, name, {(flow.topic, 0): 20})
    windowed(flow)
    told = Checkpoint(group, own, 0, upstream=12, downstream=10)  # as the flow writes them of west.stock on the source
    with Appender(flow.flow.target, f"{flow.flow.source.alias}.checkpoints.internal") as appender:
        appender.append([(told.encode_key(), told.encode_value())])
    gone = without_source(flow.opened)
    with member(west, out, flow.remote_topic):
        with pytest.raises(GroupsActive, match=r"(?s)groups\.exclude.*" + out):
            fail_over(gone, DISASTER)
        fail_over(setting(replace(flow, opened=gone), groups_exclude=(out,)).opened, DISASTER)
    assert committed(west, group) == {(flow.remote_topic, 0): 20, (own, 0): 10} and committed(west, out) == {}


def test_kinds_that_are_not_followed_are_named() -> None:
    found = kinds_finding({"classic": ["a", "b"], "share": ["queue"], "connect": ["workers"]})
    assert found.level == "warn" and "share group queue" in found.evidence and "connect group workers" in found.evidence
    assert "kafka-share-groups.sh" in found.way_out and "airmirror translate" in found.way_out
    assert kinds_finding({"classic": ["a"], "streams": ["b"]}).evidence == "1 classic, 1 streams"
    assert kinds_finding({"classic": ["a"]}, "it burns").level == "warn", "nobody knows of share groups"
    maybe = kinds_finding({}, "it burns", ["counts"])
    assert "checkpoints tell of counts" in maybe.evidence and "KAFKA-20254" in maybe.evidence and maybe.way_out
