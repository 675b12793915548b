"""A streams group (KIP-1071) without an application: one member that joins with a topology, and leaves. No client here has it."""

from __future__ import annotations

import socket
import struct
from uuid import uuid4

from support.groups import committed
from support.topics import Cluster, _patiently, bootstrap, create_topic

HEARTBEAT = 88
JOINS, LEAVES = 0, -1
NULL, EMPTY, END = b"\x00", b"\x01", b"\x00"  # of a compact array or string; no tagged fields


def _text(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def _topology(topic: str) -> bytes:
    """One subtopology, which reads a topic and keeps no state."""
    of_it = _text("0") + b"\x02" + _text(topic) + EMPTY * 5 + END
    return b"\x01" + struct.pack(">i", 0) + b"\x02" + of_it + END


def _request(group: str, member: str, epoch: int, topic: str) -> bytes:
    joins = epoch == JOINS
    body = b"".join(
        (
            _text(group),
            _text(member),
            struct.pack(">ii", epoch, 0),
            NULL * 2,  # instance, rack
            struct.pack(">i", 30_000 if joins else -1),
            _topology(topic) if joins else b"\xff",
            (EMPTY if joins else NULL) * 3,  # tasks
            _text("a process") if joins else NULL,
            b"\xff",  # endpoint
            NULL * 3,  # tags, offsets of tasks
            b"\x00",  # the application resumes
            END,
        )
    )
    header = struct.pack(">hhih", HEARTBEAT, 0, 1, -1) + END
    return struct.pack(">i", len(header) + len(body)) + header + body


def streams_group(cluster: Cluster, group: str, topic: str | None = None) -> None:
    """Make a streams group without members."""
    committed(cluster, group)  # asks for its coordinator, which makes the topic of groups
    topic, member = topic or create_topic(cluster, f"lines-{uuid4().hex[:8]}"), str(uuid4())
    for epoch in (JOINS, LEAVES):
        for attempt in _patiently(AssertionError):  # a coordinator that has just begun is still loading
            with attempt:
                assert (code := _asked(cluster, _request(group, member, epoch, topic))) == 0, code


def _asked(cluster: Cluster, request: bytes) -> int:
    """Kafka's error."""
    host, _, port = bootstrap(cluster).rpartition(":")
    with socket.create_connection((host, int(port)), timeout=30) as asking:
        asking.sendall(request)
        answer = asking.makefile("rb")
        (size,) = struct.unpack(">i", answer.read(4))
        code: int = struct.unpack_from(">ibih", answer.read(size))[3]
    return code
