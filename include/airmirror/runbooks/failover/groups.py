"""The consumer groups after a failover: where each would resume, and what it would read again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.groups import (
    Committed,
    Group,
    committed_offsets,
    list_every_group,
    list_groups,
    may_break,
)
from airmirror.clusters.protocol.routes import Routes
from airmirror.config.settings import Settings
from airmirror.ledger import GroupLag
from airmirror.naming import TopicFilter
from airmirror.offsets.groups import plan
from airmirror.offsets.positions import (
    GroupPosition,
    group_positions,
    held_back,
    in_order,
    positions_on_source,
    positions_without_source,
)
from airmirror.offsets.replicated import extents
from airmirror.offsets.translation import Reason, Translated
from airmirror.offsets.writing import load_written
from airmirror.partitions import GroupPartition, OfCopy, TopicPartition, grouped
from airmirror.runbooks.moving import OnTarget, moved
from airmirror.topics.names import policy_of
from airmirror.windows.mirror import Journal, Mirror, reverse_ledger
from airmirror.windows.resets import SOURCE_RECREATED
from airmirror.wire.checkpoints import Checkpoint

SETTLING_SECONDS = 5.0  # for the marker of another deployment's checkpoints, whose commit was answered


@dataclass(frozen=True)
class GroupPoint(GroupPartition, OfCopy):
    """A group in one partition. Positions are the next offsets to read; ``seen_ms``: when ``position`` was read.

    ``translation`` is where it resumes in ``remote_topic``, ``exact`` whether that is the very next record (else estimated),
    ``again`` how many offsets it reads again, ``reason`` why there is no translation, or why it would not be moved there.
    ``on_target`` is where it stands there now, and ``state`` what it is there now, in Kafka's words; empty: the target does not
    know it. ``other_name``: it has read on the target what has the topic's name on the source, and is not the flow's copy.
    """

    position: int
    seen_ms: int
    remote_topic: str
    translation: int | None
    exact: bool | None
    again: int
    reason: str
    on_target: int | None
    state: str
    other_name: bool = False

    @property
    def is_active(self) -> bool:
        """Return whether it has members on the target, so that its offsets can't be written from outside."""
        return bool(self.state) and not Group(self.group, self.state).is_idle

    @property
    def result(self) -> str:
        return self.reason or ("exact" if self.exact else "estimated")


def groups_now(mirror: Mirror, now_ms: int) -> list[GroupPoint]:
    """The groups that read anything of the flow, all their positions read on the source.

    Raises GroupsNotRead, CoordinatorNotAvailable.
    """
    rows = group_positions(mirror)
    apart = mirror.index.owners().is_apart  # what was moved by its name is no failover's
    ours = {row.group for row in rows if row.found is not Reason.NOT_REPLICATED and not apart(row.topic)}
    rows = [row for row in rows if row.group in ours and not apart(row.topic)]
    return points_of(mirror, rows, {(row.group, row.key): now_ms for row in rows})


Kinds = Mapping[str, Sequence[str]]  # names of groups by their kind


def kinds_of(routes: Routes, settings: Settings) -> Kinds:
    """The groups of a cluster that a flow is to move, whatever their kind. Raises GroupsNotRead, BrokerUnreachable."""
    chosen = _chosen(settings)
    return grouped(
        (each.protocol if each.protocol not in ("", "consumer") else each.kind or "classic", each.name)
        for each in sorted(list_every_group(routes), key=lambda group: group.name)
        if chosen.matches(each.name)
    )


def kinds_as_last_seen(journal: Journal) -> Kinds:
    """The same of the groups whose lags the ledger remembers; of share groups it remembers nothing."""
    seen = sorted({(lag.group, lag.kind or "") for lag in _lags_last_seen(journal)})
    return grouped((kind or "of an unknown kind", name) for name, kind in seen)


def maybe_streams(journal: Journal, rows: Iterable[GroupPosition]) -> list[str]:
    """Return the groups that positions would make on the target, where that may break a streams group, and of which nobody knows
    the kind: only checkpoints tell of them, and ``streams.applications`` does not name them. Raises GroupsNotRead."""
    unknown = {row.group for row in rows if not row.kind}
    unknown -= {lag.group for lag in _lags_last_seen(journal)} if unknown else set()
    if not unknown or journal.flow.settings.streams_groups_ahead_allowed or not may_break(journal.target):
        return []
    return sorted(unknown - {*journal.flow.settings.streams_applications} - list_groups(journal.target).keys())


