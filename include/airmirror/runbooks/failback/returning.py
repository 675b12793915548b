"""The return: records written since a failover are copied back by the reverse flow; the owner's record says so, begin to end.

That flow's account of them begins at the very record after the last one that was brought from there, as far as its log still
has them (invariants A and C). Then the record of their owner says that they return, and to where; from then on its windows plan,
copy, verify and commit these partitions as they do all others. Of what it has an account of, from an earlier return, it resumes
after what the other flow has brought since, by that flow's mappings (windows.continuing).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from airmirror.errors import command
from airmirror.flows.freezing import commit_change, owners_now
from airmirror.flows.prepare import Opened, catch_up_ledger, guard, plan_topics
from airmirror.partitions import TopicPartition
from airmirror.runbooks.draining import undrained
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.failback.differing import settle
from airmirror.runbooks.failback.divergence import divergences
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import Pair, both_leased, check_known, moved_by
from airmirror.slot.adjacent import explained
from airmirror.tell import Tell, silent
from airmirror.topics.identity import Neighbours, introduce
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.remote import TopicPlan
from airmirror.topics.sync import apply
from airmirror.windows import resetting
from airmirror.windows.continuing import Continuation, commit, continue_after
from airmirror.windows.errors import unfreeze_command
from airmirror.windows.fence import fence_around
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Choice, Facts, borne_out
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import Change, Owner, Ownership

OPEN = "a transaction is open there; it ends when its producer comes back, or when its time is over"
MIXED = "is an aggregate: what applications have written can't be distinguished from the records of other sources"


class ReturnRefused(RunbookError):
    """A return that can't begin; nothing was changed."""

    says = "nothing returns to its source yet; {airmirror:failback plan} shows how things are"


class ReturnNotMade(ReturnRefused, transient=True):
    """The same for now: the source was too busy for the topics that records return to, or not all there."""


class LeftOnSource(RunbookError):
    """Records of the source that are not on the target, and would be left there: neither rescued, nor left on purpose."""

    topics: tuple[str, ...]  # that the order names, as below
    says = (
        "records of its source are not replicated; {airmirror:failback run --step rescue --reason … --yes} copies them to the "
        "target (where records return already, {airmirror:failback undo --reason … --yes} goes before it); or leave them where "
        "they are, on the source alone, with --leave"
    )


class ReturnNotDrained(RunbookError, transient=True):
    """Remote topics that were written to since the last window that copied them back; the return was not ended."""

    topics: tuple[str, ...]
    says = (
        "not all has returned; stop the applications on its target, then do what is left: "
        "{airmirror:failback run --reason … --yes}"
    )


def begin_return(pair: Pair, order: FailbackOrder, tell: Tell = silent) -> list[Continuation]:
    """Let remote topics return; where partitions begin. Done again, it does what is left: nothing, once records have returned.

    Raises NothingReturns, ReturnRefused, LeftOnSource, ReturnDiffers, FlowBusy, SlotFenced, or a cluster's error.
    """
    names = returnable(pair, order)
    if {each.topic for each in pair.forward.ledger.unverified()} & set(names.values()):
        settle(pair.forward, names.values(), order, tell)
    tell("preparing the topics that records return to")
    bring_about(pair.reverse, names, tell)
    with _mirrors(pair) as (ahead, back), both_leased(pair, tell) as (frozen, granted):
        tell("reading both clusters")
        returnable(pair, order)  # the flow may have been unfrozen since
        names = _existing(back, names)
        found = _beginnings(ahead, back, names, order)
        if found:
            number, moves = fence_around(granted, 1).numbers[0], pair.reverse.ledger.of_kind(GroupMove)
            earlier = filter(moved_by(pair, names, order.topics), moves)
            forgotten = [(each.encode_key(), None) for each in earlier]
            commit(back, granted, number, found, by=order.by, reason=order.reason, more=forgotten)
        # The reverse flow's account of them has begun: its windows copy them from now on.
        remote = {topic: name for name, topic in names.items()}
        commit_change(frozen, Change.BEGIN, order.topics, reason=order.reason, by=order.by, which=remote, remote=remote)
    catch_up_ledger(pair.reverse)
    return found


