"""Heartbeats on a real cluster: the topic and the records as MirrorMaker 2 makes them, replicated like any other topic."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from airmirror.clusters.admin.client import ClusterUnreachable
from airmirror.clusters.admin.creation import TopicCreationRefused
from airmirror.config import Flow, parse
from airmirror.config.pairs import heartbeat_flow
from airmirror.offsets.heartbeats import emit_heartbeat
from airmirror.wire.mirrormaker import Heartbeat
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from support.flows import mirror
from support.heartbeats import east, heartbeats_deleted, west
from support.topics import Record, admin, assert_mirrored, produce, read_all

__all__ = ["east", "west"]


@pytest.fixture(autouse=True)
def none_left(east: Broker, west: Broker) -> Iterator[None]:
    with heartbeats_deleted(east, west):
        yield


def back(target: Broker | str, **settings: str) -> Flow:
    """The flow ``west->east``, whose heartbeats are written to east."""
    bootstrap = target if isinstance(target, str) else target.bootstrap
    lines = {
        "clusters": "east, west",
        "east.bootstrap.servers": bootstrap,
        "west.bootstrap.servers": bootstrap,
        "east->west.enabled": "true",
        "heartbeats.topic.replication.factor": "1",
    } | {key.replace("_", "."): value for key, value in settings.items()}
    return heartbeat_flow(parse("\n".join(f"{key} = {value}" for key, value in lines.items()), "test"), "west->east")


def test_a_heartbeat_is_as_mirrormaker_2s(east: Broker) -> None:
    before = time.time_ns() // 1_000_000
    assert emit_heartbeat(back(east)) == "heartbeats"
    emit_heartbeat(back(east))
    (records,) = read_all(east, "heartbeats").values()  # one partition
    assert len(records) == 2
    for record in records:
        heartbeat = Heartbeat.decode(record.key or b"", record.value or b"")
        assert (heartbeat.source, heartbeat.target) == ("west", "east")
        assert before <= heartbeat.time_ms <= time.time_ns() // 1_000_000
        assert record.timestamp == heartbeat.time_ms and record.headers == ()
    from confluent_kafka.admin import ConfigResource, ResourceType  # type: ignore[attr-defined]

    resource = ConfigResource(ResourceType.TOPIC, "heartbeats")
    client = admin(east)
    configs = client.describe_configs([resource])[resource].result(30)
    assert configs["cleanup.policy"].value == "compact"


def test_heartbeats_are_replicated_though_no_filter_names_them(east: Broker, west: Broker, tmp_path: Path) -> None:
    for _ in range(3):
        emit_heartbeat(back(east))
    flow = mirror(east, west, tmp_path)
    produce(east, flow.topic, [Record(b"a record")])
    assert flow.run().is_verified
    assert flow.assert_equal() == 1
    assert assert_mirrored(east, "heartbeats", west, f"{flow.flow.source.alias}.heartbeats") == 3


def test_heartbeats_stay_where_their_replication_is_switched_off(east: Broker, west: Broker, tmp_path: Path) -> None:
    emit_heartbeat(back(east))
    flow = mirror(east, west, tmp_path, settings={"heartbeats.replication.enabled": "false"})
    produce(east, flow.topic, [Record(b"a record")])
    assert flow.run().is_verified
    assert f"{flow.flow.source.alias}.heartbeats" not in admin(west).list_topics(timeout=30).topics


def test_what_a_cluster_refuses_is_said(east: Broker) -> None:
    with pytest.raises(TopicCreationRefused, match=r"; set heartbeats\.topic\.replication\.factor to the number"):
        emit_heartbeat(back(east, heartbeats_topic_replication_factor="3"))


def test_a_cluster_that_is_down_is_a_transient_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airmirror.offsets.heartbeats.TIMEOUT", 1.0)
    monkeypatch.setattr("airmirror.clusters.admin.client.TIMEOUT", 1.0)  # of the look before it is asked again
    with pytest.raises(ClusterUnreachable) as caught:
        emit_heartbeat(back(f"{LOOPBACK}:{free_port()}"))
    assert caught.value.transient
