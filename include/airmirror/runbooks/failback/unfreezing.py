"""The flow that was failed over, unfrozen after the return: it resumes after what has returned, and keeps its mappings.

What returned is accounted for by the mappings of the reverse flow, read backwards, compared record by record
by a gate, and only then is the flow unfrozen (invariants C, F and G).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.flows.freezing import commit_change, failed_over, overtaking
from airmirror.flows.prepare import catch_up_ledger
from airmirror.ledger import FlowLedger
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failback.differing import prove
from airmirror.runbooks.failback.divergence import Offsets
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import Pair, lease_name
from airmirror.runbooks.failback.returning import LeftOnSource, ReturnNotDrained
from airmirror.runbooks.moving import moves_in
from airmirror.tell import Tell, silent
from airmirror.windows import driver, resetting
from airmirror.windows.continuing import Continuation, commit, continue_after
from airmirror.windows.fence import GrantedLease, fence_around
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Choice, Facts, borne_out
from airmirror.wire.moves import GroupMove, Rescue, rescues_of
from airmirror.wire.owners import Change, Owner

FORGET = "forget"  # the choice after which a topic is none of a flow's own


def unfreeze_after_return(
    pair: Pair,
    names: Mapping[str, str],
    order: FailbackOrder,
    last: Callable[[], None] = lambda: None,
    tell: Tell = silent,
) -> list[Continuation]:
    """Account for what returned of remote topics (``names``, with where they returned to), and unfreeze them; what was added.
    ``last``: asked under the lease, what it raises keeps them frozen.

    Raises ReturnNotDrained, LeftOnSource, ReturnDiffers, FlowBusy, SlotFenced, or a cluster's error; the flow is frozen then.
    """
    forward = pair.forward
    with (
        Mirror.open(forward.flow, forward.ledger, "return") as ahead,
        overtaking(forward, lease_name(), tell) as granted,
    ):
        # None of the reverse flow's windows writes any more, whenever it has looked.
        with overtaking(pair.reverse, lease_name(), tell):
            still = granted.owners.returning((Owner.RETURNED,))
        ahead.refresh()
        if not_over := sorted(names.keys() - still.keys()):  # it may have begun again since
            raise ReturnNotDrained(pair.flow.name, tuple(f"{name} still returns" for name in not_over), order.topics)
        last()  # before the account grows: by it the end of what was brought becomes the first record that returned
        tell("accounting for what returned")
        found = _accounts(ahead, pair.reverse.ledger, names, order)
        if found:
            commit(ahead, granted, fence_around(granted, 1).numbers[0], found, by=order.by, reason=order.reason)
        ahead.catch_up()
        prove(ahead, granted, names.values(), order, tell)
        with overtaking(pair.reverse, lease_name(), tell) as back:
            write_forgotten(back, names, order)
        catch_up_ledger(pair.reverse)
        moves = [(each.encode_key(), None) for each in _over(granted.journal.index, names, order)]
        commit_change(granted, Change.FINISH, order.topics, reason=order.reason, by=order.by, more=moves)
    catch_up_ledger(forward)
    return found


def _over(ledger: FlowLedger, names: Collection[str], order: FailbackOrder) -> list[GroupMove]:
    """Return where groups stood before the failover: they were moved back, and it can't be undone any more. That of the whole
    flow has moved some in topics besides that came from the target, and do not return."""
    others = () if order.topics else (each.topic for each in came_from_target(ledger))
    return moves_in(ledger.of_kind(GroupMove), {*names, *others})


def came_from_target(ledger: FlowLedger) -> list[GroupMove]:
    """Return the groups that a failover of the flow has moved in topics that came from the target, and do not return."""
    ours = {record.remote_topic for record in ledger.last_mappings().values()}
    return [each for each in failed_over(ledger) if each.topic not in ours]


def write_forgotten(granted: GrantedLease, names: Collection[str], order: FailbackOrder) -> None:
    """Forget these remote topics, under the lease of the flow by which they returned; done again, nothing."""
    by, reason, known = order.by.strip(), order.reason.strip(), granted.journal.index.state().known
    over = "its return is over"
    decided = [driver.decision(granted, key, FORGET, over, by=by, reason=reason) for key in known if key[0] in names]
    granted.check()
    if decided:
        granted.appender.append(decided)


def _accounts(ahead: Mirror, reverse: FlowLedger, names: Mapping[str, str], order: FailbackOrder) -> list[Continuation]:
    """Return what returned to each partition and is not accounted for yet. Raises ReturnNotDrained, LeftOnSource."""
    remote = {topic: name for name, topic in names.items()}
    every, last = resetting.look(ahead, remote, Choice.ACCEPT_LOSS), reverse.last_mappings()
    looked = [each for each in every if each.remote in last]
    ends = offsets_with_patience(ahead.target, [each.remote for each in looked], LATEST)
    left = [
        f"{key}: returned up to offset {last[key].source_end}, it ends at {end}"
        for key, end in ends.items()
        if last[key].source_end < end
    ]
    if left:
        raise ReturnNotDrained(ahead.flow.name, tuple(left), order.topics)
    rescues = ahead.index.of_kind(Rescue)
    saved = {(each.topic, each.partition, each.source_topic_id) for each in rescues}
    found = [
        _account(ahead, facts, reverse, ends, rescued=(*facts.key, facts.source_topic_id) in saved) for facts in looked
    ]
    made = [each for each in found if each is not None]
    never = [f"{each.key}: {count:,} records" for each in made if (count := behind(each, rescues))]
    if never and not order.leave:
        raise LeftOnSource(ahead.flow.name, tuple(never), order.topics)
    return made


def _account(
    ahead: Mirror, facts: Facts, reverse: FlowLedger, ends: Mapping[TopicPartition, int], *, rescued: bool
) -> Continuation | None:
    """Return the account of what returned to a partition; None: all of it is accounted for, or there is nothing to account."""
    last, kept = reverse.last_mappings()[facts.remote], borne_out(facts)
    start = kept.last.source_end if kept.last else facts.earliest
    if kept.is_whole and kept.last and start >= last.target_end:
        return None
    records = list(reverse.mappings(*facts.remote, last.source_topic_id))
    if facts.last is None and not any(each.copied for each in records) and not rescued:
        return None  # nothing was replicated, nothing returned: the flow begins with it when it is unfrozen
    return continue_after(
        ahead,
        facts,
        kept,
        start=start,
        end=max(start, last.target_end),
        target_end=ends[facts.remote],
        reverse=(each for each in records if each.target_end > start),
    )


def behind(each: Continuation, rescues: Sequence[Rescue]) -> int:
    """Return how many records are on the source alone: by no flow on the target, and not rescued."""
    its = rescues_of(rescues, *each.key, str(each.facts.source_topic_id))
    saved = Offsets.of([(rescue.source_start, rescue.source_end) for rescue in its]).has(each.alone)
    return len(each.alone) - int(saved.sum())
