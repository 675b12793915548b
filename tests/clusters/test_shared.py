"""One AdminClient for the calls of a cluster, as long as nothing goes wrong with it."""

from __future__ import annotations

import gc
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from airmirror.clusters.admin import shared
from airmirror.clusters.admin.client import Admin, ClusterUnreachable, connect, describe
from airmirror.clusters.admin.creation import create_topics
from airmirror.clusters.admin.description import NewTopic
from airmirror.config import Cluster
from airmirror_local.brokers import Broker
from airmirror_local.ports import free_port


@pytest.fixture
def silent() -> Iterator[Cluster]:
    """A cluster that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield Cluster("east", (f"127.0.0.1:{server.getsockname()[1]}",), {})


def nowhere() -> Cluster:
    return Cluster("east", (f"127.0.0.1:{free_port()}",), {})


def test_the_same_settings_share_a_client_and_others_do_not(silent: Cluster) -> None:
    client = connect(silent).client
    assert connect(Cluster("renamed", silent.bootstrap_servers, {})).client is client
    for properties in ({"client.id": "other"}, {"admin.client.id": "other"}):
        assert connect(Cluster("east", silent.bootstrap_servers, properties)).client is not client


def test_a_secret_that_was_changed_makes_another_client(silent: Cluster) -> None:
    def sasl(password: str) -> Cluster:
        login = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{password}";'
        properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
        return Cluster("east", silent.bootstrap_servers, properties)

    first = connect(sasl("one")).client
    assert connect(sasl("two")).client is not first
    assert connect(sasl("one")).client is first


def test_a_file_that_was_written_anew_makes_another_key(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    settings = {"ssl.ca.location": str(file)}
    keys = [shared._key(settings)]
    for text in ("one", "two and more"):
        file.write_text(text)
        keys.append(shared._key(settings))
    assert len(set(keys)) == 3
    assert shared._key(settings) == keys[-1]


def test_a_client_is_shared_for_a_minute(silent: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    client = connect(silent).client
    monkeypatch.setattr(shared, "SHARED_SECONDS", -1.0)
    assert connect(silent).client is not client


def test_who_is_not_shared_any_more_is_let_go(silent: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It holds the secrets that it was made of."""
    old = connect(silent).client
    monkeypatch.setattr(shared, "SHARED_SECONDS", -1.0)
    connect(Cluster("east", silent.bootstrap_servers, {"client.id": "another"}))
    assert all(each.client is not old for each in shared._clients.values())


def test_a_few_clients_are_kept(silent: Cluster) -> None:
    client = connect(silent).client
    for n in range(shared.MOST):
        connect(Cluster("east", silent.bootstrap_servers, {"client.id": str(n)}))
    assert len(shared._clients) == shared.MOST
    assert connect(silent).client is not client


def test_neither_a_forked_child_nor_its_parent_has_the_old_client(east: Broker) -> None:
    cluster = Cluster("east", (east.bootstrap,), {"client.id": "fork"})
    client = connect(cluster)
    assert client.topic_names() is not None
    child = os.fork()
    if child == 0:
        asks_anew = not shared._clients and bool(connect(cluster).metadata().cluster_id)
        os._exit(0 if asks_anew and connect(cluster).client is not client.client else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert connect(cluster).metadata().cluster_id


def test_a_forked_child_collects_no_client_that_was_garbage(silent: Cluster) -> None:
    """It would wait for that one's threads, whose places are those of its own client's by then."""
    gc.collect()
    gc.disable()
    try:
        held: list[object] = [connect(silent).client]
        held.append(held)
        shared.drop(held[0])
        del held
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # what waits for a thread hears of nothing else
            signal.alarm(10)
            own = [connect(Cluster("east", silent.bootstrap_servers, {"client.id": str(n)})) for n in range(3)]
            gc.collect()
            assert own
            os._exit(0)
    finally:
        gc.enable()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_earlier_complaint_is_not_told_for_a_later_failure() -> None:
    east = nowhere()
    before = connect(east)
    before.complaints.append(KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED, "an old password"))
    with pytest.raises(ClusterUnreachable) as caught:
        describe(east, timeout=0.5)
    assert "an old password" not in str(caught.value)


def test_a_client_that_has_failed_is_not_used_again() -> None:
    def failed() -> Admin:
        admin = connect(east)
        with pytest.raises(ClusterUnreachable, match="refused"):
            admin.topic_names(timeout=0.5)
        return admin

    east = nowhere()
    assert failed().client is not failed().client


def test_what_was_made_through_a_shared_client_is_listed_at_once(east: Broker) -> None:
    cluster = Cluster("east", (east.bootstrap,), {"client.id": "fresh"})
    client = connect(cluster).client
    for n in range(3):
        name = f"shared-{os.getpid()}-{n}"
        create_topics(connect(cluster), [NewTopic(name, 1, 1)])
        assert name in connect(cluster).topic_names()
        assert describe(cluster)[name] == 1
    assert connect(cluster).client is client
