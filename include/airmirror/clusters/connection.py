"""One socket to one broker: whole responses into one buffer, requests sent as lists of buffers, nothing copied between.

What happens once (API versions, SASL) and every request outside the hot path is encoded by kafka-python's protocol
classes. Requests on one connection are answered in order, so there is one connection a purpose (fetch, produce, read
back), and a reply that was not read yet belongs to the oldest request.
"""

from __future__ import annotations

import select
import socket
import struct
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from airmirror.clusters.nulls import null_field
from airmirror.errors import AirmirrorError
from airmirror.wire.requests import FETCH, FETCH_VERSIONS, PRODUCE, PRODUCE_VERSIONS, Buffer

RECEIVE_BUFFER = 4 << 20
LARGEST_RESPONSE = 1 << 30
AT_ONCE = 64 << 20  # a buffer for a larger response grows as its bytes come: a size alone allocates no more than this

_prefix = struct.Struct(">ii")  # size, correlation id

Allocate = Callable[[int], bytearray]


@dataclass(eq=False)
class BrokerUnreachable(AirmirrorError):
    """No connection to a broker, or a connection that ended while an answer was awaited."""

    transient: ClassVar[bool] = True

    cluster: str
    broker: str
    reason: str

    def __str__(self) -> str:
        return f"cluster {self.cluster!r}: broker {self.broker} can't be reached: {self.reason}"


@dataclass(eq=False)
class NotAKafkaAnswer(BrokerUnreachable):
    """What listens there answers with bytes that are no answer to what it was asked."""

    def __str__(self) -> str:
        return f"cluster {self.cluster!r}: broker {self.broker}: {self.reason}"


@dataclass(eq=False)
class UnsupportedBroker(AirmirrorError):
    """A broker too old (or too new) for a request that is needed."""

    cluster: str
    broker: str
    request: str
    offered: str
    needed: str

    def __str__(self) -> str:
        return (
            f"cluster {self.cluster!r}: broker {self.broker} speaks {self.request} {self.offered}, "
            f"Airmirror needs {self.needed}: brokers from Kafka 2.8 on are supported"
        )


@dataclass(eq=False)
class SecurityNotSupported(AirmirrorError):
    """A security protocol that the hot path does not speak yet."""

    cluster: str
    protocol: str

    def __str__(self) -> str:
        return (
            f"cluster {self.cluster!r}: security.protocol={self.protocol} is not supported yet; "
            "use a PLAINTEXT listener for replication"
        )


