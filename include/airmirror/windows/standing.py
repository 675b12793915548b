"""The positions of a flow's partitions, and where its source ends: after a window, and meanwhile while one follows the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, oldest_times
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.ledger.metrics import Standing
from airmirror.partitions import TopicPartition
from airmirror.windows.plan import Planned

log = logging.getLogger(__name__)

Select = Callable[[Collection[str]], Mapping[str, str]]

PATIENCE_SECONDS = 2.0  # while a window follows: the next judgement asks again


@dataclass(frozen=True)
class UnfollowedPartition:
    """A partition that the flow selects and a window does not follow, as those of a topic that is new.

    ``start``: where its log begins. ``high_watermark``: -1 where it can't be read. ``oldest_ms``: the timestamp of its oldest
    record, None: it has none.
    """

    key: TopicPartition
    remote_topic: str
    start: int = 0
    high_watermark: int = -1
    oldest_ms: int | None = None


@dataclass(frozen=True)
class Ends:
    """The high watermarks of the source's partitions that could be read at ``seen_ms`` (epoch milliseconds)."""

    watermarks: Mapping[TopicPartition, int]
    seen_ms: int
    others: Sequence[UnfollowedPartition] = ()


@dataclass(frozen=True)
class Seen:
    """The positions of a flow's partitions while a window follows. ``seen_ms``: the ends are not older than this."""

    standings: tuple[Standing, ...]
    seen_ms: int


def nothing_else(_topics: Collection[str]) -> Mapping[str, str]:
    """Select no topic besides those of a plan."""
    return {}


def source_ends(source: Routes, planned: Sequence[Planned], select: Select = nothing_else) -> Ends:
    """Look up where the partitions of a plan end now, and what else ``select`` names of the source's topics (each with its
    remote topic). Raises a cluster's error."""
    seen_ms = int(time.time() * 1000)
    source.refresh(None)
    there = [item.key for item in planned if source.is_led(item.key)]
    watermarks = offsets_with_patience(source, there, LATEST, patience=PATIENCE_SECONDS)
    return Ends(watermarks, seen_ms, unfollowed(source, planned, select))


def unfollowed(source: Routes, planned: Sequence[Planned], select: Select) -> list[UnfollowedPartition]:
    """Look up the partitions that are not in the plan, of topics as they were at the last refresh of all."""
    followed, topics = {item.key for item in planned}, select(source.topics)
    keys = [key for key in source.keys(topics) if key not in followed]
    led = [key for key in keys if source.is_led(key)]
    ends, starts, times = dict[TopicPartition, int](), dict[TopicPartition, int](), dict[TopicPartition, int]()
    try:  # first its end: what is written in between is younger than what is shown of it
        ends = offsets_with_patience(source, led, LATEST, patience=PATIENCE_SECONDS)
        starts = offsets_with_patience(source, led, EARLIEST, patience=PATIENCE_SECONDS)
        times = oldest_times(source, led, patience=PATIENCE_SECONDS)
    except AirmirrorError as error:  # the next look asks again
        log.debug("what is not followed was not seen: %s", error)
    return [
        UnfollowedPartition(key, topics[key.topic], starts.get(key, 0), ends.get(key, -1), times.get(key))
        for key in keys
    ]


def seen_of(positions: Mapping[tuple[str, int], int], planned: Sequence[Planned], ends: Ends) -> Seen:
    """Return where all partitions stand by ``positions``, which were read after the ends."""
    standings = [
        Standing(*item.key, item.remote_topic, positions.get(item.key, item.start), ends.watermarks.get(item.key, -1))
        for item in planned
    ]
    for each in ends.others:
        position = positions.get(each.key, each.start)
        standings.append(Standing(*each.key, each.remote_topic, position, each.high_watermark, each.oldest_ms))
    return Seen(tuple(standings), ends.seen_ms)