def look_ahead(pair: Pair, order: FailbackOrder) -> list[Continuation]:
    """Return where partitions would begin; nothing is written but the ledger. Raises what ``begin_return`` does."""
    names = returnable(pair, order)
    planned_return(pair.reverse, names)
    with _mirrors(pair) as (ahead, back):
        return _beginnings(ahead, back, _existing(back, names), order)


def returnable(pair: Pair, order: FailbackOrder, *, unfrozen_too: bool = False) -> dict[str, str]:
    """The remote topics that would return, with where to; ``unfrozen_too``: once they are frozen.

    Raises NothingReturns, ReturnRefused.
    """
    forward, reverse = pair.forward, pair.reverse
    owners, shut = owners_now(forward), owners_now(reverse)
    names = pair.names(order.topics)
    if owners.whole and not order.topics:  # what came back before, by its name, is left as it is
        names = {remote: topic for remote, topic in names.items() if owners.owner(topic) is not Owner.SOURCE}
    open_ = [each for each in sorted(names.values()) if not unfrozen_too and owners.owner(each) is Owner.SOURCE]
    its = open_ if order.topics else ()
    check_known(forward, its)
    freezing = command("flow", "freeze", "--reason", "…", "--yes", flow=forward.flow.name, topics=its)
    reasons = [f"{topic} is not frozen, so that its records would go round for ever: {freezing}" for topic in open_]
    if not names:
        reasons.append(f"all of it is back, by name; unfreeze the rest: {unfreeze_command(forward.flow.name)}")
    reasons += [f"flow {each.flow.name!r} {MIXED}" for each in (forward, reverse) if each.flow.is_aggregate]
    reasons += [
        f"flow {reverse.flow.name!r} is frozen for {each.topic or 'all'}: {unfreeze_command(reverse.flow.name, each.topic)}"
        for each in dict.fromkeys(shut.why_frozen(remote) for remote in names)
        if each is not None
    ]
    if reasons:
        raise ReturnRefused(forward.flow.name, tuple(reasons))
    return names


def is_over(pair: Pair, names: Collection[str]) -> bool:
    """Return whether all of these remote topics has returned, and nobody has written to them since."""
    returned = owners_now(pair.forward).returning((Owner.RETURNED,))
    return bool(names) and set(names) <= returned.keys() and not undrained(pair.reverse, names)


def end_return(pair: Pair, names: Mapping[str, str], order: FailbackOrder, tell: Tell = silent) -> list[Ownership]:
    """No window copies these remote topics back any more; what was written, nothing where it was. Only when all is verified.

    Raises ReturnNotDrained, FlowBusy, FenceStuck.
    """
    with both_leased(pair, tell) as (frozen, granted):
        if left := undrained(pair.reverse, names):
            raise ReturnNotDrained(pair.flow.name, tuple(left), order.topics)
        which = set(names.values())
        found = commit_change(frozen, Change.END, order.topics, reason=order.reason, by=order.by, which=which)
        granted.check()  # else one of its windows may have looked before this was written: whoever unfreezes the flow ends it
    return found


@contextmanager
def _mirrors(pair: Pair) -> Iterator[tuple[Mirror, Mirror]]:
    with (
        Mirror.open(pair.forward.flow, pair.forward.ledger, "return") as ahead,
        Mirror.open(pair.reverse.flow, pair.reverse.ledger, "return") as back,
    ):
        for each in (ahead, back):
            each.refresh()
        yield ahead, back


def _existing(back: Mirror, names: Mapping[str, str]) -> dict[str, str]:
    """Return those of the remote topics that are there: what was deleted returns nothing."""
    missing = back.source.refresh_existing(names)
    return {remote: topic for remote, topic in names.items() if remote not in missing}


