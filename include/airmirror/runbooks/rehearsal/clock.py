"""The steps of a rehearsal, and how long each took."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TimedStep:
    """One step. ``is_failover``: the real thing takes this time too; else it is a proof."""

    name: str
    seconds: float
    is_failover: bool


@dataclass(frozen=True)
class Clock:
    """Measures steps, those that have ended; ``tell`` hears of each when it begins."""

    tell: Callable[[str], None]
    steps: list[TimedStep] = field(default_factory=list)

    @contextmanager
    def __call__(self, name: str, *, is_failover: bool = False) -> Iterator[None]:
        self.tell(name)
        begun = time.monotonic()
        yield
        self.steps.append(TimedStep(name, time.monotonic() - begun, is_failover))
