"""Freeze and unfreeze a flow or topics of it; ``overtaking``: the lease taken and the transactional ids fenced, for procedures.

No window of any deployment writes to what is frozen. Both are records of who owns topics (``wire.owners``). They are committed
under a lease of its own, which ends any window that runs, as a later window would, after a fence, and in a transaction that the
next lease's fence would end (invariant B). So each window either came before, and commits nothing after them; or it takes the
lease later, fences, and finds them. Mappings stay as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager

from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.errors import LastStableOffsetStuck
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.errors import AirmirrorError, command
from airmirror.errors import named as all_named
from airmirror.flows.holds import check_decision
from airmirror.flows.prepare import Opened, catch_up_ledger, catch_up_soon
from airmirror.flows.resuming import check_none_uncounted, resume_after_rescues
from airmirror.ledger import FlowLedger
from airmirror.partitions import TopicPartition
from airmirror.slot.internal_records import KeyValue
from airmirror.tell import Tell, silent
from airmirror.topics.internal import ensure_internal_topics
from airmirror.topics.names import policy_of, select
from airmirror.windows import driver
from airmirror.windows.errors import FlowBusy, FlowFrozen, unfreeze_command
from airmirror.windows.fence import GrantedLease, end_window, fence_around, leased, new_window
from airmirror.windows.mirror import Journal, caught_up_reverse, reverse_ledger
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import WHOLE, Change, OrderScope, Owner, Owners, Ownership, Signed, changed, named

ENDING_SECONDS = 60.0  # for windows that come in between, again and again


class NotFrozen(AirmirrorError, bad_input=True):
    """Topics to unfreeze that are not frozen, or that only the whole flow keeps frozen."""

    flow: str
    topics: tuple[str, ...]
    frozen: tuple[str, ...]

    def __str__(self) -> str:
        if WHOLE in self.frozen:
            return f"flow {self.flow!r}: the whole flow is frozen; unfreeze it: {unfreeze_command(self.flow)}"
        which = ", ".join(self.topics) or "the flow"
        return f"flow {self.flow!r}: not frozen: {which} (frozen topics: {all_named(self.frozen) or 'none'})"


class NoSuchTopic(AirmirrorError, bad_input=True):
    """Topics to freeze of which the flow has replicated nothing."""

    flow: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f"flow {self.flow!r} has replicated nothing of {', '.join(self.topics)}: nothing was frozen"


class StillReturning(AirmirrorError):
    """Topics to unfreeze, or to hand back, that return by the reverse flow: their records would go round for ever."""

    flow: str
    topics: tuple[str, ...]
    named: tuple[str, ...]  # by the order; none: it is for the flow

    def __str__(self) -> str:
        finish = command("failback", "run", "--reason", "…", "--yes", flow=self.flow, topics=self.named)
        return f"flow {self.flow!r}: {', '.join(self.topics)} return to its source; finish that first: {finish}"


def owners_now(opened: Opened) -> Owners:
    """Return who owns which topic now, read from the mapping topic."""
    catch_up_soon(opened)
    return opened.ledger.owners()


def taken(flow: Flow, owners: Owners, among: Collection[str], topics: Collection[str] = ()) -> set[str]:
    """Return which of the source's topics ``among`` an order for ``topics`` takes; none: for the whole flow, which takes
    what it replicates by now (what is excluded since it does not), and nothing that another order has named, or that heartbeats
    are written to: they never end."""
    if topics:
        return {*topics} & {*among}
    beats = policy_of(flow).is_heartbeats_topic
    return {topic for topic in select(flow, among) if not owners.is_apart(topic) and not beats(topic)}


def check_open(opened: Opened, topics: Collection[str] = (WHOLE,)) -> None:
    """Raise FlowFrozen where an order for the whole flow keeps it, or one of ``topics``, frozen."""
    owners = owners_now(opened)
    for topic in topics:
        if (freeze := owners.why_frozen(topic)) and not owners.is_apart(topic):
            raise FlowFrozen(opened.flow.name, freeze.by, freeze.time_ms, freeze.reason)


def to_freeze(opened: Opened, topics: Collection[str], *, empty_too: bool = False) -> list[str]:
    """Return what ``freeze`` would freeze of ``topics`` (empty: the flow) and is not frozen yet. Raises NoSuchTopic."""
    there = owners_now(opened)
    known = {topic for topic, _ in opened.ledger.state().known}
    strangers = [] if empty_too else sorted(set(topics) - known)
    if strangers:
        raise NoSuchTopic(opened.flow.name, tuple(strangers))
    return [topic for topic in named(there, topics) if there.owner(topic) is Owner.SOURCE]


def freeze(
    opened: Opened,
    topics: Collection[str],
    *,
    reason: str,
    by: str,
    purpose: str = "freeze",
    last: Callable[[], None] = lambda: None,
    empty_too: bool = False,
    tell: Tell = silent,
) -> list[Ownership]:
    """Freeze a flow (no ``topics``), or some of its source's topics; what was frozen, nothing where it was before.

    Whatever window is at work ends as fenced; in any case no window writes for the flow when this returns. Only the target is
    asked. ``purpose``: names the lease; ``last``: asked when no window writes any more, what it raises keeps the flow as it
    is; ``empty_too``: topics of which the flow has replicated nothing yet too, else they are taken for a mistake. Raises
    DecisionIncomplete, NoSuchTopic, FlowBusy, FenceStuck.
    """
    check_decision(opened.flow.name, reason, by)
    ensure_internal_topics(opened.flow)
    to_freeze(opened, topics, empty_too=empty_too)
    with overtaking(opened, new_window(purpose), tell) as granted:
        last()
        found = commit_change(granted, Change.FREEZE, topics, reason=reason, by=by)
    catch_up_ledger(opened)
    return found


def unfreeze(
    opened: Opened,
    topics: Collection[str],
    *,
    reason: str,
    by: str,
    last: Callable[[], None] = lambda: None,
    tell: Tell = silent,
) -> list[Ownership]:
    """Unfreeze what was frozen: the flow (no ``topics``), but what was frozen by name, or some topics. Mappings are
    as they were: nothing is lost or copied twice, what was rescued neither. Groups stay where a failover has moved them: where
    they stood before is forgotten. ``last``: asked under the lease, what it raises keeps the flow frozen.
    Raises DecisionIncomplete, NotFrozen, StillReturning, ReturnNotFinished, FlowBusy.
    """
    check_decision(opened.flow.name, reason, by)
    to_unfreeze(opened, topics)
    check_nothing_returns(opened, topics)
    with overtaking(opened, new_window("unfreeze"), tell) as granted:
        check_nothing_returns(opened, topics)  # a return may have begun since
        last()
        resume_after_rescues(opened, granted, by=by, reason=reason, topics=topics, tell=tell)
        to_unfreeze(opened, topics)
        moves = [(each.encode_key(), None) for each in failed_over(opened.ledger, topics)]
        found = commit_change(granted, Change.UNFREEZE, topics, reason=reason, by=by, more=moves)
    catch_up_ledger(opened)
    return found


def failed_over(ledger: FlowLedger, topics: Collection[str] = ()) -> list[GroupMove]:
    """Return where groups stood before a failover, of ``topics`` of the source (none: of all). The ledger has caught up."""
    remote = {each.remote_topic for each in ledger.last_mappings().values() if each.topic in topics}
    moves = (each for each in ledger.of_kind(GroupMove) if each.is_failovers)
    return [each for each in moves if not topics or each.topic in remote]


def check_nothing_returns(opened: Opened, topics: Collection[str] = ()) -> None:
    """Raise what keeps the flow frozen: StillReturning where ``topics`` (none: any) return by the reverse flow; ReturnNotFinished
    where some have returned that it has no account of, as far as the source can be reached."""
    flow = opened.flow
    check_none_returns(opened, topics)
    try:
        with Routes(flow.source, f"airmirror|{flow.name}|unfreeze") as source:
            if reverse := caught_up_reverse(source, flow, opened.ledger):
                check_none_uncounted(flow, opened.ledger, reverse, source, topics)
    except (BrokerUnreachable, LastStableOffsetStuck):
        check_none_uncounted(flow, opened.ledger, reverse_ledger(flow, opened.ledger), None, topics)


def check_none_returns(opened: Opened, topics: Collection[str] = ()) -> None:
    """Raise StillReturning where ``topics`` return, none: where the flow does, but for what another order has named."""
    if found := tuple(sorted(owners_now(opened).returning_by(topics).values())):
        raise StillReturning(opened.flow.name, found, found if topics else ())


def to_unfreeze(opened: Opened, topics: Collection[str]) -> list[str]:
    """Return what ``unfreeze`` would unfreeze. Raises NotFrozen."""
    there = owners_now(opened)
    strangers = sorted(topic for topic in topics if there.owner(topic) is Owner.SOURCE)
    found = [topic for topic in named(there, topics) if there.owner(topic) is Owner.TARGET]
    if strangers or not found:
        raise NotFrozen(opened.flow.name, tuple(strangers), tuple(sorted(there.frozen)))
    return found


@contextmanager
def overtaking(opened: Opened, window: str, tell: Tell = silent) -> Iterator[GrantedLease]:
    """Hold the flow's lease, whoever has it now: his window is ended from outside. Every id is fenced, the index caught up.

    Raises FlowBusy where others take it again and again, FenceStuck, or a cluster's error.
    """
    flow, index = opened.flow, opened.ledger
    with Journal.open(flow, index, "freeze") as journal, ExitStack() as stack:
        ends = time.monotonic() + ENDING_SECONDS
        while True:
            try:
                granted = stack.enter_context(leased(journal, window, slots=1, frozen_too=True))
                break
            except FlowBusy as busy:
                if time.monotonic() > ends:
                    raise
                tell(f"ending window {busy.window} of {busy.owner}")
                end_window(flow, index, busy.window)
        tell("fencing what earlier windows may have left")
        fence_around(granted, 1)
        journal.catch_up()
        yield granted


def commit_change(
    granted: GrantedLease,
    change: Change,
    topics: Collection[str],
    *,
    reason: str,
    by: str,
    which: Collection[str] | None = None,
    remote: Mapping[str, str] | None = None,
    more: Sequence[KeyValue] = (),
) -> list[Ownership]:
    """Commit who owns what an order for ``topics`` names from now on, with ``more`` records of the mapping topic; what was
    written. ``which``: topics in its place; ``remote``: as ``wire.owners.changed`` has it. The lease's ids are fenced.

    Raises SlotFenced where the lease is another's by now: then nothing was written, or the next one's fence has ended it.
    """
    granted.journal.catch_up()
    owners = granted.owners
    signed = Signed(granted.lease.window, granted.offset, int(time.time() * 1000), reason, by)
    chosen, scope = named(owners, topics) if which is None else which, OrderScope.TOPIC if topics else OrderScope.FLOW
    found = changed(owners, change, chosen, signed, scope=scope, remote=remote)
    entries = [*more, *((each.encode_key(), each.encode_value()) for each in found)]
    if entries:
        log = TopicPartition(granted.journal.topics.mappings, 0)
        driver.commit(granted, {log: entries}, fence_around(granted, 1).numbers[0])
        granted.journal.catch_up()
    return found