def _beginnings(ahead: Mirror, back: Mirror, names: Mapping[str, str], order: FailbackOrder) -> list[Continuation]:
    """Return where partitions begin to return, of those that have not begun. Raises ReturnRefused, LeftOnSource."""
    missing = ahead.source.refresh_existing(names.values())
    brought = {topic: remote for remote, topic in names.items() if topic not in missing}
    rows = divergences(ahead, brought) if brought else []
    never = [f"{each.key}: {each.never.records:,} records" for each in rows if each.never.records]
    if never and not order.leave:
        raise LeftOnSource(ahead.flow.name, tuple(never), order.topics)
    originals = {each.key: each for each in resetting.look(ahead, brought, Choice.ACCEPT_LOSS)} if brought else {}
    pairs = [
        (facts, originals.get(TopicPartition(names[facts.topic], facts.partition)))
        for facts in resetting.look(back, names, Choice.ACCEPT_LOSS)
    ]
    gone = [line for facts, one in pairs if one and (line := _deleted(facts, one))]
    if gone and not order.leave:
        raise ReturnRefused(ahead.flow.name, (*gone, "with --leave the others return"))
    over = back.index.state().forgotten
    looked = [(_beginning(back, facts, one, again=facts.key in over), one) for facts, one in pairs]
    found = [(each, one) for each, one in looked if each is not None]
    open_ = [f"{one.key}: {OPEN}" for each, one in found if one and each.target_end < one.high_watermark]
    if open_:
        raise ReturnRefused(ahead.flow.name, tuple(open_))
    return [each for each, _ in found]


def _deleted(facts: Facts, original: Facts) -> str:
    """Return what the target has deleted of a partition before it returned, or ""."""
    brought = borne_out(original).records
    end = explained(brought[-1]) if brought else 0
    if facts.last is not None or not brought or facts.earliest <= end:
        return ""
    return f"{facts.key}: its offsets {end} to {facts.earliest - 1}, written since, were deleted before they returned"


def _beginning(back: Mirror, facts: Facts, original: Facts | None, *, again: bool) -> Continuation | None:
    """Return where a partition of a remote topic begins; None: it has begun.

    ``original``: the partition that it was brought from; ``again``: an earlier return of it is over.
    """
    kept = borne_out(facts)
    brought = borne_out(original).records if original else ()
    end = max(brought[-1].target_end if brought else 0, facts.earliest)
    start = kept.last.source_end if kept.last else end
    has_begun = kept.last is not None and (start > end or (start == end and explained(kept.last) >= facts.target_end))
    if has_begun and kept.is_whole and not again:
        return None
    since = [each for each in brought if each.target_end > start]
    end = max(start, end)
    return continue_after(back, facts, kept, start=start, end=end, target_end=facts.target_end, reverse=since)


def planned_return(reverse: Opened, names: Mapping[str, str]) -> tuple[Neighbours, TopicPlan]:
    """Return what these topics need on the flow's target, as if they were not frozen. Raises ReturnRefused."""
    flow = replace(reverse.flow, returns={**reverse.flow.returns, **names})
    around = guard(reverse)
    planned = plan_topics(replace(reverse, flow=flow), around, frozen_too=True)
    if refused := [str(each) for each in planned.refused if each.topic in names]:
        raise ReturnRefused(reverse.flow.reverse_name, tuple(refused))
    into = set(names.values())
    return around, replace(
        planned,
        topics={topic: remote for topic, remote in planned.topics.items() if topic in names},
        create=tuple(each for each in planned.create if each.name in into),
        grow=tuple(each for each in planned.grow if each.name in into),
        refused=(),
        differences={},
        acls=(),
    )


def bring_about(reverse: Opened, names: Mapping[str, str], tell: Tell) -> None:
    """Make the internal topics of the flow, and the topics that records return to, where they are missing.

    Raises ReturnRefused, ReturnNotMade.
    """
    around, planned = planned_return(reverse, names)
    ensure_internal_topics(reverse.flow)
    if introduce(reverse.flow, around):
        guard(reverse)
    report = apply(reverse.flow, planned, tell)
    if report.errors:
        kind = ReturnNotMade if all(error.transient for error in report.errors) else ReturnRefused
        raise kind(reverse.flow.reverse_name, tuple(map(str, report.errors)))
