"""The proxy passes frames on, loses the answer it is told to lose, and holds a request until it is released."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Hold, Loss, Proxy
from support.topics import Record, admin, create_topic, produce, read_all

PRODUCE, METADATA = 0, 3


@pytest.fixture
def orders(west: Broker, topic: Callable[[str], str]) -> str:
    return create_topic(west, topic("orders"))


def values(west: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(west, topic)[0]]


def test_passes_everything_on(west: Broker, west_proxy: Proxy, orders: str) -> None:
    produce(west_proxy.bootstrap, orders, [Record(b"a"), Record(b"b")])
    assert values(west, orders) == [b"a", b"b"]
    assert west_proxy.requests[PRODUCE] == 1


def test_a_lost_answer_looks_like_a_lost_connection(west: Broker, west_proxy: Proxy, orders: str) -> None:
    west_proxy.on_answer = loss = Loss(PRODUCE)
    produce(west_proxy.bootstrap, orders, [Record(b"a")], idempotent=True)
    assert loss.happened.is_set()
    assert west_proxy.requests[PRODUCE] == 2  # the producer sent it again, and the broker knew it already
    assert values(west, orders) == [b"a"]


def test_a_held_request_waits_for_its_release(west: Broker, west_proxy: Proxy, orders: str) -> None:
    west_proxy.on_request = hold = Hold(PRODUCE)
    producing = threading.Thread(target=produce, args=(west_proxy.bootstrap, orders, [Record(b"a")]))
    producing.start()
    assert hold.reached.wait(120)
    assert values(west, orders) == []
    hold.release.set()
    producing.join(120)
    assert values(west, orders) == [b"a"]


def test_a_rule_may_alter_a_frame(west: Broker, west_proxy: Proxy, orders: str) -> None:
    def another_topic(exchange: Exchange, frame: bytes) -> bytes:
        return frame.replace(orders.encode(), b"x" * len(orders)) if exchange.api_key == METADATA else frame

    west_proxy.on_answer = another_topic
    topics = admin(west_proxy.bootstrap).list_topics(timeout=60).topics
    assert orders not in topics
    assert "x" * len(orders) in topics


def test_cut_connections_are_made_again(west: Broker, west_proxy: Proxy, orders: str) -> None:
    client = admin(west_proxy.bootstrap)
    assert orders in client.list_topics(timeout=60).topics
    west_proxy.cut()
    assert orders in client.list_topics(timeout=60).topics


def test_a_broker_that_is_down_looks_down(west: Broker, west_proxy: Proxy) -> None:
    west_proxy.target = 1  # nobody listens there
    client = AdminClient({"bootstrap.servers": west_proxy.bootstrap, "log_level": 0})  # others may be connected already
    with pytest.raises(KafkaException):
        client.list_topics(timeout=1)
