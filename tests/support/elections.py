"""Unclean leader elections: a node that was away leads a topic, without what was written meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka.admin import NewTopic
from tenacity import Retrying, stop_after_delay, wait_fixed

from airmirror_local.brokers import Broker, BrokerCluster
from support.servers import keep
from support.topics import admin, delete_topic, leader


def patiently(seconds: float = 30) -> Retrying:
    return Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(0.1), reraise=True)


def make_unclean(three: BrokerCluster, topic: str) -> None:
    """Make a topic anew, with one partition on the first two nodes, either of which may lead without being in sync."""
    delete_topic(three, topic)
    unclean = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    new = NewTopic(topic, 1, replica_assignment=[[1, 2]], config=unclean)
    admin(three).create_topics([new])[topic].result()
    await_leader(three, topic, three.brokers[0])


def await_leader(three: BrokerCluster, topic: str, node: Broker) -> None:
    for attempt in patiently(60):
        with attempt:
            assert leader(three, topic) == three.brokers.index(node) + 1


def take_over(three: BrokerCluster, topic: str, heir: Broker, leaves: Broker, before: Callable[[], object]) -> None:
    """The heir leads, without what is written while it is away."""
    await_leader(three, topic, leaves)
    if heir.process.running:
        heir.kill()
    before()
    leaves.kill()
    heir.restart()
    await_leader(three, topic, heir)


def bring_back(*brokers: Broker) -> None:
    for broker in brokers:
        if not broker.process.running:
            broker.restart()
        keep(broker.process)
