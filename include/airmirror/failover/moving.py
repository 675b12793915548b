"""The consumer groups of a failover: moved to their translated positions, and put back where they stood before.

Where a group stood is written to the segment topic before it is moved, once: whoever is killed and runs again finds where it
stood at the very first. Never past the verified offset (invariant F), and never back.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from airmirror.clusters.protocol.error_codes import error_name
from airmirror.clusters.protocol.groups import (
    MEMBERS_ACTIVE,
    Committed,
    Group,
    commit_offsets,
    committed_offsets,
    delete_offsets,
    list_groups,
)
from airmirror.errors import AirmirrorError, listed
from airmirror.flows.prepare import Opened
from airmirror.ledger import GroupOffset
from airmirror.offsets.groups import moves, plan
from airmirror.offsets.positions import GroupPosition
from airmirror.offsets.translation import Reason
from airmirror.partitions import TopicPartition
from airmirror.windows.fence import Granted, claimed
from airmirror.windows.mirror import Journal
from airmirror.wire.closures import GroupMove


@dataclass(eq=False)
class GroupsActive(AirmirrorError):
    """Groups with members on the target: a broker lets nobody else write their offsets. Nothing was moved."""

    transient: ClassVar[bool] = True

    flow: str
    groups: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: no group was moved, because some have members on the target; stop these consumers, and run "
            f"the failover again\n{listed(self.groups)}"
        )


def move_groups(opened: Opened, rows: Sequence[GroupPosition], window: str) -> list[GroupOffset]:
    """Move the groups of ``rows`` on the target; what became of each position. Done again, nothing is moved twice.

    Under a claim of the name ``window``. Raises GroupsActive before anything is written, FlowBusy, SlotFenced, GroupsNotRead.
    """
    with (
        Journal.open(opened.flow, opened.ledger, "failover") as journal,
        claimed(journal, window, slots=0, closed_too=True) as granted,
    ):
        journal.catch_up()
        there = list_groups(journal.target)
        names = {row.group for row in rows}
        active = sorted(name for name in names & there.keys() if not there[name].is_idle)
        if active:
            raise GroupsActive(opened.flow.name, tuple(active))
        on_target = committed_offsets(journal.target, names & there.keys())
        planned = plan(rows, there, on_target)
        offsets = moves(rows, planned)
        _remember(opened, granted, planned, rows, on_target)
        errors = commit_offsets(journal.target, offsets)
        journal.catch_up()
    return [_with_error(item, errors.get((row.group, row.remote))) for row, item in zip(rows, planned, strict=True)]


def _remember(
    opened: Opened,
    granted: Granted,
    planned: Sequence[GroupOffset],
    rows: Sequence[GroupPosition],
    on_target: Mapping[str, Mapping[TopicPartition, Committed]],
) -> None:
    """Write where the groups stand that are to be moved; of those that a failover has moved before, their first place stays."""
    known = {(each.group, each.topic, each.partition): each for each in opened.ledger.of_kind(GroupMove)}
    written = []
    for row, item in zip(rows, planned, strict=True):
        if item.reason or item.downstream is None or item.on_target == item.downstream:
            continue
        stood = on_target.get(row.group, {}).get(row.remote)
        move = GroupMove(
            group=row.group,
            topic=row.remote_topic,
            partition=row.partition,
            window=granted.claim.window,
            before=stood.offset if stood else -1,
            after=item.downstream,
            time_ms=int(time.time() * 1000),
            metadata_before=stood.metadata if stood else "",
        )
        before = known.get((row.group, row.remote_topic, row.partition))
        if before is not None:
            move = replace(move, before=before.before, metadata_before=before.metadata_before)
        written.append((move.encode_key(), move.encode_value()))
    granted.check()
    if written:
        granted.appender.append(written)
    granted.check()


def _with_error(item: GroupOffset, error: int | None) -> GroupOffset:
    if error is None:
        return item
    return replace(
        item, reason=str(Reason.ACTIVE) if error in MEMBERS_ACTIVE else f"{Reason.REFUSED}: {error_name(error)}"
    )


@dataclass(frozen=True)
class PutBack:
    """A group in a partition of the target whose move is to be undone; ``now``: where it stands, -1 nowhere."""

    move: GroupMove
    now: int
    state: str

    @property
    def name(self) -> str:
        return f"{self.move.group} in {self.move.topic}-{self.move.partition}"

    @property
    def why_not(self) -> str:
        """The reason why it can't be put back, or ""."""
        if self.state and not Group(self.move.group, self.state).is_idle:
            return f"{self.name}: it has members on the target"
        if self.now not in (self.move.before, self.move.after):
            return f"{self.name}: it was moved to {self.move.after} and has gone on to {self.now}"
        return ""


def to_put_back(opened: Opened, journal: Journal) -> list[PutBack]:
    """Return every move of failovers that was not undone yet. The ledger must have caught up."""
    found = opened.ledger.of_kind(GroupMove)
    there = list_groups(journal.target) if found else {}
    at = committed_offsets(journal.target, {each.group for each in found} & there.keys())
    rows = []
    for move in found:
        now = at.get(move.group, {}).get(TopicPartition(move.topic, move.partition))
        state = there[move.group].state if move.group in there else ""
        rows.append(PutBack(move, now.offset if now else -1, state))
    return rows


def put_back(granted: Granted, rows: Sequence[PutBack]) -> None:
    """Put groups back where they stood; one that stood nowhere has no offset there any more. Then the moves are forgotten.

    Raises SlotFenced where the claim is another's by now, GroupsActive.
    """
    offsets: dict[str, dict[TopicPartition, Committed]] = {}
    nowhere: dict[str, list[TopicPartition]] = {}
    for row in rows:
        key = TopicPartition(row.move.topic, row.move.partition)
        if row.now == row.move.before:
            continue
        if row.move.before < 0:
            nowhere.setdefault(row.move.group, []).append(key)
        else:
            offsets.setdefault(row.move.group, {})[key] = Committed(row.move.before, row.move.metadata_before)
    granted.check()
    target = granted.journal.target
    errors = {**commit_offsets(target, offsets), **delete_offsets(target, nowhere)}
    if errors:
        raise GroupsActive(granted.journal.flow.name, tuple(sorted({group for group, _ in errors})))
    granted.check()
    if rows:
        granted.appender.append([(row.move.encode_key(), None) for row in rows])
