"""A broker that answers nonsense: an error that names it, within the time it may take, and never a wrong result."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from airmirror.clusters.protocol import connection as connection_module
from airmirror.clusters.protocol import throttle
from airmirror.clusters.protocol.connection import (
    LARGEST_GREETING,
    BrokerUnreachable,
    Connection,
    NotAKafkaAnswer,
    UnsupportedBroker,
)
from airmirror.clusters.protocol.log import LATEST, list_offsets, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange, Proxy
from support.fuzzing import guarded, mutated
from support.topics import Record, create_topic, produce

HTTP = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"
TLS_ALERT = bytes.fromhex("15 03 03 00 02 02 46")
SSH = b"SSH-2.0-OpenSSH_9.6\r\n"


@contextmanager
def listener(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """A server that reads something and answers it, then closes the connection; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:  # closed by the test
                    return
                with connection:
                    connection.sendall(answer(connection.recv(65_536)))

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def correlated(body: bytes) -> Callable[[bytes], bytes]:
    """An answer to the very request, but with a body of nonsense."""
    return lambda request: struct.pack(">i", len(body) + 4) + request[8:12] + body


@pytest.mark.parametrize(
    "answer",
    [
        lambda _: HTTP,
        lambda _: TLS_ALERT,
        lambda _: SSH,
        lambda _: b"",
        lambda _: b"\0\0",
        lambda _: b"\0" * 64,
        lambda _: b"\xff" * 64,
        lambda _: b"\x7f\xff\xff\xff" + b"x" * 64,
        lambda _: b"\x3f\xff\xff\xff\0\0\0\1" + b"x" * 64,
        lambda _: b"\0\0\0\x08\0\0\0\x63abcd",
        correlated(b""),
        correlated(b"\0\0\xff\xff\xff\xff\x0f"),
        correlated(b"\xff" * 99),
        correlated(b"\0\0\0\0\0\0\0\0"),
        correlated(b"\0\0\1\0\0\0\0\0"),
        correlated(b"\0\x23\1\0\0\0\0\0"),
    ],
)
def test_what_listens_is_no_broker(answer: Callable[[bytes], bytes]) -> None:
    with (
        listener(answer) as port,
        guarded(seconds=20, megabytes=400),
        pytest.raises((BrokerUnreachable, UnsupportedBroker), match=f"127.0.0.1:{port}"),
    ):
        Connection("east", "127.0.0.1", port, "test", timeout=5)


@pytest.mark.parametrize("size", [LARGEST_GREETING + 1, 2**30])
def test_a_large_answer_before_the_log_in_is_not_read(size: int) -> None:
    with (
        listener(lambda request: struct.pack(">i", size) + request[8:12]) as port,
        guarded(seconds=20, megabytes=100),
        pytest.raises(NotAKafkaAnswer, match=f"a response of {size} bytes"),
    ):
        Connection("east", "127.0.0.1", port, "test", timeout=5)


def test_a_large_answer_is_taken_of_a_fetch_only(east_proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    with Routes(Cluster("east", (east_proxy.bootstrap,), {}), "test") as routes:
        routes.refresh([])
        monkeypatch.setattr(connection_module.Connection.receive, "__defaults__", (bytearray, 20))
        with pytest.raises(NotAKafkaAnswer, match="a response of"):
            routes.refresh([])


def test_a_broker_that_drips_is_given_up() -> None:
    """Each byte comes within the time that a read may take; the answer does not come within its own."""
    ended = threading.Event()

    def drip(request: bytes) -> Iterator[bytes]:
        yield struct.pack(">i", 1000) + request[8:12]
        while not ended.wait(0.05):
            yield b"\0"

    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection, contextlib.suppress(OSError):  # the client has given up
                for part in drip(connection.recv(65_536)):
                    connection.sendall(part)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        port = server.getsockname()[1]
        with pytest.raises(BrokerUnreachable, match=f"127.0.0.1:{port}.*no answer in time"):
            Connection("east", "127.0.0.1", port, "test", timeout=1)
        ended.set()
        thread.join()


def test_the_first_broker_answers_nonsense_and_the_next_one_sense(east: Broker) -> None:
    with (
        listener(lambda _: HTTP) as port,
        Routes(Cluster("east", (f"127.0.0.1:{port}", east.bootstrap), {}), "test") as routes,
    ):
        routes.refresh([])
        assert routes.cluster_id


def test_a_cluster_of_nonsense_says_what_to_do() -> None:
    with (
        listener(lambda _: HTTP) as port,
        Routes(Cluster("east", (f"127.0.0.1:{port}",), {}), "test") as routes,
        pytest.raises(BrokerUnreachable, match=f"'east'.*127.0.0.1:{port}.*no Kafka broker.*security.protocol"),
    ):
        routes.refresh([])


def test_an_answer_to_another_request(east_proxy: Proxy) -> None:
    with Routes(Cluster("east", (east_proxy.bootstrap,), {}), "test") as routes:
        routes.refresh([])
        east_proxy.on_answer = lambda _, frame: struct.pack(">i", 12345) + frame[4:]
        with pytest.raises(NotAKafkaAnswer, match=f"{east_proxy.bootstrap}.*12345"):
            routes.refresh([])


def _metadata(routes: Routes, topic: str) -> object:
    routes.refresh([topic])
    return routes.leader(TopicPartition(topic, 0))


def _offsets(routes: Routes, topic: str) -> object:
    routes.refresh([topic])
    return list_offsets(routes, [TopicPartition(topic, 0)], LATEST)


def _records(routes: Routes, topic: str) -> object:
    routes.refresh([topic])
    return list(read_records(routes, TopicPartition(topic, 0), 0, 5, patience=0.2))


def _configs(routes: Routes, topic: str) -> object:
    routes.refresh([])
    return topic_configs(routes, [topic], ["cleanup.policy"])


def _producer(routes: Routes, topic: str) -> object:
    routes.refresh([])
    return TransactionalId(routes, f"nonsense-{topic}", 10_000).initialise(patience=0.2)


@pytest.mark.parametrize("ask", [_metadata, _offsets, _records, _configs, _producer])
def test_altered_answers_are_our_own_errors(
    east: Broker,
    east_proxy: Proxy,
    topic: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    ask: Callable[[Routes, str], object],
) -> None:
    """Every answer may be altered, cut, or made up: a value comes of it, or an error of ours that names the cluster."""
    monkeypatch.setattr(throttle, "MOST_SECONDS", 0.1)  # made-up wishes to be left alone are obeyed too
    name = create_topic(east, topic("nonsense"))
    produce(east, name, [Record(b"v%d" % number) for number in range(5)])
    chance = random.Random(f"1 {ask.__name__}")

    def alter(_: Exchange, frame: bytes) -> bytes:
        if chance.random() < 0.4:
            return frame
        if chance.random() < 0.1:
            return frame[:4] + chance.randbytes(chance.randrange(200))
        return frame[:4] + bytes(mutated([frame[4:]], chance))

    east_proxy.on_answer = alter
    refused = 0
    with guarded(seconds=100, megabytes=800):
        for _ in range(30):
            with Routes(Cluster("east", (east_proxy.bootstrap,), {}), "test", timeout=1) as routes:
                try:
                    ask(routes, name)
                except AirmirrorError as error:
                    refused += 1
                    assert "'east'" in str(error) or error.__class__.__name__ in (
                        "CorruptBatch",
                        "UnknownMessageFormat",
                    )
    assert refused
