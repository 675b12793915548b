"""Free ports on loopback."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from functools import cache
from pathlib import Path
from typing import BinaryIO

LOOPBACK = "127.0.0.1"
# Below the range that Linux and macOS take the local ports of outgoing connections from: a broker that restarts finds its
# port free, and a client that tries a port nobody listens on cannot end up connected to itself.
LOWEST, HIGHEST = 15_000, 32_000
_given: set[int] = set()


def free_port() -> int:
    """A loopback TCP port that nobody listens on now, and that no living process, nor this one before, was given."""
    while True:
        port = random.randint(LOWEST, HIGHEST)
        if port in _given or not _claim(port):
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((LOOPBACK, port))
            except OSError:
                continue
            _given.add(port)
            return port


def _claim(port: int) -> bool:
    """Lock the byte at the port's number while this process lives: what it starts there may listen seconds later only."""
    try:
        fcntl.lockf(_claims(), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
    except OSError:
        return False
    return True


@cache
def _claims() -> BinaryIO:
    return (Path(tempfile.gettempdir()) / f"airmirror-ports-{os.getuid()}").open("ab")


def answers(port: int) -> bool:
    """Return whether something accepts connections on the loopback port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True
