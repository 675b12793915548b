"""Consumer groups moved to their translated positions on the target, for good, and put back where they stood before.

Where a group stood is written to the mapping topic before it is moved, once: whoever is killed and runs again finds where it
stood at the very first. Never past the verified offset (invariant F), and never back.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.groups import (
    DENIED,
    MEMBERS_ACTIVE,
    Committed,
    Group,
    commit_offsets,
    committed_offsets,
    delete_offsets,
    list_groups,
)
from airmirror.clusters.protocol.routes import UNKNOWN_TOPIC
from airmirror.clusters.protocol.stable import stable_offsets
from airmirror.config import Flow
from airmirror.ledger import GroupOffset
from airmirror.offsets.groups import moves, plan, with_error
from airmirror.offsets.positions import GroupPosition, held_back, kinds_seen, would_break
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.runbooks.errors import RunbookError
from airmirror.windows.fence import GrantedLease
from airmirror.windows.mirror import Journal
from airmirror.wire.moves import GroupMove

OnTarget = Mapping[str, Mapping[TopicPartition, Committed]]
Written = dict[str, dict[TopicPartition, Committed]]
Moves = Mapping[tuple[str, str, int], GroupMove]  # by group, remote topic and partition


class GroupsActive(RunbookError, transient=True):
    """Groups with members on the target: a broker lets only them write their offsets, which stay as they are. ``is_chosen``: an
    order moves them because ``groups`` selects them."""

    is_chosen: bool = False

    def what(self) -> str:
        again = "do this again; or leave these groups out with groups.exclude" if self.is_chosen else "do this again"
        return (
            f"groups have members on the target, and their offsets stay as they are; stop these consumers, and {again}"
        )


class GroupsReadOn(RunbookError, transient=True):
    """Groups that have consumed further where they come from, while they were moved: their new positions are behind by that."""

    cluster: str
    says = "groups have consumed further on cluster {0.cluster!r} while they were moved; stop these consumers, and do this again"


class GroupsDisplaced(RunbookError, transient=True):
    """Groups that another command moves, or puts back, at the same time: they may not stand where this one says."""

    says = "groups were moved by another command meanwhile; wait until it has ended, and do this again"


class PositionsRefused(RunbookError):
    """Positions that a cluster does not write, or delete, where an undo puts groups back. ``is_denied``: to this user."""

    cluster: str
    is_denied: bool

    def what(self) -> str:
        refuses = f"cluster {self.cluster!r} refuses positions of groups that are put back"
        if not self.is_denied:
            return refuses
        return (
            f"{refuses}; grant its user Read and Delete on these groups, and Read on their topics, then do this again"
        )


@dataclass(frozen=True)
class MappingWriter:
    """What writes to a flow's mapping topic, in the name of ``window``. ``check`` raises where that may not continue."""

    journal: Journal
    appender: Appender
    window: str
    check: Callable[[], None] = lambda: None

    @classmethod
    def of(cls, granted: GrantedLease) -> MappingWriter:
        """Under a lease: SlotFenced where it is another's by now."""
        return cls(granted.journal, granted.appender, granted.lease.window, granted.check)

    def write(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Append records, null values delete. Raises AppendFailed, AccessDenied, SlotFenced."""
        self.check()
        if records:
            self.appender.append(list(records))
        self.check()


@contextmanager
def unleased(journal: Journal, window: str) -> Iterator[MappingWriter]:
    """A writer that needs no lease: for what people decide while windows continue."""
    with Appender(journal.flow.target, journal.topics.mappings) as appender:
        yield MappingWriter(journal, appender, window)


def move_groups(
    writer: MappingWriter, rows: Sequence[GroupPosition], *, cut_over: Collection[GroupMove] = ()
) -> list[GroupOffset]:
    """Move the groups of ``rows`` on the target; what became of each position. Done again, nothing is moved twice.

    ``cut_over``: the records that a cut-over has begun. Raises GroupsActive, GroupsDisplaced, OffsetsHeld before anything is
    written, SlotFenced, GroupsNotRead.
    """
    journal = writer.journal
    rows, there = held_back(journal, rows), list_groups(journal.target)
    names = {row.group for row in rows}
    active = sorted(name for name in names & there.keys() if not there[name].is_idle)
    if active:
        raise GroupsActive(journal.flow.name, tuple(active), not cut_over)
    journal.catch_up()
    seen = moved(journal)
    on_target = stable_offsets(journal.target, names, {row.remote_topic for row in rows})
    planned = plan(rows, there, on_target)
    journal.catch_up()  # after the positions were read: who moves them writes where they stood first
    if back := {group for group, *_ in seen.keys() - moved(journal).keys()} & names:  # by who undoes that, after it
        raise GroupsDisplaced(journal.flow.name, tuple(f"{group}: it was put back" for group in sorted(back)))
    offsets = _to_write(rows, planned, on_target)
    moves_ = _remembered(writer, planned, rows, on_target)
    known = set(moved(journal).values())
    remember(writer, [each for each in moves_ if each not in known])
    errors = commit_offsets(journal.target, offsets)
    writer.check()  # Kafka has no fence for positions: whoever has the lease by now may have put groups back
    journal.catch_up()
    remember_again(writer, [*cut_over, *moves_])  # in this order: of a position that it moved, the later record counts
    return [with_error(item, errors.get((row.group, row.remote))) for row, item in zip(rows, planned, strict=True)]


def remember(writer: MappingWriter, moves_: Collection[GroupMove]) -> None:
    """Write moves, and after them who was cut over: whoever is killed in between has not let places count as new."""
    for is_mark in (False, True):
        writer.write([(each.encode_key(), each.encode_value()) for each in moves_ if each.is_mark is is_mark])


def remember_again(writer: MappingWriter, moves_: Collection[GroupMove]) -> None:
    """Write the moves again that were forgotten since: by an undo that takes no lease, while its groups were moved, or were moved
    again. The ledger must have caught up."""
    known = moved(writer.journal)
    if gone := [each for each in moves_ if (each.group, each.topic, each.partition) not in known]:
        remember(writer, gone)


def are_left(groups: Sequence[GroupOffset]) -> bool:
    return any(each.reason for each in groups)


def _to_write(rows: Sequence[GroupPosition], planned: Sequence[GroupOffset], on_target: OnTarget) -> Written:
    """Return the offsets to write: those that a synchronisation would, and those that have other metadata there."""
    found: Written = {group: dict(offsets) for group, offsets in moves(rows, planned).items()}
    for row, item in zip(rows, planned, strict=True):
        there = on_target.get(row.group, {}).get(row.remote)
        note = row.committed.metadata
        if (
            not item.reason
            and there is not None
            and there.offset == item.downstream
            and note not in ("", there.metadata)
        ):
            found.setdefault(row.group, {})[row.remote] = Committed(there.offset, note)
    return found


def moved(journal: Journal) -> Moves:
    """Return what was moved and not put back, by the ledger, which must have caught up."""
    return {(each.group, each.topic, each.partition): each for each in journal.index.of_kind(GroupMove)}


def not_exact(rows: Sequence[GroupPosition]) -> list[str]:
    """Return the positions that would not resume at the very next record, in words, one each."""
    wrong = []
    for row in rows:
        name = f"{row.group} in {row.key} at {row.committed.offset}"
        if not isinstance(row.found, Translated):
            wrong.append(f"{name}: {row.found}")
        elif not row.found.exact or row.found.again:
            wrong.append(f"{name}: estimated, or read again from {row.found.translation} on")
    return wrong


def check_still(flow: Flow, rows: Sequence[GroupPosition], now: Sequence[GroupPosition]) -> None:
    """Raise GroupsReadOn where positions of the source are others ``now`` than in the ``rows`` that were moved."""
    was = {(row.group, row.key): row.committed.offset for row in rows}
    moved_on = [
        f"{row.group} in {row.key} was at {was.get((row.group, row.key), 'none')} and is at {row.committed.offset}"
        for row in now
        if was.get((row.group, row.key)) != row.committed.offset
    ]
    if moved_on:
        raise GroupsReadOn(flow.name, tuple(moved_on), flow.source.alias)


def displaced(
    journal: Journal, rows: Sequence[GroupPosition], done: Sequence[GroupOffset], *, notes: bool = False
) -> list[str]:
    """Return the groups of ``rows`` that were moved (``done``), in words, that do not stand where they were moved to: others
    move them too. ``notes``: or whose positions have lost their metadata."""
    at = committed_offsets(journal.target, {each.group for each in done if not each.reason})
    found = []
    for row, each in zip(rows, done, strict=True):
        there = at.get(row.group, {}).get(row.remote)
        if each.reason:
            continue
        if there is None or there.offset != each.downstream:
            where = f"at {there.offset}" if there else "nowhere"
            found.append(f"{row.group} in {row.remote} is not at {each.downstream}, but {where}")
        elif notes and row.committed.metadata not in ("", there.metadata):
            found.append(f"{row.group} in {row.remote} is at {each.downstream} without its metadata")
    return found


def _remembered(
    writer: MappingWriter,
    planned: Sequence[GroupOffset],
    rows: Sequence[GroupPosition],
    on_target: OnTarget,
) -> list[GroupMove]:
    """The moves of groups that are to be moved, from where they stand, also of those that stand there already, or are left where
    they stand (to -1), as they may read on; of those that were moved before, their first place stays, and whose they are: the
    undo of a failover leaves to a migration what it was about to move."""
    known, found = moved(writer.journal), list[GroupMove]()
    for row, item in zip(rows, planned, strict=True):
        stood = on_target.get(row.group, {}).get(row.remote)
        before = known.get((row.group, row.remote_topic, row.partition))
        after = -1 if item.reason or item.downstream is None else item.downstream
        if after < 0 and (before is not None or not row.remote_topic or row.found is Reason.AGGREGATE):
            continue
        if before is not None and (before.after, before.window) == (after, writer.window):
            found.append(before)
            continue
        move = GroupMove(
            group=row.group,
            topic=row.remote_topic,
            partition=row.partition,
            window=writer.window,
            before=stood.offset if stood else -1,
            after=after,
            time_ms=int(time.time() * 1000),
            metadata_before=stood.metadata if stood else "",
        )
        if before is not None:
            move = replace(before, after=move.after, time_ms=move.time_ms)  # it stays the first one's
        found.append(move)
    return found


@dataclass(frozen=True)
class PutBack:
    """A group in a partition of a ``cluster`` whose move is to be undone; ``now``: where it stands, or -1, with ``metadata``.
    ``is_left``: it has no position any more, and the one before the move would break it (KAFKA-20254)."""

    move: GroupMove
    now: int
    state: str
    cluster: str
    metadata: str = ""
    is_left: bool = False

    @property
    def name(self) -> str:
        return self.move.group if self.move.is_mark else f"{self.move.group} in {self.move.key}"

    @property
    def has_gone_on(self) -> bool:
        """Return whether it stands elsewhere than it was moved to, and than before; not where its position expired."""
        return self.now >= 0 and self.now not in (self.move.before, self.move.after)

    @property
    def is_forgotten(self) -> bool:
        """Return whether the target has no position of it any more, so that nobody knows what it has read there."""
        return self.now < 0 <= self.move.after

    @property
    def is_back(self) -> bool:
        return (self.now, self.metadata) == (self.move.before, self.move.metadata_before)

    @property
    def why_not(self) -> str:
        if self.state and not Group(self.move.group, self.state).is_idle:
            return f"{self.name}: it has members on cluster {self.cluster!r}"
        if self.has_gone_on:
            was = f"moved to {self.move.after}" if self.move.after >= 0 else "left where it stood"
            return f"{self.name}: it was {was} and has committed {self.now} since"
        return ""


def to_put_back(journal: Journal, ours: Callable[[GroupMove], bool]) -> list[PutBack]:
    """Return the moves that are ``ours`` and were not undone yet. A streams group that is gone on the target since, and that its
    position may break there, goes back to nowhere. The ledger must have caught up. Raises OffsetsHeld, GroupsNotRead."""
    found = [each for each in journal.index.of_kind(GroupMove) if ours(each)]
    there = list_groups(journal.target) if found else {}
    at = stable_offsets(journal.target, {each.group for each in found}, {each.topic for each in found})
    lost = {each.group for each in found if each.before >= 0 and each.key not in at.get(each.group, {})}
    broken = _would_break(journal, lost) if lost else ()
    rows = []
    for move in found:
        now = at.get(move.group, {}).get(move.key, Committed(-1))
        is_left = now.offset < 0 and move.group in broken
        state = there[move.group].state if move.group in there else ""
        goes = replace(move, before=-1, metadata_before="") if is_left else move
        rows.append(PutBack(goes, now.offset, state, journal.target.alias, now.metadata, is_left))
    return rows


def _would_break(journal: Journal, groups: Collection[str]) -> set[str]:
    """Return the streams groups among these that the target may break on, as far as the ledger or the settings know them."""
    settings, seen = journal.flow.settings, kinds_seen(journal)
    if settings.streams_groups_ahead_allowed:
        return set()
    return would_break(journal.target, {each: seen.get(each, "") for each in groups}, settings.streams_applications)


def put_back(writer: MappingWriter, rows: Sequence[PutBack]) -> list[PutBack]:
    """Put groups back where they stood; one that stood nowhere has no offset there any more. Then the moves are forgotten.

    Return the rows without those of topics that are gone since, where nothing stands. Raises SlotFenced where the lease is
    another's by now, GroupsActive, PositionsRefused.
    """
    offsets: Written = {}
    nowhere: dict[str, list[TopicPartition]] = {}
    for row in rows:
        if row.is_back:
            continue
        if row.move.before < 0:
            nowhere.setdefault(row.move.group, []).append(row.move.key)
        else:
            offsets.setdefault(row.move.group, {})[row.move.key] = Committed(row.move.before, row.move.metadata_before)
    writer.check()
    target = writer.journal.target
    errors = commit_offsets(target, offsets)
    writer.check()  # others may have slept between these two, and so may we
    errors |= delete_offsets(target, nowhere)
    failed = {each: code for each, code in errors.items() if code != UNKNOWN_TOPIC}
    if refused := {each: code for each, code in failed.items() if code not in MEMBERS_ACTIVE}:
        told = tuple(f"{group} in {key}: {error_name(code)}" for (group, key), code in refused.items())
        raise PositionsRefused(writer.journal.flow.name, told, target.alias, not DENIED.isdisjoint(refused.values()))
    if failed:
        raise GroupsActive(writer.journal.flow.name, tuple(sorted({group for group, _ in failed})))
    forget(writer, [row.move for row in rows])
    return [row for row in rows if (row.move.group, row.move.key) not in errors]


def moved_again(journal: Journal, ours: Callable[[GroupMove], bool], rows: Sequence[PutBack]) -> list[str]:
    """Return the groups, in words, that were moved again while they were put back: those that are ``ours``, and those of ``rows``
    that do not stand on the target where they stood before. The ledger must have caught up. Raises OffsetsHeld."""
    left = {each.name for each in to_put_back(journal, ours)}
    names, topics = {row.move.group for row in rows}, {row.move.topic for row in rows}
    at = stable_offsets(journal.target, names, topics)
    for row in rows:
        found = at.get(row.move.group, {}).get(row.move.key)
        if (found.offset if found else -1) != row.move.before:
            left.add(row.name)
    return [f"{name}: it was moved again meanwhile" for name in sorted(left)]


def moves_in(moves_: Collection[GroupMove], topics: Collection[str]) -> list[GroupMove]:
    """Return the moves in ``topics`` of the target, and the records of cut-overs of which no other move is left."""
    inside = {each.window for each in moves_ if not each.is_mark and each.topic in topics}
    left = {each.window for each in moves_ if not each.is_mark and each.topic not in topics}
    return [each for each in moves_ if (each.window in inside - left if each.is_mark else each.topic in topics)]


def forget(writer: MappingWriter, moves_: Collection[GroupMove]) -> None:
    """Delete who was cut over, and after that moves: they were undone, or can't be any more."""
    for is_mark in (True, False):
        writer.write([(each.encode_key(), None) for each in moves_ if each.is_mark is is_mark])
