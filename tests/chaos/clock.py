"""The clock of the machine on which drivers and slots run: all of them have it, and a fault sets it forwards and back."""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Callable
from pathlib import Path

_seconds = struct.Struct("d")
FAR = 600.0


def make(file: Path) -> None:
    """A clock that is right."""
    file.write_bytes(_seconds.pack(0.0))


def jump(file: Path, seconds: float, begun: Callable[[], object] = lambda: None) -> str:
    """Set it ten minutes forwards, then as much back, then right, each for a third of ``seconds``; ``begun`` is called then."""
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as clock:
        for ahead in (FAR, -FAR, 0.0):
            _seconds.pack_into(clock, 0, ahead)
            begun()
            time.sleep(seconds / 3)
    return f"ten minutes ahead, then behind, for {seconds / 3:.1f} s each"


def follow(file: Path, skew: float) -> None:
    """Let this process have that clock, and ``skew`` seconds more."""
    opened = file.open("rb")
    clock = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    right = time.time

    def now() -> float:
        return right() + skew + float(_seconds.unpack_from(clock)[0])

    time.time = now
