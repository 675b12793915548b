"""The receive buffer of a connection: large where the kernel allows it, else as large as the kernel itself makes it grow.

Who asks for a size gets ``net.core.rmem_max`` at most, often 208 KiB, and the kernel lets the buffer grow no more: on a line of
100 ms that is 2 MB/s. By itself it grows up to ``net.ipv4.tcp_rmem``, some MiB.
"""

from __future__ import annotations

import socket
from functools import cache

RECEIVE_BUFFER = 4 << 20


def raise_receive_buffer(connected: socket.socket) -> None:
    """Ask for RECEIVE_BUFFER where that much is granted, and leave the buffer to the kernel where it is not."""
    if _is_granted(RECEIVE_BUFFER):
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)


@cache
def _is_granted(size: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        try:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        except OSError:  # more than the system ever allows, as macOS says it
            return False
        return probe.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= size
