"""The steps of a migration, consumers first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Literal

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.errors import counted
from airmirror.flows.freezing import check_open, owners_now
from airmirror.flows.prepare import caught_up, plan_topics, prepare
from airmirror.runbooks.draining import prove_past
from airmirror.runbooks.failback.pair import Pair
from airmirror.runbooks.migration.access import copy_access
from airmirror.runbooks.migration.blocking import check_blocked
from airmirror.runbooks.migration.chosen import PURPOSE, Move, chosen_move
from airmirror.runbooks.migration.consumers import await_consumers, check_groups, cut_over_groups
from airmirror.runbooks.migration.order import MoveOrder, MoveStep
from airmirror.runbooks.migration.producers import block_writers, cut_over_writers, finish, is_frozen
from airmirror.runbooks.migration.reverse import begin, check
from airmirror.runbooks.migration.reverse import prepare as prepare_back
from airmirror.runbooks.runbook import SILENT, Progress
from airmirror.runbooks.stillness import ends_of
from airmirror.tell import Tell
from airmirror.topics.drift import drifts

SHOWN = ("security.protocol", "sasl.mechanism")  # of the flow's own access: what else a client needs is its own


def check_order(pair: Pair, order: MoveOrder) -> None:
    """Raise NoReverseFlow or ReturnRefused where the reverse flow, if it is wanted, could not begin: before anything is cut over.
    Raises NoSuchMove, MoveGroupUnfit too."""
    if order.goes_back(pair.flow):
        pair = replace(pair, forward=caught_up(pair.forward, soon=True))
        move = chosen_move(pair.forward, order.move)
        if not is_frozen(pair.forward, move):
            check(pair, move, order)


def take(step: MoveStep, pair: Pair, order: MoveOrder, progress: Progress = SILENT) -> None:
    """Take a step; what came of it is told as soon as it is so. While topics return, it is about those that match the move group
    since. Raises NoSuchMove, MoveGroupUnfit, FlowFrozen, and what the step raises."""
    pair = replace(pair, forward=caught_up(pair.forward, soon=True))
    move = chosen_move(pair.forward, order.move)
    check_open(pair.forward, move.names)
    if step != "finish":
        back = set(owners_now(pair.forward).returning().values())
        new = {topic: remote for topic, remote in move.names.items() if topic not in back}
        move = replace(move, names=new or move.names)
    for line in WORK[step](pair, move, order, progress.phase):
        progress.line(line)


def _mirror(pair: Pair, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    """Topics, configs and ACLs are there, and all that the source has now is verified. Raises NotDrained."""
    opened = pair.forward
    if is_frozen(opened, move):
        yield f"{move.name} is frozen: its producers were cut over already"
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


def _check_groups(pair: Pair, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    found = check_groups(pair.forward, move, order, tell)
    counts, left = Counter(row.group for row in found.rows), Counter(row.group for row in found.left)
    for group in move.groups:
        done = "" if left[group] or not counts[group] else "; cut over already"
        yield f"{group}: {counted(counts[group], 'position')}, exact: 0 records are read again{done}"
    if not move.groups:
        yield "no group reads these topics"


def how_to_start(flow: Flow, move: Move, who: Literal["consumers", "producers"]) -> list[str]:
    """Return what to tell people, a line each: who starts where, and each property that changes; no secrets."""
    target = flow.target
    lines = [f"start your {who} on {target.alias}:", f"  bootstrap.servers = {','.join(target.bootstrap_servers)}"]
    settings = target.client(who.removesuffix("s"))
    lines += [f"  {key} = {settings[key]}" for key in SHOWN if settings.get(key)]
    if who == "consumers":
        lines.append("  isolation.level = read_committed")
    renamed = {topic: remote for topic, remote in move.names.items() if topic != remote}
    lines += [f"  topic {topic} is {remote} there" for topic, remote in sorted(renamed.items())]
    if not renamed:
        lines.append("  topics have the same names there")
    return lines


def _cut_over_consumers(pair: Pair, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    opened, target = pair.forward, pair.flow.target.alias
    done = cut_over_groups(opened, move, order, tell)
    yield f"{counted(len(done.left), 'position')} of {counted(len(move.groups), 'group')} written on {target}, and read back"
    yield from how_to_start(opened.flow, move, "consumers")
    yield from map(str, await_consumers(opened, move, order.wait, tell))


def _reverse(pair: Pair, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    is_cut_over = is_frozen(pair.forward, move)
    yield from prepare_back(pair, move, order, tell, is_cut_over=is_cut_over)
    if is_cut_over:
        check_blocked(pair.forward, move)
        yield from begin(pair, move, order, tell)


def _cut_over_producers(pair: Pair, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    opened = pair.forward
    goes_back = order.goes_back(opened.flow)
    if goes_back:
        check(pair, move, order)
        if is_frozen(opened, move):
            check_blocked(opened, move)
    for each in block_writers(opened, move, order, tell):
        yield f"blocked: {each}"
    cut_over_writers(opened, move, order, tell)
    source, target = opened.flow.source.alias, opened.flow.target.alias
    frozen = f"{counted(len(move.names), 'topic')} frozen"
    yield f"{frozen}: all records of {source} are verified on {target}; no window will write to these topics again"
    if goes_back:
        yield from begin(pair, move, order, tell)
    yield from how_to_start(opened.flow, move, "producers")


WORK: dict[MoveStep, Callable[[Pair, Move, MoveOrder, Tell], Iterable[str]]] = {
    "mirror": _mirror,
    "check_groups": _check_groups,
    "cut_over_consumers": _cut_over_consumers,
    "reverse": _reverse,
    "cut_over_producers": _cut_over_producers,
    "finish": lambda pair, move, order, tell: finish(pair.forward, move, order, tell),
}
