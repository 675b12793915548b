"""``airmirror groups`` and ``airmirror translate``: where groups stand on both sides, and where any position would be."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from airmirror.clusters.protocol.errors import FetchFailed
from airmirror.clusters.protocol.groups import Committed, committed_offsets
from airmirror.clusters.protocol.log import offsets_with_patience, read_records
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError
from airmirror.flows.prepare import Opened, caught_up
from airmirror.offsets.positions import GroupPosition, group_positions, positions_of
from airmirror.offsets.translation import Translated
from airmirror.partitions import GroupPartition, TopicPartition
from airmirror.windows.mirror import Mirror

MOST_AGES = 200  # rows whose lag in seconds is looked up: it takes a fetch each


class NoSuchGroup(AirmirrorError, bad_input=True):
    """A group that has committed nothing on the source of a flow."""

    flow: str
    cluster: str
    group: str
    says = (
        "flow {0.flow!r}: group {0.group!r} has no offsets on cluster {0.cluster!r}; {airmirror:groups} lists the groups that "
        "have"
    )


class NoSuchPosition(AirmirrorError, bad_input=True):
    """The text is neither an offset nor a time."""

    text: str
    says = "--at {0.text}: write an offset (42) or a time (2026-11-21T08:00:00+00:00)"


@dataclass(frozen=True)
class GroupRow(GroupPartition):
    """A group in one partition. Positions are the next offsets to read; lags are in records and seconds, None unknown.

    ``translation`` is where ``position`` is on the target, ``exact`` whether it is the very next record (else estimated),
    ``again`` how many offsets before the position would be read again, ``reason`` why there is no translation.
    """

    position: int
    lag: int | None
    lag_seconds: float | None
    remote_topic: str
    translation: int | None
    exact: bool | None
    again: int
    on_target: int | None
    target_lag: int | None
    target_lag_seconds: float | None
    reason: str


def list_positions(opened: Opened, only: Collection[str] = ()) -> list[GroupRow]:
    """Return the positions of the flow's groups (or ``only`` these) on both clusters. Writes only the ledger."""
    opened = caught_up(opened)
    with Mirror.open(opened.flow, opened.ledger, "groups") as mirror:
        found = group_positions(mirror, only)
        there = committed_offsets(mirror.target, {row.group for row in found})
        ages = len(found) <= MOST_AGES
        return [_row(item, there.get(item.group, {}), mirror.source, mirror.target, ages) for item in found]


def translate_at(opened: Opened, group: str, at: str | None, topic: str | None = None) -> list[GroupPosition]:
    """The translation of a group's positions, or of an offset or a time in the partitions that it has read.

    Raises NoSuchGroup, NoSuchPosition.
    """
    opened = caught_up(opened)
    flow = opened.flow
    with Mirror.open(flow, opened.ledger, "translate") as mirror:
        committed = committed_offsets(mirror.source, [group])[group]
        chosen = {key: offset for key, offset in committed.items() if topic in (None, key.topic)}
        if not chosen:
            raise NoSuchGroup(flow.name, flow.source.alias, group)
        if at is not None:
            chosen = _positions(mirror.source, chosen, at)
        return positions_of(mirror, {group: chosen})


def _positions(source: Routes, chosen: Mapping[TopicPartition, Committed], at: str) -> dict[TopicPartition, Committed]:
    if at.isdecimal():
        return {key: Committed(int(at)) for key in chosen}
    try:
        moment = datetime.fromisoformat(at)
    except ValueError as error:
        raise NoSuchPosition(at) from error
    source.refresh({key.topic for key in chosen})
    moment = moment.replace(tzinfo=moment.tzinfo or UTC)  # as all that is printed
    offsets = offsets_with_patience(source, chosen, int(moment.timestamp() * 1000))
    ends = offsets_with_patience(source, chosen, -1)
    return {key: Committed(offset if offset >= 0 else ends[key]) for key, offset in offsets.items()}


def _row(
    item: GroupPosition, there: Mapping[TopicPartition, Committed], source: Routes, target: Routes, ages: bool
) -> GroupRow:
    found = item.found if isinstance(item.found, Translated) else None
    committed = there.get(item.remote)
    here_end, there_end = item.source.end if item.source else None, item.target.end if item.target else None
    position, on_target = item.committed.offset, committed.offset if committed else None
    return GroupRow(
        item.group,
        *item.key,
        position=position,
        lag=None if here_end is None else max(0, here_end - position),
        lag_seconds=_age(source, item.key, position, here_end) if ages else None,
        remote_topic=item.remote_topic,
        translation=found.translation if found else None,
        exact=found.exact if found else None,
        again=found.again if found else 0,
        on_target=on_target,
        target_lag=None if there_end is None or on_target is None else max(0, there_end - on_target),
        target_lag_seconds=_age(target, item.remote, on_target, there_end) if ages and on_target is not None else None,
        reason="" if found else str(item.found),
    )


def _age(routes: Routes, key: TopicPartition, position: int, end: int | None) -> float | None:
    """Return the age of the next record to read in seconds; 0 if there is none, None if it can't be read."""
    if end is None:
        return None
    if position >= end:
        return 0.0
    try:
        record = next(read_records(routes, key, position, end, read_committed=False), None)
    except FetchFailed:  # of one group's position: the others' are shown all the same
        return None
    return max(0.0, time.time() - record.timestamp / 1000) if record else 0.0
