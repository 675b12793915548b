"""A migration rehearsed while everything runs: its steps on copies of the newest records, with shadows of the consumer groups.

Production is only read. What is written on the target are shadow topics and groups, and the internal topics of the flow that
copies; all of it is removed in the end, whatever has happened. The source is not written to.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.groups import Committed, commit_offsets
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.errors import AirmirrorError, command
from airmirror.failover.groups import points_of
from airmirror.failover.plan import unreachable
from airmirror.flows.audit import Audited
from airmirror.flows.moving import move_groups, not_exact, put_back, to_put_back, unclaimed
from airmirror.flows.prepare import Opened, caught_up
from airmirror.migration.chosen import Move, chosen_move, session
from airmirror.migration.consumers import look_at_groups, positions
from airmirror.migration.order import MoveOrder
from airmirror.migration.producers import is_closed
from airmirror.offsets.positions import GroupPosition, positions_of
from airmirror.partitions import TopicPartition
from airmirror.rehearsal.clock import Clock, Step
from airmirror.rehearsal.copies import Copies, close_copies, compare_copies, copies_of, deleted_from, make_copies
from airmirror.rehearsal.positions import Proof, commit_shadows, places_of, prove
from airmirror.rehearsal.rehearse import RehearsalNeedsSource
from airmirror.rehearsal.shadows import (
    Shadowed,
    make_shadows,
    newest,
    read_shadows,
    remove_shadows,
    shadow_group,
    shadow_topic,
    write_shadows,
)
from airmirror.windows.declared import times_replaced
from airmirror.windows.mirror import Mirror

Tell = Callable[[str], None]


@dataclass(eq=False)
class MoveOver(AirmirrorError):
    """A rehearsal of a move group whose producers were switched already."""

    flow: str
    move: str

    def __str__(self) -> str:
        known = command("migration", "run", "--move", self.move, flow=self.flow)
        return f"flow {self.flow!r}: move group {self.move!r} has moved, nothing is left to rehearse; {known} shows how it stands"


@dataclass(frozen=True)
class MoveRehearsal:
    """The outcome of a rehearsal that ended at ``ended_ms`` (epoch milliseconds). ``reasons``: what would keep a step from being
    taken, or went wrong in it; ``proofs``: groups where they would go on now, ``moved``: the same on the copies."""

    flow: str
    move: Move
    ended_ms: int
    steps: tuple[Step, ...]
    reasons: tuple[str, ...]
    proofs: tuple[Proof, ...]
    moved: tuple[Proof, ...]
    compared: tuple[Audited, ...]
    shadowed: tuple[Shadowed, ...]


def rehearse_move(opened: Opened, name: str, tell: Tell = lambda phase: None) -> MoveRehearsal:
    """Rehearse the migration of a move group. What is not as it must be is in the answer.

    Raises NoSuchMove, NotMovable, MoveOver, RehearsalNeedsSource, or a cluster's error; one rehearsal of a move group at a time.
    """
    opened = caught_up(opened, soon=True)
    flow, step = opened.flow, Clock(tell)
    if error := unreachable(opened):
        raise RehearsalNeedsSource(flow.name, error)
    move = chosen_move(opened, name)
    if is_closed(opened, move):
        raise MoveOver(flow.name, name)
    scope = f"{flow.source.alias}.{name}"
    shadows = {topic: shadow_topic(f"{remote}.{name}") for topic, remote in move.names.items()}
    made = MoveRehearsal(flow.name, move, 0, (), (), (), (), (), ())
    with step("removing what an earlier rehearsal has left"):
        remove_shadows(flow, set(shadows.values()), scope)
    try:
        made = _rehearsed(opened, made, shadows, scope, step)
    finally:
        with step("removing shadows"):
            remove_shadows(flow, set(shadows.values()), scope)
    return replace(made, steps=tuple(step.steps), ended_ms=int(time.time() * 1000))


def _rehearsed(
    opened: Opened, made: MoveRehearsal, shadows: Mapping[str, str], scope: str, step: Clock
) -> MoveRehearsal:
    """Take the steps; the outcome, but for its end."""
    flow, move = opened.flow, made.move
    order = MoveOrder(move.name, "a rehearsal", "airmirror", 0.0)
    with step("groups: where they would go on now"):
        reasons = list(look_at_groups(opened, move, order).reasons)
        with session(opened) as mirror:
            rows = positions(mirror, move)
            made = replace(made, proofs=tuple(_proven(mirror, rows, scope)))
            counts = _counts(mirror, move)
    remote = {move.names[topic]: shadow for topic, shadow in shadows.items() if move.names[topic] in counts}
    refused = make_shadows(flow, remote, counts)
    reasons += [f"mirror: no shadow of {topic}: {reason}" for topic, reason in refused.items()]
    reasons += [f"mirror: {each} is not there yet" for each in sorted(set(move.names.values()) - counts.keys())]
    ready = {topic: shadow for topic, shadow in shadows.items() if move.names[topic] in remote.keys() - refused.keys()}
    if not ready:
        return replace(made, reasons=tuple(reasons))
    with copies_of(opened, ready, scope, flow.settings.move_rehearsal_records) as copies:
        with step("mirror: windows copy and verify", is_failover=True):
            reasons += [f"mirror: {each}" for each in make_copies(copies, step.tell)]
        with Mirror.open(copies.opened.flow, copies.opened.ledger, "rehearsal") as mirror:
            mirror.refresh()
            with step("switch_consumers: groups are moved, and back", is_failover=True):
                moved, wrong = _switched(mirror, copies, rows, order, scope)
            reasons += [f"switch_consumers: {each}" for each in wrong]
            with step("records of the copies compared with the source, one by one"):
                compared = compare_copies(copies, step.tell)
                reasons += deleted_from(copies, mirror.target)
            with step("switch_producers: topics are closed", is_failover=True):
                reasons += [f"switch_producers: {each}" for each in close_copies(copies, step.tell)]
            with step("producers write, consumers read"):
                shadowed = _written(mirror, copies, scope)
    return replace(made, reasons=tuple(reasons), moved=tuple(moved), compared=tuple(compared), shadowed=tuple(shadowed))


def _counts(mirror: Mirror, move: Move) -> dict[str, int]:
    """Return the number of partitions of the source's topics, by the remote topics that are on the target."""
    missing = mirror.target.refresh_existing(move.names.values())
    mirror.source.refresh(move.names)
    return {remote: mirror.source.partitions(topic) for topic, remote in move.names.items() if remote not in missing}


