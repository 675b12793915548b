"""``airmirror takeover plan``: all that a take-over would meet, looked at while MirrorMaker 2 still runs. Reads only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, dry_run
from airmirror.offsets.positions import GroupPosition, group_positions
from airmirror.offsets.translation import Sync, Translated
from airmirror.partitions import GroupPartition, TopicPartition
from airmirror.runbooks.takeover.copies import Continued, continued
from airmirror.runbooks.takeover.history import Incident, incidents, syncs_of
from airmirror.topics.drift import Drift, drifts
from airmirror.windows.connect_offsets import progress_topics, recorded_progress, with_connect_offsets
from airmirror.windows.declared import compacted_topics
from airmirror.windows.handover import look_at_copies
from airmirror.windows.mirror import Mirror
from airmirror.windows.mirrormaker import writers
from airmirror.windows.plan import Planned


@dataclass(frozen=True)
class GroupForecast(GroupPartition):
    """A group in one partition, and ``why`` its position does not become exact; empty: it does."""

    position: int
    why: str


@dataclass(frozen=True)
class TakeoverPlan:
    """What was found. ``progress_in``: the topics that hold MirrorMaker 2's progress; ``progress_ms``: when it wrote any last.

    ``syncs``: its newest offset sync of each partition; ``histories``: what it did without telling, by partition.
    """

    flow: str
    progress_in: tuple[str, ...]
    progress_ms: int | None
    running: tuple[str, ...]
    partitions: tuple[Continued, ...]
    syncs: Mapping[TopicPartition, Sync]
    histories: Mapping[TopicPartition, Sequence[Incident]]
    groups: tuple[GroupForecast, ...]
    drift: tuple[Drift, ...]
    warnings: tuple[str, ...]


def takeover_plan(opened: Opened) -> TakeoverPlan:
    """Look at MirrorMaker 2 and both clusters; only the ledger is written. Raises OffsetsTopicMissing, or a cluster's error."""
    topics, planned = dry_run(opened)
    with Mirror.open(opened.flow, opened.ledger, "takeover") as mirror:
        mirror.refresh()
        recorded = recorded_progress(mirror.target, opened.flow)
        state = with_connect_offsets(mirror, opened.ledger.state(), topics.topics)
        copies = look_at_copies(mirror, state, planned, {key: each.offset for key, each in recorded.items()})
        rows = [continued(item, recorded.get(item.key), copies.get(item.key)) for item in planned]
        running = writers(mirror.target, opened.flow)
        syncs, histories = _history(mirror, planned)
        warnings, forecasts = list(topics.warnings), list[GroupForecast]()
        try:
            forecasts = _groups(group_positions(mirror), rows)
        except AirmirrorError as error:
            warnings.append(f"nothing can be said of groups: {error}")
    if topics.acls_not_synced:
        warnings.append(f"ACLs are not copied: {topics.acls_not_synced}")
    return TakeoverPlan(
        flow=opened.flow.name,
        progress_in=tuple(progress_topics(opened.flow)),
        progress_ms=max((each.time_ms for each in recorded.values()), default=None),
        running=tuple(running),
        partitions=tuple(rows),
        syncs=syncs,
        histories=histories,
        groups=tuple(forecasts),
        drift=tuple(drifts(topics)),
        warnings=tuple(warnings),
    )


def _history(
    mirror: Mirror, planned: Sequence[Planned]
) -> tuple[dict[TopicPartition, Sync], dict[TopicPartition, Sequence[Incident]]]:
    """The newest offset syncs, and what all of them tell, of the partitions that this flow has not copied before."""
    remote = {item.key: item.remote for item in planned if item.end > 0}
    missing = mirror.target.refresh_existing({key.topic for key in remote.values()})
    syncs = syncs_of(mirror, remote)
    compacted = compacted_topics(mirror, {key.topic for key in remote})
    ours = {item.key for item in planned if item.last is not None}
    told = {
        key: incidents(mirror, key, remote[key], found, compacted=compacted[key.topic])
        for key, found in syncs.items()
        if key not in ours and remote[key].topic not in missing
    }
    return {key: found[-1] for key, found in syncs.items()}, {key: found for key, found in told.items() if found}


def _groups(positions: Sequence[GroupPosition], rows: Sequence[Continued]) -> list[GroupForecast]:
    """Return what becomes of the groups' positions once the partitions were taken over, and a window was verified."""
    row_of = {row.key: row for row in rows}
    found = []
    for each in positions:
        row = row_of.get(each.key)
        if row is None:
            why = "not of this flow" if isinstance(each.found, Translated) else str(each.found)
        elif row.error is not None:
            why = "its partition can't be taken over"
        elif 0 <= row.since <= each.committed.offset or (isinstance(each.found, Translated) and each.found.exact):
            why = ""
        else:
            by = "estimated by its offset syncs" if isinstance(each.found, Translated) else str(each.found)
            why = f"copied by MirrorMaker 2, before offset {row.since if row.since >= 0 else row.start}: {by}"
        found.append(GroupForecast(each.group, *each.key, each.committed.offset, why))
    return found
