"""MirrorMaker 2's copies of a compacted topic: what lacks on one side was taken by a cleaner, or was never copied.

A cleaner takes a record only where a later one has its key, and tombstones in time; the newest record of a key stays. So a record
of the source that the target lacks, without a hole in its place or without a later one of its key, was not copied: it is a gap.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import topic_configs
from airmirror.evidence.compaction import superseded
from airmirror.evidence.logs import Log
from airmirror.partitions import TopicPartition
from airmirror.windows.history import Gap, History, compare_history, ranges
from airmirror.windows.mirror import Mirror
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.records import Array


def compared(mirror: Mirror, before: MappingRecord, *, compacted: bool) -> History:
    """Compare what the target holds before the first mapping record of a partition. Raises a cluster's error.

    Of a ``compacted`` topic both logs are read once more for the keys of what lacks, and the walk begins again after a gap.
    """
    found = compare_history(mirror, before, compacted=compacted)
    if not compacted:
        return found
    remote = TopicPartition(before.remote_topic, before.partition)
    skipped = np.array(found.skipped, np.int64)
    strange = np.concatenate([np.empty(0, np.int64), *(np.arange(first, end) for first, end in found.strange)])
    here, there = _log(mirror.source, found.key), _log(mirror.target, remote)
    policy = topic_configs(mirror.target, [remote.topic], ["cleanup.policy"])[remote.topic]["cleanup.policy"]
    lost = skipped[~_taken(here, there, skipped)] if "compact" in policy else skipped
    foreign = strange[~_taken(there, here, strange)]
    if len(lost):
        found = compare_history(mirror, before, compacted=True, after=int(lost[-1]))
    gaps = (*found.gaps, *(Gap(first, end - 1, end - first) for first, end in ranges(lost.tolist())))
    cleaned = len(skipped) - len(lost) + len(strange) - len(foreign)
    return replace(
        found,
        gaps=tuple(sorted(gaps, key=lambda gap: gap.first)),
        strange=tuple(ranges(foreign.tolist())),
        cleaned=cleaned,
    )


def _log(routes: Routes, partition: TopicPartition) -> Log:
    end = offsets_with_patience(routes, [partition], LATEST, read_committed=True)[partition]
    start = offsets_with_patience(routes, [partition], EARLIEST)[partition]
    return Log(routes, partition, start, end, log_start=start, since=start, until=end)


def _taken(log: Log, other: Log, offsets: Array) -> Array:
    """Return which of these records of a log, by offset, the other log's cleaner may have taken, as a mask."""
    if not len(offsets):
        return np.empty(0, bool)
    taken = superseded(log, offsets, other)
    if taken.all():
        return taken
    there = [records.offsets for records in log.records(int(offsets[0]), int(offsets[-1]) + 1)]
    return taken | ~np.isin(offsets, np.concatenate([offsets[:0], *there]))  # a cleaner works meanwhile
