"""The hot path's view of a cluster."""

from __future__ import annotations

import socket
from unittest.mock import Mock

import pytest

from airmirror.clusters.protocol.connection import BrokerUnreachable, Connection
from airmirror.clusters.protocol.epochs import epoch_ends
from airmirror.clusters.protocol.groups import list_groups
from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import BootstrapNotResolved, Routes, TopicNotFound
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.config import Cluster
from airmirror.partitions import TopicPartition
from airmirror_local.brokers import Broker
from airmirror_local.ports import free_port
from airmirror_local.proxy import Proxy
from support.topics import Record, create_topic, produce


def test_leaders_ids_and_offsets(east: Broker, topic) -> None:  # type: ignore[no-untyped-def]
    name = create_topic(east, topic("routes"), 2)
    produce(east, name, [Record(b"v")] * 5, partition=1)
    partitions = [TopicPartition(name, 0), TopicPartition(name, 1)]
    with Routes(Cluster("east", (east.bootstrap,), {}), "test") as routes:
        assert offsets_with_patience(routes, partitions, LATEST) == {partitions[0]: 0, partitions[1]: 5}
        assert offsets_with_patience(routes, partitions, EARLIEST) == {partitions[0]: 0, partitions[1]: 0}
        assert routes.partitions(name) == 2 and routes.cluster_id
        assert routes.topic_names[routes.topic_ids[name]] == name
        with pytest.raises(TopicNotFound, match="no topic 'no-such-topic'"):
            routes.refresh(["no-such-topic"])


def test_the_partitions_of_topics_that_are_there(east: Broker, topic) -> None:  # type: ignore[no-untyped-def]
    """Each once, however often it is named: Kafka refuses a question that names a partition twice."""
    name = create_topic(east, topic("keys"), 2)
    with Routes(Cluster("east", (east.bootstrap,), {}), "test") as routes:
        assert routes.keys_now([name, "no-such-topic", name]) == [TopicPartition(name, 0), TopicPartition(name, 1)]
        assert routes.keys_now([]) == [] and not routes.partitions("no-such-topic")


def test_no_broker_answers() -> None:
    port = free_port()
    with (
        Routes(Cluster("east", (f"127.0.0.1:{port}",), {}), "test") as routes,
        pytest.raises(BrokerUnreachable, match=f"127.0.0.1:{port}"),
    ):
        routes.refresh([])


def test_names_that_vanish_are_a_fault_that_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A headless service without ready pods has no address; a name that never had one is a wrong name."""

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    cluster = Cluster("east", ("kafka.east.svc:9092",), {})
    with Routes(cluster, "test") as routes:
        with pytest.raises(BootstrapNotResolved) as first:
            routes.refresh([])
        routes.cluster_id = "the one that has answered"
        with pytest.raises(BrokerUnreachable) as later:
            routes.refresh([])
    assert not first.value.transient and later.value.transient and "kafka.east.svc" in str(later.value)


def test_configs_are_asked_again_where_a_kept_connection_was_closed(west: Broker, west_proxy: Proxy, topic) -> None:  # type: ignore[no-untyped-def]
    """One node, whose pooled connection is cut between two questions."""
    with Routes(Cluster("west", (west_proxy.bootstrap,), {}), "test") as routes:
        routes.refresh([])
        name = create_topic(west, topic("configs"), config={"cleanup.policy": "compact"})
        for _ in range(2):
            assert topic_configs(routes, [name], ["cleanup.policy"]) == {name: {"cleanup.policy": "compact"}}
            west_proxy.cut()


@pytest.mark.parametrize(
    ("purpose", "waiting", "is_kept"),
    [("produce", 0, False), ("transactions", 0, False), ("produce", 1, True), ("fetch", 0, True)],
)
def test_a_connection_for_writing_that_ends_while_idle_is_opened_again(
    monkeypatch: pytest.MonkeyPatch, purpose: str, waiting: int, is_kept: bool
) -> None:
    """Brokers close what is idle for ten minutes. With a request under way its end is an error, and to fetches it says more."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(Routes, "_connect", lambda *_: Mock(waiting=waiting, has_bytes=False, fileno=ours.fileno))
    with ours, theirs, Routes(Cluster("east", ("one:9092",), {}), "test") as routes:
        routes._nodes = {1: ("one", 9092)}
        first = routes.connection(1, purpose)
        assert routes.connection(1, purpose) is first
        theirs.close()
        assert (routes.connection(1, purpose) is first) is is_kept


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The brokers of the connections that are opened during a test, in order."""
    found: list[str] = []
    connect = Connection._connect

    def noted(connection: Connection, host: str, port: int, timeout: float) -> socket.socket:
        found.append(f"{host}:{port}")
        return connect(connection, host, port, timeout)

    monkeypatch.setattr(Connection, "_connect", noted)
    return found


@pytest.mark.parametrize("by", ["127.0.0.1", "localhost"])
def test_all_that_is_asked_in_turn_goes_over_one_connection(east: Broker, topic, opened: list[str], by: str) -> None:  # type: ignore[no-untyped-def]
    """A log-in costs round trips. A bootstrap server by another name than its node has keeps the connection for metadata."""
    name = create_topic(east, topic("asked"), 1)
    produce(east, name, [Record(b"v")] * 3)
    log = TopicPartition(name, 0)
    with Routes(Cluster("east", (f"{by}:{east.port}",), {}), "test") as routes:
        for _ in range(2):
            routes.refresh([name])
            assert offsets_with_patience(routes, [log], LATEST) == {log: 3}
            assert epoch_ends(routes, {log: 0})[log].offset == 3
            assert [each.value for each in read_records(routes, log, 0, 3)] == [b"v"] * 3
            assert topic_configs(routes, [name], ["cleanup.policy"])
            list_groups(routes)
    assert opened == ([east.bootstrap] if by == "127.0.0.1" else [f"localhost:{east.port}", east.bootstrap])


def test_a_connection_whose_answer_nobody_took_is_asked_nothing_more(east: Broker, topic, opened: list[str]) -> None:  # type: ignore[no-untyped-def]
    """Its next answer would be that of another question."""
    name = create_topic(east, topic("asked"), 1)
    log = TopicPartition(name, 0)
    with Routes(Cluster("east", (east.bootstrap,), {}), "test") as routes:
        for asked in (lambda: routes.refresh([name]), lambda: offsets_with_patience(routes, [log], LATEST)):
            routes.refresh([name])
            connection = routes.connection(routes.leader(log).node)
            connection._asked.append(connection.next_correlation_id())
            asked()
            assert connection.fileno() < 0
    assert opened == [east.bootstrap] * 3
