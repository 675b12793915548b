"""Waiting for brokers: where a look meanwhile closes what is waited for, and where a process has many files open."""

from __future__ import annotations

import fcntl
import resource
import socket
from typing import Any

from airmirror.clusters.protocol import waiting


class Asked:
    """A connection, as far as waiting knows it."""

    has_bytes = False

    def __init__(self, there: socket.socket) -> None:
        self.fileno, self.close = there.fileno, there.close


def test_a_connection_that_a_look_closes_counts_as_ended(monkeypatch: Any) -> None:
    monkeypatch.setattr(waiting, "LOOK_SECONDS", 0.01)
    one, other = socket.socketpair()
    try:
        asked: Any = Asked(one)  # as when metadata says that its broker has another address now
        assert waiting.ready([asked], 5.0, asked.close) == [asked]
        assert waiting.ready([asked], 5.0) == [asked]
    finally:
        one.close()
        other.close()


def test_a_process_may_have_a_thousand_files_open() -> None:
    """librdkafka alone has two for each broker of a cluster, in each of its clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(2048, hard)), hard))
    one, other = socket.socketpair()
    high = socket.socket(fileno=fcntl.fcntl(one, fcntl.F_DUPFD, 1500))
    try:
        asked: Any = Asked(high)
        assert waiting.ready([asked], 0.0) == []
        other.send(b"an answer")
        assert waiting.ready([asked], 5.0) == [asked]
    finally:
        for each in (one, other, high):
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
