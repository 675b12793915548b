"""Producing: batches go out in order, one a partition and request, at most five requests in flight a broker.

Sequences are given when a batch is put in, so a batch that is sent again after a retriable error, with all that went out
after it, keeps its own: the broker takes it once, also where it had taken it before. A lost connection ends the transaction:
its answers decide nothing any more (invariant C).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from airmirror.clusters.protocol.connection import BrokerUnreachable, Connection
from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.log import MOVED
from airmirror.clusters.protocol.routes import LeaderNotAvailable, Routes
from airmirror.clusters.protocol.transactions import (
    CONCURRENT_TRANSACTIONS,
    FENCED,
    PartitionsRefused,
    ProducerFenced,
    TransactionalId,
    TransactionFailed,
)
from airmirror.clusters.protocol.waiting import ready
from airmirror.partitions import TopicPartition
from airmirror.slot.refusals import UNEXPLAINED
from airmirror.wire.batches import build, next_sequence
from airmirror.wire.requests import (
    IN_FLIGHT,
    PRODUCE,
    Buffer,
    MalformedResponse,
    Produced,
    decode_produce,
    encode_produce,
)

REQUEST_BYTES = 16 << 20
PURPOSE = "produce"
ANSWER_SECONDS = 40.0  # more than the time that the broker itself may take for a write

LEADER_NOT_AVAILABLE = 5
# of a batch behind one that failed: that one was taken all the same, or is lacking; both are sent again
BEHIND = frozenset({0, 45})
# what passes by waiting, the batch unchanged: also too few in-sync replicas and a transaction that is still ending
RETRIABLE = MOVED | {7, 19, 20, 56, CONCURRENT_TRANSACTIONS}
# what the records themselves cause: too large, corrupt, invalid timestamp, invalid record, unsupported format, denied
REFUSED = frozenset({2, 10, 18, 29, 32, 43, 76, 87})


@dataclass(slots=True)
class Outgoing:
    """A batch to be produced, its first buffer beginning with the header."""

    target: TopicPartition
    buffers: Sequence[Buffer]
    size: int
    count: int
    on_refused: Callable[[Produced], Exception]  # the error to raise for a refusal that is final
    on_written: Callable[[int], None] = lambda base: None  # called with the base offset that the target gave it
    on_late: Callable[[str], Exception] | None = None  # as on_refused, where it was not taken in time, with the reason


@dataclass(slots=True)
class _Lane:
    """A partition's batches: waiting to be sent, and sent but not answered, both in order."""

    waiting: deque[Outgoing] = field(default_factory=deque)
    sent: deque[Outgoing] = field(default_factory=deque)
    failed: list[Outgoing] = field(default_factory=list)  # to be sent again once nothing is in flight
    sequence: int = 0
    error: int = 0  # Kafka's code of what failed last


