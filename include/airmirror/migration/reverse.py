"""The flow back of a move group: armed before its producers are switched, begun by their switch, taken back or used by an undo.

What is written on the target from the switch on is copied back to the source, so that the old cluster stays usable. Nothing that
came from there goes back: the topics of a return are copied only while those they were brought from are closed, and from the very
record after the last one that was brought.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience, read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import counted
from airmirror.failback.arming import arm_return, armed_now
from airmirror.failback.pair import NoWayBack, Pair, ReturnOrder, check_way_back
from airmirror.failback.reopening import forget_return
from airmirror.failback.returning import ReturnRefused, begin_return, returnable
from airmirror.failback.steps import FailbackOrder, fail_back
from airmirror.flows.draining import undrained
from airmirror.flows.prepare import Opened
from airmirror.ledger import FlowLedger
from airmirror.migration.chosen import PURPOSE, Move
from airmirror.migration.order import MoveOrder
from airmirror.partitions import TopicPartition
from airmirror.windows.opposite import armed, caught_up_opposite, returning

Tell = Callable[[str], None]
FENCED = "move.fence = topic would keep out what returns too: take acl, or none, or go without the flow back"


def arm(opened: Opened, reverse: Opened | None, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    """Arm the flow back, and yield what it will do. Raises NoWayBack, ReturnRefused, FlowBusy, or a cluster's error."""
    pair = _pair(opened, reverse)
    if opened.flow.settings.move_fence == "topic":
        raise ReturnRefused(opened.flow.name, (FENCED,))
    arm_return(pair, _order(move, order), tell)
    source, target = opened.flow.source.alias, opened.flow.target.alias
    there = len(armed_now(pair, move.names))
    begins = f"{pair.reverse.flow.name} begins with the first record that producers write on {target}"
    yield (
        f"{counted(there, 'topic')} armed: when producers are switched, {begins}"
        if there
        else "nothing is armed: it returns already"
    )
    yield f"until then nothing is copied back; keep windows of {pair.reverse.flow.name} running: {source} stays usable by them"


def check_armed(opened: Opened, reverse: Opened | None, move: Move, order: MoveOrder) -> None:
    """Raise NoWayBack, ReturnRefused where the flow back is armed and could not begin: nothing is closed then."""
    opposite = _opposite(opened)
    if opposite is not None and set(armed(opposite).values()) & move.names.keys():
        returnable(_pair(opened, reverse), _order(move, order), open_too=True)


def begin(opened: Opened, reverse: Opened | None, move: Move, order: MoveOrder, tell: Tell) -> Iterator[str]:
    """Let the flow back begin where it is armed, after the closure; what it does from now on. Done again, it begins once.

    Raises what ``begin_return`` does.
    """
    if reverse is None:
        return
    pair = Pair(opened, reverse)
    if armed_now(pair, move.names):
        begun = begin_return(pair, _order(move, order), tell)
        yield f"{reverse.flow.name} has begun, at the exact end of what was brought: {counted(len(begun), 'partition')}"


def way_back(opened: Opened, move: Move) -> str:
    """Return how the flow back stands, in words; "": nobody has armed it. The ledger of it is read up to now."""
    opposite = _opposite(opened)
    if opposite is None:
        return ""
    name = opened.flow.opposite
    if set(returning(opposite).values()) & move.names.keys():
        return f"{name} copies back what is written on {opened.flow.target.alias}"
    if set(armed(opposite).values()) & move.names.keys():
        return f"{name} is armed: it begins when producers are switched"
    return ""


def is_returning(opened: Opened, move: Move) -> bool:
    """Return whether what is written on the target is copied back by now."""
    opposite = _opposite(opened)
    return opposite is not None and bool(move.names.keys() & set(returning(opposite).values()))


def take_back(
    opened: Opened, reverse: Opened | None, move: Move, order: MoveOrder, last: Callable[[], None], tell: Tell
) -> None:
    """Nothing returns any more, armed or begun, as long as nothing was written on the target: ``last`` raises where it was, asked
    when no window of the flow back is at work. Raises NoWayBack, FlowBusy, and what ``last`` raises."""
    opposite = _opposite(opened)
    names = {**armed(opposite), **returning(opposite)} if opposite else {}
    if ours := {remote for remote, topic in names.items() if topic in move.names}:
        tell("taking the flow back away")
        forget_return(_pair(opened, reverse), ours, _order(move, order), tell, last)


def undo_over(opened: Opened, reverse: Opened | None, move: Move, order: MoveOrder, tell: Tell) -> None:
    """Go back over the flow back: all that was written on the target is on the source, groups go on at the very next record, and
    the topics are open again. Raises what ``fail_back`` does."""
    wanted = FailbackOrder(order.reason, order.by, wait=order.wait, topics=tuple(move.names))
    fail_back(_pair(opened, reverse), wanted, tell)


def written_on_source(opened: Opened, names: Collection[str]) -> list[str]:
    """Return the partitions of closed topics of the source that hold more than what has crossed and what has returned."""
    left, flow = undrained(opened, names), opened.flow
    if not left:
        return []
    with Routes(flow.source, f"airmirror|{flow.name}|{PURPOSE}") as source:
        there = sorted(set(names) - source.refresh_existing(names).keys())
        keys = [TopicPartition(topic, number) for topic in there for number in range(source.partitions(topic))]
        stable = offsets_with_patience(source, keys, LATEST, read_committed=True)
        opposite = caught_up_opposite(
            source, flow, opened.ledger
        )  # afterwards: what returned meanwhile is no stranger's
        if opposite is None or not set(names) <= set(returning(opposite).values()):
            return left
        ends = _ends(opposite)
        found = []
        for key in (each for each in keys if ends.get(each, 0) < stable[each]):
            batches = read_batches(source, key, ends.get(key, 0), stable[key], read_committed=True)
            count = sum(
                each.count for _, its in batches for each, aborted in its if not aborted and not each.is_control
            )
            if count:
                found.append(
                    f"{key}: {counted(count, 'record')} after offset {ends.get(key, 0) - 1} did not return there"
                )
    return found


def _ends(opposite: FlowLedger) -> dict[TopicPartition, int]:
    last = opposite.last_segments().values()
    return {TopicPartition(each.remote_topic, each.partition): each.target_end for each in last}


def _opposite(opened: Opened) -> FlowLedger | None:
    """The flow back, as it is known by now; None: there has been none."""
    with Routes(opened.flow.source, f"airmirror|{opened.flow.name}|{PURPOSE}") as source:
        return caught_up_opposite(source, opened.flow, opened.ledger)


def _pair(opened: Opened, reverse: Opened | None) -> Pair:
    check_way_back(opened)
    if reverse is None:
        raise NoWayBack(opened.flow.name, opened.flow.opposite)
    return Pair(opened, reverse)


def _order(move: Move, order: MoveOrder) -> ReturnOrder:
    return ReturnOrder(order.reason, order.by, topics=tuple(move.names))
