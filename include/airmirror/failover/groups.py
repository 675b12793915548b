"""The consumer groups after a failover: where each would go on, and what it would read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airmirror.clusters.protocol.groups import Committed, Group, committed_offsets, list_groups
from airmirror.ledger import GroupLag
from airmirror.offsets.positions import GroupPosition, group_positions, positions_without_source
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.windows.mirror import Journal, Mirror


@dataclass(frozen=True)
class GroupPoint:
    """A group in one partition. Positions are the next offsets to read; ``seen_ms``: when ``position`` was read.

    ``translation`` is where it goes on in ``remote_topic``, ``exact`` whether that is the very next record (else estimated),
    ``again`` how many offsets it reads again, ``reason`` why there is no translation. ``on_target`` is where it stands there
    now, and ``state`` what it is there now, in Kafka's words; empty: the target does not know it.
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
    return _points(mirror, rows, {(row.group, row.key): now_ms for row in rows})


def groups_as_last_seen(journal: Journal, lags: Sequence[GroupLag]) -> list[GroupPoint]:
    """The same while the source can't be reached: where the flow last saw them, translated by what lies on the target."""
    seen = {(lag.group, TopicPartition(lag.topic, lag.partition)): lag.time_ms for lag in lags}
    committed: dict[str, dict[TopicPartition, Committed]] = {}
    for lag in lags:
        committed.setdefault(lag.group, {})[TopicPartition(lag.topic, lag.partition)] = Committed(lag.position)
    return _points(journal, positions_without_source(journal, committed), seen)


def _points(
    journal: Journal, rows: Sequence[GroupPosition], seen: dict[tuple[str, TopicPartition], int]
) -> list[GroupPoint]:
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
            )
        )
    return found
