"""Waiting for brokers: for whichever answers first, with a look at something else meanwhile."""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Collection

from airmirror.clusters.protocol.connection import Connection

LOOK_SECONDS = 1.0  # between two looks

Look = Callable[[], None]  # raises where there is nothing to wait for any more


def ready(connections: Collection[Connection], timeout: float, look: Look = lambda: None) -> list[Connection]:
    """Those with bytes of an answer (or their end) within ``timeout`` seconds; ``look`` is called every second until then.

    It may ask brokers on other connections, and close these, where it learns that a broker has moved: a closed one counts as
    ended. Raises what ``look`` does.
    """
    until = time.monotonic() + timeout
    while True:
        if found := [each for each in connections if each.has_bytes or each.fileno() < 0]:
            return found
        left = until - time.monotonic()
        answering = _readable(connections, max(0.0, min(left, LOOK_SECONDS)))
        if answering or left <= LOOK_SECONDS:
            return answering
        look()


def _readable(connections: Collection[Connection], seconds: float) -> list[Connection]:
    """Not by ``select()``, which takes no descriptor above 1023."""
    by_number, poll = {each.fileno(): each for each in connections}, select.poll()
    for number in by_number:
        poll.register(number, select.POLLIN)
    return [by_number[number] for number, _ in poll.poll(math.ceil(seconds * 1000))]
