"""MirrorMaker 2's heartbeats: that a flow is alive, and when it last was.

Byte for byte as MirrorMaker 2 4.2.0 writes them (Heartbeat.java). Replicated as any other topic, they tell the latency.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from airmirror.wire.primitives import MalformedRecord, Reader, string

VERSION = 0


@dataclass(frozen=True)
class Heartbeat:
    """A flow, by the aliases of its clusters, and the time of the heartbeat in epoch milliseconds."""

    source: str
    target: str
    time_ms: int

    def encode_key(self) -> bytes:
        return string(self.source) + string(self.target)

    def encode_value(self) -> bytes:
        return struct.pack(">hq", VERSION, self.time_ms)


def decode_heartbeat(key: bytes, value: bytes) -> Heartbeat:
    """Raises MalformedRecord, also for a version that is not known (as MirrorMaker 2 from KAFKA-20659 on)."""
    keys, values = Reader(key), Reader(value)
    if (version := values.int16()) != VERSION:
        raise MalformedRecord(f"version {version} of a heartbeat is not known")
    heartbeat = Heartbeat(keys.string(), keys.string(), values.int64())
    keys.end()
    values.end()
    return heartbeat
