"""One socket to one broker: whole responses into one buffer, requests sent as lists of buffers, nothing copied between.

What happens once (API versions, SASL) and every request outside the hot path is encoded by kafka-python's protocol
classes. Requests on one connection are answered in order: a reply that was not read yet belongs to the oldest request. So
whoever sends ahead of answers (fetch, produce, read back) has a connection of its own.

Over TLS the same buffers are decrypted into and encrypted from; only small parts of a request are joined first. A session
that ends (KIP-368) is renewed before the next request is sent, whatever is under way: answers that come before are kept.
"""

from __future__ import annotations

import math
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kafka.protocol.metadata import ApiVersionsRequest

from airmirror.clusters.protocol.buffers import raise_receive_buffer
from airmirror.clusters.protocol.nulls import null_field
from airmirror.clusters.protocol.throttle import ConnectionThrottle
from airmirror.clusters.security.tls import RECORD_BYTES, TlsFailed
from airmirror.errors import AirmirrorError
from airmirror.wire.requests import FETCH, FETCH_VERSIONS, PRODUCE, PRODUCE_VERSIONS, Buffer

LARGEST_GREETING = 1 << 20  # bytes of an answer before the log-in is done
LARGEST_ANSWER = 100 << 20
LARGEST_FETCH = 1 << 30  # of an answer to a fetch: one batch is in it, however large
LEAST_RATE = 64 << 10  # bytes a second: who answers slower than that is given up
AT_ONCE = 64 << 20  # a buffer for a larger response grows as its bytes come: a size alone allocates no more than this
NOT_GREETED = " before it said anything; where it always does, does security.protocol fit this listener?"

# What kafka-python raises over bytes that are no answer.
MALFORMED = (struct.error, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, AssertionError)

_prefix = struct.Struct(">ii")  # size, correlation id
_correlation_id = struct.Struct(">i")

Allocate = Callable[[int], bytearray]


class BrokerUnreachable(AirmirrorError, transient=True):
    """No connection to a broker, or a connection that ended while an answer was awaited."""

    says = "cluster {0.cluster!r}: broker {0.broker} can't be reached: {0.reason}"
    cluster: str
    broker: str
    reason: str


class NotAKafkaAnswer(BrokerUnreachable):
    """The listener's answer is not an answer of the Kafka protocol."""

    says = "cluster {0.cluster!r}: broker {0.broker}: {0.reason}"


class UnsupportedBroker(AirmirrorError):
    """A broker too old (or too new) for a request that is needed."""

    says = (
        "cluster {0.cluster!r}: broker {0.broker} speaks {0.request} {0.offered}, "
        "Airmirror needs {0.needed}: brokers from Kafka 2.8 on are supported"
    )
    cluster: str
    broker: str
    request: str
    offered: str
    needed: str


@dataclass(frozen=True)
class Transport:
    """The parts that all connections of one kind of client share: TLS and the log-in.

    ``log_in`` returns the seconds after which to log in again, or None for never.
    """

    tls: ssl.SSLContext | None = None
    log_in: Callable[[Connection], float | None] | None = None


PLAINTEXT = Transport()


