"""A node that does not know of a topic: one that was just started, or that hears of news late. Others are asked."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import pytest

from airmirror.clusters.protocol import routes as routes_module
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.routes import OTHERS, Routes, TopicNotFound
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.config import Cluster
from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK, free_port
from airmirror_local.proxy import Proxy, forward
from support.answers import DESCRIBE_CONFIGS, METADATA, Behind
from support.topics import create_topic


@pytest.fixture
def new(west: Broker) -> Iterator[Proxy]:
    """A listener of ``west`` by which it looks like one more node of its cluster, the one that is asked first."""
    with forward(free_port(), west.port) as proxy:
        yield proxy


def routes_by(proxy: Proxy) -> Routes:
    return Routes(Cluster("west", (proxy.bootstrap,), {}), "test")


def test_a_topic_is_there_if_another_node_knows_it(west: Broker, new: Proxy, topic: Callable[[str], str]) -> None:
    name = create_topic(west, topic("new"), 2)
    new.on_answer = behind = Behind(name)
    with routes_by(new) as routes:
        assert set(routes.refresh_existing([name, "gone"])) == {"gone"} and behind.happened == 1
        assert routes.partitions(name) == 2 and routes.topic_names[routes.topic_ids[name]] == name
        routes.refresh([name])
        assert behind.happened == 2


def test_what_no_node_knows_is_gone_soon(
    west: Broker, new: Proxy, topic: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few of many nodes are asked, and those that say nothing do not change it."""
    name = topic("gone")
    with (
        forward(free_port(), west.port) as other,
        socket.create_server((LOOPBACK, 0)) as silent,
        routes_by(new) as routes,
    ):
        new.on_answer = Behind(name, [new.port, *[other.port] * 20])
        assert set(routes.refresh_existing([name])) == {name} and other.requests[METADATA] == OTHERS
        new.on_answer = Behind(name, [new.port, free_port(), silent.getsockname()[1]])
        monkeypatch.setattr(routes_module, "OTHER_SECONDS", 0.2)
        begun = time.monotonic()
        with pytest.raises(TopicNotFound, match=name):
            routes.refresh([name])
        assert time.monotonic() - begun < 20


def test_a_node_that_knows_no_brokers_is_not_believed(new: Proxy, topic: Callable[[str], str]) -> None:
    """So answers one with ZooKeeper until its controller has told it of the cluster; Kafka's clients wait too."""
    new.on_answer = Behind(name := topic("unknown"), [])
    with routes_by(new) as routes, pytest.raises(BrokerUnreachable, match="just been started") as error:
        routes.refresh([name])
    assert error.value.transient


def test_the_configs_of_a_topic_that_the_first_node_does_not_know(
    west: Broker, new: Proxy, topic: Callable[[str], str]
) -> None:
    name = create_topic(west, topic("configs"), config={"cleanup.policy": "compact"})
    new.on_answer = behind = Behind(name)
    with routes_by(new) as routes:
        routes._nodes = {0: (LOOPBACK, new.port), 1: (LOOPBACK, west.port)}
        assert topic_configs(routes, [name, "gone"], ["cleanup.policy"]) == {name: {"cleanup.policy": "compact"}}
        routes._nodes = dict.fromkeys(range(2, 20), (LOOPBACK, new.port))
        asked = new.requests[DESCRIBE_CONFIGS]
        assert topic_configs(routes, [name], ["cleanup.policy"]) == {} == topic_configs(routes, [], [])
        assert new.requests[DESCRIBE_CONFIGS] - asked == 1 + OTHERS == behind.happened - 1
