"""MirrorMaker 2's heartbeats: that a flow is alive, and when it last was.

Byte for byte as MirrorMaker 2 4.2.0 writes them (Heartbeat.java). Replicated as any other topic, they tell the latency.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from airmirror.wire.fields import INT64, STRING, Declared, Fields, fields


@dataclass(frozen=True)
class Heartbeat(Declared):
    """A flow, by the aliases of its clusters, and the time of the heartbeat in epoch milliseconds."""

    key_fields: ClassVar[Fields] = fields(source=STRING, target=STRING)
    value_fields: ClassVar[Fields] = fields(time_ms=INT64)

    source: str
    target: str
    time_ms: int


def decode_heartbeat(key: bytes, value: bytes) -> Heartbeat:
    """Raises MalformedRecord."""
    return Heartbeat.decode(key, value)