class Connection(AbstractContextManager["Connection"]):
    """A connection to one broker. Not thread-safe; use it as a context manager or close it."""

    def __init__(
        self,
        cluster: str,
        host: str,
        port: int,
        client_id: str,
        timeout: float = 30.0,
        transport: Transport = PLAINTEXT,
        throttled: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """Connects, asks for the broker's API versions and logs in; ``timeout`` (seconds) bounds every wait for bytes;
        ``throttled`` hears of the seconds for which the broker wants to be left alone.

        Raises BrokerUnreachable, UnsupportedBroker, TlsFailed, AuthenticationFailed.
        """
        self.cluster = cluster
        self.broker = f"{host}:{port}"
        self.client_id = client_id.encode()
        self._name = client_id
        self._correlation_id = 0
        self._asked: deque[int] = deque()  # of the requests whose answers were not read yet
        self._held: deque[memoryview] = deque()  # answers that were read before anyone asked for them
        self.throttle = ConnectionThrottle(throttled)
        self.round_trip = math.inf  # seconds that the quickest answer took so far
        self._timeout = timeout
        self._transport = transport
        self._log_in_at: float | None = None
        self._tls: ssl.SSLSocket | None = None
        self._greeted = False
        self._socket = self._connect(host, port, timeout)
        try:
            if transport.tls is not None:
                self._socket = self._tls = self._encrypted(transport.tls, host, timeout)
            self._greet()
            if transport.log_in is not None:
                self._log_in()
            self._greeted = True
        except BaseException:
            self._socket.close()
            raise

    def _connect(self, host: str, port: int, timeout: float) -> socket.socket:
        try:
            connected = socket.create_connection((host, port), timeout=min(timeout, 10.0))
            connected.settimeout(None)
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raise_receive_buffer(connected)
            seconds = struct.pack("ll", int(timeout), int(timeout % 1 * 1_000_000))
            for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
                connected.setsockopt(socket.SOL_SOCKET, option, seconds)
        except (OSError, OverflowError, ValueError) as error:  # the latter two: no port, no host's name
            raise BrokerUnreachable(self.cluster, self.broker, str(error)) from error
        return connected

    def _encrypted(self, context: ssl.SSLContext, host: str, timeout: float) -> ssl.SSLSocket:
        self._socket.settimeout(timeout)  # OpenSSL knows nothing of SO_RCVTIMEO
        try:
            return context.wrap_socket(self._socket, server_hostname=host)
        except (OSError, ValueError) as error:  # a ValueError: a host's name that can't be in a certificate
            raise self._lost(error) from error

    def _greet(self) -> None:
        answer = self.request(ApiVersionsRequest(client_software_name="airmirror", client_software_version="1"), 3)
        if answer.error_code:
            raise UnsupportedBroker(self.cluster, self.broker, "ApiVersions", "before 3", "3")
        if not answer.api_keys:
            raise self.nonsense("it has no API")
        self._versions = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
        self.features = {feature.name: feature.max_version_level for feature in answer.finalized_features or ()}
        self.supported = {feature.name: feature.max_version for feature in answer.supported_features or ()}

    def _log_in(self) -> None:
        """Log in for the first time or again; answers to what was asked before come first and are kept."""
        assert self._transport.log_in is not None  # only who has logged in does it again
        self._log_in_at = None
        while self._asked:
            self._held.append(self._read(bytearray, LARGEST_FETCH))
        held, self._held = self._held, deque()
        try:
            seconds = self._transport.log_in(self)
        except BaseException:
            self._log_in_at = 0.0  # nothing goes out before that
            raise
        finally:
            self._held = held
        self._log_in_at = None if seconds is None else time.monotonic() + seconds

    def version(self, api_key: int, lowest: int, highest: int, name: str) -> int:
        """The highest version of a request that both sides know; UnsupportedBroker where there is none."""
        first, last = self._versions.get(api_key, (0, -1))
        version: int = min(last, highest)
        if version < max(lowest, first):
            raise UnsupportedBroker(self.cluster, self.broker, name, f"{first} to {last}", f"{lowest} to {highest}")
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

    @property
    def waiting(self) -> int:
        """The number of requests that were sent and not answered yet."""
        return len(self._asked) + len(self._held)

    @property
    def has_bytes(self) -> bool:
        """Return whether bytes of an answer were taken from the socket already."""
        return bool(self._held) or (self._tls is not None and self._tls.pending() > 0)

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send one framed request given as buffers, when the broker lets it. Raises BrokerUnreachable, AuthenticationFailed."""
        self.throttle.obey()
        if self._log_in_at is not None and time.monotonic() >= self._log_in_at:
            self._log_in()
        try:
            if self._tls is None:
                self._send(buffers)
            else:
                for part in _parts(buffers):
                    self._tls.sendall(part)
        except OSError as error:
            if self._tls is not None and not self._greeted:
                # A broker that does not want our certificate has said so before.
                self._fill(memoryview(bytearray(1)), math.inf)
            raise self._lost(error) from error
        self._asked.append(_correlation_id.unpack_from(buffers[0], 8)[0])

    def _send(self, buffers: Sequence[Buffer]) -> None:
        rest = [memoryview(buffer) for buffer in buffers]
        while rest:
            sent = self._socket.sendmsg(rest[:64])
            while rest and sent >= len(rest[0]):
                sent -= len(rest.pop(0))
            if sent:
                rest[0] = rest[0][sent:]

    def receive(self, allocate: Allocate = bytearray, largest: int = LARGEST_ANSWER) -> memoryview:
        """The next response without its length prefix, of at most ``largest`` bytes, in a buffer of ``allocate(size)``.

        Raises BrokerUnreachable, NotAKafkaAnswer.
        """
        return self._held.popleft() if self._held else self._read(allocate, largest)

    def _read(self, allocate: Allocate, largest: int) -> memoryview:
        prefix = bytearray(8)
        until = time.monotonic() + self._timeout
        self._fill(memoryview(prefix), until)
        size, answered = _prefix.unpack(prefix)
        until += size / LEAST_RATE
        if not 4 <= size <= (largest if self._greeted else LARGEST_GREETING):
            raise self.nonsense(f"a response of {size} bytes")
        if not self._asked or answered != self._asked[0]:
            asked = self._asked[0] if self._asked else "none"
            raise self.nonsense(f"a response to request {answered} where one to {asked} was awaited")
        view = memoryview(allocate(size))[:size] if size <= AT_ONCE else memoryview(bytearray(AT_ONCE))
        view[:4] = prefix[4:]
        self._fill(view[4:], until)
        while len(view) < size:
            grown = memoryview(bytearray(min(size, 2 * len(view))))
            grown[: len(view)] = view
            self._fill(grown[len(view) :], until)
            view = grown
        self._asked.popleft()
        return view

    def nonsense(self, reason: str) -> NotAKafkaAnswer:
        """The error for an answer that is none."""
        way_out = "see that a Kafka broker listens there, with the configured security.protocol"
        return NotAKafkaAnswer(self.cluster, self.broker, f"it answers as no Kafka broker would: {reason}; {way_out}")

    def request(
        self, request: Any, version: int, wait: Callable[[Connection], object] = lambda connection: None
    ) -> Any:
        """Send one of kafka-python's requests and wait for its response, decoded; ``wait`` is called in between."""
        begun = time.monotonic()
        self._send_request(request, version)
        wait(self)
        answer = self._decode(request, version)
        self.round_trip = min(self.round_trip, time.monotonic() - begun)
        return answer

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
        try:
            is_greeting = isinstance(request, ApiVersionsRequest)
            answer = _greeting(response_class, body) if is_greeting else response_class.decode(body, header=True)
        except MALFORMED as error:
            raise self.nonsense(f"its answer to {type(request).__name__} ({error!r})") from error
        self.throttle.note(getattr(answer, "throttle_time_ms", None) or 0)
        null = null_field(response_class, version, answer)
        if null is not None:
            raise self.nonsense(f"its answer to {type(request).__name__} has no {null}")
        return answer

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fill(self, view: memoryview, until: float) -> None:
        """Fill the view by ``until`` (``time.monotonic``): every single wait is bounded by the socket's timeout too."""
        done = 0
        flags = socket.MSG_WAITALL if self._tls is None else 0  # TLS brings a record at a time
        try:
            while done < len(view):
                received = self._socket.recv_into(view[done:], 0, flags)
                if received == 0:
                    reason = "it closed the connection" + ("" if self._greeted else NOT_GREETED)
                    raise BrokerUnreachable(self.cluster, self.broker, reason)
                done += received
                if done < len(view) and time.monotonic() > until:
                    raise TimeoutError
        except OSError as error:
            raise self._lost(error) from error

    def _lost(self, error: OSError | ValueError) -> BrokerUnreachable | TlsFailed:
        """Return the error that one of the socket means; an error of TLS means no agreement only at the beginning."""
        ended = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
        if isinstance(error, ssl.SSLError) and not self._greeted and not isinstance(error, ended):
            detail = getattr(error, "verify_message", None) or error.reason or str(error)
            return TlsFailed(self.cluster, self.broker, detail)
        reason = "no answer in time" if isinstance(error, BlockingIOError | TimeoutError) else str(error)
        if isinstance(error, ended) and not self._greeted:
            reason = "it closed the connection" + NOT_GREETED
        return BrokerUnreachable(self.cluster, self.broker, reason)


@lru_cache(maxsize=16)
def _greeting(response_class: Any, body: bytes) -> Any:
    """A broker's first answer, which is the same on each connection while nothing changes in its cluster."""
    return response_class.decode(body, header=True)


def _parts(buffers: Iterable[Buffer]) -> Iterator[Buffer]:
    """A request in few parts, each of which begins a TLS record: what is small goes together, what is large as it is."""
    small = bytearray()
    for buffer in buffers:
        if len(buffer) < RECORD_BYTES:
            small += buffer
        if small and (len(buffer) >= RECORD_BYTES or len(small) >= RECORD_BYTES):
            yield small
            small = bytearray()
        if len(buffer) >= RECORD_BYTES:
            yield buffer
    if small:
        yield small
