"""The delay line: bytes arrive as they were sent, later, both ways; and no more are on their way than its window."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from pathlib import Path

from airmirror_local.line import start_line
from airmirror_local.ports import LOOPBACK, free_port

SENT = os.urandom(1 << 20) * 20


def _echo(listener: socket.socket, found: list[str]) -> None:
    """Answer the first byte, take the rest, and say at its end what came."""
    with listener.accept()[0] as connection:
        connection.sendall(connection.recv(1))
        digest = hashlib.sha256()
        while piece := connection.recv(1 << 20):
            digest.update(piece)
        found.append(digest.hexdigest())
        connection.sendall(b"!")


def test_what_goes_through_a_line(tmp_path: Path) -> None:
    found: list[str] = []
    with socket.create_server((LOOPBACK, 0)) as listener:
        answering = threading.Thread(target=_echo, args=(listener, found))
        answering.start()
        port = free_port()
        with (
            start_line(tmp_path, port, listener.getsockname()[1], 0.1),
            socket.create_connection((LOOPBACK, port)) as connection,
        ):
            begun = time.monotonic()
            connection.sendall(b"?")
            assert connection.recv(1) == b"?"
            assert time.monotonic() - begun >= 0.2, "there and back"
            connection.sendall(SENT)
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(2) == b"!"
        answering.join()
    assert found == [hashlib.sha256(SENT).hexdigest()]


def test_a_narrow_window_makes_a_long_line_slow(tmp_path: Path) -> None:
    """2 MiB through 200 KiB every tenth of a second; the pieces of a wide window are larger than that."""
    found: list[str] = []
    with socket.create_server((LOOPBACK, 0)) as listener:
        answering = threading.Thread(target=_echo, args=(listener, found))
        answering.start()
        port = free_port()
        with (
            start_line(tmp_path, port, listener.getsockname()[1], 0.1, window=200 << 10),
            socket.create_connection((LOOPBACK, port)) as connection,
        ):
            begun = time.monotonic()
            connection.sendall(b"?" + SENT[: 2 << 20])
            connection.shutdown(socket.SHUT_WR)
            assert connection.recv(1) == b"?" and connection.recv(1) == b"!"
            assert time.monotonic() - begun >= 0.9
        answering.join()
    assert found == [hashlib.sha256(SENT[: 2 << 20]).hexdigest()]
