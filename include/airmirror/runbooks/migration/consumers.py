"""The consumer groups of a move group: checked, and cut over to the target at the very next record.

A group is cut over as a whole, when it has no members any more: rolled over member by member, both sides would read the same
partitions. No lease is taken, so windows continue meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from airmirror.clusters.admin.client import connect
from airmirror.clusters.admin.members import members_of
from airmirror.clusters.protocol.groups import Committed, committed_offsets, list_groups
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.protocol.stable import all_groups, stable_offsets
from airmirror.config import Cluster
from airmirror.errors import counted, named
from airmirror.flows.freezing import check_open
from airmirror.flows.prepare import Opened
from airmirror.ledger.groups import unfit_name
from airmirror.offsets.groups import plan, settled
from airmirror.offsets.positions import GroupPosition, group_positions, held_back, positions_of, positions_on_source
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks.draining import prove_past
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.migration.chosen import PURPOSE, Move, MoveRefused, session
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.moving import MappingWriter, Moves, displaced, move_groups, moved, not_exact, remember, unleased
from airmirror.tell import Tell
from airmirror.windows.mirror import Mirror
from airmirror.wire.moves import GroupMove

LOOK_SECONDS = 0.5

Place = tuple[str, str, int]  # a group in a partition of a remote topic
_Offsets = dict[str, dict[TopicPartition, Committed]]


class GroupsHaveMembers(RunbookError, transient=True):
    """Consumers that are still in groups that are to be cut over; none of these groups was moved."""

    cluster: str
    seconds: float
    says = (
        "consumers on {0.cluster!r} are still in groups that are to be cut over, after {0.seconds:.0f} s. Stop all of a group's "
        "members, then do this again: no group is rolled over member by member"
    )


class GroupsNotReady(MoveRefused):
    """Positions of groups that would not resume at the very next record on the target. Nothing was moved."""

    says = (
        "groups of move group {0.move!r} would not resume at the very next record; {airmirror:groups} shows them; name those "
        "that move in {0.flow}.move.{0.move}.groups"
    )


class GroupsNotMoved(MoveRefused, transient=True):
    """Positions that the target did not take, or does not show as they were written. Done again, what is left is moved."""

    says = (
        "the target does not have all positions as they were written; "
        "{airmirror:migration run --move .move --step cut_over_consumers --yes --reason …} does what is left"
    )


@dataclass(frozen=True)
class GroupChecks:
    """The positions of the groups: all of them, those that are still to be moved, why some can't be, and which are past what is
    verified, as those of a group that reads on are for a while."""

    rows: Sequence[GroupPosition]
    left: Sequence[GroupPosition]
    reasons: tuple[str, ...]
    early: tuple[str, ...]


def check_groups(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> GroupChecks:
    """Look at all positions as they are now, once what lies before them is verified. Raises GroupsNotReady, NotDrained,
    GroupsNotRead, OffsetsHeld."""
    committed = _verified_past(opened, move, order, tell)
    with session(opened) as mirror:  # the same positions: a group that reads on is further by now
        found = _look(mirror, order, positions_of(mirror, committed) if committed else [])
    return _ready(opened, move, found)


def _verified_past(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> _Offsets:
    """Return the positions of the groups as they were asked for, once what lies before them is verified. Raises NotDrained."""
    wanted: dict[TopicPartition, int] = {}
    committed = _Offsets()
    with session(opened) as mirror:
        for row in positions(mirror, move):
            committed.setdefault(row.group, {})[row.key] = row.committed
            if row.source is not None:
                wanted[row.key] = max(wanted.get(row.key, 0), min(row.committed.offset, row.source.end))
    prove_past(opened, wanted, order.wait, tell)
    return committed


def look_at_groups(opened: Opened, move: Move, order: MoveOrder) -> GroupChecks:
    """Look at all positions, as they are now. Writes only the ledger."""
    with session(opened) as mirror:
        return _look(mirror, order, positions(mirror, move))


def positions(mirror: Mirror, move: Move) -> list[GroupPosition]:
    """The positions of the groups in the topics of the move group. Raises GroupsNotRead, OffsetsHeld."""
    found = group_positions(mirror, move.groups, move.names) if move.groups else []
    return [row for row in found if row.topic in move.names]


def cut_over_groups(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> GroupChecks:
    """Wait until the groups have no members on the source, and write their positions on the target, with undo records.

    Their positions are read three times: for what must be verified, right before they are written, and after that, when
    nobody can have read on. Raises GroupsHaveMembers, GroupsNotReady, GroupsNotMoved, GroupsActive, NotDrained, OffsetsHeld.
    """
    await_empty(opened, opened.flow.source, move.groups, order.wait, tell)
    _verified_past(opened, move, order, tell)
    with session(opened) as mirror:
        found = _ready(opened, move, settled(mirror, lambda: _look(mirror, order, positions(mirror, move))))
        with unleased(mirror, order.window) as writer:
            check_open(opened, move.names)  # a failover that has begun since remembers where groups stood
            stood = remember_cut_over(writer, move, {row.group for row in found.left})
            tell(f"writing {counted(len(found.left), 'position')} of groups")
            done = move_groups(writer, found.left, cut_over=stood)
        wrong = [f"{each.group} in {each.key}: {each.reason}" for each in done if each.reason]
        wrong += displaced(mirror, found.left, done, notes=True)
    if wrong:
        raise GroupsNotMoved(opened.flow.name, tuple(wrong), move.name)
    await_empty(opened, opened.flow.source, move.groups, 0.0, tell)  # who has come back has read on
    if left := not_cut_over(opened, move, order):  # as the marker of a transaction shows that held its offsets
        raise GroupsNotMoved(opened.flow.name, tuple(f"{each} by now on the source" for each in left), move.name)
    return found


def remember_cut_over(writer: MappingWriter, move: Move, left: Collection[str]) -> list[GroupMove]:
    """Write once of each group that it is cut over, and where it stands on the target, before it is moved: what it has committed
    there besides when it is undone, it has since. Return what is known of the groups that are ``left``, and what is new."""
    writer.journal.catch_up()
    known, window, now = moved(writer.journal), writer.window, int(time.time() * 1000)
    fit = (group for group in move.groups if not unfit_name(group))  # a mark of others would never leave the ledger
    new = [group for group in fit if (group, window, -1) not in known]  # one may have come after a cut-over
    topics = set(move.names.values())
    at = stable_offsets(writer.journal.target, new, topics)  # by name, whatever the target lists
    found = [
        GroupMove(group, *key, window, before=each.offset, after=-1, time_ms=now, metadata_before=each.metadata)
        for group, offsets in at.items()
        for key, each in offsets.items()
        if key.topic in topics and (group, *key) not in known
    ]
    found += [GroupMove(each, window, -1, window, before=-1, after=-1, time_ms=now, metadata_before="") for each in new]
    remember(writer, found)
    return [*(each for each in known.values() if each.window == window and each.group in left), *found]


def not_cut_over(opened: Opened, move: Move, order: MoveOrder) -> list[str]:
    """Return the positions that were not cut over as they are now on the source, in words, one each."""
    return [f"{row.group} in {row.key} at {row.committed.offset}" for row in look_at_groups(opened, move, order).left]


def await_empty(opened: Opened, cluster: Cluster, groups: Collection[str], seconds: float, tell: Tell) -> None:
    """Return when none of the groups has members on a cluster of the flow. Raises GroupsHaveMembers."""
    begun = time.monotonic()
    with Routes(cluster, f"airmirror|{opened.flow.name}|{PURPOSE}") as routes:
        while active := with_members(routes, groups):
            if time.monotonic() - begun > seconds:
                members = tuple(members_in_words(cluster, active))
                raise GroupsHaveMembers(opened.flow.name, members, cluster.alias, seconds)
            tell(f"waiting until {named(active)} have no members on {cluster.alias}")
            time.sleep(LOOK_SECONDS)  # the sampling interval: nothing tells that a member has gone


def with_members(routes: Routes, groups: Collection[str]) -> list[str]:
    """Return which groups have members on a cluster. Raises CoordinatorNotAvailable where no broker can say, GroupsNotRead."""
    there = all_groups(routes)
    return sorted(group for group in groups if group in there and not there[group].is_idle)


def members_in_words(cluster: Cluster, groups: Sequence[str]) -> list[str]:
    """Return who is in the groups, one member each; of a group that may not be described, the reason."""
    members, refused = members_of(connect(cluster), groups)
    found = [f"{each.group}: {each.client_id} at {each.host}" for each in members]
    found += [f"{group}: {reason}" for group, reason in refused.items()]
    return found or [f"{group}: its members are leaving or joining" for group in groups]


@dataclass(frozen=True)
class GroupThere:
    """A group on the target: whether it has members, and the records that it is behind; None: it stands nowhere."""

    group: str
    is_active: bool
    lag: int | None

    def __str__(self) -> str:
        lag = "no position" if self.lag is None else f"{counted(self.lag, 'offset')} to read"
        return f"{self.group}: {'consumes' if self.is_active else 'no consumer yet'}, {lag}"


def on_target(opened: Opened, move: Move) -> list[GroupThere]:
    with Routes(opened.flow.target, f"airmirror|{opened.flow.name}|{PURPOSE}") as target:
        there = list_groups(target)
        at = committed_offsets(target, [group for group in move.groups if group in there])
        remote = set(move.names.values())
        keys = {key for offsets in at.values() for key in offsets if key.topic in remote}
        target.refresh({key.topic for key in keys})
        ends = offsets_with_patience(target, keys, LATEST)
    found = []
    for group in move.groups:
        lags = [ends[key] - each.offset for key, each in at.get(group, {}).items() if key in ends]
        is_active = group in there and not there[group].is_idle
        found.append(GroupThere(group, is_active, sum(max(0, lag) for lag in lags) if lags else None))
    return found


def await_consumers(opened: Opened, move: Move, seconds: float, tell: Tell) -> list[GroupThere]:
    """Return how the groups stand on the target, as soon as all consume there, or after ``seconds``."""
    ends = time.monotonic() + seconds
    while True:
        found = on_target(opened, move)
        waiting = [each.group for each in found if not each.is_active]
        if not waiting or time.monotonic() > ends:
            return found
        tell(f"waiting until consumers of {named(waiting)} are there")
        time.sleep(LOOK_SECONDS)  # the sampling interval: nothing tells that a member has come


def _look(mirror: Mirror, order: MoveOrder, rows: Sequence[GroupPosition]) -> GroupChecks:
    rows, there = held_back(mirror, rows), list_groups(mirror.target)
    at = committed_offsets(mirror.target, {row.group for row in rows})
    known = {place: each for place, each in moved(mirror).items() if each.window == order.window}
    same = _of_one_place(mirror, rows, known)
    left = [row for row in rows if not _is_cut_over(row, known, at, same)]
    exact = [row for row in left if isinstance(row.found, Translated)]
    refused = [f"{each.group} in {each.key}: {each.reason}" for each in plan(exact, there, at) if each.reason]
    reasons = (*not_exact([row for row in rows if not _is_early(row)]), *refused)
    return GroupChecks(rows, left, reasons, tuple(not_exact([row for row in rows if _is_early(row)])))


def _is_early(row: GroupPosition) -> bool:
    """Return whether a position is only past what is verified by now."""
    if isinstance(row.found, Translated):
        return row.found.exact and row.found.again > 0
    return row.found is Reason.NOT_VERIFIED


def _ready(opened: Opened, move: Move, found: GroupChecks) -> GroupChecks:
    """The same. Raises GroupsNotReady where a group would not resume at the very next record."""
    if wrong := (*found.reasons, *found.early):
        raise GroupsNotReady(opened.flow.name, wrong, move.name)
    return found


def _of_one_place(mirror: Mirror, rows: Sequence[GroupPosition], moves: Moves) -> set[Place]:
    """The rows whose translation is another offset than when they were moved, and the same place.

    A group that had read a partition to its end was moved to that end. When more is written there, its position becomes the next
    record's, after the marker of a commit: both are the same position on the source (invariant G).
    """
    names, old, new = {row.topic: row.remote_topic for row in rows}, _Offsets(), _Offsets()
    for row in rows:
        move = moves.get(_place(row))
        if move is not None and isinstance(row.found, Translated) and 0 <= move.after < row.found.translation:
            old.setdefault(row.group, {})[row.remote] = Committed(move.after)
            new.setdefault(row.group, {})[row.remote] = Committed(row.found.translation)
    if not old:
        return set()
    before, now = (_on_source(mirror, each, names) for each in (old, new))
    return {place for place, offset in now.items() if before.get(place) == offset}


def _place(row: GroupPosition) -> Place:
    return row.group, row.remote_topic, row.partition


def _on_source(mirror: Mirror, at: _Offsets, names: Mapping[str, str]) -> dict[Place, int]:
    """Return where positions on the target are on the source, by group, remote topic and partition."""
    return {
        (row.group, row.topic, row.partition): row.found.translation
        for row in positions_on_source(mirror, at, names, mirror.source)
        if isinstance(row.found, Translated) and row.found.exact
    }


def _is_cut_over(row: GroupPosition, known: Moves, at: _Offsets, same: Collection[Place]) -> bool:
    """Return whether a position was written on the target, from where its consumers may have gone further."""
    move = known.get(_place(row))
    stands = at.get(row.group, {}).get(row.remote)
    return (
        move is not None
        and isinstance(row.found, Translated)
        and (move.after == row.found.translation or _place(row) in same)
        and stands is not None
        and stands.offset >= move.after
    )
