"""Rules for a proxy that alter what a broker is asked and what it answers, or reset connections; checksums are mended."""

from __future__ import annotations

import struct
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event
from uuid import UUID

import crc32c
from kafka.protocol.admin import DescribeConfigsResponse
from kafka.protocol.admin.topics import CreateTopicsRequest, CreateTopicsResponse
from kafka.protocol.metadata import MetadataResponse

from airmirror.wire.batch import Batch
from airmirror.wire.batches import parse
from airmirror.wire.primitives import unsigned_varint
from airmirror.wire.requests import FETCH, PRODUCE, Fetched, decode_fetch, read_unsigned_varint
from airmirror_local.ports import LOOPBACK
from airmirror_local.proxy import Exchange

CREATE_TOPICS, NOT_CONTROLLER = 19, 41
METADATA, DESCRIBE_CONFIGS, UNKNOWN_TOPIC = 3, 32, 3
ANY_TOPIC: dict[UUID, str] = defaultdict(lambda: "any")


@dataclass
class Withheld:
    """Fetches of one partition are answered without records, ``times`` that there are some ``wanted``; ``error``: Kafka's code.

    So answers a broker whose remote store is slow (0), or fails (-1).
    """

    times: float = float("inf")
    error: int = 0
    wanted: Callable[[Batch], bool] = lambda batch: True
    happened: int = 0

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key != FETCH or self.happened >= self.times:
            return frame
        found = fetched(exchange, frame)
        if found is None or not any(map(self.wanted, parse(memoryview(frame), found.start, found.end))):
            return frame
        self.happened += 1
        length = len(unsigned_varint(found.end - found.start + 1))
        answer = bytearray(frame[: found.start - length] + b"\1" + frame[found.end :])
        if self.error:
            struct.pack_into(">h", answer, _error_at(exchange, frame), self.error)
        return bytes(answer)


@dataclass
class Altered:
    """A byte of the first batch that ``wanted`` chooses is another one, in a fetch's answer or in a request to produce.

    ``at``: which byte after the batch's header. ``happened`` is set when one was altered; all later ones pass.
    """

    api_key: int
    at: int = 20
    wanted: Callable[[Batch], bool] = lambda batch: True
    happened: Event = field(default_factory=Event)

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key != self.api_key or self.happened.is_set():
            return frame
        data = bytearray(frame)
        if self.api_key == FETCH:
            found = fetched(exchange, frame)
            ranges = [(found.start, found.end)] if found else []
        else:
            ranges = _produced(data)
        for start, end in ranges:
            for batch in parse(memoryview(data), start, end):
                if batch.count and not batch.is_control and self.wanted(batch):
                    alter(data, batch, self.at)
                    self.happened.set()
                    return bytes(data)
        return frame


@dataclass
class NotController:
    """Requests to make topics come to nothing and are answered with NOT_CONTROLLER, as by a broker that is it no longer.

    ``on_request`` and ``on_answer`` are a proxy's rules; ``happened``: how many topics were not made.
    """

    is_over: bool = False
    happened: int = 0

    def on_request(self, exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key != CREATE_TOPICS or self.is_over:
            return frame
        request = CreateTopicsRequest[exchange.api_version].decode(frame, header=True)
        request.validate_only = True
        return bytes(request.encode(header=True))

    def on_answer(self, exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key != CREATE_TOPICS or self.is_over:
            return frame
        answer = CreateTopicsResponse[exchange.api_version].decode(frame, header=True)
        for topic in answer.topics:
            topic.error_code, topic.error_message = (
                NOT_CONTROLLER,
                "This is not the correct controller for this cluster.",
            )
            self.happened += 1
        return bytes(answer.encode(header=True))


@dataclass
class Behind:
    """A rule for the answers of a node that has not heard of a topic yet, where it is asked for it by name.

    ``ports``: of the nodes that it names then, of this machine. ``happened``: how often it said so.
    """

    topic: str
    ports: Sequence[int] | None = None
    happened: int = 0

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key == METADATA:
            answer = MetadataResponse[exchange.api_version].decode(frame, header=True)
            found = [topic for topic in answer.topics if topic.name == self.topic] if len(answer.topics) <= 3 else []
            for topic in found:
                topic.error_code, topic.partitions = UNKNOWN_TOPIC, []
            if found and self.ports is not None:
                of_broker = MetadataResponse.MetadataResponseBroker
                answer.brokers = [
                    of_broker(node_id=node, host=LOOPBACK, port=port, rack=None) for node, port in enumerate(self.ports)
                ]
        elif exchange.api_key == DESCRIBE_CONFIGS:
            answer = DescribeConfigsResponse[exchange.api_version].decode(frame, header=True)
            found = [result for result in answer.results if result.resource_name == self.topic]
            for result in found:
                result.error_code, result.configs = UNKNOWN_TOPIC, []
        else:
            return frame
        self.happened += len(found)
        return bytes(answer.encode(header=True)) if found else frame


@dataclass
class Resets:
    """From the first request of an api key on, every connection is reset at its first request, for some ``seconds``.

    ``happened``: how many were.
    """

    api_key: int
    seconds: float
    happened: int = 0
    until: float = 0.0

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes | None:
        if not self.until and exchange.api_key == self.api_key:
            self.until = time.monotonic() + self.seconds
        if time.monotonic() >= self.until:
            return frame
        self.happened += 1
        return None


def alter(data: bytearray, batch: Batch, at: int) -> None:
    """Change the byte ``at`` after a batch's header, and mend the checksum."""
    data[batch.position + 61 + at] ^= 1
    checksum = crc32c.crc32c(bytes(data[batch.position + 21 : batch.position + batch.size]))
    struct.pack_into(">I", data, batch.position + 17, checksum)


def fetched(exchange: Exchange, frame: bytes) -> Fetched | None:
    """The only partition in the answer to a fetch; None where there are none, or several."""
    _, partitions = decode_fetch(exchange.api_version, memoryview(frame), ANY_TOPIC)
    return next(iter(partitions.values())) if len(partitions) == 1 else None


def _error_at(exchange: Exchange, frame: bytes) -> int:
    position = 4 + 1 + 4 + 6
    _, position = read_unsigned_varint(memoryview(frame), position)
    if exchange.api_version >= 13:
        position += 16
    else:
        size, position = read_unsigned_varint(memoryview(frame), position)
        position += size - 1
    _, position = read_unsigned_varint(memoryview(frame), position)
    return position + 4


def _produced(frame: bytearray) -> list[tuple[int, int]]:
    """Where batches lie in a request to produce, by their magic byte and length: requests are not decoded anywhere else."""
    found = []
    position = frame.find(b"\2", 0)
    while position >= 0:
        start = position - 16
        if start > 0:
            size = struct.unpack_from(">i", frame, start + 8)[0] + 12
            if 61 <= size <= len(frame) - start:
                checksum = struct.unpack_from(">I", frame, start + 17)[0]
                if checksum == crc32c.crc32c(bytes(frame[start + 21 : start + size])):
                    found.append((start, start + size))
                    position = start + size
        position = frame.find(b"\2", position + 1)
    return found


__all__ = ["FETCH", "PRODUCE", "Altered", "Behind", "NotController", "Resets", "Withheld", "alter", "fetched"]
