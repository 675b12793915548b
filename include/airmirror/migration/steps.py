"""The steps of a migration, consumers first; a command does one or all of them, a DAG as its tasks.

Each reads again what is so now and does what is left: killed at any point and run again, nothing is done twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import counted
from airmirror.flows.draining import prove_past
from airmirror.flows.holds import check_decision
from airmirror.flows.prepare import Opened, caught_up, plan_topics, prepare
from airmirror.flows.stillness import ends_of
from airmirror.migration.access import copy_access
from airmirror.migration.chosen import PURPOSE, Move, chosen_move
from airmirror.migration.consumers import await_consumers, check_groups, switch_groups
from airmirror.migration.order import MoveOrder, Step
from airmirror.migration.producers import check_silence, fence_writers, finish, is_closed, switch_writers
from airmirror.migration.starting import how_to_start
from airmirror.topics.drift import drifts

Tell = Callable[[str], None]


def do_step(opened: Opened, order: MoveOrder, step: Step, tell: Tell = lambda phase: None) -> Iterator[str]:
    """Do a step, and yield what came of it, in words, as soon as it is so.

    Raises DecisionIncomplete, NoSuchMove, NotMovable, and what the step raises.
    """
    check_decision(opened.flow.name, order.reason, order.by)
    opened = caught_up(opened, soon=True)
    yield from WORK[step](opened, chosen_move(opened, order.move), order, tell)


def _mirror(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    """Topics, configs and ACLs are there, and all that the source has now is verified. Raises NotDrained."""
    if is_closed(opened, move):
        yield f"{move.name} is closed: its producers were switched already"
        return
    yield from prepare(opened, tell).report.changes
    with Routes(opened.flow.source, f"airmirror|{opened.flow.name}|{PURPOSE}") as source:
        ends = ends_of(source, move.names)
    prove_past(opened, ends, order.wait, tell)
    counts = f"{counted(len(move.names), 'topic')}, {counted(len(ends), 'partition')}"
    yield f"{counts}: all that {opened.flow.source.alias} had when this began is verified"
    for each in drifts(plan_topics(opened)):
        if each.topic in move.names and each.will_change:
            yield f"differs: {each.remote}, {each.what}: {each.target}, not {each.source}: {each.reason}"
    yield from copy_access(opened, move)


def _check_groups(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    found = check_groups(opened, move, order, tell)
    counts, left = Counter(row.group for row in found.rows), Counter(row.group for row in found.left)
    for group in move.groups:
        done = "" if left[group] or not counts[group] else "; switched already"
        yield f"{group}: {counted(counts[group], 'position')}, exact: 0 records are read again{done}"
    if not move.groups:
        yield "no group reads these topics"


def _switch_consumers(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    done = switch_groups(opened, move, order, tell)
    target = opened.flow.target.alias
    yield f"{counted(len(done.left), 'position')} of {counted(len(move.groups), 'group')} written on {target}, and read back"
    yield from how_to_start(opened.flow, move, "consumers")
    yield from map(str, await_consumers(opened, move, order.wait, tell))


def _switch_producers(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    for each in fence_writers(opened, move, order, tell):
        yield f"fence: {each}"
    switch_writers(opened, move, order, tell)
    source, target = opened.flow.source.alias, opened.flow.target.alias
    closed = f"{counted(len(move.names), 'topic')} closed"
    yield f"{closed}: every record of {source} is verified on {target}, and no window of anybody writes there again"
    yield from how_to_start(opened.flow, move, "producers")


def _finish(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    if is_closed(opened, move):
        check_silence(opened, move)
    yield from finish(opened, move, order, tell)


WORK: dict[Step, Callable[[Opened, Move, MoveOrder, Tell], Iterator[str]]] = {
    "mirror": _mirror,
    "check_groups": _check_groups,
    "switch_consumers": _switch_consumers,
    "switch_producers": _switch_producers,
    "finish": _finish,
}
