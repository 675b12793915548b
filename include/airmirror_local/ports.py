"""Free ports on loopback."""

from __future__ import annotations

import random
import socket

LOOPBACK = "127.0.0.1"
# Below the range that Linux and macOS take the local ports of outgoing connections from: a broker that restarts finds its
# port free, and a client that tries a port nobody listens on cannot end up connected to itself.
LOWEST, HIGHEST = 15_000, 32_000
_given: set[int] = set()


def free_port() -> int:
    """A loopback TCP port that nobody listens on now, and that this process was not given before."""
    while True:
        port = random.randint(LOWEST, HIGHEST)
        if port in _given:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as candidate:
            candidate.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                candidate.bind((LOOPBACK, port))
            except OSError:
                continue
            _given.add(port)
            return port


def answers(port: int) -> bool:
    """Return whether something accepts connections on the loopback port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=1).close()
    except OSError:
        return False
    return True