class Connection:
    """A connection to one broker. Not thread-safe; use it as a context manager or close it."""

    def __init__(self, cluster: str, host: str, port: int, client_id: str, timeout: float = 30.0) -> None:
        """Connects and asks for the broker's API versions; ``timeout`` (seconds) bounds every wait for bytes."""
        self.cluster = cluster
        self.broker = f"{host}:{port}"
        self.client_id = client_id.encode()
        self._name = client_id
        self._correlation_id = 0
        self.waiting = 0
        try:
            self._socket = socket.create_connection((host, port), timeout=min(timeout, 10.0))
            self._socket.settimeout(None)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
            seconds = struct.pack("ll", int(timeout), int(timeout % 1 * 1_000_000))
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                self._socket.setsockopt(socket.SOL_SOCKET, option, seconds)
        except (OSError, OverflowError, ValueError) as error:  # the latter two: no port, no host's name
            raise BrokerUnreachable(cluster, self.broker, str(error)) from error
        try:
            self._greet()
        except BaseException:
            self._socket.close()
            raise

    def _greet(self) -> None:
        answer = self.request(ApiVersionsRequest(client_software_name="airmirror", client_software_version="1"), 3)
        if answer.error_code:
            raise UnsupportedBroker(self.cluster, self.broker, "ApiVersions", "before 3", "3")
        if not answer.api_keys:
            raise self.nonsense("it has no API")
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in answer.finalized_features or ()}

    def version(self, api_key: int, lowest: int, highest: int, name: str = "") -> int:
        """The highest version of a request that both sides know; UnsupportedBroker where there is none."""
        offered = self._versions.get(api_key, (0, -1))
        version: int = min(offered[1], highest)
        if version < max(lowest, offered[0]):
            raise UnsupportedBroker(
                self.cluster,
                self.broker,
                name or str(api_key),
                f"{offered[0]} to {offered[1]}",
                f"{lowest} to {highest}",
            )
        return version

    @property
    def fetch_version(self) -> int:
        return self.version(FETCH, *FETCH_VERSIONS, "Fetch")

    @property
    def produce_version(self) -> int:
        """The highest known Produce; a transaction of the first protocol (TV1) takes 11 at most."""
        return self.version(PRODUCE, *PRODUCE_VERSIONS, "Produce")

    def next_correlation_id(self) -> int:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return self._correlation_id

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send one framed request given as buffers, in order. Raises BrokerUnreachable."""
        rest = [memoryview(buffer) for buffer in buffers]
        try:
            while rest:
                sent = self._socket.sendmsg(rest[:64])
                while rest and sent >= len(rest[0]):
                    sent -= len(rest.pop(0))
                if sent:
                    rest[0] = rest[0][sent:]
        except OSError as error:
            raise self._lost(error) from error
        self.waiting += 1

    def receive(self, allocate: Allocate = bytearray) -> memoryview:
        """The next response without its length prefix, in a buffer of ``allocate(size)``.

        Raises BrokerUnreachable, NotAKafkaAnswer.
        """
        prefix = bytearray(8)
        self._fill(memoryview(prefix))
        size, answered = _prefix.unpack(prefix)
        if not 4 <= size <= LARGEST_RESPONSE:
            raise self.nonsense(f"a response of {size} bytes")
        asked = (self._correlation_id - self.waiting + 1) & 0x7FFFFFFF
        if answered != asked:
            raise self.nonsense(f"a response to request {answered} where one to {asked} was awaited")
        view = memoryview(allocate(size))[:size] if size <= AT_ONCE else memoryview(bytearray(AT_ONCE))
        view[:4] = prefix[4:]
        self._fill(view[4:])
        while len(view) < size:
            grown = memoryview(bytearray(min(size, 2 * len(view))))
            grown[: len(view)] = view
            self._fill(grown[len(view) :])
            view = grown
        self.waiting -= 1
        return view

    def nonsense(self, reason: str) -> NotAKafkaAnswer:
        """The error for an answer that is none."""
        way_out = "see that a Kafka broker listens there, with the configured security.protocol"
        return NotAKafkaAnswer(self.cluster, self.broker, f"it answers as no Kafka broker would: {reason}; {way_out}")

    def request(self, request: Any, version: int) -> Any:
        """Send one of kafka-python's requests and wait for its response, decoded."""
        self._send_request(request, version)
        return self._decode(request, version)

    def pipelined(self, requests: Iterable[Any], version: int, most: int = 64) -> Iterator[Any]:
        """Send kafka-python's requests without waiting for each response, ``most`` under way; the responses, in order."""
        under_way: deque[Any] = deque()
        for request in requests:
            if len(under_way) >= most:
                yield self._decode(under_way.popleft(), version)
            self._send_request(request, version)
            under_way.append(request)
        while under_way:
            yield self._decode(under_way.popleft(), version)

    def _send_request(self, request: Any, version: int) -> None:
        request.API_VERSION = version
        request.with_header(correlation_id=self.next_correlation_id(), client_id=self._name)
        self.send([request.encode(framed=True, header=True)])

    def _decode(self, request: Any, version: int) -> Any:
        body = bytes(self.receive())
        response_class = request.header.get_response_class()
        if response_class is None:  # pragma: no cover - kafka-python registers every response
            response_class = ApiVersionsResponse[version]
        try:
            answer = response_class.decode(body, header=True)
        except (
            struct.error,
            LookupError,
            ValueError,
            TypeError,
            AttributeError,
            ArithmeticError,
            AssertionError,
        ) as error:
            raise self.nonsense(f"its answer to {type(request).__name__} ({error!r})") from error
        null = null_field(response_class, version, answer)
        if null is not None:
            raise self.nonsense(f"its answer to {type(request).__name__} has no {null}")
        return answer

    def readable(self, timeout: float = 0.0) -> bool:
        """Whether bytes of an answer (or the connection's end) are there within ``timeout`` seconds."""
        return bool(select.select([self._socket], [], [], timeout)[0])

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _fill(self, view: memoryview) -> None:
        done = 0
        try:
            while done < len(view):
                received = self._socket.recv_into(view[done:], 0, socket.MSG_WAITALL)
                if received == 0:
                    raise BrokerUnreachable(self.cluster, self.broker, "it closed the connection")
                done += received
        except OSError as error:
            raise self._lost(error) from error

    def _lost(self, error: OSError) -> BrokerUnreachable:
        reason = "no answer in time" if isinstance(error, BlockingIOError) else str(error)
        return BrokerUnreachable(self.cluster, self.broker, reason)
