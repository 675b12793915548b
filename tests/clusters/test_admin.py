"""Administration of real clusters, and clusters that can't be had."""

from __future__ import annotations

import re
import socket
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock
from uuid import uuid4

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from airmirror.clusters.admin.client import (
    AccessDenied,
    Admin,
    ClusterUnreachable,
    HostNotResolved,
    connect,
    describe,
    producer,
    topic_configs,
)
from airmirror.clusters.admin.creation import (
    REQUEST_RECORDS,
    TopicCreationRefused,
    TopicDeletionRefused,
    _batches,
    create_partitions,
    create_topics,
    delete_topics,
)
from airmirror.clusters.admin.description import ConfigValue, NewPartitions, NewTopic
from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.config import Cluster
from airmirror_local.brokers import Broker


def cluster(broker: Broker, **properties: str) -> Cluster:
    return Cluster("east", (broker.bootstrap,), properties)


def test_topics_are_created_described_and_grown(east: Broker) -> None:
    admin, prefix = connect(cluster(east)), f"admin-{uuid4()}"
    new = [NewTopic(f"{prefix}-{n}", n, 1, {"cleanup.policy": "compact"}) for n in (1, 2, 3)]
    assert create_topics(admin, new).topics == tuple(topic.name for topic in new)
    before = describe(admin)
    assert [before[topic.name] for topic in new] == [1, 2, 3]
    again = create_topics(admin, [NewTopic(new[0].name, 1, 1)])
    assert (again.topics, again.refused) == ((new[0].name,), ())
    grown = create_partitions(admin, [NewPartitions(new[0].name, 1, 4)])
    assert grown.topics == (new[0].name,)
    assert describe(cluster(east))[new[0].name] == 4


def test_configs_tell_where_they_come_from_and_missing_topics_are_absent(east: Broker) -> None:
    admin, name = connect(cluster(east)), f"admin-{uuid4()}"
    create_topics(admin, [NewTopic(name, 1, 1, {"retention.ms": "-1"})])
    configs = topic_configs(admin, [name, f"{name}-missing"])
    assert list(configs) == [name]
    assert configs[name]["retention.ms"] == ConfigValue("-1", "DYNAMIC_TOPIC_CONFIG")
    assert configs[name]["delete.retention.ms"].is_default


@pytest.mark.parametrize(
    ("topic", "reason"),
    [
        (NewTopic("admin-refused", 1, 3), "set replication.factor to the number of brokers at most"),
        (NewTopic("admin-refused", 1, 3, {}, "other.factor"), "set other.factor to the number of brokers at most"),
        (NewTopic("admin-refused", 1, 1, {"no.such.config": "1"}), "name the config in config.properties.exclude"),
        (NewTopic("admin refused", 1, 1), "invalid"),
    ],
)
def test_a_refusal_names_topic_cluster_and_way_out_and_holds_up_no_other(
    east: Broker, topic: NewTopic, reason: str
) -> None:
    good = NewTopic(f"admin-{uuid4()}", 1, 1)
    created = create_topics(connect(cluster(east)), [topic, good])
    assert created.topics == (good.name,)
    (refused,) = created.refused
    assert type(refused) is TopicCreationRefused and not refused.transient
    assert (refused.alias, refused.topic) == ("east", topic.name)
    assert reason in str(refused)


def test_a_topic_waits_for_a_broker_that_is_shutting_down() -> None:
    """The controller counts it no more, for some moments that no test can hold: others' replicas say that it is there."""

    class Restarting:
        def create_topics(self, topics: list[object], **_: float) -> dict[str, Future[None]]:
            refused: Future[None] = Future()
            refused.set_exception(KafkaException(KafkaError(KafkaError.INVALID_REPLICATION_FACTOR)))
            return {"three": refused, "four": refused}

        def list_topics(self, **_: float) -> SimpleNamespace:
            replicated = SimpleNamespace(partitions={0: SimpleNamespace(replicas=[2, 3, 1])})
            return SimpleNamespace(brokers={1: None, 3: None}, topics={"there": replicated})

    west = Admin(Cluster("west", ("a:1",), {}), cast(AdminClient, Restarting()))
    created = create_topics(west, [NewTopic("three", 1, 3), NewTopic("four", 1, 4)])
    assert {each.topic: each.transient for each in created.refused} == {"three": True, "four": False}


@pytest.mark.parametrize(
    ("code", "passes"), [(KafkaError._TIMED_OUT, True), (KafkaError.TOPIC_AUTHORIZATION_FAILED, False)]
)
def test_a_topic_that_can_t_be_deleted_now_is_tried_again(code: int, passes: bool) -> None:
    class Busy:
        def delete_topics(self, topics: list[str], **_: float) -> dict[str, Future[None]]:
            refused: Future[None] = Future()
            refused.set_exception(KafkaException(KafkaError(code)))
            return {"orders": refused}

    with pytest.raises(TopicDeletionRefused, match="'orders' can't be deleted") as caught:
        delete_topics(Admin(Cluster("west", ("a:1",), {}), cast(AdminClient, Busy())), ["orders"])
    assert caught.value.transient == passes


