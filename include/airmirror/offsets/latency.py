"""The end-to-end latency of records, measured by heartbeats: each holds the time at which it was emitted.

The emitting side's clock is compared with those of the slot that committed and of the gate that verified; clocks that differ
show as latency, and a negative one as such.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.log import EARLIEST, offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.naming import ReplicationPolicy
from airmirror.topics.names import policy_of
from airmirror.wire.mappings import MappingRecord
from airmirror.wire.mirrormaker import Heartbeat
from airmirror.wire.primitives import MalformedRecord

log = logging.getLogger(__name__)

MOST = 10_000  # heartbeats that are read for one measurement


@dataclass(frozen=True)
class Spread:
    """Seconds: of the heartbeat that was quickest, of all in the mean, of the one that took longest."""

    least: float
    mean: float
    most: float


@dataclass(frozen=True)
class Latency:
    """The heartbeats of the last verified window that had any: from emission until they could be read, and were verified.

    ``origin``: the cluster that they come from, over ``hops`` flows; ``newest_ms``: the last one's time, in epoch
    milliseconds.
    """

    origin: str
    hops: int
    window: str
    heartbeats: int
    newest_ms: int
    readable: Spread
    verified: Spread

    def age_seconds(self) -> float:
        """Return the age of the newest verified heartbeat: the most that the target lags."""
        return time.time() - self.newest_ms / 1000


def measure(flow: Flow, index: FlowLedger) -> list[Latency]:
    """The latency of each cluster whose heartbeats the flow replicates, the nearest first; reads the target.

    Raises what a cluster raises.
    """
    names = policy_of(flow)
    found = []
    with Routes(flow.target, f"airmirror|{flow.name}|latency") as target:
        for (topic, partition), verified in index.verified().items():
            if not names.is_heartbeats_topic(topic):
                continue
            start = max(0, verified.offset + 1 - MOST)
            mappings = index.mappings(topic, partition, verified.source_topic_id, start, verified.offset + 1)
            last = _last_window([mapping for mapping in mappings if mapping.source_end <= verified.offset + 1])
            if not last or target.refresh_existing([last[0].remote_topic]):
                continue  # nothing has come, or its topic is gone
            origin, hops = _origin(topic, names, flow.source.alias)
            taken = [(mapping, sent) for mapping in last for sent in _times(target, mapping)]
            if taken:
                found.append(
                    Latency(
                        origin=origin,
                        hops=hops,
                        window=last[-1].window,
                        heartbeats=len(taken),
                        newest_ms=max(sent for _, sent in taken),
                        readable=_spread(mapping.time_ms - sent for mapping, sent in taken),
                        verified=_spread(verified.time_ms - sent for _, sent in taken),
                    )
                )
    return sorted(found, key=lambda latency: (latency.hops, latency.origin))


def _last_window(mappings: Sequence[MappingRecord]) -> list[MappingRecord]:
    copied = [mapping for mapping in mappings if mapping.copied]
    return [mapping for mapping in copied if mapping.window == copied[-1].window]


def _times(target: Routes, mapping: MappingRecord) -> Iterator[int]:
    """Yield the time at which each heartbeat of a mapping was emitted, in epoch milliseconds; other records are left out."""
    partition = mapping.remote
    first = offsets_with_patience(target, [partition], EARLIEST)[partition]
    start = max(first, mapping.target_start, mapping.target_end - MOST)
    for entry in read_records(target, partition, start, mapping.target_end):
        try:
            yield Heartbeat.decode(entry.key or b"", entry.value or b"").time_ms
        except MalformedRecord as error:  # another writer's record in the source's topic; it is replicated all the same
            log.warning("%s offset %d is skipped: %s", partition, entry.offset, error)


def _origin(topic: str, names: ReplicationPolicy, source: str) -> tuple[str, int]:
    """The cluster whose heartbeats a source's topic holds, and over how many flows they come to the target."""
    upstream = names.topic_source(topic)
    if upstream is None:
        return source, 1
    origin, hops = _origin(names.upstream_topic(topic) or "", names, upstream)
    return origin, hops + 1


def _spread(milliseconds: Iterable[int]) -> Spread:
    seconds = [each / 1000 for each in milliseconds]
    return Spread(min(seconds), sum(seconds) / len(seconds), max(seconds))
