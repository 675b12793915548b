"""The work of the tasks of a migration: the steps of the command, each told in its task's log. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import cast

from airmirror.errors import counted, named
from airmirror.flows.prepare import Opened
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import Question
from airmirror.on_airflow.tasks.telling import phase
from airmirror.on_airflow.tasks.window import opened_flow, when_free
from airmirror.report.markdown import escape
from airmirror.runbooks.failback.pair import opened_back
from airmirror.runbooks.migration.chosen import chosen_move
from airmirror.runbooks.migration.order import WITH_REVERSE, MoveOrder, Step
from airmirror.runbooks.migration.state import MoveState, move_state
from airmirror.runbooks.migration.steps import do_step
from airmirror.runbooks.migration.undo import fence_plan, undo_fence, undo_move, undo_plan

log = logging.getLogger(__name__)

MOST_SHOWN = 100  # groups and partitions of one question
WHAT_TO_DO: dict[Step, str] = {
    "switch_consumers": "**Approve, then stop all consumers of these groups on {source}**: their positions are written on "
    "{target} when they have gone. No group is rolled over member by member.",
    "switch_producers": "**Approve, then stop all producers of these topics on {source}**: when the last record is verified on "
    "{target}, the topics are closed for every window.",
    "finish": "**Approve to leave the way back**: how to put groups back is forgotten. Nothing is deleted.",
    "mirror": "**Approve to create ACLs and quotas on {target}**, as they are named below; other clients there keep theirs.",
}


def ask(deployment: Deployment, flow: str, order: MoveOrder, step: Step) -> Question:
    """Return the question whether to take a step. Writes only the ledger. Raises NoSuchMove, NotMovable, a cluster's error."""
    found = tell_state(deployment, flow, order)
    return Question(f"{flow}: {step.replace('_', ' ')} of {order.move}? {found.headline}", _body(found, order, step))


def tell_state(deployment: Deployment, flow: str, order: MoveOrder) -> MoveState:
    """Tell in the log how far a move group is, and what the next steps would meet. Writes only the ledger."""
    with opened_flow(deployment, flow, Selection()) as opened:
        found = move_state(opened, chosen_move(opened, order.move), order)
    for each in found.groups:
        who = f", members on the source: {named(each.members, MOST_SHOWN, '; ')}" if each.members else ""
        log.info("Group %s: %d of %d positions to switch%s; %s", each.group, each.left, each.positions, who, each.there)
    for reason in found.reasons:
        log.warning("Can't be switched: %s", reason)
    for text in found.access:
        log.info("On the target: %s", text)
    for writer in found.writers:
        log.info("Last writer of %s", writer)
    log.info("%s", found.headline)
    return found


def do(deployment: Deployment, flow: str, order: MoveOrder, step: str) -> None:
    """Take a step. Raises what it raises."""
    with (
        opened_flow(deployment, flow, Selection()) as opened,
        opened_back(opened, step in WITH_REVERSE, _opening(deployment)) as reverse,
    ):
        for line in do_step(opened, order, cast(Step, step), phase, reverse):
            log.info("%s", line)


def ask_undo(deployment: Deployment, flow: str, order: MoveOrder, *, fence_alone: bool) -> Question:
    """Return the question whether to take the steps back, or the fence alone. Writes only the ledger."""
    with opened_flow(deployment, flow, Selection()) as opened:
        move = chosen_move(opened, order.move)
        found = fence_plan(opened, move) if fence_alone else undo_plan(opened, move, order)
    what = "take the fence down, which lets producers write to the source again" if fence_alone else "take it back"
    lines = [f"Nothing is written yet. Why: {escape(order.reason)}. **Approve** to {what}:", ""]
    lines += [f"- **stop** {escape(each)}" for each in found.reasons[:MOST_SHOWN]]
    lines += _first([escape(each) for each in found.lines or _nothing(fence_alone)])
    subject = f"{flow}: {'lift the fence of' if fence_alone else 'take back'} {order.move}?"
    return Question(f"{subject} {counted(len(found.lines), 'change')}", "\n".join(lines))


def undo(deployment: Deployment, flow: str, order: MoveOrder, *, fence_alone: bool) -> None:
    """Take the steps back, or the fence alone. Raises CannotUndoMove, GroupsActive, FenceRefused, FlowBusy."""
    with (
        opened_flow(deployment, flow, Selection()) as opened,
        opened_back(opened, not fence_alone, _opening(deployment)) as reverse,
    ):
        move = chosen_move(opened, order.move)
        if fence_alone:
            found = undo_fence(opened, move, order)
        else:
            found = when_free(opened.flow, lambda: undo_move(opened, move, order, phase, reverse))
    for line in found.lines or _nothing(fence_alone):
        log.info("%s", line)


def _nothing(fence_alone: bool) -> list[str]:
    return ["no fence stands" if fence_alone else "nothing was switched"]


def _first(lines: Sequence[str]) -> list[str]:
    """The first lines of a list, and how many more there are."""
    more = len(lines) - MOST_SHOWN
    return [f"- {each}" for each in lines[:MOST_SHOWN]] + ([f"- … and {more:,} more"] if more > 0 else [])


def _opening(deployment: Deployment) -> Callable[[str], AbstractContextManager[Opened]]:
    return lambda name: opened_flow(deployment, name, Selection())


def _body(found: MoveState, order: MoveOrder, step: Step) -> str:
    """Return the state as Markdown. Every text that is not ours is escaped."""
    source, target = found.flow.split("->")
    lines = [
        f"Why: {escape(order.reason)}. " + WHAT_TO_DO[step].format(source=escape(source), target=escape(target)),
        "",
    ]
    lines += [f"- **stop** {escape(each)}" for each in found.reasons[:MOST_SHOWN]]
    if step == "finish":
        lines += [f"- **not yet** {escape(each)}" for each in found.unfinished[:MOST_SHOWN]]
    if step == "mirror":
        lines += _first([escape(each) for each in found.access])
    lines += [f"- fence: {escape(each)}" for each in found.fences[:MOST_SHOWN]]
    lines += [
        "",
        "| group | positions | to switch | read again | members on the source | on the target |",
        "|---|---|---|---|---|---|",
    ]
    for each in found.groups[:MOST_SHOWN]:
        there = str(each.there).removeprefix(f"{each.group}: ")
        lines.append(
            f"| {escape(each.group)} | {each.positions:,} | {each.left:,} | {each.again:,} | "
            f"{escape(named(each.members, between='; ') or 'none')} | {escape(there)} |"
        )
    lines += ["", "| topic | on the target | not verified yet |", "|---|---|---|"]
    for topic, remote in sorted(found.move.names.items())[:MOST_SHOWN]:
        behind = sum(max(0, each.end - each.verified) for each in found.partitions if each.topic == topic)
        lines.append(f"| {escape(topic)} | {escape(remote)} | {behind:,} |")
    lines.append("")
    if step == "switch_producers":
        lines += [f"- last writer of {escape(each)}" for each in found.writers[:MOST_SHOWN]]
    return "\n".join([*lines, "" if step == "finish" else escape(found.undo)])
