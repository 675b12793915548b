"""A TCP proxy before a broker that understands Kafka's frames, for fault tests: it delays, alters, holds and loses them.

A *rule* is asked for every frame that passes and returns what goes on, or None to cut the connection, which is how
a client sees that its request or the answer to it was lost. Frames are as Kafka's protocol guide describes them: INT32
size, then for a request INT16 api key, INT16 api version, INT32 correlation id; for an answer INT32 correlation id.
Plaintext listeners only.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

from airmirror_local.brokers import Broker
from airmirror_local.ports import LOOPBACK

_size = struct.Struct(">i")
_request = struct.Struct(">hhi")


@dataclass(frozen=True)
class Exchange:
    """A request and its answer; ``number`` counts the requests with this api key through the proxy, from 1."""

    api_key: int
    api_version: int
    correlation_id: int
    number: int


Rule = Callable[[Exchange, bytes], bytes | None]


def pass_on(_: Exchange, frame: bytes) -> bytes:
    """The rule that changes nothing."""
    return frame


@dataclass
class Loss:
    """A rule that loses the ``number``-th frame of an api key, once; ``happened`` is set when it did."""

    api_key: int
    number: int = 1
    happened: threading.Event = field(default_factory=threading.Event)

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes | None:
        if (exchange.api_key, exchange.number) != (self.api_key, self.number):
            return frame
        self.happened.set()
        return None


@dataclass
class Hold:
    """A rule that keeps the ``number``-th frame of an api key back from ``reached`` being set until ``release`` is."""

    api_key: int
    number: int = 1
    reached: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes | None:
        if (exchange.api_key, exchange.number) == (self.api_key, self.number):
            self.reached.set()
            self.release.wait()
        return frame


@dataclass
class Proxy:
    """A running proxy. Rules may be set at any time, and count for every frame that passes from then on."""

    port: int
    target: int
    on_request: Rule = pass_on
    on_answer: Rule = pass_on
    requests: Counter[int] = field(default_factory=Counter)  # by api key
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _sockets: set[socket.socket] = field(default_factory=set, repr=False)

    @property
    def bootstrap(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def cut(self) -> None:
        """Cut all connections; new ones are accepted."""
        with self._lock:
            for connection in self._sockets:
                _shut(connection)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # the listener was closed
                return
            try:
                broker = socket.create_connection((LOOPBACK, self.target))
            except OSError:  # the broker is down, and so it looks to the client
                client.close()
                continue
            for connection in (client, broker):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            waiting: dict[int, Exchange] = {}
            with self._lock:
                self._sockets |= {client, broker}
            for pump in (self._requests_of, self._answers_to):
                threading.Thread(target=pump, args=(client, broker, waiting), daemon=True).start()

    def _requests_of(self, client: socket.socket, broker: socket.socket, waiting: dict[int, Exchange]) -> None:
        def pass_request(frame: bytes) -> bytes | None:
            api_key, api_version, correlation_id = _request.unpack_from(frame)
            with self._lock:
                self.requests[api_key] += 1
                exchange = Exchange(api_key, api_version, correlation_id, self.requests[api_key])
            waiting[correlation_id] = exchange
            return self.on_request(exchange, frame)

        self._pump(client, broker, pass_request)

    def _answers_to(self, client: socket.socket, broker: socket.socket, waiting: dict[int, Exchange]) -> None:
        def pass_answer(frame: bytes) -> bytes | None:
            return self.on_answer(waiting.pop(_size.unpack_from(frame)[0]), frame)

        self._pump(broker, client, pass_answer)

    def _pump(self, origin: socket.socket, goal: socket.socket, rule: Callable[[bytes], bytes | None]) -> None:
        try:
            while (frame := _read_frame(origin)) is not None and (passed := rule(frame)) is not None:
                goal.sendall(_size.pack(len(passed)) + passed)
        except OSError:  # the other pump, a client or the broker closed a connection: so do we
            pass
        finally:
            for connection in (origin, goal):
                _shut(connection)
            with self._lock:
                self._sockets -= {origin, goal}


def start_proxy(broker: Broker) -> AbstractContextManager[Proxy]:
    """A proxy before a broker that was started with ``proxy_port``; ends with the block, and all connections with it."""
    if broker.proxy_port is None or broker.proxied_port is None:
        raise ValueError(f"{broker.name} was started without proxy_port")
    return forward(broker.proxy_port, broker.proxied_port)


@contextmanager
def forward(port: int, target: int) -> Iterator[Proxy]:
    """A proxy at a port, before another one of this machine; it ends as ``start_proxy`` has it."""
    proxy = Proxy(port, target)
    with socket.create_server((LOOPBACK, proxy.port)) as listener:
        accepting = threading.Thread(target=proxy._accept, args=(listener,), daemon=True)
        accepting.start()
        try:
            yield proxy
        finally:
            _shut(listener)
            listener.close()
            proxy.cut()
            accepting.join()


def _read_frame(connection: socket.socket) -> bytes | None:
    """The next frame without its size, None at the end of the stream."""
    size = _read(connection, _size.size)
    return None if size is None else _read(connection, _size.unpack(size)[0])


def _read(connection: socket.socket, size: int) -> bytes | None:
    buffer = bytearray(size)
    view = memoryview(buffer)
    while view:
        received = connection.recv_into(view)
        if not received:
            return None
        view = view[received:]
    return bytes(buffer)


def _shut(connection: socket.socket) -> None:
    """Wake whoever waits for this socket."""
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:  # not connected, or not any more
        return
