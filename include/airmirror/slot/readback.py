"""Reading back what was written, before it is committed, and comparing it with what was fetched (invariant D).

Read uncommitted, on connections of their own. A batch must come back with the same payload digest, count, codec, timestamp
type and times; where the target compressed it again, its records are decoded on both sides and compared one by one. (What the
slow path writes again it compares with what was fetched before it is sent.)
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.log import MOVED, receive_fetch, send_fetch
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.waiting import Look, ready
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition
from airmirror.slot.account import Account, payload_digest
from airmirror.wire.batch import CODEC_MASK, LOG_APPEND_TIME, Batch, CorruptBatch
from airmirror.wire.batches import HEADER_SIZE, parse
from airmirror.wire.requests import FetchPosition

PURPOSE = "read back"
LEAST_BYTES = 2 << 20  # asked for at once, unless it is the last of a transaction
MOST_BYTES = 4 << 20
ANSWER_SECONDS = 30.0  # and as long again, without a look


@dataclass(slots=True)
class Expected(ABC):
    """A batch as it was sent, and where the target says it is; what becomes of it is for whoever sent it to say."""

    account: Account
    count: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    payload: memoryview
    digest: bytes
    target_first: int = field(default=-1, kw_only=True)

    @property
    def size(self) -> int:
        return HEADER_SIZE + len(self.payload)

    @property
    @abstractmethod
    def keeps_times(self) -> bool:
        """Return whether the target must not stamp records with its own time."""

    @abstractmethod
    def differs(self, target_offset: int, difference: str) -> Exception:
        """The error to raise where the target holds something else."""

    @abstractmethod
    def unread(self, code: int) -> Exception:
        """The error to raise where nothing can be read, for Kafka's code of it."""


class ReadBackTooSlow(AirmirrorError, transient=True):
    """The written records could not be read back in the window's time."""

    says = (
        "cluster {0.cluster!r}: {0.bytes} written bytes were not read back in the window's time, and so "
        "not committed; is a consumer quota (consumer_byte_rate) of this user in the way?"
    )
    cluster: str
    bytes: int


class ReadBack:
    """The written batches that were not read back yet, by partition of the target."""

    def __init__(self, routes: Routes, until: float, look: Look, times: int = 1) -> None:
        """``until``: how long it may take, by ``time.monotonic``; ``look`` is called every second while it waits for long.
        ``times``: of a far target, how many times as much is under way."""
        self._routes, self._look = routes, look
        self._until, self._times = until, times
        self._expected: dict[TopicPartition, deque[Expected]] = {}
        self._bytes = 0
        self._under_way: dict[int, int] = {}  # node -> version of the fetch

    def expect(self, target: TopicPartition, expected: Expected) -> None:
        self._expected.setdefault(target, deque()).append(expected)
        self._bytes += expected.size

    def step(self, most: int) -> None:
        """Compare what was asked for before, then ask for more: one fetch a broker is under way while the slot copies.

        Waits where more than ``most`` bytes (of a far target a multiple of it) are not compared yet. Raises what
        ``drain`` does.
        """
        self._down_to(max(most, LEAST_BYTES) * self._times)
        if self._bytes >= LEAST_BYTES and not self._routes.rest(PURPOSE):
            self._send()

    def drain(self) -> None:
        """Read back and compare everything. Raises the error of the first batch that differs, ReadBackTooSlow."""
        self._down_to(0)

    def _down_to(self, most: int) -> None:
        self._receive(self._bytes > most)
        while self._bytes > most:
            if time.monotonic() > self._until:
                raise ReadBackTooSlow(self._routes.alias, self._bytes)
            self._send()
            self._receive(True)

    def _send(self) -> None:
        most = MOST_BYTES * self._times
        by_node: dict[int, dict[TopicPartition, FetchPosition]] = {}
        for target, expected in self._expected.items():
            if expected:
                leader = self._routes.leader(target)
                if leader.node in self._under_way:
                    continue
                size = min(sum(item.size for item in expected), most)
                position = FetchPosition(expected[0].target_first, leader.epoch, -1, size)
                by_node.setdefault(leader.node, {})[target] = position
        for node, positions in by_node.items():
            self._under_way[node] = send_fetch(
                self._routes,
                self._routes.connection(node, PURPOSE),
                positions,
                max_wait_ms=500,
                max_bytes=min(sum(position.max_bytes for position in positions.values()), most),
                read_committed=False,
            )

    def _receive(self, wait: bool) -> None:
        """Compare what has come of what was asked for, and with ``wait`` all of it."""
        for node, version in list(self._under_way.items()):
            connection = self._routes.connection(node, PURPOSE)
            if not ready([connection], ANSWER_SECONDS if wait else 0.0, self._look) and not wait:
                continue
            del self._under_way[node]
            buffer, partitions = receive_fetch(self._routes, connection, version)
            for target, fetched in partitions.items():
                if fetched.error in MOVED:
                    # The transaction may well continue, but what was written must be found by the new leader first.
                    reason = f"{target} moved while it was read back: {error_name(fetched.error)}"
                    raise BrokerUnreachable(self._routes.alias, connection.broker, reason)
                expected = self._expected.get(target)
                if not expected:
                    raise connection.nonsense(f"its answer to a fetch has {target}, which it was not asked for")
                if fetched.error:
                    raise expected[0].unread(fetched.error)
                self._compare(buffer, expected, parse(buffer, fetched.start, fetched.end))

    def _compare(self, buffer: memoryview, expected: deque[Expected], batches: Iterable[Batch]) -> None:
        for batch in batches:
            if not expected:
                return
            if batch.next_offset <= expected[0].target_first:
                continue
            head = expected.popleft()
            self._bytes -= head.size
            difference = _difference(buffer, batch, head)
            if difference:
                raise head.differs(batch.base_offset, difference)


