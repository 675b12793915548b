"""The plan of a failover: what it would mean now, also while the source can't be reached. Nothing is written but the ledger."""

from __future__ import annotations

import time
from dataclasses import dataclass

from airmirror.clusters.admin.client import ClusterUnreachable, connect
from airmirror.clusters.protocol.log import oldest_times
from airmirror.errors import AirmirrorError
from airmirror.flows.freezing import taken
from airmirror.flows.prepare import Opened, caught_up, plan_topics
from airmirror.ledger.metrics import SEEN
from airmirror.offsets.replicated import extents
from airmirror.partitions import TopicPartition
from airmirror.report.document import Finding
from airmirror.runbooks.draining import stopped
from airmirror.runbooks.failover.findings import findings
from airmirror.runbooks.failover.groups import (
    GroupPoint,
    Kinds,
    groups_now,
    kinds_as_last_seen,
    kinds_of,
    maybe_streams,
    points_of,
    rows_as_last_seen,
)
from airmirror.runbooks.failover.partitions import PartitionPoint, points
from airmirror.topics.drift import Drift, drifts
from airmirror.topics.names import select
from airmirror.windows.mirror import Mirror

REACH_SECONDS = 10.0  # for the source to answer at all


@dataclass(frozen=True)
class FailoverPlan:
    """The meaning of a failover of a flow at ``made_ms`` (epoch milliseconds).

    ``source_error``: why the source can't be reached, empty where it can; then everything about it is as it was last seen.
    ``names``: topics as producers and consumers know them on the source, with their names on the target. ``drift``: what
    the target's topics, configs and ACLs lack, None: not known. ``kinds``: all groups that are to be moved, by their kind.
    """

    flow: str
    made_ms: int
    source_error: str
    partitions: tuple[PartitionPoint, ...]
    groups: tuple[GroupPoint, ...]
    kinds: Kinds
    names: dict[str, str]
    drift: tuple[Drift, ...] | None
    findings: tuple[Finding, ...]

    @property
    def recovery_ms(self) -> int | None:
        """Records of the source that are younger may be missing, in milliseconds; None: of some partition nobody knows."""
        times = [point.complete_ms for point in self.partitions]
        known = [self.made_ms - each for each in times if each is not None]
        return max((0, *known)) if len(known) == len(times) else None

    @property
    def missing(self) -> int:
        return sum(point.missing or 0 for point in self.partitions)


def failover_plan(opened: Opened) -> FailoverPlan:
    """Look at the target, and at the source where it answers. Raises what the target raises, and what guards the clusters."""
    now_ms, opened = int(time.time() * 1000), caught_up(opened, soon=True)
    flow, ledger = opened.flow, opened.ledger
    source_error = unreachable(opened)
    topics = None if source_error else plan_topics(opened, frozen_too=True)
    state, shown, owners = ledger.state(), ledger.partition_metrics(), ledger.owners()
    replicated = set(state.known)
    known = {topic for topic, _ in replicated}
    every = {*known, *(row.topic for row in shown), *(topics.topics if topics else ())}
    ours, apart = taken(flow, owners, every), owners.is_apart
    seen = ledger.numbers().get((SEEN, ""))
    with Mirror.open(flow, ledger, "failover") as mirror:
        there = extents(mirror.target, {last.remote for last in state.mappings.values()})
        live = None if topics is None else extents(mirror.source, mirror.source.keys_now({*known, *topics.topics}))
        uncopied = [key for key, log in (live or {}).items() if key not in replicated and log.start < log.end]
        partitions = points(
            state,
            unverified=ledger.unverified(),
            shown={TopicPartition(row.topic, row.partition): row for row in shown},
            seen_ms=None if seen is None else round(seen * 1000),
            live=live,
            new=topics.topics if topics else {},
            oldest=oldest_times(mirror.source, uncopied),
            target=there,
            now_ms=now_ms,
            taken=ours,
            ids=mirror.source.topic_ids,
        )
        if topics:
            groups, kinds, unknown = groups_now(mirror, now_ms), kinds_of(mirror.source, flow.settings), list[str]()
        else:
            rows, times = rows_as_last_seen(mirror)
            groups, kinds, unknown = (
                points_of(mirror, rows, times),
                kinds_as_last_seen(mirror),
                maybe_streams(mirror, rows),
            )
    names = {point.topic: point.remote_topic for point in partitions}
    drift = None if topics is None else tuple(each for each in drifts(topics) if not apart(each.topic))
    found = findings(
        flow.name,
        source_error=source_error,
        partitions=partitions,
        stopped=stopped(opened, ours) if topics else (),
        excluded=sorted(topic for topic in known - select(flow, known).keys() if not apart(topic)),
        frozen=sorted(filter(apart, every)),
        groups=groups,
        kinds=kinds,
        unknown=unknown,
        drift=drift,
        refused=[str(each) for each in topics.refused if not apart(each.topic)] if topics else [],
        applications=flow.settings.streams_applications,
        has_reverse=opened.configuration.has_reverse(flow),
        is_frozen=owners.whole is not None,
        now_ms=now_ms,
    )
    return FailoverPlan(
        flow=flow.name,
        made_ms=now_ms,
        source_error=source_error,
        partitions=tuple(partitions),
        groups=tuple(groups),
        kinds=kinds,
        names=names,
        drift=drift,
        findings=tuple(found),
    )


def unreachable(opened: Opened) -> str:
    """Return why the source can't be reached, or "". Whatever else is wrong with it is raised later, by what asks for it."""
    try:
        connect(opened.flow.source).topic_names(REACH_SECONDS)
    except ClusterUnreachable as error:
        return str(error)
    except AirmirrorError:
        return ""
    return ""
