"""The flow in the opposite direction, as the same ledger knows it: its internal topics lie on this flow's source."""

from __future__ import annotations

from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.windows.index import InternalTopics, catch_up
from airmirror.wire.closures import Return


def opposite_of(flow: Flow, ledger: FlowLedger) -> FlowLedger:
    """The ledger's part of the flow from the target to the source."""
    return ledger.beside(flow.opposite)


def caught_up_opposite(source: Routes, flow: Flow, ledger: FlowLedger) -> FlowLedger | None:
    """The same when it has read what is new on the flow's source; None: there has been no such flow.

    Raises what ``catch_up`` does.
    """
    found = opposite_of(flow, ledger)
    return found if catch_up_if_there(source, found, flow.target.alias) else None


def catch_up_if_there(routes: Routes, ledger: FlowLedger, alias: str) -> bool:
    """Read what is new of the flow from ``alias`` on this cluster into its ledger; whether there has been such a flow."""
    try:
        catch_up(routes, ledger, alias)
    except TopicNotFound as missing:
        internal = InternalTopics.of(alias)
        if missing.topic not in (internal.segments, internal.progress):
            raise
        return False
    return True


def returning(ledger: FlowLedger) -> dict[str, str]:
    """The topics that return by a flow now, each with where to, as far as its ledger knows; those that are only armed do not."""
    return {each.topic: each.into for each in ledger.of_kind(Return) if not each.is_armed}


def armed(ledger: FlowLedger) -> dict[str, str]:
    """The topics that are to return by a flow when the one that brings them is closed, each with where to."""
    return {each.topic: each.into for each in ledger.of_kind(Return) if each.is_armed}
