"""A receive buffer that the kernel would cut is left to the kernel, which lets it grow."""

from __future__ import annotations

import socket

import pytest

from airmirror.clusters.protocol import buffers
from airmirror.clusters.protocol.buffers import raise_receive_buffer


@pytest.fixture(autouse=True)
def forgotten() -> None:
    buffers._is_granted.cache_clear()


def _after(size: int, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """The size of a socket's buffer before and after."""
    monkeypatch.setattr(buffers, "RECEIVE_BUFFER", size)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as connected:
        before = connected.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        raise_receive_buffer(connected)
        return before, connected.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


def test_what_is_granted_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _, after = _after(50_000, monkeypatch)
    assert after >= 50_000


def test_what_would_be_cut_is_left_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = _after(1 << 30, monkeypatch)
    assert after == before
