"""A migration rehearsed while everything runs: what its steps would meet now, and that what they rely on is so. Both clusters are
only read."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from airmirror.errors import AirmirrorError, command
from airmirror.flows.audit import Audited
from airmirror.flows.prepare import Opened, caught_up
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failover.groups import points_of
from airmirror.runbooks.failover.plan import unreachable
from airmirror.runbooks.migration.chosen import Move, chosen_move, session
from airmirror.runbooks.migration.consumers import look_at_groups, positions
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.producers import is_frozen
from airmirror.runbooks.rehearsal.clock import Clock, TimedStep
from airmirror.runbooks.rehearsal.positions import Proof, prove
from airmirror.runbooks.rehearsal.records import compare_newest
from airmirror.runbooks.rehearsal.rehearse import RehearsalNeedsSource

Tell = Callable[[str], None]


@dataclass(eq=False)
class MoveGroupMoved(AirmirrorError):
    """A rehearsal of a move group whose producers were cut over already."""

    flow: str
    move: str

    def __str__(self) -> str:
        known = command("migration", "run", "--move", self.move, "--reason", "…", flow=self.flow)
        return f"flow {self.flow!r}: move group {self.move!r} has moved, nothing is left to rehearse; {known} shows its state"


@dataclass(frozen=True)
class MoveRehearsal:
    """The outcome of a rehearsal that ended at ``ended_ms`` (epoch milliseconds). ``reasons``: what would keep a step from being
    taken; ``proofs``: groups where they would resume now; ``compared``: the newest records of its topics."""

    flow: str
    move: Move
    ended_ms: int
    steps: tuple[TimedStep, ...]
    reasons: tuple[str, ...]
    proofs: tuple[Proof, ...]
    compared: tuple[Audited, ...]


def rehearse_move(opened: Opened, name: str, tell: Tell = lambda phase: None) -> MoveRehearsal:
    """Rehearse the migration of a move group. What is not as it must be is in the answer.

    Raises NoSuchMove, MoveGroupUnfit, MoveGroupMoved, RehearsalNeedsSource, or a cluster's error.
    """
    opened = caught_up(opened, soon=True)
    flow, step = opened.flow, Clock(tell)
    if error := unreachable(opened):
        raise RehearsalNeedsSource(flow.name, error)
    move = chosen_move(opened, name)
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
        ended_ms=int(time.time() * 1000),
        steps=tuple(step.steps),
        reasons=(*reasons, *(f"{each} is not there yet" for each in missing)),
        proofs=tuple(proofs),
        compared=tuple(compared),
    )
