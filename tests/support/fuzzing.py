"""Mutated bytes for decoders, seeded and fast, and a guard that makes what hangs or allocates too much fail."""

from __future__ import annotations

import random
import resource
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

INTERESTING = (
    b"\0",
    b"\1",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"\xff\xff",
    b"\x7f\xff",
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\0\0\0\0",
    b"\xff" * 8,
    b"\x7f" + b"\xff" * 7,
    b"\x80" + b"\0" * 7,
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\xff" * 9 + b"\1",
    b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80",
    b"\xfe\xff\xff\xff\x0f",
)


def mutated(corpus: Sequence[bytes], chance: random.Random) -> bytearray:
    """One of ``corpus`` with one to eight changes: bits, bytes, lengths, pieces cut, doubled, or taken from another."""
    data = bytearray(chance.choice(corpus))
    for _ in range(1 << chance.randrange(4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(8):
            case 0 if data:
                data[at - 1] ^= 1 << chance.randrange(8)
            case 1 if data:
                data[at - 1] = chance.randrange(256)
            case 2 | 3:
                piece = chance.choice(INTERESTING)
                data[at : at + len(piece)] = piece
            case 4:
                data[at:at] = chance.randbytes(chance.randrange(1, 20))
            case 5:
                del data[at : at + (1 << chance.randrange(10))]
            case 6:
                data[at:at] = data[at : at + (1 << chance.randrange(8))]
            case _:
                other = chance.choice(corpus)
                start = chance.randrange(len(other) + 1)
                data[at : at + (1 << chance.randrange(8))] = other[start : start + (1 << chance.randrange(8))]
    return data


class Hung(BaseException):
    """A case that took longer than it may; no decoder's own ``except Exception`` catches it."""


@contextmanager
def guarded(seconds: float, megabytes: int) -> Iterator[None]:
    """Within the block Hung is raised after ``seconds``, MemoryError for ``megabytes`` more than there are (on Linux)."""

    def hang(_signal: int, _frame: FrameType | None) -> None:
        raise Hung(f"no end within {seconds:g} s")

    before = resource.getrlimit(resource.RLIMIT_AS)
    old = signal.signal(signal.SIGALRM, hang)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (_address_space() + megabytes * 2**20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def _address_space() -> int:
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[0]) * resource.getpagesize()
