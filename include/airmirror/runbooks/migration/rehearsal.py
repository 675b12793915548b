"""A migration rehearsed while everything runs: what its steps would meet now, and that what they rely on is so. Both clusters are
only read."""

from __future__ import annotations

import time
from dataclasses import dataclass

from airmirror.errors import AirmirrorError, counted
from airmirror.flows.freezing import check_open
from airmirror.flows.prepare import Opened, caught_up
from airmirror.partitions import TopicPartition
from airmirror.report.document import Document
from airmirror.runbooks.failover.groups import points_of
from airmirror.runbooks.failover.plan import unreachable
from airmirror.runbooks.migration.chosen import Move, chosen_move, session
from airmirror.runbooks.migration.consumers import look_at_groups, positions
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.producers import is_frozen
from airmirror.runbooks.rehearsal.positions import prove
from airmirror.runbooks.rehearsal.rehearse import Clock, Rehearsal, RehearsalNeedsSource, compare_newest, found_wrong
from airmirror.runbooks.runbook import Progress
from airmirror.tell import Tell, silent


class MoveGroupMoved(AirmirrorError):
    """A rehearsal of a move group whose producers were cut over already."""

    flow: str
    move: str
    says = (
        "flow {0.flow!r}: move group {0.move!r} has moved, nothing is left to rehearse; "
        "{airmirror:migration run --move .move --reason …} shows its state"
    )


@dataclass(frozen=True, kw_only=True)
class MoveRehearsal(Rehearsal):
    """The migration of a move group rehearsed."""

    move: Move

    @property
    def headline(self) -> str:
        return (
            f"{self.flow}: {self.move.name} rehearsed in {self.seconds:.0f} s: {counted(len(self.move.names), 'topic')}, "
            f"{counted(self.records, 'record')} equal on both sides, {self.exact}"
        )


def rehearsed(opened: Opened, order: MoveOrder, progress: Progress) -> Document:
    return shown(rehearse_move(opened, order.move, progress.phase))


def shown(made: MoveRehearsal) -> Document:
    about = f"{made.flow}: rehearsal of the migration of {made.move.name}"
    return made.document("migration rehearsal", about, {"move": made.move.name, "topics": sorted(made.move.names)})


def rehearse_move(opened: Opened, name: str, tell: Tell = silent) -> MoveRehearsal:
    """Rehearse the migration of a move group. What is not as it must be is in the answer.

    Raises NoSuchMove, MoveGroupUnfit, FlowFrozen, MoveGroupMoved, RehearsalNeedsSource, or a cluster's error.
    """
    opened = caught_up(opened, soon=True)
    flow, step = opened.flow, Clock(tell)
    if error := unreachable(opened):
        raise RehearsalNeedsSource(flow.name, error)
    move = chosen_move(opened, name)
    check_open(opened, move.names)
    if is_frozen(opened, move):
        raise MoveGroupMoved(flow.name, name)
    with step("looking at consumer groups"):
        reasons = look_at_groups(opened, move, MoveOrder(move=move.name, wait=0.0)).reasons
    with step("reading the next record of each group on both sides"), session(opened) as mirror:
        rows, now_ms = positions(mirror, move), int(time.time() * 1000)
        proofs = prove(mirror, points_of(mirror, rows, {(row.group, row.key): now_ms for row in rows}))
        missing = sorted(mirror.target.refresh_existing(move.names.values()))
    with step("comparing records with the source"):
        verified = opened.ledger.state().verified.items()
        ends = {TopicPartition(*key): each.offset + 1 for key, each in verified if key[0] in move.names}
        compared = compare_newest(opened, ends, flow.settings.move_rehearsal_records, tell)
    return MoveRehearsal(
        flow=flow.name,
        move=move,
        steps=tuple(step.steps),
        problems=(*reasons, *(f"{each} is not there yet" for each in missing), *found_wrong(compared, proofs)),
        proofs=tuple(proofs),
        compared=tuple(compared),
    )
