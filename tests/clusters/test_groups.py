"""Consumer groups as the protocol tells of them, against what confluent-kafka's clients see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airmirror.clusters.protocol import groups, stable
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.groups import MEMBERS_ACTIVE, Committed, commit_offsets, committed_offsets, list_groups
from airmirror.clusters.protocol.routes import (
    CoordinatorNotAvailable,
    Routes,
    patiently,
)
from airmirror.clusters.protocol.stable import OffsetsHeld, all_groups, stable_offsets
from airmirror.config import Cluster
from airmirror.partitions import TopicPartition
from airmirror_local.brokers import IMPATIENT, Broker, start_cluster
from support.groups import Protocol, commit, committed, held, member
from support.topics import create_topic


def routes(broker: Broker) -> Routes:
    return Routes(Cluster("east", (broker.bootstrap,), {}), "test")


def test_offsets_of_many_groups(east: Broker, topic: Callable[[str], str]) -> None:
    names = [topic(f"group-{number}") for number in range(250)]
    orders = create_topic(east, topic("orders"), 3)
    given = {
        name: {TopicPartition(orders, p): Committed(number + p, f"note {number}") for p in range(3)}
        for number, name in enumerate(names)
    }
    with routes(east) as east_routes:
        assert commit_offsets(east_routes, given) == {}
        asked = committed_offsets(east_routes, [*names, "there is none"])
        assert asked == given | {"there is none": {}}
        listed = list_groups(east_routes)
        assert all(listed[name].is_idle for name in names)
    assert committed(east, names[7]) == {(orders, p): 7 + p for p in range(3)}


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_with_members_is_not_written(east: Broker, topic: Callable[[str], str], protocol: Protocol) -> None:
    orders, group = create_topic(east, topic("orders")), topic("group")
    key = TopicPartition(orders, 0)
    with routes(east) as east_routes:
        with member(east, group, orders, protocol):
            assert not list_groups(east_routes)[group].is_idle
            errors = commit_offsets(east_routes, {group: {key: Committed(5)}})
            assert errors.keys() == {(group, key)} and errors[group, key] in MEMBERS_ACTIVE
        assert list_groups(east_routes)[group].is_idle
        assert commit_offsets(east_routes, {group: {key: Committed(5, "moved")}}) == {}
        assert committed_offsets(east_routes, [group]) == {group: {key: Committed(5, "moved")}}


def test_a_partition_that_is_not_there_is_refused_alone(east: Broker, topic: Callable[[str], str]) -> None:
    orders, group = create_topic(east, topic("orders")), topic("group")
    there, missing = TopicPartition(orders, 0), TopicPartition(orders, 4)
    with routes(east) as east_routes:
        errors = commit_offsets(east_routes, {group: {there: Committed(1), missing: Committed(1)}})
        assert errors == {(group, missing): 3}
    commit(east, group, {(orders, 0): 0})
    assert committed(east, group) == {(orders, 0): 0}


def test_offsets_that_a_transaction_holds_are_not_told(
    east: Broker, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who holds them is named; a transaction that holds those of other topics is no hindrance."""
    orders, group, name = create_topic(east, topic("orders")), topic("group"), topic("billing")
    key = TopicPartition(orders, 0)
    commit(east, group, {(orders, 0): 3})
    monkeypatch.setattr(stable, "STABLE_SECONDS", 0.2)
    with routes(east) as east_routes:
        with held(east, group, {(orders, 0): 7}, name):
            assert committed_offsets(east_routes, [group])[group][key].offset == 3, "as it was before"
            with pytest.raises(OffsetsHeld, match=f"that of .*{name}.*\n.*{group} in {orders}-0") as refused:
                stable_offsets(east_routes, [group], {orders})
            assert refused.value.transient and name in refused.value.holders
            assert stable_offsets(east_routes, [group], {"another"}) == {group: {}}
        monkeypatch.setattr(stable, "STABLE_SECONDS", 30.0)
        assert stable_offsets(east_routes, [group], {orders}) == {group: {key: Committed(7)}}


@pytest.mark.long
def test_no_group_of_a_node_that_is_away_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic of groups with one replica, as clusters have that began with one node: its other nodes do not name them."""
    monkeypatch.setattr(groups, "PATIENCE_SECONDS", 2.0)
    cluster = start_cluster(tmp_path, "three", 3, IMPATIENT | {"offsets.topic.replication.factor": "1"})
    try:
        names = {f"group-{number}" for number in range(40)}
        orders = create_topic(cluster, "orders", replicas=3)
        with Routes(Cluster("east", tuple(cluster.bootstrap.split(",")), {}), "test", was_reached=True) as east:
            given = {name: {TopicPartition(orders, 0): Committed(7)} for name in names}
            assert commit_offsets(east, given) == {} and all_groups(east).keys() == names
            last = cluster.brokers[-1]
            last.kill()
            for attempt in patiently(60.0, AssertionError, BrokerUnreachable):
                with attempt:
                    assert 0 < len(list_groups(east)) < len(names), "else nothing is hidden"
            with pytest.raises(CoordinatorNotAvailable, match="asks-whether-all-groups-are-listed"):
                all_groups(east)
            last.restart()
            for attempt in patiently(60.0, CoordinatorNotAvailable, BrokerUnreachable):
                with attempt:
                    assert all_groups(east).keys() == names
    finally:
        cluster.stop()
