"""The reverse flow of a move group: looked at before producers are cut over, begun by their cut-over, taken back or used by an
undo.

What is written on the target from then on is copied back to the source, so that the old cluster stays usable. Nothing that
came from there goes back: the topics of a return are copied only while those they were brought from are frozen, and from the very
record after the last one that was brought.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import command, counted
from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import Opened
from airmirror.runbooks.draining import undrained
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import Pair, both_leased
from airmirror.runbooks.failback.returning import begin_return, bring_about, planned_return, returnable
from airmirror.runbooks.failback.runbook import FAILBACK
from airmirror.runbooks.failback.undo import give_up
from airmirror.runbooks.migration.chosen import PURPOSE, Move
from airmirror.runbooks.migration.order import MoveOrder
from airmirror.runbooks.run import run
from airmirror.runbooks.runbook import Progress
from airmirror.runbooks.written import ends_of_copies
from airmirror.tell import Tell
from airmirror.windows.mirror import caught_up_reverse


def prepare(pair: Pair, move: Move, order: MoveOrder, tell: Tell, *, is_cut_over: bool) -> Iterator[str]:
    """Look at all that could keep the reverse flow from beginning, make what it needs, and yield when it begins: not before
    producers are cut over (``is_cut_over``). Raises NoReverseFlow, ReturnRefused, FlowBusy, or a cluster's error."""
    tell("preparing the topics that records return to")
    bring_about(pair.reverse, check(pair, move, order), tell)
    source, target, name = pair.flow.source.alias, pair.flow.target.alias, pair.reverse.flow.name
    topics = f"{counted(len(move.names), 'topic')} can return"
    if is_cut_over:
        yield topics
        return
    when = f"when producers are cut over, {name} begins with the first record that producers write on {target}"
    if not order.goes_back(pair.flow):
        words = ("migration", "run", "--move", move.name, "--step", "reverse", "--reason", "…", "--yes")
        again = command(*words, flow=pair.flow.name)
        when = f"{name} begins when producers are cut over with --reverse, or once they are: {again}"
    yield f"{topics}: {when}"
    yield f"until then nothing is copied back; keep windows of {name} running: {source} stays usable by them"


def check(pair: Pair, move: Move, order: MoveOrder) -> dict[str, str]:
    """Return the remote topics that would return. Raises NoReverseFlow, ReturnRefused where they could not: nothing is frozen."""
    names = returnable(pair, _order(move, order), unfrozen_too=True)
    planned_return(pair.reverse, names)
    return names


def begin(pair: Pair, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    """Let the reverse flow begin after the freeze; what it does from now on. Done again, it begins once.

    Raises what ``begin_return`` does.
    """
    begun = begin_return(pair, _order(move, order), tell)
    partitions = counted(len(begun), "partition")
    yield f"{pair.reverse.flow.name} has begun, at the exact end of what was brought: {partitions}"


def reverse_state(opened: Opened, move: Move) -> str:
    """Return how the reverse flow stands, in words; "": there is none."""
    if is_returning(opened, move):
        return f"{opened.flow.reverse_name} copies back what is written on {opened.flow.target.alias}"
    return ""


def is_returning(opened: Opened, move: Move) -> bool:
    """Return whether what is written on the target is copied back by now."""
    return bool(owners_now(opened).returning_by(move.names))


def take_back(pair: Pair, move: Move, order: MoveOrder, last: Callable[[], None], tell: Tell) -> None:
    """Nothing returns any more, as long as nothing was written on the target: ``last`` raises where it was, asked when no window
    of the reverse flow is at work. Raises NoReverseFlow, FlowBusy, and what ``last`` raises."""
    if not is_returning(pair.forward, move):
        return
    tell("ending the return by the reverse flow")
    with both_leased(pair, tell) as (frozen, granted):
        last()
        names = frozen.owners.returning_by(move.names)
        give_up(frozen, granted, names, _order(move, order))


def undo_over(pair: Pair, move: Move, order: MoveOrder, groups: Collection[str], tell: Tell) -> None:
    """Go back over the reverse flow: all that was written on the target is on the source, these groups resume at the very next
    record, whatever the flow selects, and the topics are unfrozen. Raises what a failback does."""
    wanted = replace(_order(move, order), wait=order.wait, groups=groups)
    run(FAILBACK, pair, wanted, progress=Progress(tell))


def written_on_source(opened: Opened, names: Collection[str]) -> list[str]:
    """Return the partitions of frozen topics of the source that hold more than what has been replicated and what has returned."""
    left, flow = undrained(opened, names), opened.flow
    if not left:
        return []
    with Routes(flow.source, f"airmirror|{flow.name}|{PURPOSE}") as source:
        keys = source.keys_now(names)
        stable = offsets_with_patience(source, keys, LATEST, read_committed=True)
        reverse = caught_up_reverse(source, flow, opened.ledger)  # afterwards: what returned meanwhile is no stranger's
        back = {*names} & {*owners_now(opened).returning().values()}
        if reverse is None or not back:
            return left
        ends = ends_of_copies(reverse)
        found = undrained(opened, {*names} - back)
        for key in (each for each in keys if each.topic in back and ends.get(each, 0) < stable[each]):
            batches = read_batches(source, key, ends.get(key, 0), stable[key], read_committed=True)
            count = sum(
                each.count for _, its in batches for each, aborted in its if not aborted and not each.is_control
            )
            if count:
                found.append(
                    f"{key}: {counted(count, 'record')} after offset {ends.get(key, 0) - 1} did not return there"
                )
    return found


def _order(move: Move, order: MoveOrder) -> FailbackOrder:
    return FailbackOrder(reason=order.reason, by=order.by, topics=tuple(move.names))
