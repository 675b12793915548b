"""The ledger's knowledge of replicated partitions, as far as the positions to translate need it.

In the words of the flow whose mappings they are: ``source`` is where the records came from, whichever of the two
clusters the groups are on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from airmirror.clusters.protocol.log import EARLIEST, LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.offsets.syncs import read_syncs
from airmirror.offsets.translation import Reason, Replicated, Sync, nothing_replicated, usable_history
from airmirror.partitions import TopicPartition, grouped
from airmirror.topics.names import policy_of
from airmirror.wire.mappings import MappingRecord

LEADER_SECONDS = 5.0
ALL = 2**63 - 1


@dataclass(frozen=True)
class Extent:
    """The beginning and the end (the high watermark) of a partition's log."""

    start: int
    end: int


@dataclass(frozen=True)
class Known:
    """A partition on both clusters: its logs, its newest mapping record, and what positions are translated with."""

    source: Extent | None
    target: Extent | None
    newest: MappingRecord | None
    replicated: Replicated | Reason


@dataclass
class PositionLookup:
    """A flow's mappings, and what they join: ``remote_topics`` by the source's name. ``groups_on``: the side of groups.

    Without a ``source`` (it can't be reached) nothing is known of it but what lies on the target.
    """

    flow: Flow
    ledger: FlowLedger
    source: Routes | None
    target: Routes
    remote_topics: Mapping[str, str]
    groups_on: Literal["source", "target"]

    def known(self, positions: Mapping[TopicPartition, Sequence[int]]) -> dict[TopicPartition, Known]:
        """Return what is known, by source partition. Raises the clusters' and the ledger's errors."""
        remote = {key: TopicPartition(self.remote_topics[key.topic], key.partition) for key in positions}
        here = extents(self.source, remote.keys()) if self.source else {}
        there = extents(self.target, remote.values())
        last, verified = self.ledger.last_mappings(), self.ledger.verified()
        newest = {key: last[key] for key in positions if key in last}
        ids = {key: (*key, record.source_topic_id) for key, record in newest.items()}
        firsts = {r.key: r for r in self.ledger.first_mappings(list(ids.values()))}
        positions_of = [(*ids[key], position) for key in newest for position in positions[key]]
        records = grouped((each.key, each) for each in self.ledger.mappings_around(positions_of, self.groups_on))
        found = {}
        for key, wanted in positions.items():
            record = newest.get(key)
            source, target = here.get(key), there.get(remote[key])
            replicated: Replicated | Reason
            if (self.source and not self.source.has(key)) or not self.target.has(remote[key]):
                replicated = Reason.MISSING
            elif (self.source and source is None) or target is None:
                replicated = Reason.NO_LEADER
            elif record is None:
                start = source.start if source else 0
                replicated = nothing_replicated(start, target.end, self._history(key, ALL) if target.end else ())
            elif self._is_recreated(record):
                replicated = Reason.RECREATED
            else:
                first, mark = firsts[key], verified.get(key)
                before = first.source_start if self.groups_on == "source" else first.target_start
                passed, end = first.source_start - 1, first.target_start  # nothing is verified yet
                if mark is not None and mark.source_topic_id == record.source_topic_id:
                    passed, end = mark.offset, max(end, mark.target_end)
                replicated = Replicated(
                    source_start=first.source_start,
                    target_start=first.target_start,
                    verified=passed,
                    verified_end=end,
                    records=records.get(key, ()),
                    log_start=source.start if source else first.source_start,
                    history=self._history(key, first.source_start)
                    if first.target_start and min(wanted) < before
                    else (),
                )
            found[key] = Known(source, target, record, replicated)
        return found

    def _is_recreated(self, record: MappingRecord) -> bool:
        if self.source and record.source_topic_id != self.source.topic_ids.get(record.topic):
            return True
        return record.target_topic_id != self.target.topic_ids.get(record.remote_topic)

    def _history(self, key: TopicPartition, before: int) -> list[Sync]:
        return usable_history(self._syncs.get(key, ()), before)

    @cached_property
    def _syncs(self) -> dict[TopicPartition, list[Sync]]:
        """The offset syncs of the flow whose mappings these are, in log order.

        The return trip reads those of another flow, whose ``offset-syncs.topic.location`` may be the other one: the first
        place that knows a partition counts. Other topics' syncs may lie in either.
        """
        names = policy_of(self.flow)
        places = [
            (self.source, names.offset_syncs_topic(self.target.alias)),
            (self.target, names.offset_syncs_topic(self.source.alias if self.source else self.flow.source.alias)),
        ]
        if self.flow.settings.offset_syncs_topic_location == "target":
            places.reverse()
        found: dict[TopicPartition, list[Sync]] = {}
        for routes, topic in places if self.groups_on == "target" else places[:1]:
            if routes is None:
                continue
            syncs = read_syncs(routes.cluster, topic)
            found = grouped((each.key, Sync(each.upstream, each.downstream)) for each in syncs) | found
        return found


def extents(routes: Routes, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Extent]:
    """The logs of those partitions that exist and have a leader; an election is awaited for a few seconds."""
    wanted = set(partitions)
    routes.refresh_existing({key.topic for key in wanted})
    led = routes.with_leader([key for key in wanted if routes.has(key)], LEADER_SECONDS)
    starts, ends = (offsets_with_patience(routes, led, at) for at in (EARLIEST, LATEST))
    return {key: Extent(starts[key], ends[key]) for key in led}