class Outbox:
    """The produce side of one transaction after the other of a slot."""

    def __init__(self, routes: Routes, transaction: TransactionalId) -> None:
        self._routes = routes
        self.transaction = transaction
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._in_flight: dict[int, deque[list[TopicPartition]]] = {}
        self._resting = 0.0  # seconds for which a broker that something waits for wants nothing to be sent
        self._retry_until = 0.0
        self._pause = 0.05

    def sequence(self, target: TopicPartition, count: int) -> int:
        """The sequence of the partition's next batch, which has ``count`` records and must be put in next."""
        lane = self._lanes.setdefault(target, _Lane())
        sequence = lane.sequence
        lane.sequence = next_sequence(sequence, count)
        return sequence

    def batch(
        self, target: TopicPartition, payload: bytes | memoryview, count: int, times: tuple[int, int], codec: int = 0
    ) -> bytearray:
        """The partition's next batch, to be put in next; ``times``: of the first of its ``count`` records, and the newest."""
        return build(
            payload,
            count=count,
            base_timestamp=times[0],
            max_timestamp=times[1],
            codec=codec,
            producer_id=self.transaction.producer_id,
            producer_epoch=self.transaction.epoch,
            sequence=self.sequence(target, count),
            transactional=True,
        )

    def put(self, outgoing: Outgoing) -> None:
        self._lanes[outgoing.target].waiting.append(outgoing)

    def start_sequences_anew(self) -> None:
        """With a new producer epoch."""
        for lane in self._lanes.values():
            lane.sequence = 0

    @property
    def is_empty(self) -> bool:
        return not any(lane.waiting or lane.sent or lane.failed for lane in self._lanes.values())

    def send_all(self) -> None:
        """Send everything that waits; up to five requests a broker may be unanswered after that."""
        try:
            self.transaction.add([target for target, lane in self._lanes.items() if lane.waiting])
        except PartitionsRefused as refused:
            target, code = min(refused.codes.items())
            raise self._lanes[target].waiting[0].on_refused(Produced(code, -1, None)) from refused
        while self._send_some():
            self._answers(block=self._full())

    def drain(self) -> None:
        """Send everything and wait for every answer."""
        self.send_all()
        while not self.is_empty:
            if not self.transaction.seconds_left:
                raise self._broken("the window's time was over before everything was written")
            self._send_some()
            self._answers(block=True)

    def _send_some(self) -> bool:
        """One request to each broker that has room; whether something is still waiting after that."""
        by_node: dict[int, dict[TopicPartition, Sequence[Buffer]]] = {}
        sizes: dict[int, int] = {}
        connections: dict[int, Connection] = {}
        more = False
        self._resting = 0.0
        for target, lane in self._lanes.items():
            if not lane.waiting:
                continue
            if lane.failed:
                more = True
                continue
            try:
                node = self._routes.leader(target).node
            except LeaderNotAvailable as error:
                if not lane.sent:  # else in order: what was sent before is answered first
                    lane.failed.append(lane.waiting.popleft())
                    lane.error = error.error or LEADER_NOT_AVAILABLE
                    more = True
                continue
            connection = connections.get(node) or connections.setdefault(node, self._connection(node))
            if resting := connection.throttle.seconds:
                self._resting = max(self._resting, resting)
                more = True
                continue
            if len(self._in_flight.get(node, ())) >= IN_FLIGHT:
                more = True
                continue
            batches = by_node.setdefault(node, {})
            size = sizes.get(node, 0) + lane.waiting[0].size
            if batches and size > REQUEST_BYTES:
                more = True
                continue
            sizes[node] = size
            outgoing = lane.waiting.popleft()
            lane.sent.append(outgoing)
            batches[target] = outgoing.buffers
            more = more or bool(lane.waiting)
        for node, batches in by_node.items():
            connection = connections[node]
            connection.send(
                encode_produce(
                    version=self._version(connection),
                    correlation_id=connection.next_correlation_id(),
                    client_id=connection.client_id,
                    transactional_id=self.transaction.name,
                    batches=batches,
                    topic_ids=self._routes.topic_ids,
                    timeout_ms=30_000,
                )
            )
            self._in_flight.setdefault(node, deque()).append(list(batches))
        return more

    def _full(self) -> bool:
        full = any(len(requests) >= IN_FLIGHT for requests in self._in_flight.values())
        return full or self._failed() or self._resting > 0

    def _failed(self) -> bool:
        return any(lane.failed for lane in self._lanes.values())

    def _answers(self, block: bool) -> None:
        """Take the answers that are there; with ``block`` wait for at least one."""
        nodes = {self._connection(node): node for node, requests in self._in_flight.items() if requests}
        if nodes:
            # A broker that wants to be left alone does not read what it was sent before.
            patience = ANSWER_SECONDS + self._routes.rest(PURPOSE)
            most = min(patience, self.transaction.seconds_left) if block else 0
            answering = ready(nodes, most, self.transaction.look)
            if block and not answering:
                broker = ", ".join(connection.broker for connection in nodes)
                raise BrokerUnreachable(self._routes.alias, broker, f"no answer to a write for {most:.0f} s")
            for connection in answering:
                self._answer(connection, nodes[connection])
        elif block and self._resting:
            if not self.transaction.seconds_left:
                raise self._broken("the window's time was over before a broker's quota let everything be written")
            time.sleep(min(self._resting, self.transaction.seconds_left))  # the broker has said for how long
        self._try_again()

    def _answer(self, connection: Connection, node: int) -> None:
        response = connection.receive()
        partitions = self._in_flight[node].popleft()
        try:
            throttle_ms, produced = decode_produce(self._version(connection), response, self._routes.topic_names)
        except MalformedResponse as problem:
            raise connection.nonsense(f"its answer to a write ({problem.reason})") from problem
        connection.throttle.note(throttle_ms)
        for target in partitions:
            lane = self._lanes[target]
            outgoing = lane.sent.popleft()
            result = produced.get(target)
            if result is None:
                raise self._broken(f"the answer leaves out {target}")
            error = result.error
            if error == 0 and result.base_offset >= 0 and not lane.failed:
                self._retry_until = 0.0
                outgoing.on_written(result.base_offset)
            elif error in RETRIABLE or (lane.failed and error in BEHIND):
                lane.failed.append(outgoing)
                lane.error = lane.error if error in BEHIND else error
            elif error in FENCED:
                raise ProducerFenced(self._routes.alias, self.transaction.name)
            elif error in REFUSED or (error == UNEXPLAINED and outgoing.on_late is not None):
                raise outgoing.on_refused(result)
            else:
                raise self._broken(
                    f"produce to {target}: {result.message or error_name(error)}, offset {result.base_offset}"
                )

    def _try_again(self) -> None:
        """Send what failed again, in order and under its own sequences, within the transaction's lifetime."""
        lanes = {target: lane for target, lane in self._lanes.items() if lane.failed and not lane.sent}
        if not lanes:
            return
        now = time.monotonic()
        if not self._retry_until:
            self._retry_until = min(now + self.transaction.timeout_ms / 2000, self.transaction.until)
            self._pause = 0.05
        if now > self._retry_until:
            raise self._late(lanes)
        time.sleep(self._pause)  # the backoff: nothing tells when a leader is elected
        self._pause = min(self._pause * 2, 2.0)
        self._routes.refresh({target.topic for target in lanes})
        for lane in lanes.values():
            lane.waiting.extendleft(reversed(lane.failed))
            lane.failed.clear()

    def _late(self, lanes: Mapping[TopicPartition, _Lane]) -> Exception:
        """The error of the partition alone, where it is to blame and not the transaction."""
        late = f"it took no records for {self.transaction.timeout_ms // 2000} s"
        if not self.transaction.seconds_left:
            late = "it took no records until the window's time was over"
        reasons = {target: f"{late} ({error_name(lane.error)})" for target, lane in lanes.items()}
        for target, lane in lanes.items():
            on_late = lane.failed[0].on_late
            if on_late is not None and lane.error != CONCURRENT_TRANSACTIONS:
                return on_late(reasons[target])
        return self._broken("; ".join(f"{target}: {reason}" for target, reason in reasons.items()))

    def _connection(self, node: int) -> Connection:
        return self._routes.connection(node, PURPOSE)

    def _version(self, connection: Connection) -> int:
        highest = connection.produce_version
        return (
            highest if self.transaction.second_protocol else connection.version(PRODUCE, 9, min(highest, 11), "Produce")
        )

    def _broken(self, reason: str) -> TransactionFailed:
        return TransactionFailed(self._routes.alias, self.transaction.name, "Produce", reason)
