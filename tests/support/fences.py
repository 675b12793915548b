"""Arrays between pages that nobody may touch: machine code that leaves its arrays ends its process with SIGSEGV."""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from unittest import mock

import numpy as np

from airmirror.native import code
from airmirror.wire import records, small, upgrade

ROOM = 16 << 20  # bytes of the largest array
PAGE = mmap.PAGESIZE
PROT_NONE = 0


class Fence:
    """Room for one array with a page on either side that may not be touched."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, ROOM + 2 * PAGE)
        everything = np.frombuffer(self._map, np.uint8)
        self._room = everything[PAGE:-PAGE]
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for page in (everything.ctypes.data, everything.ctypes.data + PAGE + ROOM):
            assert protect(ctypes.c_void_p(page), ctypes.c_size_t(PAGE), PROT_NONE) == 0

    def place(self, array: np.ndarray, at_end: bool) -> np.ndarray:  # type: ignore[type-arg]
        """A copy of the array, its end or its beginning at a fence."""
        own = self._room[ROOM - array.nbytes :] if at_end else self._room[: array.nbytes]
        copy = own.view(array.dtype)
        copy[:] = array
        return copy


@contextmanager
def fenced() -> Iterator[list[str]]:
    """Loops are given arrays between fences, and what they write is copied back; yields the names of the loops called."""
    real = code.loops()
    fences = [Fence() for _ in range(15)]
    given: dict[int, np.ndarray] = {}  # type: ignore[type-arg]
    calls: list[str] = []
    sides = itertools.cycle((True, False))

    def address(array: np.ndarray) -> int:  # type: ignore[type-arg]
        given[array.ctypes.data] = array
        return int(array.ctypes.data)

    def between(name: str, loop: Callable[..., int]) -> Callable[..., int]:
        def call(*arguments: int) -> int:
            calls.append(name)
            at_end = next(sides)
            kinds = code.ARGUMENTS[name]
            placed = {
                number: (given[argument], fences[number].place(given[argument], at_end))
                for number, (kind, argument) in enumerate(zip(kinds, arguments, strict=True))
                if kind != "n"
            }
            given.clear()
            found = loop(
                *(
                    placed[number][1].ctypes.data if number in placed else argument
                    for number, argument in enumerate(arguments)
                )
            )
            for array, copy in placed.values():
                if array.flags.writeable:
                    array[:] = copy
            return found

        return call

    loops = code.Loops(
        **{
            field.name: between(field.name, getattr(real, field.name))
            for field in fields(real)
            if field.name != "engine"
        },
        engine=real.engine,
    )
    with (
        mock.patch.object(records, "address", address),
        mock.patch.object(upgrade, "address", address),
        mock.patch.object(small, "address", address),
        mock.patch.object(small, "loops", lambda: loops),
        mock.patch.object(records, "loops", lambda: loops),
        mock.patch.object(upgrade, "loops", lambda: loops),
    ):
        yield calls