Seen = dict[tuple[str, TopicPartition], int]  # when the position of a group in a partition was read, -1: not known


def rows_as_last_seen(journal: Journal) -> tuple[list[GroupPosition], Seen]:
    """The positions of groups as this ledger last saw them, or as checkpoints on the target tell, whichever is newer.

    So a ledger that was made again, or that of another deployment, knows them too; a group that was rewound since this ledger
    saw it skips nothing. Positions in topics that came from the target are there where checkpoints say: what brought them lies on
    the source. What was seen before a source topic was created again is of the old one. The ledger must have caught up.
    """
    committed: dict[str, dict[TopicPartition, Committed]] = {}
    seen: Seen = {}
    kinds: dict[str, str] = {}
    back: dict[tuple[str, TopicPartition], Checkpoint] = {}
    # When partitions were reset last because their source topic had been created again.
    anew = {each.key: each.time_ms for each in journal.index.resets() if SOURCE_RECREATED in each.problem}
    for lag in _lags_last_seen(journal):
        if lag.time_ms >= anew.get(lag.key, 0):
            committed.setdefault(lag.group, {})[lag.key] = Committed(lag.position)
            seen[lag.group, lag.key] = lag.time_ms
            kinds[lag.group] = lag.kind or ""
    for key, told, time_ms, came_from_target in _checkpoints(journal):
        its, place = committed.setdefault(told.group, {}), (told.group, key)
        is_newer = time_ms > seen.get(place, -2)
        if came_from_target and (is_newer or told.upstream <= its[key].offset):
            its.pop(key, None)
            back[place], seen[place] = told, time_ms
        elif not came_from_target and is_newer and time_ms >= anew.get(key, -1):
            its[key], seen[place] = Committed(told.upstream, told.metadata), time_ms
    rows = in_order(journal.flow, [*positions_without_source(journal, committed), *_at_checkpoints(journal, back)])
    apart = journal.index.owners().is_apart
    ours = {row.group for row in rows if row.found is not Reason.NOT_REPLICATED and not apart(row.topic)}
    rows = [row for row in rows if row.group in ours and not apart(row.topic)]
    return [replace(row, kind=kinds.get(row.group, "")) for row in rows], seen


def _lags_last_seen(journal: Journal) -> list[GroupLag]:
    """The lags that the ledger remembers, of the groups that the flow moves by now."""
    chosen = _chosen(journal.flow.settings)
    return [lag for lag in journal.index.group_lags() if chosen.matches(lag.group)]


def _chosen(settings: Settings) -> TopicFilter:
    return TopicFilter(settings.groups, settings.groups_exclude)


def _checkpoints(journal: Journal) -> Iterator[tuple[TopicPartition, Checkpoint, int, bool]]:
    """Yield MirrorMaker 2's checkpoints of the groups that the flow moves, each with its partition on the source, when it was
    written (epoch milliseconds), and whether its topic came from the target."""
    flow, ledger = journal.flow, journal.index
    topic = policy_of(flow).checkpoints_topic(flow.source.alias)
    if journal.target.refresh_existing([topic]):
        return
    load_written(journal.target, topic, ledger, "checkpoints", patience=SETTLING_SECONDS)
    chosen = _chosen(flow.settings)
    topics = {last.remote_topic: last.topic for last in ledger.last_mappings().values()}
    written, found = ledger.checkpoint_times(), ledger.checkpoints()
    brought = _brought(journal, {each.topic for each in found.values()} - topics.keys())
    names = topics | brought
    for each in found.values():
        if each.topic in names and chosen.matches(each.group):
            yield TopicPartition(names[each.topic], each.partition), each, written[each.key], each.topic in brought


def _brought(journal: Journal, topics: Iterable[str]) -> dict[str, str]:
    """Return those of these topics of the target that the reverse flow brings to the source, each with its name there.

    Names tell it; where they are the same on both sides, the ledger, if it has seen the reverse flow.
    """
    flow, names, wanted = journal.flow, policy_of(journal.flow), TopicFilter((".*",), journal.flow.topics_exclude)
    known = {each.topic: each.remote_topic for each in reverse_ledger(flow, journal.index).last_mappings().values()}
    found = {}
    for topic in topics:
        name = names.format_remote_topic(flow.target.alias, topic)
        is_brought = topic in known if name == topic else names.topic_source(topic) != flow.source.alias
        if is_brought and wanted.matches(topic) and wanted.matches(name):
            found[topic] = known.get(topic, name)
    return found