def _proven(mirror: Mirror, rows: Sequence[GroupPosition], scope: str) -> list[Proof]:
    """Give shadows the groups' positions in the remote topics themselves, which are only read, and prove them."""
    points = points_of(mirror, rows, _seen(rows))
    places, refused = commit_shadows(mirror, points, scope)
    return prove(mirror, points, places, refused)


def _switched(
    mirror: Mirror, copies: Copies, rows: Sequence[GroupPosition], order: MoveOrder, scope: str
) -> tuple[list[Proof], list[str]]:
    """Move shadows of the groups that stand within the copies, prove their positions, and put them back where they stood."""
    committed: dict[str, dict[TopicPartition, Committed]] = {}
    for row in rows:
        if row.key in copies.ends and copies.starts[row.key] <= row.committed.offset <= copies.ends[row.key]:
            committed.setdefault(row.group, {})[row.key] = row.committed
    if not committed:
        return [], []
    mirror.catch_up()
    found = positions_of(mirror, committed)
    wrong = not_exact(found)
    shadows = {shadow_group(scope, group): group for group in committed}
    named = [replace(row, group=shadow_group(scope, row.group)) for row in found]
    with unclaimed(mirror, order.window) as pen:
        done = move_groups(pen, named, all_too=True)
        wrong += [f"{each.group} in {each.topic}-{each.partition}: {each.reason}" for each in done if each.reason]
        proofs = prove(mirror, points_of(mirror, found, _seen(found)), places_of(mirror, shadows), {})
        mirror.catch_up()
        put_back(pen, to_put_back(mirror, lambda each: each.window == order.window))
    ours = set(copies.names.values())
    left = [place for place in places_of(mirror, shadows) if place[1].topic in ours]
    return proofs, wrong + [f"{group} in {key} stands there still, after the undo" for group, key in left]


def _written(mirror: Mirror, copies: Copies, scope: str) -> list[Shadowed]:
    """Write records to the copies as a producer does, after what was copied, and read them there as a member of a group."""
    target, cluster = mirror.target, copies.opened.flow.target
    keys = [copies.remote(key) for key in sorted(copies.ends)]
    ends = offsets_with_patience(target, keys, LATEST)
    samples = {key: newest(target, key, 0, end) for key, end in ends.items()}
    reader = shadow_group(scope, "")
    commit_offsets(target, {reader: {key: Committed(end) for key, end in ends.items()}})
    wrong = write_shadows(cluster, samples)
    if not wrong:
        timeless = times_replaced(copies.opened.flow)
        wrong = read_shadows(cluster, reader, samples, keeps_times=not timeless.include)
    found = []
    for shadow in sorted(copies.names.values()):
        its = [each for key, each in samples.items() if key.topic == shadow]
        found.append(Shadowed(shadow, shadow, len(its), sum(map(len, its)), wrong.get(shadow, "")))
    return found


def _seen(rows: Sequence[GroupPosition]) -> dict[tuple[str, TopicPartition], int]:
    now_ms = int(time.time() * 1000)
    return {(row.group, row.key): now_ms for row in rows}
