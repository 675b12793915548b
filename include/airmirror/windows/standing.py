"""The positions of a flow's partitions, and where its source ends: after a window, and meanwhile while one follows the log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.ledger.metrics import Standing
from airmirror.partitions import TopicPartition
from airmirror.slot.errors import PartitionUnavailable
from airmirror.windows.index import Index
from airmirror.windows.plan import Planned

PATIENCE_SECONDS = 2.0  # while a window follows: the next judgement asks again


@dataclass(frozen=True)
class Ends:
    """The high watermarks of the source's partitions that could be read at ``seen_ms`` (epoch milliseconds).

    ``more``: a topic has partitions by now that the window does not follow.
    """

    watermarks: Mapping[TopicPartition, int]
    seen_ms: int
    more: bool


@dataclass(frozen=True)
class Seen:
    """The positions of all partitions of a window that follows. ``seen_ms``: the ends are those of this time; -1: not of all."""

    standings: tuple[Standing, ...]
    seen_ms: int


def source_ends(source: Routes, planned: Sequence[Planned]) -> Ends:
    """Look up where the partitions of a plan end now. Raises a cluster's error."""
    seen_ms = int(time.time() * 1000)
    counts: dict[str, int] = {}
    for item in planned:
        counts[item.topic] = max(counts.get(item.topic, 0), item.partition + 1)
    missing = source.refresh_existing(counts)
    there = [item.key for item in planned if item.topic not in missing and source.is_led(item.key)]
    more = any(source.partitions(topic) > count for topic, count in counts.items() if topic not in missing)
    return Ends(offsets_with_patience(source, there, LATEST, patience=PATIENCE_SECONDS), seen_ms, more)


def seen_of(positions: Mapping[tuple[str, int], int], planned: Sequence[Planned], ends: Ends) -> Seen:
    """Return where all partitions of the plan stand by ``positions``, which were read after the ends."""
    standings = tuple(
        Standing(*item.key, item.remote_topic, positions.get(item.key, item.start), ends.watermarks.get(item.key, -1))
        for item in planned
    )
    return Seen(standings, -1 if ends.more else ends.seen_ms)


def standings_of(index: Index, planned: Sequence[Planned], ends: Mapping[TopicPartition, int]) -> Iterator[Standing]:
    """Yield the position of every partition of the plan now; ``ends``: the high watermarks after the copy."""
    positions = index.state().positions
    for item in planned:
        position = positions.get(item.key, item.start)
        unknown = isinstance(item.error, PartitionUnavailable)
        end = -1 if unknown else ends.get(item.key, item.high_watermark)
        yield Standing(*item.key, item.remote_topic, position, end)
