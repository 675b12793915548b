"""Group offsets: consumer groups without members on the target are moved to their translated positions.

Never past the verified offset (invariant F) and never back, as MirrorMaker 2 (MirrorCheckpointTask.java). For every
group and partition that was not moved there is a reason, in the log and in the ledger. A consumer that joins, commits
and leaves between our read and our write is not seen: the broker refuses writes for groups with members only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TypeVar

from airmirror.clusters.protocol.errors import error_name
from airmirror.clusters.protocol.groups import (
    MEMBERS_ACTIVE,
    Committed,
    Group,
    commit_offsets,
    committed_offsets,
    list_groups,
)
from airmirror.config import Flow
from airmirror.errors import named
from airmirror.ledger import FlowLedger, GroupOffset
from airmirror.offsets.lags import note_group_lags
from airmirror.offsets.positions import GroupPosition, group_positions, held_back, known_resets, resets
from airmirror.offsets.translation import Reason, Translated
from airmirror.partitions import TopicPartition
from airmirror.windows.fence import HeldLease
from airmirror.windows.mirror import Mirror, reverse_ledger
from airmirror.wire.mappings import ResetRecord
from airmirror.wire.moves import MIGRATION, GroupMove
from airmirror.wire.owners import Owner, Owners

log = logging.getLogger(__name__)

SHOWN = 50  # lines a reason in the log

Key = tuple[str, str, int]
Seen = TypeVar("Seen")


def plan(
    rows: Sequence[GroupPosition],
    groups: Mapping[str, Group],
    on_target: Mapping[str, Mapping[TopicPartition, Committed]],
    lagging: Collection[tuple[str, int]] = (),
    shut: Mapping[Key, Reason] | None = None,
) -> list[GroupOffset]:
    """Return the outcome for each position; without a reason, it is to be written unless the target is there already.

    ``groups`` and ``on_target``: the target's groups, and what those without members have committed. ``shut``: the groups that
    no window moves in partitions of the source, each with the reason.
    """
    now = int(time.time() * 1000)
    planned = []
    for row in rows:
        found, group = row.found, groups.get(row.group)
        there = on_target.get(row.group, {}).get(row.remote)
        reason = ""
        if isinstance(found, Reason):
            reason = found
        elif shut and (row.group, *row.key) in shut:
            reason = shut[row.group, *row.key]
        elif (row.topic, row.partition) in lagging:
            reason = Reason.LAGGING
        elif row.target is not None and found.translation < row.target.start:
            reason = Reason.BELOW_START
        elif group is not None and not group.is_idle:
            reason = Reason.ACTIVE
        elif there is not None and row.target is not None and there.offset > row.target.end:
            reason = Reason.BEYOND_TARGET
        elif there is not None and there.offset > found.translation:
            reason = Reason.AHEAD
        translated = found if isinstance(found, Translated) else None
        planned.append(
            GroupOffset(
                group=row.group,
                topic=row.topic,
                partition=row.partition,
                remote_topic=row.remote_topic,
                position=row.committed.offset,
                upstream=translated.position if translated else None,
                downstream=translated.translation if translated else None,
                exact=translated.exact if translated else None,
                again=translated.again if translated else None,
                on_target=there.offset if there else None,
                reason=str(reason),
                time_ms=now,
            )
        )
    return planned


def sync_group_offsets(
    flow: Flow, ledger: FlowLedger, only: Collection[str] = (), *, dry_run: bool = False, under: HeldLease | None = None
) -> list[GroupOffset]:
    """Move the groups that can be moved; what became of every group and partition, also noted in the ledger.

    ``only``: these groups, whatever ``groups`` says; ``under``: the session of a window that follows, which hears of what moves
    only. The ledger must have caught up. Raises GroupsNotRead, CoordinatorNotAvailable, or a cluster's error.
    """
    with nullcontext(under.mirror) if under else Mirror.open(flow, ledger, "groups") as mirror:

        def look() -> tuple[list[GroupPosition], list[GroupOffset]]:
            rows = held_back(mirror, group_positions(mirror, only))
            there = list_groups(mirror.target)
            # By name: a coordinator that was just started lists no group for a moment, and a group moves never back.
            known = {row.group for row in rows if row.group in there or isinstance(row.found, Translated)}
            idle = [name for name in known if name not in there or there[name].is_idle]
            on_target = committed_offsets(mirror.target, idle)
            return rows, plan(rows, there, on_target, lagging_partitions(flow, rows), _shut(mirror, rows, only))

        if dry_run:
            return look()[1]
        rows, planned = settled(mirror, look)
        offsets = moves(rows, planned)
        errors = commit_offsets(mirror.target, offsets)
    done = [with_error(item, errors.get((row.group, row.remote))) for row, item in zip(rows, planned, strict=True)]
    if not only:
        if under or not flow.settings.emit_checkpoints_enabled:  # else that task notes the same
            note_group_lags(flow.source.alias, ledger, rows)
        ledger.note_group_offsets(done)
    moved = sum(map(len, offsets.values())) - len(errors)
    if moved or under is None:
        tell(flow, done, moved)
    return done


def _shut(mirror: Mirror, rows: Sequence[GroupPosition], only: Collection[str]) -> dict[Key, Reason]:
    """The ``rows`` that no window moves, by the ledger, each with the reason. ``only``: a person names these groups.

    A position in a topic that came from the target goes back by itself only while the topic returns. Else it may be the one that
    the flow which brought the topic has written: to write it back would undo the reset of a group, or bring a deleted one back.
    """
    owners, back = mirror.index.owners(), reverse_ledger(mirror.flow, mirror.index).owners()
    over, returns = back.returning((Owner.RETURNED,)), back.returning((Owner.RETURNING,))
    moves_ = mirror.index.of_kind(GroupMove)
    cut_over = {(each.group, *each.key) for each in moves_ if each.window.startswith(MIGRATION)}
    shut: dict[Key, Reason] = {}
    for row in rows:
        if owners.why_frozen(row.topic) or row.topic in over:
            shut[row.group, *row.key] = Reason.FROZEN
        elif (row.group, *row.remote) in cut_over:
            shut[row.group, *row.key] = Reason.CUT_OVER
        elif row.back and not only and row.topic not in returns:
            shut[row.group, *row.key] = Reason.FROM_TARGET
    return shut


def settled(mirror: Mirror, look: Callable[[], Seen]) -> Seen:
    """Return what ``look`` has seen while no person has decided anything that moves positions: right before they are written."""
    decided = _decided(mirror, known_resets(mirror))
    while True:
        found = look()
        before, decided = decided, _decided(mirror, resets(mirror))
        if decided == before:  # else positions are elsewhere by now
            return found


def _decided(mirror: Mirror, resets_: Sequence[ResetRecord]) -> list[ResetRecord | Owners | GroupMove]:
    """Return what people have decided that moves positions, or forbids to move groups to them."""
    return [*resets_, mirror.index.owners(), *mirror.index.of_kind(GroupMove)]


def moves(rows: Sequence[GroupPosition], planned: Sequence[GroupOffset]) -> dict[str, dict[TopicPartition, Committed]]:
    """Return the offsets to write, by group: those without a reason that the target has not reached yet."""
    found: dict[str, dict[TopicPartition, Committed]] = {}
    for row, item in zip(rows, planned, strict=True):
        if not item.reason and item.downstream is not None and item.on_target != item.downstream:
            found.setdefault(row.group, {})[row.remote] = Committed(item.downstream, row.committed.metadata)
    return found


def lagging_partitions(flow: Flow, rows: Sequence[GroupPosition]) -> set[tuple[str, int]]:
    """Partitions over ``window.max.lag.…``, where ``window.max.lag.blocks`` says that this holds groups."""
    if flow.settings.window_max_lag_blocks != "groups":
        return set()
    records, seconds = flow.settings.window_max_lag_records, flow.settings.window_max_lag_seconds
    now = time.time() * 1000
    return {
        (row.topic, row.partition)
        for row in rows
        if row.lag_records > 0
        and (
            (records is not None and row.lag_records > records)
            or (seconds is not None and row.newest_ms >= 0 and now - row.newest_ms > seconds * 1000)
        )
    }


def tell(flow: Flow, rows: Sequence[GroupOffset], moved: int) -> None:
    """Say in the log what was done, and of each reason not to, which groups and partitions it was."""
    for row in rows:
        if not row.reason and row.again:
            log.info(
                "Group %s, %s-%d: moved to the verified position %d; %d records before %d will be read again.",
                row.group,
                row.topic,
                row.partition,
                row.upstream,
                row.again,
                row.position,
            )
    for reason in sorted({row.reason for row in rows if row.reason}):
        shown = [f"{row.group} {row.topic}-{row.partition} at {row.position}" for row in rows if row.reason == reason]
        log.info("Not moved, %s: %s.", reason, named(shown, SHOWN))
    log.info("Flow %s: %d group offsets moved, %d looked at.", flow.name, moved, len(rows))


def with_error(item: GroupOffset, error: int | None) -> GroupOffset:
    """The same; where its position was not written, with the reason."""
    if error is None:
        return item
    reason = str(Reason.ACTIVE) if error in MEMBERS_ACTIVE else f"{Reason.REFUSED}: {error_name(error)}"
    return replace(item, reason=reason)
