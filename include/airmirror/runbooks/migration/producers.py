"""The producers of a move group: stopped, drained to the last record, and its topics closed for every window; and the end.

After the closure nothing crosses any more: whoever writes to the source then is named, and what he wrote stays there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import command
from airmirror.flows.closing import close, owners_now
from airmirror.flows.prepare import Opened
from airmirror.runbooks.draining import NotDrained, await_quiet, prove_past, undrained
from airmirror.runbooks.migration import fence
from airmirror.runbooks.migration.chosen import PURPOSE, Move, MoveRefused, session
from airmirror.runbooks.migration.consumers import await_empty, unswitched
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.reverse import way_back, written_on_source
from airmirror.runbooks.moving import forget, moved, unclaimed
from airmirror.runbooks.stillness import ends_of
from airmirror.times import utc

Tell = Callable[[str], None]


@dataclass(eq=False)
class ConsumersNotSwitched(MoveRefused):
    """Producers that are to be switched before their consumers: these would read nothing new."""

    @property
    def what(self) -> str:
        switch = self.run("--step", "switch_consumers", "--yes")
        return f"consumers of move group {self.move!r} are not switched, or have read on on the source since: {switch}"


@dataclass(eq=False)
class MoveNotFinished(MoveRefused):
    """A move group that can't be finished yet. Nothing was changed."""

    @property
    def what(self) -> str:
        return f"move group {self.move!r} can't be finished yet; {self.run()} shows how far it is"


@dataclass(eq=False)
class WrittenSinceClosed(MoveRefused):
    """Records that were written to the source after its topics were closed: not replicated, and no window copies them."""

    @property
    def what(self) -> str:
        plan = command("failback", "plan", flow=self.flow)
        return (
            f"topics of move group {self.move!r} were written to on the source after they were closed; {plan} shows what is not "
            "replicated"
        )


def is_closed(opened: Opened, move: Move) -> bool:
    """Return whether no window writes to any topic of the move group any more: its producers were switched."""
    owners = owners_now(opened)
    return all(owners.why_closed(topic) for topic in move.names)


def fence_writers(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> list[str]:
    """Put up the fence that ``move.fence`` wants, when consumers are switched: it in words, and how it comes down.

    Raises ConsumersNotSwitched, GroupsHaveMembers, FenceRefused.
    """
    _check_consumers(opened, move, order, tell)
    if is_closed(opened, move):
        return []
    fences = fence.put_up(opened, move, order)
    return [*fences, f"{fence.down(opened.flow.name, move.name)} takes it down"] if fences else []


def switch_writers(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> None:
    """Wait until nobody writes on the source, copy and verify the last record, close the topics.

    Raises ConsumersNotSwitched, GroupsHaveMembers, SourceNotQuiet, NotDrained, WrittenSinceClosed, FlowBusy.
    """
    if is_closed(opened, move):
        check_silence(opened, move)
        return
    still_ms = opened.flow.settings.move_quiet_ms
    await_quiet(opened, still_ms=still_ms, seconds=order.wait, topics=move.names, tell=tell)
    with Routes(opened.flow.source, f"airmirror|{opened.flow.name}|{PURPOSE}") as source:
        ends = ends_of(source, move.names)
    prove_past(opened, ends, order.wait, tell)

    def drained() -> None:
        _check_consumers(opened, move, order, tell)  # an undo may have put them back since
        if left := undrained(opened, move.names):
            raise NotDrained(opened.flow.name, tuple(left))

    tell("closing its topics")
    close(opened, move.names, reason=_why(order), by=order.by, last=drained, empty_too=True, tell=tell)
    check_silence(opened, move)  # what came between the last look and the closure never crosses


def _check_consumers(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> None:
    """Raise ConsumersNotSwitched, or GroupsHaveMembers where they are on the source."""
    if left := unswitched(opened, move, order):
        raise ConsumersNotSwitched(opened.flow.name, tuple(left), move.name)
    await_empty(opened, opened.flow.source, move.groups, 0.0, tell)


def check_silence(opened: Opened, move: Move) -> None:
    """Raise WrittenSinceClosed where the source holds more than what was copied."""
    if left := written_on_source(opened, move.names):
        raise WrittenSinceClosed(opened.flow.name, tuple(left), move.name)


def unfinished(opened: Opened, move: Move) -> list[str]:
    """Return why the move group can't be finished yet, in words."""
    flow, owners = opened.flow, owners_now(opened)
    if not is_closed(opened, move):
        return ["its producers are not switched"]
    switched = max((record.closed_ms for topic in move.names if (record := owners.why_closed(topic))), default=0)
    over = switched + flow.settings.move_soak_ms
    if time.time() * 1000 < over:
        return [f"its producers were switched at {utc(switched)}: move.soak.ms ends at {utc(over)}"]
    return written_on_source(opened, move.names)


def finish(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> list[str]:
    """Forget how to put groups back, once nothing was written on the source for ``move.soak.ms``; what is left to do, in words.

    Nothing is deleted on either cluster. Raises MoveNotFinished, GroupsHaveMembers.
    """
    flow = opened.flow
    if reasons := unfinished(opened, move):
        raise MoveNotFinished(flow.name, tuple(reasons), move.name)
    await_empty(opened, flow.source, move.groups, 0.0, tell)
    with session(opened) as mirror:
        with unclaimed(mirror, order.window) as pen:
            forget(pen, [each for each in moved(mirror).values() if each.window == order.window])
        mirror.catch_up()
        fences = list(map(fence.str_of, fence.standing(mirror, move)))
    excluded = dict.fromkeys((*flow.topics_exclude, *move.names))
    down, back = fence.down(flow.name, move.name), way_back(opened, move)
    topics = [word for each in move.names for word in ("--topic", each)]
    ending = command("failback", "undo", *topics, "--reason", "…", "--yes", flow=flow.name)
    return [
        *(f"a fence is still up on {flow.source.alias}: {each}; {down} takes it down" for each in fences),
        *([f"{back}; {ending} ends that"] if back else []),
        f"move group {move.name} has left the flow: no window writes there, whatever the configuration says",
        f"write it down: {flow.name}.topics.exclude = {', '.join(excluded)}; and take out {flow.name}.move.{move.name}.…",
        f"may be deleted on {flow.source.alias} when no application needs them: topics {', '.join(move.names)}"
        + (f"; groups {', '.join(move.groups)}" if move.groups else ""),
    ]


def _why(order: MoveOrder) -> str:
    return f"moved as {order.move}: {order.reason}"
