"""A rule for the proxy: fetches are answered without the records that are there, as a broker does whose remote store is slow."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from uuid import UUID

from airmirror.wire.requests import FETCH, FETCH_VERSIONS, decode_fetch, unsigned_varint
from airmirror_local.proxy import Exchange


class _Names(dict[UUID, str]):
    """Every topic's id is its name here."""

    def __missing__(self, key: UUID) -> str:
        return str(key)


@dataclass
class Withheld:
    """``happened``: how many answers came without their records (KIP-405)."""

    happened: int = 0
    begun: Event = field(default_factory=Event)

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key != FETCH or not FETCH_VERSIONS[0] <= exchange.api_version <= FETCH_VERSIONS[1]:
            return frame
        _, partitions = decode_fetch(exchange.api_version, memoryview(frame), _Names())
        found = sorted((part for part in partitions.values() if part.start < part.end), key=lambda part: -part.start)
        for part in found:
            length = len(unsigned_varint(part.end - part.start + 1))
            frame = frame[: part.start - length] + b"\1" + frame[part.end :]
        if found:
            self.happened += 1
            self.begun.set()
        return frame
