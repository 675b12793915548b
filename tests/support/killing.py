"""A process that is killed at a chosen place: the call there dies, just before or just after it has done its work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Killed(BaseException):
    """The end of a process, as far as the code under test can tell."""


@contextmanager
def killed_at(place: object, name: str, *, after: bool = False) -> Iterator[None]:
    """What is run inside must be killed at the function ``name`` of the module or class ``place``; else AssertionError."""
    real = getattr(place, name)

    def die(*given: Any, **named: Any) -> None:
        if after:
            real(*given, **named)
        raise Killed

    with pytest.MonkeyPatch.context() as patched, pytest.raises(Killed):
        patched.setattr(place, name, die)
        yield
