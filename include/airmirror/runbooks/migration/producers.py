"""The producers of a move group: stopped, drained to the last record, and its topics frozen for every window; and the end.

After the freeze nothing is replicated any more: whoever writes to the source then is named, and what he wrote stays there.
"""

from __future__ import annotations

import time

from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import command
from airmirror.flows.freezing import freeze, owners_now
from airmirror.flows.prepare import Opened
from airmirror.runbooks.draining import await_quiet, check_drained, prove_past
from airmirror.runbooks.migration import blocking
from airmirror.runbooks.migration.chosen import PURPOSE, Move, MoveRefused, session
from airmirror.runbooks.migration.consumers import await_empty, not_cut_over
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.migration.reverse import reverse_state, written_on_source
from airmirror.runbooks.moving import forget, moved, unleased
from airmirror.runbooks.stillness import ends_of
from airmirror.tell import Tell
from airmirror.times import utc


class ConsumersNotCutOver(MoveRefused):
    """Producers that are to be cut over before their consumers: these would read nothing new."""

    says = (
        "consumers of move group {0.move!r} are not cut over, have read on on the source since, or were set back on the "
        "target (let these read up to where they were moved to): "
        "{airmirror:migration run --move .move --step cut_over_consumers --yes --reason …} moves them to where they are on "
        "the source"
    )


class MoveNotFinished(MoveRefused):
    """A move group that can't be finished yet. Nothing was changed."""

    says = "move group {0.move!r} can't be finished yet; {airmirror:migration run --move .move --reason …} shows how far it is"


class WrittenSinceFrozen(MoveRefused):
    """Records that were written to the source after its topics were frozen: not replicated, and no window copies them."""

    says = (
        "topics of move group {0.move!r} were written to on the source after they were frozen; {airmirror:failback plan} shows "
        "what is not replicated"
    )


def is_frozen(opened: Opened, move: Move) -> bool:
    """Return whether its producers were cut over: all its topics are frozen, by their names."""
    owners = owners_now(opened)
    return all(owners.is_apart(topic) for topic in move.names)


def block_writers(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> list[str]:
    """Block producers as ``move.block.producers`` wants, when consumers are cut over: the blocks in words, and the way out.

    Raises ConsumersNotCutOver, GroupsHaveMembers, BlockRefused.
    """
    _check_consumers(opened, move, order, tell)
    if is_frozen(opened, move):
        return []
    blocks = blocking.block_producers(opened, move, order)
    return [*blocks, f"{blocking.unblock_command(opened.flow.name, move.name)} unblocks them"] if blocks else []


def cut_over_writers(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> None:
    """Wait until nobody writes on the source, copy and verify the last record, freeze the topics.

    Raises ConsumersNotCutOver, GroupsHaveMembers, SourceNotQuiet, NotDrained, WrittenSinceFrozen, FlowBusy.
    """
    if is_frozen(opened, move):
        check_silence(opened, move)
        return
    still_ms = opened.flow.settings.move_quiet_ms
    await_quiet(opened, still_ms=still_ms, seconds=order.wait, topics=move.names, tell=tell)
    with Routes(opened.flow.source, f"airmirror|{opened.flow.name}|{PURPOSE}") as source:
        ends = ends_of(source, move.names)
    prove_past(opened, ends, order.wait, tell)

    def drained() -> None:
        _check_consumers(opened, move, order, tell)  # an undo may have put them back since
        check_drained(opened, move.names)

    tell("freezing its topics")
    why = f"moved as {order.move}: {order.reason}"
    freeze(opened, move.names, reason=why, by=order.by, last=drained, empty_too=True, tell=tell)
    check_silence(opened, move)  # what came between the last look and the freeze is never replicated


def _check_consumers(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> None:
    """Raise ConsumersNotCutOver, or GroupsHaveMembers where they are on the source."""
    if left := not_cut_over(opened, move, order):
        raise ConsumersNotCutOver(opened.flow.name, tuple(left), move.name)
    await_empty(opened, opened.flow.source, move.groups, 0.0, tell)


def check_silence(opened: Opened, move: Move) -> None:
    """Raise WrittenSinceFrozen where the source holds more than what was copied."""
    if left := written_on_source(opened, move.names):
        raise WrittenSinceFrozen(opened.flow.name, tuple(left), move.name)


def unfinished(opened: Opened, move: Move) -> list[str]:
    """Return why the move group can't be finished yet, in words."""
    flow, owners = opened.flow, owners_now(opened)
    if not is_frozen(opened, move):
        return ["its producers are not cut over"]
    cut_over = max((record.frozen_ms for topic in move.names if (record := owners.why_frozen(topic))), default=0)
    over = cut_over + flow.settings.move_soak_ms
    if time.time() * 1000 < over:
        return [f"its producers were cut over at {utc(cut_over)}: move.soak.ms ends at {utc(over)}"]
    return written_on_source(opened, move.names)


def finish(opened: Opened, move: Move, order: MoveOrder, tell: Tell) -> list[str]:
    """Forget how to put groups back, once nothing was written on the source for ``move.soak.ms``; what is left to do, in words.

    Nothing is deleted on either cluster. Raises WrittenSinceFrozen, MoveNotFinished, GroupsHaveMembers.
    """
    flow = opened.flow
    if is_frozen(opened, move):
        check_silence(opened, move)
    if reasons := unfinished(opened, move):
        raise MoveNotFinished(flow.name, tuple(reasons), move.name)
    await_empty(opened, flow.source, move.groups, 0.0, tell)
    with session(opened) as mirror:
        with unleased(mirror, order.window) as writer:
            forget(writer, [each for each in moved(mirror).values() if each.window == order.window])
        mirror.catch_up()
        blocks = list(map(blocking.str_of, blocking.standing(mirror, move)))
    excluded = dict.fromkeys((*flow.topics_exclude, *move.names))
    down, back = blocking.unblock_command(flow.name, move.name), reverse_state(opened, move)
    ending = command("failback", "undo", "--reason", "…", "--yes", flow=flow.name, topics=move.names)
    return [
        *(f"producers are still blocked on {flow.source.alias}: {each}; {down} unblocks them" for each in blocks),
        *([f"{back}; {ending} ends that"] if back else []),
        f"move group {move.name} has left the flow: no window writes there, whatever the configuration says",
        f"write it down: {flow.name}.topics.exclude = {', '.join(excluded)}; and take out {flow.name}.move.{move.name}.…",
        f"may be deleted on {flow.source.alias} when no application needs them: topics {', '.join(move.names)}"
        + (f"; groups {', '.join(move.groups)}" if move.groups else ""),
    ]
