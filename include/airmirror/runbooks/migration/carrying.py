"""The positions that an undo carries back to the source: of groups that have gone further over there, or whose own have expired.

A group stands on the source where it stood, unless it has read further on the target, has committed there in a partition for the
first time, or the source has forgotten its position meanwhile. These are translated back by the flow's own mappings (invariant
G), with their metadata; what can't be is named before anything is done.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from airmirror.clusters.protocol.groups import STREAMS, Committed, list_groups
from airmirror.clusters.protocol.stable import stable_offsets
from airmirror.offsets.positions import GroupPosition, kinds_seen, positions_on_source, would_break
from airmirror.offsets.translation import Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks.migration.chosen import Move
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.moving import OnTarget, PutBack, Written, not_exact, to_put_back
from airmirror.windows.mirror import Mirror
from airmirror.wire.moves import GroupMove

GONE = "what it would read next is deleted on the source"
NOT_MOVING = "its topic is not in the move group any more"
STREAMS_GONE = "a streams group that the source does not have: on Kafka 4.2.0 its position would break it (KAFKA-20254)"


@dataclass(frozen=True)
class GroupsToPutBack:
    """The ``groups`` that are put back on the target, ``rows``: positions that are written on the source; ``reasons``: what can't
    be carried back."""

    groups: tuple[PutBack, ...]
    rows: tuple[GroupPosition, ...]
    reasons: tuple[str, ...]

    @property
    def names(self) -> set[str]:
        return {each.move.group for each in self.groups if not each.move.is_mark}

    @property
    def written(self) -> Written:
        offsets: Written = {}
        for row in self.rows:
            if isinstance(row.found, Translated):
                place = offsets.setdefault(row.group, {})
                place[row.remote] = Committed(row.found.translation, row.committed.metadata)
        return offsets


def going_back(mirror: Mirror, move: Move, order: MoveOrder, *, ahead_allowed: bool = False) -> GroupsToPutBack:
    """Look at both clusters. The ledger must have caught up. ``ahead_allowed``: the source takes positions of a streams group
    that it does not have. Raises OffsetsHeld, GroupsNotRead."""
    groups = to_put_back(mirror, lambda each: each.window == order.window)
    groups += _new_there(mirror, move, order, groups)
    names = {each.move.group for each in groups}
    here = stable_offsets(mirror.source, names, move.names)
    topics = {remote: topic for topic, remote in move.names.items()}
    wanted: Written = {}
    wrong: list[str] = []
    for each in groups:
        key = TopicPartition(topics.get(each.move.topic, ""), each.move.partition)
        stands = _to_carry(each, has_position=key in here.get(each.move.group, {}))
        if stands is not None and key.topic:
            wanted.setdefault(each.move.group, {})[each.move.key] = stands
        elif stands is not None:
            wrong.append(f"{each.name} at {stands.offset}: {NOT_MOVING}")
    found = positions_on_source(mirror, wanted, move.names, mirror.source) if wanted else []
    rows = [row for row in found if not _is_past(row, here)]
    wrong += not_exact(rows) + [
        f"{row.group} in {row.key} at {row.committed.offset}: {GONE}" for row in rows if _is_gone(row)
    ]
    early = set() if ahead_allowed else _breaks_source(mirror, {row.group for row in rows})
    allow = f"{mirror.flow.reverse_name}.streams.groups.ahead.allowed" if early else ""
    wrong += [f"{row.group} in {row.key}: {STREAMS_GONE}; {allow}" for row in rows if row.group in early]
    return GroupsToPutBack(tuple(groups), tuple(rows), tuple(wrong))


def _breaks_source(mirror: Mirror, groups: Collection[str]) -> set[str]:
    """Return the streams groups that the source may break on. One that has had no member on the target is classic there."""
    if not groups:
        return set()
    seen, there = kinds_seen(mirror), {name: each.kind for name, each in list_groups(mirror.target).items()}
    kinds = {each: STREAMS if there.get(each) == STREAMS else seen.get(each, "") for each in groups}
    return would_break(mirror.source, kinds, mirror.flow.settings.streams_applications)


def _new_there(mirror: Mirror, move: Move, order: MoveOrder, known: Collection[PutBack]) -> list[PutBack]:
    """Return positions of groups on the target where they had no position, here or there, when they were cut over."""
    places = {(each.move.group, each.move.key) for each in known}
    there, topics = list_groups(mirror.target), set(move.names.values())
    names = {each.move.group for each in known if each.move.is_mark}  # of others nobody knows what is new
    found = []
    for group, offsets in sorted(stable_offsets(mirror.target, names, topics).items()):
        for key, each in sorted(offsets.items()):
            if key.topic in topics and (group, key) not in places:
                nowhere = GroupMove(group, *key, order.window, before=-1, after=-1, time_ms=0, metadata_before="")
                state = there[group].state if group in there else ""
                found.append(PutBack(nowhere, each.offset, state, mirror.target.alias, each.metadata))
    return found


def _to_carry(each: PutBack, *, has_position: bool) -> Committed | None:
    """Return the target's position from which a group resumes on the source; None: it stands there as it did."""
    if each.has_gone_on:
        return Committed(each.now, each.metadata)
    if each.move.after < 0 or has_position:
        return None
    return Committed(each.move.after, each.metadata if each.now == each.move.after else "")  # the source's has expired


def _is_past(row: GroupPosition, here: OnTarget) -> bool:
    """Return whether the group has read as far on the source: an undo moves no group back there."""
    stands = here.get(row.group, {}).get(row.remote)
    if stands is None or not isinstance(row.found, Translated) or not_exact([row]):
        return False
    return stands.offset >= row.found.translation


def _is_gone(row: GroupPosition) -> bool:
    """Return whether the source's log begins after a position."""
    return isinstance(row.found, Translated) and row.target is not None and row.found.translation < row.target.start