def _at_checkpoints(journal: Journal, back: Mapping[tuple[str, TopicPartition], Checkpoint]) -> Iterator[GroupPosition]:
    """Yield positions as checkpoints tell them, of partitions that the target still has; whether they are exact nobody knows."""
    places = {place: TopicPartition(each.topic, each.partition) for place, each in back.items()}
    logs = extents(journal.target, places.values())
    for (group, key), each in back.items():
        log = logs.get(places[group, key])
        found: Translated | Reason = Reason.NO_LEADER
        if log is not None:
            is_there = each.downstream <= log.end
            found = Translated(each.upstream, each.downstream, exact=False) if is_there else Reason.BEYOND_TARGET
        if journal.target.has(places[group, key]):
            at = Committed(each.upstream, each.metadata)
            yield GroupPosition(group, *key, at, each.topic, found, target=log, back=True)


def stays(
    journal: Journal, rows: Sequence[GroupPosition], groups: Mapping[str, Group], on_target: OnTarget
) -> list[str]:
    """Return of each position why its group would be left where it stands on the target, or "". No reason is that it has members,
    who can stop; that both logs have deleted what it would read; and that it was moved there, and has read on.

    ``groups``, ``on_target``: as ``plan`` has them. The ledger must have caught up.
    """
    planned, known = plan(rows, groups, on_target), moved(journal)
    ahead = [row for row, item in zip(rows, planned, strict=True) if item.reason == Reason.AHEAD]
    equal = _not_further(journal, ahead, on_target)
    found = []
    for row, item in zip(rows, planned, strict=True):
        move = known.get((row.group, row.remote_topic, row.partition))
        has_read_on = move is not None and item.on_target is not None and item.on_target > move.after >= 0
        is_gone = row.source is not None and row.committed.offset < row.source.start
        is_fine = (
            item.reason == Reason.ACTIVE
            or (item.reason == Reason.BELOW_START and (is_gone or has_read_on))
            or (item.reason == Reason.AHEAD and (has_read_on or (row.group, row.remote) in equal))
        )
        found.append("" if is_fine else item.reason)
    return found


def _not_further(
    journal: Journal, ahead: Sequence[GroupPosition], on_target: OnTarget
) -> set[tuple[str, TopicPartition]]:
    """Return the groups that have read no more on the target than on the source: past a marker alone, at the end of the log."""
    ours = {(row.group, row.remote): row for row in ahead if not row.back}
    at: dict[str, dict[TopicPartition, Committed]] = {}
    for group, remote in ours:
        at.setdefault(group, {})[remote] = on_target[group][remote]
    there = positions_on_source(journal, at, {row.topic: row.remote_topic for row in ours.values()}) if at else []
    return {
        (each.group, each.key)
        for each in there
        if isinstance(each.found, Translated) and each.found.translation <= ours[each.group, each.key].committed.offset
    }


def points_of(journal: Journal, rows: Sequence[GroupPosition], seen: Seen) -> list[GroupPoint]:
    """The groups of positions that are known; ``seen``: when each was read. Raises GroupsNotRead."""
    rows = held_back(journal, rows)
    names = {row.group for row in rows}
    there: dict[str, Group] = list_groups(journal.target) if names else {}
    positions = committed_offsets(journal.target, names & there.keys())
    found = []
    for row, reason in zip(rows, stays(journal, rows, there, positions), strict=True):
        translated = row.found if isinstance(row.found, Translated) else None
        on_target = positions.get(row.group, {}).get(row.remote)
        group = there.get(row.group)
        found.append(
            GroupPoint(
                row.group,
                *row.key,
                position=row.committed.offset,
                seen_ms=seen[row.group, row.key],
                remote_topic=row.remote_topic,
                translation=translated.translation if translated else None,
                exact=translated.exact if translated else None,
                again=translated.again if translated else 0,
                reason=reason,
                on_target=on_target.offset if on_target else None,
                state=group.state if group else "",
                other_name=row.remote_topic not in ("", row.topic)
                and any(key.topic == row.topic for key in positions.get(row.group, ())),
            )
        )
    return found
