"""A return that is armed while the flow is still open: all that could keep it from beginning is looked at and made before.

The record of it in the segment topic of the flow back has no account yet, so that no window copies anything of it. When the flow
is closed the return begins by ``begin_return``, in one transaction with its account: at the very record after the last one that
was brought, which the flow's own segments tell. That point is fixed by the closure, however late the return begins (invariant C).
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from airmirror.failback.pair import Pair, ReturnOrder, claim_name
from airmirror.failback.returning import bring_about, return_of, returnable
from airmirror.flows.closing import overtaking
from airmirror.flows.holds import check_decision
from airmirror.flows.prepare import catch_up_ledger, catch_up_soon
from airmirror.windows.opposite import armed, returning

Tell = Callable[[str], None]


def arm_return(pair: Pair, order: ReturnOrder, tell: Tell = lambda phase: None) -> list[str]:
    """Arm the return of remote topics that do not return yet; those that were armed now. Done again, nothing is written.

    Raises DecisionIncomplete, NothingReturns, ReturnRefused, FlowBusy, SlotFenced, or a cluster's error.
    """
    check_decision(pair.reverse.flow.name, order.reason, order.by)
    names = returnable(pair, order, open_too=True)
    tell("preparing the topics that records return to")
    bring_about(pair.reverse, names, tell)
    with overtaking(pair.reverse, claim_name(), tell) as granted:
        ledger = pair.reverse.ledger
        new = sorted(names.keys() - {**returning(ledger), **armed(ledger)}.keys())
        records = [return_of(topic, names[topic], "", order) for topic in new]
        granted.check()
        if records:
            granted.appender.append([(each.encode_key(), each.encode_value()) for each in records])
    catch_up_ledger(pair.reverse)
    return new


def armed_now(pair: Pair, topics: Collection[str]) -> list[str]:
    """Return the remote topics whose return is armed, of these topics of the source."""
    catch_up_soon(pair.reverse)
    return sorted(remote for remote, topic in armed(pair.reverse.ledger).items() if topic in topics)
