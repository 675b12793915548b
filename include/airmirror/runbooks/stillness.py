"""Waiting until nobody writes to topics of a cluster: for some time no end offset moves, and no transaction is open."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition

SAMPLE_SECONDS = 0.5

Ends = Mapping[TopicPartition, int]
Moving = Mapping[TopicPartition, str]


def await_still(
    cluster: Routes,
    topics: Collection[str],
    *,
    still: float,
    seconds: float,
    reasons: Callable[[Moving], Sequence[str]],
    tell: Callable[[str], None],
) -> Sequence[str]:
    """Wait until nothing has moved for ``still`` seconds. Return the remaining reasons if that takes longer than ``seconds``.

    ``reasons``: from what moves, each partition in words, to all that is to be awaited.
    """
    begun = time.monotonic()
    before = ends_of(cluster, topics)
    quiet_since = time.monotonic()
    while True:
        time.sleep(SAMPLE_SECONDS)  # the sampling interval: nothing tells that a producer has gone
        now = ends_of(cluster, topics)
        found = reasons(_moving(cluster, before, now))
        before = now
        if not found:
            if time.monotonic() - quiet_since >= still:
                return ()
            tell("no producer writes; waiting whether it stays so")
            continue
        quiet_since = time.monotonic()
        if quiet_since - begun > seconds:
            return found
        tell(f"waiting: {found[0]}")


def ends_of(cluster: Routes, topics: Collection[str]) -> Ends:
    """Return where every partition of the topics that are there ends."""
    return offsets_with_patience(cluster, cluster.keys_now(topics), LATEST)


def _moving(cluster: Routes, before: Ends, now: Ends) -> Moving:
    """Return what has moved between two samples, and where a transaction is open."""
    stable = offsets_with_patience(cluster, now, LATEST, read_committed=True)
    found = {}
    for key, end in now.items():
        if end != before.get(key, end):
            found[key] = f"{key} grew from {before[key]} to {end}"
        elif stable[key] < end:
            found[key] = f"{key} has an open transaction from offset {stable[key]} on"
    return found
