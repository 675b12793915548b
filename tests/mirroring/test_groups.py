"""Scenarios of Cluster Mirroring (KIP-1279): groups that are filtered, active, or of a kind that is not followed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import ShareConsumer

from airmirror.clusters.protocol.groups import list_every_group
from airmirror.clusters.protocol.routes import Routes
from airmirror.flows.freezing import freeze
from airmirror.flows.prepare import caught_up
from airmirror.offsets.checkpoints import emit_checkpoints
from airmirror.offsets.groups import sync_group_offsets
from airmirror.offsets.translation import Reason
from airmirror.runbooks.failover.plan import FailoverPlan, failover_plan
from airmirror.runbooks.failover.shown import outcome_of
from airmirror_local.brokers import Broker
from support.failovers import PLANNED, fail_over, windowed, with_groups
from support.flows import mirror
from support.following import numbered, patiently
from support.groups import commit, committed, member
from support.post_window import checkpoints_on, sync
from support.topics import create_topic, produce

pytestmark = pytest.mark.long


def test_groups_are_filtered(east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]) -> None:
    """Scenario: of three groups one is included, one excluded and one not named; positions and checkpoints are of the first."""
    mark = topic("g")
    first, second, internal = (f"{mark}-{name}" for name in ("app-1", "app-2", "internal"))
    flow = mirror(east, west, tmp_path, settings={"groups": f"{mark}-app-.*", "groups.exclude": second})
    produce(east, flow.topic, numbered(3), partition=0)
    assert flow.run().is_verified
    for group in (first, second, internal):
        commit(east, group, {(flow.topic, 0): 2})
    opened = caught_up(flow.opened)
    emit_checkpoints(opened.flow, opened.ledger, window="checkpoints")
    sync_group_offsets(opened.flow, opened.ledger)
    found = {group: committed(west, group) for group in (first, second, internal)}
    assert found == {first: {(flow.remote_topic, 0): 2}, second: {}, internal: {}}
    assert {each.group for each in checkpoints_on(flow)} == {first}


def test_a_group_is_moved_while_it_is_idle_and_the_flow_runs(
    east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]
) -> None:
    """Scenario: an idle group is moved, in the topics of the flow alone; an active one is not, until its members have gone; and
    none once the flow is stopped."""
    group, flow = topic("group"), mirror(east, west, tmp_path)
    other, elsewhere = create_topic(east, topic("other")), create_topic(west, topic("elsewhere"))
    produce(east, flow.topic, numbered(3), partition=0)
    assert flow.run().is_verified

    def moved(position: int) -> tuple[str, int]:
        """Why the group is not moved after it has committed, and where it is on the target."""
        commit(east, group, {(flow.topic, 0): position, (other, 0): 0})
        reasons = {row.topic: row.reason for row in sync(flow.opened, group)}
        assert reasons.pop(other) == Reason.NOT_REPLICATED
        ((where, at),) = committed(west, group).items()
        assert where == (flow.remote_topic, 0)
        return reasons[flow.topic], at

    assert moved(1) == ("", 1)
    with member(west, group, elsewhere):
        assert moved(2) == (Reason.ACTIVE, 1)
    assert moved(2) == ("", 2)
    freeze(flow.opened, (), reason="it stops", by="ada")
    assert moved(3) == (Reason.FROZEN, 2)


def test_share_groups_are_named(east: Broker, west: Broker, tmp_path: Path, topic: Callable[[str], str]) -> None:
    """Scenario: a share group reads the topic. It is not followed: the plan and the outcome of a failover name it, and say what
    to do."""
    group = topic("share")
    flow = with_groups(mirror(east, west, tmp_path), group)
    produce(east, flow.topic, numbered(10), partition=0)
    windowed(flow)

    def named(plan: FailoverPlan) -> bool:
        (found,) = (each for each in plan.findings if each.what == "groups of every kind are followed")
        assert not found.way_out or "kafka-share-groups.sh --reset-offsets" in found.way_out
        return found.level == "warn" and f"not followed: share group {group}" in found.evidence

    assert not named(failover_plan(flow.opened))
    with ShareConsumer({"bootstrap.servers": east.bootstrap, "group.id": group, "log_level": 0}) as consumer:
        consumer.subscribe([flow.topic])
        for attempt in patiently():
            with attempt:
                consumer.poll(0.1)
                assert named(failover_plan(flow.opened))
        made = outcome_of(flow.opened, PLANNED, *fail_over(flow.opened, PLANNED))
    assert named(made.plan)
    with Routes(flow.flow.target, "test") as routes:
        assert group not in {each.name for each in list_every_group(routes)}