@pytest.mark.parametrize(
    ("code", "most"), [(-137, 5), (KafkaError._TIMED_OUT, 2)], ids=["_DESTROY_BROKER", "_TIMED_OUT"]
)
@pytest.mark.parametrize("too_often", [False, True])
def test_what_was_asked_in_vain_is_asked_again(too_often: bool, code: int, most: int) -> None:
    """librdkafka lets go of a node that was started again, and of what it was to be asked, and waits for a controller that has
    died until metadata name another; no test can hold these moments."""

    class Restarted:
        asked = looked = 0

        def describe_configs(self, resources: list[object], **_: float) -> dict[object, Future[dict[str, object]]]:
            self.asked += 1
            answer: Future[dict[str, object]] = Future()
            if self.asked == most and not too_often:
                answer.set_result(
                    {"retention.ms": SimpleNamespace(value="7", source=1, is_read_only=0, is_sensitive=0)}
                )
            else:
                answer.set_exception(KafkaException(KafkaError(code)))
            return dict.fromkeys(resources, answer)

        def list_topics(self, *, timeout: float) -> None:
            assert timeout
            self.looked += 1

        def poll(self, _: float) -> None:
            """Nothing has happened since."""

    client = Restarted()
    west = Admin(Cluster("west", ("127.0.0.1:1",), {}), cast(AdminClient, client))
    if not too_often:
        assert topic_configs(west, ["orders"])["orders"]["retention.ms"].value == "7"
    else:
        with pytest.raises(ClusterUnreachable, match=re.escape(KafkaError(code).str())) as caught:
            topic_configs(west, ["orders"])
        assert caught.value.transient
    assert (client.asked, client.looked) == (most, most - 1)


def test_a_cluster_that_does_not_answer_is_not_waited_for_twice() -> None:
    silent = Mock()
    silent.list_topics.side_effect = KafkaException(KafkaError(KafkaError._TIMED_OUT))
    with pytest.raises(ClusterUnreachable):
        Admin(Cluster("west", ("127.0.0.1:1",), {}), silent).metadata()
    silent.list_topics.assert_called_once()


def test_requests_are_bounded_by_the_records_they_make() -> None:
    topics = [NewTopic(f"t{n}", 9, 1) for n in range(500)] + [NewTopic("large", REQUEST_RECORDS * 2, 1)]
    batches = list(_batches(topics))
    assert [topic for batch in batches for topic in batch] == topics
    assert [sum(1 + topic.partitions for topic in batch) for batch in batches[:-1]] == [2000, 2000, 1000]
    assert batches[-1] == [topics[-1]]
    assert list(_batches([NewPartitions("a", 1_000, 2_500), NewPartitions("b", 1, 501)])) == [
        [NewPartitions("a", 1_000, 2_500), NewPartitions("b", 1, 501)]
    ]


def test_a_broker_that_refuses_connections_is_transient_and_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ClusterUnreachable, match="Connection refused") as caught:
        describe(Cluster("east", (address,), {}), timeout=1)
    assert type(caught.value) is ClusterUnreachable and caught.value.transient
    assert address in str(caught.value) and "east.bootstrap.servers" in str(caught.value)


def test_a_broker_that_never_answers_is_transient() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ClusterUnreachable) as caught:
            describe(Cluster("east", (address,), {}), timeout=1)
    assert type(caught.value) is ClusterUnreachable


def test_a_name_that_does_not_resolve_is_final_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(host: str, *_: Any) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(HostNotResolved, match=r"no address belongs to kafka\.invalid") as caught:
        describe(Cluster("east", ("kafka.invalid:9092",), {}), timeout=1)
    assert not caught.value.transient


def test_a_resolver_that_is_down_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    def down(host: str, *_: Any) -> None:
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", down)
    with pytest.raises(ClusterUnreachable, match=r"kafka\.invalid") as caught:
        describe(Cluster("east", ("kafka.invalid:9092",), {}), timeout=1)
    assert caught.value.transient


def test_a_log_in_that_is_refused_is_final_and_shows_no_secret(east: Broker) -> None:
    jaas = 'X required username="me" password="planted";'
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": jaas}
    with pytest.raises(AccessDenied, match="SASL PLAIN") as caught:
        describe(cluster(east, **settings), timeout=2)
    assert not caught.value.transient and "planted" not in str(caught.value)


def test_a_setting_that_librdkafka_refuses_is_an_error() -> None:
    with pytest.raises(UnsupportedClientSetting, match=r"socket\.timeout\.ms"):
        connect(Cluster("east", ("a:1",), {"request.timeout.ms": "soon"}))


def test_producers_settings_that_people_tune() -> None:
    """Seed 003's: honoured where they make sense, never in the way, and what librdkafka does not take is told as ours."""
    tuned = {
        "acks": "1",
        "batch.size": "50000",
        "linger.ms": "1500",
        "buffer.memory": "335544320",
        "compression.type": "gzip",
        "max.request.size": "157286400",
        "request.timeout.ms": "120000",
        "enable.idempotence": "false",
        "retries": "0",
        "max.in.flight.requests.per.connection": "50",
        "delivery.timeout.ms": "300000",
    }
    east = Cluster("east", ("127.0.0.1:1",), {f"producer.{name}": value for name, value in tuned.items()})
    producer(east, {"transactional.id": "t"})
    producer(east, {"acks": "all", "enable.idempotence": False})
    wrong = Cluster("east", ("127.0.0.1:1",), {"producer.linger.ms": "a while"})
    with pytest.raises(UnsupportedClientSetting, match=r"cluster 'east': east\.producer\.…"):
        producer(wrong, {})
