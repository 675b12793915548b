"""Waiting for brokers, where a look meanwhile closes what is waited for."""

from __future__ import annotations

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
