"""The consumer groups after a failover: where each would go on, and what it would read again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.groups import Committed, Group, committed_offsets, list_groups
from airmirror.naming import TopicFilter
from airmirror.offsets.positions import GroupPosition, group_positions, positions_without_source
from airmirror.offsets.translation import Reason, Translated
from airmirror.offsets.writing import load_written
from airmirror.partitions import TopicPartition
from airmirror.topics.names import policy_of
from airmirror.windows.mirror import Journal, Mirror


@dataclass(frozen=True)
class GroupPoint:
    """A group in one partition. Positions are the next offsets to read; ``seen_ms``: when ``position`` was read.

    ``translation`` is where it goes on in ``remote_topic``, ``exact`` whether that is the very next record (else estimated),
    ``again`` how many offsets it reads again, ``reason`` why there is no translation. ``on_target`` is where it stands there
    now, and ``state`` what it is there now, in Kafka's words; empty: the target does not know it. ``other_name``: it has
    read on the target what has the topic's name on the source, and is not the flow's copy.
    """

    group: str
    topic: str
    partition: int
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


def groups_now(mirror: Mirror, now_ms: int) -> list[GroupPoint]:
    """The groups that read anything of the flow, all their positions read on the source.

    Raises GroupsNotRead, CoordinatorNotAvailable.
    """
    rows = group_positions(mirror)
    ours = {row.group for row in rows if row.found is not Reason.NOT_REPLICATED}
    rows = [row for row in rows if row.group in ours]
    return points_of(mirror, rows, {(row.group, row.key): now_ms for row in rows})


def groups_as_last_seen(journal: Journal) -> list[GroupPoint]:
    """The same while the source can't be reached: where the flow last saw them, translated by what lies on the target.

    Raises what ``rows_as_last_seen`` does.
    """
    rows, seen = rows_as_last_seen(journal)
    return points_of(journal, rows, seen)


Seen = dict[tuple[str, TopicPartition], int]  # when the position of a group in a partition was read, -1: not known


def rows_as_last_seen(journal: Journal) -> tuple[list[GroupPosition], Seen]:
    """The positions of groups as this ledger last saw them, or as checkpoints on the target tell, whichever is further.

    So a ledger that was made again, or that of another deployment, knows them too. The ledger must have caught up.
    """
    committed: dict[str, dict[TopicPartition, Committed]] = {}
    seen: Seen = {}
    _, lags = journal.index.last_seen()
    for lag in lags:
        key = TopicPartition(lag.topic, lag.partition)
        committed.setdefault(lag.group, {})[key] = Committed(lag.position)
        seen[lag.group, key] = lag.time_ms
    for group, key, told in _checkpoints(journal):
        known = committed.setdefault(group, {}).get(key)
        if known is None or known.offset < told.offset:
            committed[group][key] = told
            seen[group, key] = -1
    return positions_without_source(journal, committed), seen


def _checkpoints(journal: Journal) -> Iterator[tuple[str, TopicPartition, Committed]]:
    """Yield the positions on the source that MirrorMaker 2's checkpoints tell, of the groups that the flow moves."""
    flow, ledger = journal.flow, journal.index
    topic = policy_of(flow).checkpoints_topic(flow.source.alias)
    if journal.target.refresh_existing([topic]):
        return
    load_written(journal.target, topic, ledger, ledger.load_checkpoints)
    chosen = TopicFilter(flow.settings.groups, flow.settings.groups_exclude)
    topics = {last.remote_topic: last.topic for last in ledger.last_segments().values()}
    for (group, remote, partition), each in ledger.checkpoints().items():
        if remote in topics and chosen.matches(group):
            yield group, TopicPartition(topics[remote], partition), Committed(each.upstream, each.metadata)


def points_of(
    journal: Journal, rows: Sequence[GroupPosition], seen: dict[tuple[str, TopicPartition], int]
) -> list[GroupPoint]:
    """The same of positions that are known; ``seen``: when each was read. Raises GroupsNotRead."""
    names = {row.group for row in rows}
    there: dict[str, Group] = list_groups(journal.target) if names else {}
    positions = committed_offsets(journal.target, names & there.keys())
    found = []
    for row in rows:
        translated = row.found if isinstance(row.found, Translated) else None
        on_target = positions.get(row.group, {}).get(row.remote)
        group = there.get(row.group)
        found.append(
            GroupPoint(
                group=row.group,
                topic=row.topic,
                partition=row.partition,
                position=row.committed.offset,
                seen_ms=seen[row.group, row.key],
                remote_topic=row.remote_topic,
                translation=translated.translation if translated else None,
                exact=translated.exact if translated else None,
                again=translated.again if translated else 0,
                reason="" if translated else str(row.found),
                on_target=on_target.offset if on_target else None,
                state=group.state if group else "",
                other_name=row.remote_topic not in ("", row.topic)
                and any(key.topic == row.topic for key in positions.get(row.group, ())),
            )
        )
    return found
