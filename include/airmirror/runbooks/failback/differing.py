"""Records that are not on both sides as they were copied: found one by one, and left out of the account where people accept it.

Nothing is altered on either side: they stay where they are, no position is translated to them, and each is counted as lost in
the account of the flow (invariants C, E and G). Which they are is written to the mapping topic with the decision.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from airmirror.flows.freezing import overtaking, taken
from airmirror.flows.prepare import Opened, catch_up_ledger, catch_up_soon
from airmirror.ledger import FlowLedger
from airmirror.runbooks.errors import RunbookError
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import lease_name
from airmirror.tell import Tell, silent
from airmirror.windows import resetting
from airmirror.windows.fence import GrantedLease
from airmirror.windows.judging import no_objection, verify_committed
from airmirror.windows.losses import losses
from airmirror.windows.mirror import Mirror
from airmirror.windows.resets import Choice, Reset
from airmirror.wire.mappings import ResetRecord
from airmirror.wire.moves import FAILBACK


class ReturnDiffers(RunbookError):
    """Records that were replicated or returned, and differ between both sides: the flow stays frozen."""

    topics: tuple[str, ...]  # that the order names: for them alone a loss is accepted
    says = (
        "it stays frozen: not all is equal on both sides; {airmirror:failback run --accept-loss --reason …} lists every record "
        "that differs; {airmirror:failback run --accept-loss --reason … --yes} leaves them as they are on both sides, in no "
        "account, and continues"
    )


def settle(forward: Opened, topics: Collection[str], order: FailbackOrder, tell: Tell = silent) -> None:
    """Prove all that was replicated of ``topics`` of the source, but what differs, which is accepted. Raises ReturnDiffers,
    FlowBusy, SlotFenced, or a cluster's error."""
    with (
        Mirror.open(forward.flow, forward.ledger, "return") as mirror,
        overtaking(forward, lease_name(), tell) as granted,
    ):
        mirror.refresh()
        prove(mirror, granted, topics, order, tell)
    catch_up_ledger(forward)


def prove(
    mirror: Mirror,
    granted: GrantedLease,
    topics: Collection[str],
    order: FailbackOrder,
    tell: Tell = silent,
) -> None:
    """Judge what no gate has let pass yet of ``topics``, under the flow's lease; if the order accepts it, without what differs.

    What a gate holds of other topics, it holds still. Raises ReturnDiffers, a cluster's error, SlotFenced.
    """
    tell("comparing what was replicated and what returned, record by record")
    if order.accept and (found := _differing(mirror, topics)):
        resetting.commit(granted, found, by=order.by.strip(), reason=order.reason.strip())
        mirror.catch_up()
    others = {each.key for each in mirror.index.unverified() if each.topic not in topics}
    verification = verify_committed(mirror, granted, no_objection if order.accept else None, trusted=(), left=others)
    there = set(topics) - mirror.source.refresh_existing(topics).keys()  # of the others all returns
    wrong = [each.error for each in verification.verdicts if each.error is not None and each.topic in there]
    if unreadable := next((error for error in wrong if error.transient), None):
        raise unreadable
    if wrong:
        raise ReturnDiffers(mirror.flow.name, tuple(map(str, wrong)), order.topics)


def differing(forward: Opened, topics: Collection[str]) -> list[Reset]:
    """Return which records differ of what no gate has let pass, a partition each, with its runs; nothing is written but the
    ledger. ``topics``: none: for the whole flow. Raises what reading a log does."""
    catch_up_soon(forward)
    if not forward.ledger.unverified():
        return []
    with Mirror.open(forward.flow, forward.ledger, "return") as mirror:
        mirror.refresh()
        found = {each.topic for each in mirror.index.unverified()}
        return _differing(mirror, taken(forward.flow, mirror.index.owners(), found, topics))


def accepted(forward: Opened) -> list[ResetRecord]:
    """Return what was accepted since the flow, or the topic, was frozen last, by the ledger, which has caught up."""
    return [
        each
        for frozen, topics in freezes(forward.ledger).items()
        for each in forward.ledger.of_kind(ResetRecord, frozen)
        if each.topic in topics and each.choice == Choice.ACCEPT_LOSS and each.window.startswith(FAILBACK)
    ]


def freezes(ledger: FlowLedger) -> dict[int, set[str]]:
    """Return the topics of the flow's account by the offset of the mapping topic at which each, or the flow, was frozen last; -1:
    never. What was written since lies after it, whatever clocks say."""
    owners, found = ledger.owners(), defaultdict[int, set[str]](set)
    for topic, _ in ledger.last_mappings():
        record = owners.record(topic)
        found[record.frozen_offset if record else -1].add(topic)
    return found


def _differing(mirror: Mirror, topics: Collection[str]) -> list[Reset]:
    missing = mirror.source.refresh_existing(topics)
    chosen = [each for each in mirror.index.unverified() if each.topic in topics and each.topic not in missing]
    return losses(mirror, chosen, {each.topic: each.remote_topic for each in chosen})
