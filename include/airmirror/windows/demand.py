"""The number of slots that a window takes: by what there is to copy, how long it has waited, and what Spark can run."""

from __future__ import annotations

import math
from dataclasses import dataclass

from airmirror.config import Window

GROWTH = 4  # times what Spark runs now: where no more executors come, a window runs in four turns


@dataclass(frozen=True)
class Demand:
    """The bytes of each partition that a window has to copy, and the most that a record can have waited, in ms: since the newest
    one that was copied (after a quiet time too, for no offset tells when those came that wait)."""

    sizes: tuple[float, ...]
    waited_ms: int = 0


@dataclass(frozen=True)
class Capacity:
    """The tasks that Spark runs at once: ``now``, and at the ``most``, with executors that it may still start."""

    now: int
    most: int


def slots_for(demand: Demand, window: Window, capacity: Capacity, flows: int = 1) -> int:
    """Return the slots that a window takes: one for each ``window.slot.bytes``, no more than partitions, and at most its share
    of Spark, which ``flows`` have in common.

    That is an equal part of what runs now: no slot waits for a core, and no flow for another one. Where a record has waited for
    longer than a window copies (``window.max.ms``), that is too little: the window takes what Spark may start besides, up to
    ``GROWTH`` times what runs now, and leaves each other flow one core. One that follows the log would keep them for long, and
    leaves each an equal part.
    """
    share = capacity.now // flows
    if demand.waited_ms > window.max_ms:
        most = capacity.most // flows if window.follow_ms else capacity.most - flows + 1
        share = min(most, GROWTH * capacity.now)
    needed = math.ceil(sum(demand.sizes) / window.slot_bytes)
    return max(1, min(needed, len(demand.sizes), share))


def at_most(slots: int) -> Capacity:
    """The capacity where the number of slots is given."""
    return Capacity(slots, slots)