def _difference(buffer: memoryview, batch: Batch, expected: Expected) -> str | None:
    """Return the difference, or None; equal batches are added to the account's digest as the target holds them."""
    if batch.base_offset != expected.target_first:
        return f"a batch begins at {batch.base_offset} where {expected.target_first} was answered"
    if batch.count != expected.count or not batch.is_dense:
        return f"{batch.count} records in place of {expected.count}"
    stamped = bool(batch.attributes & LOG_APPEND_TIME)
    if stamped and expected.keeps_times:
        return "the remote topic has message.timestamp.type=LogAppendTime, which changes every timestamp"
    payload = buffer[batch.position + HEADER_SIZE : batch.position + batch.size]
    digest = payload_digest(payload)
    unchanged = (
        digest == expected.digest
        and batch.attributes & CODEC_MASK == expected.attributes & CODEC_MASK
        and batch.base_timestamp == expected.base_timestamp
        and (stamped or batch.max_timestamp == expected.max_timestamp)
    )
    if not unchanged:
        difference = _record_difference(buffer, batch, expected)
        if difference:
            return difference
    account = expected.account
    account.digest.add(batch.attributes, batch.count, batch.base_timestamp, batch.max_timestamp, len(payload), digest)
    account.target_epoch = batch.leader_epoch
    return None


def _record_difference(buffer: memoryview, batch: Batch, expected: Expected) -> str | None:
    # loads compiled loops: only where records must be decoded
    from airmirror.wire.codecs import UnknownCodec
    from airmirror.wire.records import first_difference, index, without_times

    payload = expected.payload
    if payload_digest(payload) != expected.digest:
        return "the batch was altered between the fetch and the write"
    whole = batch._replace(
        position=-HEADER_SIZE,
        size=HEADER_SIZE + len(payload),
        attributes=expected.attributes & ~LOG_APPEND_TIME,
        base_timestamp=expected.base_timestamp,
    )
    try:
        found, source = index(buffer, [batch]), index(payload, [whole])
    except (CorruptBatch, UnknownCodec) as error:
        return f"its records can't be compared: {error}"
    if batch.attributes & LOG_APPEND_TIME:
        source, found = without_times(source), without_times(found)
    number = first_difference(source, found)
    if number >= 0:
        return f"record {number} of the batch is not equal"
    if len(found) != len(source):
        return f"{len(found)} records in place of {len(source)}"
    return None
