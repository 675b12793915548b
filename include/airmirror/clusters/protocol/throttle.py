"""A broker's wish to be left alone for a time: ``throttle_time_ms`` of its answers, where a quota is exceeded (KIP-219).

The broker reads nothing more from the connection until the time is over. Who keeps asking takes the silence for a broker that
is gone; so nothing is sent meanwhile, and nothing is awaited.
"""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_SECONDS = 60.0  # that an answer is believed


class ConnectionThrottle:
    """Of one connection. ``tell`` hears of the seconds that were asked for."""

    def __init__(self, tell: Callable[[float], None]) -> None:
        self._tell = tell
        self._until = 0.0

    def note(self, milliseconds: int) -> None:
        """Take note of an answer's ``throttle_time_ms``."""
        if milliseconds > 0:
            seconds = min(milliseconds / 1000, MOST_SECONDS)
            self._until = max(self._until, time.monotonic() + seconds)
            self._tell(seconds)

    @property
    def seconds(self) -> float:
        """The time for which nothing is to be sent."""
        return max(0.0, self._until - time.monotonic())

    def obey(self) -> None:
        """Wait until something may be sent."""
        if seconds := self.seconds:
            time.sleep(seconds)  # the broker has said for how long
