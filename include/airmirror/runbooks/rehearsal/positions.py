"""The proof that groups resume at the very next record, from the position that each would be given on the target.

The record that is read on the target from there on must be the one that the group would read next on the source (invariant G).
Both logs are only read; that this user may give groups their positions is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from airmirror.clusters.protocol.groups import not_committable
from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.topic_configs import compacted_now
from airmirror.offsets.replicated import PositionLookup
from airmirror.offsets.translation import Reason, Translated, to_target
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failover.groups import GroupPoint
from airmirror.topics.names import select
from airmirror.windows.cursor import decoded
from airmirror.windows.declared import compacted_topics, times_replaced
from airmirror.windows.mirror import Mirror

FETCH_BYTES = 64 << 10  # one record is looked for


@dataclass(frozen=True)
class Proof:
    """A group in one partition, and why it would not resume at the very next record, or ""."""

    point: GroupPoint
    wrong: str


@dataclass(frozen=True)
class Next:
    """The first record from an offset on: its own offset, its timestamp, and its bytes from the key on."""

    offset: int
    timestamp: int
    body: bytes


def prove(mirror: Mirror, points: Sequence[GroupPoint]) -> list[Proof]:
    """Read the next record of every group on both sides. The ledger has caught up. Raises GroupsNotRead, or what reading does."""
    reading = _Reading.of(mirror, points)
    refused = not_committable(mirror.target, {point.group for point in points if point.translation is not None})
    ours = (point for point in points if point.reason != Reason.NOT_REPLICATED)
    return [Proof(point, _wrong(reading, point, refused)) for point in ours]


def _wrong(reading: _Reading, point: GroupPoint, refused: Collection[str]) -> str:
    """Return what is wrong with a group's position, or ""."""
    if point.reason or point.translation is None:
        return point.reason
    if not point.exact:
        return "estimated: some records would be read twice"
    if point.group in refused:
        return "this user may not write its position on the target: it needs READ on the group"
    return reading.difference(point, point.translation)


@dataclass(frozen=True)
class _Reading:
    """Both logs of the groups' partitions, with their ends: of what is verified, where the flow replicates the topic.

    ``ours``: the topics that it does; others were brought to the source by the reverse flow. ``starts``: of both logs.
    """

    mirror: Mirror
    ours: Collection[str]
    starts: Mapping[TopicPartition, tuple[int, int]]
    ends: Mapping[TopicPartition, tuple[int, int]]
    compacted: Mapping[str, bool]
    _known: dict[tuple[str, TopicPartition, int], Next | None] = field(default_factory=dict)

    @classmethod
    def of(cls, mirror: Mirror, points: Sequence[GroupPoint]) -> _Reading:
        found = {point.key: point.remote for point in points if point.translation is not None}
        mirror.source.refresh({key.topic for key in found})
        mirror.target.refresh({key.topic for key in found.values()})
        verified, ours = mirror.index.verified(), select(mirror.flow, {key.topic for key in found})
        brought = [key for key in found if key.topic not in ours]
        here = offsets_with_patience(mirror.source, brought, LATEST, read_committed=True)
        there = offsets_with_patience(mirror.target, [found[key] for key in brought], LATEST, read_committed=True)
        first = offsets_with_patience(mirror.source, found, EARLIEST)
        first_there = offsets_with_patience(mirror.target, set(found.values()), EARLIEST)
        starts = {key: (first[key], first_there[remote]) for key, remote in found.items()}
        ends = {key: (0, 0) for key in found}  # nothing is verified yet: there is nothing to read
        ends |= {key: (verified[key].offset + 1, verified[key].target_end) for key in found if key in verified}
        ends |= {key: (here[key], there[found[key]]) for key in brought}
        on_source = compacted_topics(mirror, {key.topic for key in found})
        on_target = compacted_now(mirror.target, {key.topic for key in found.values()})
        compacted = {key.topic: on_source[key.topic] or remote.topic in on_target for key, remote in found.items()}
        return cls(mirror, ours, starts, ends, compacted)

    def difference(self, point: GroupPoint, translation: int) -> str:
        """Return how the next records differ that a group would read on the source and on the target, or ""."""
        flow = self.mirror.flow
        key, remote = point.key, point.remote
        end, target_end = self.ends[key]
        start, (log_start, target_log_start) = point.position - point.again, self.starts[key]
        if start < log_start:
            return ""  # the source has deleted it: on the target the group reads what there is still to be read
        here = self._next("source", key, start, end, is_committed=flow.reads_committed)
        there = self._next("target", remote, max(translation, target_log_start), target_end, is_committed=True)
        if here is None and (flow.is_aggregate or point.topic not in self.ours):
            return ""  # what others have written there since is no record of this source
        keeps_times = not times_replaced(flow).matches(point.topic)
        if _is_same(here, there, keeps_times=keeps_times):
            return ""
        if self.compacted[point.topic] and self._is_cleaned(point, here, there):
            return ""  # a cleaner took one of them on one side, and a later record of its key is on both
        return f"it would read {_named(here)} next, and {_named(there)} on the target, which is not the same record"

    def _next(self, side: str, key: TopicPartition, start: int, end: int, *, is_committed: bool) -> Next | None:
        if (side, key, start) not in self._known:
            routes = self.mirror.source if side == "source" else self.mirror.target
            self._known[side, key, start] = next_record(routes, key, start, end, is_committed=is_committed)
        return self._known[side, key, start]

    def _is_cleaned(self, point: GroupPoint, here: Next | None, there: Next | None) -> bool:
        """Return whether two records are not of one place: by the mappings, the one here lies elsewhere on the target."""
        if here is None or there is None or point.topic not in self.ours:
            return True
        mirror, key = self.mirror, point.key
        lookup = PositionLookup(
            flow=mirror.flow,
            ledger=mirror.index,
            source=mirror.source,
            target=mirror.target,
            remote_topics=select(mirror.flow, [key.topic]),
            groups_on="source",
        )
        known = lookup.known({key: [here.offset]})[key].replicated
        found = known if isinstance(known, Reason) else to_target(known, here.offset)
        return isinstance(found, Translated) and found.translation != there.offset


def next_record(routes: Routes, key: TopicPartition, start: int, end: int, *, is_committed: bool) -> Next | None:
    """The first record that a consumer reads from ``start`` on and before ``end``; None: there is none."""
    if start >= end:
        return None
    for buffer, batches in read_batches(routes, key, start, end, read_committed=is_committed, max_bytes=FETCH_BYTES):
        inside = [batch for batch, aborted in batches if batch.count and not aborted and not batch.is_control]
        for records in decoded(routes=routes, partition=key, buffer=buffer, batches=inside, start=start, end=end):
            if len(records):
                body = bytes(records.data[int(records.starts[0]) : int(records.ends[0])])
                return Next(int(records.offsets[0]), int(records.timestamps[0]), body)
    return None


def _is_same(here: Next | None, there: Next | None, *, keeps_times: bool) -> bool:
    if here is None or there is None:
        return here is there
    return here.body == there.body and (here.timestamp == there.timestamp or not keeps_times)


def _named(record: Next | None) -> str:
    return "nothing" if record is None else f"the record at offset {record.offset}"
