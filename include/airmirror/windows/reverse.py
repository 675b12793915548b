"""The reverse flow, as the same ledger knows it: its internal topics lie on this flow's source."""

from __future__ import annotations

from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.windows.index import InternalTopics, catch_up


def reverse_ledger(flow: Flow, ledger: FlowLedger) -> FlowLedger:
    """The ledger's part of the flow from the target to the source."""
    return ledger.other(flow.reverse_name)


def caught_up_reverse(source: Routes, flow: Flow, ledger: FlowLedger, patience: float = 60.0) -> FlowLedger | None:
    """The same when it has read what is new on the flow's source; None: there has been no such flow.

    Raises what ``catch_up`` does.
    """
    found = reverse_ledger(flow, ledger)
    return found if catch_up_if_there(source, found, flow.target.alias, patience) else None


def catch_up_if_there(routes: Routes, ledger: FlowLedger, alias: str, patience: float = 60.0) -> bool:
    """Read what is new of the flow from ``alias`` on this cluster into its ledger; whether there has been such a flow."""
    try:
        catch_up(routes, ledger, alias, patience)
    except TopicNotFound as missing:
        internal = InternalTopics.of(alias)
        if missing.topic not in (internal.mappings, internal.progress):
            raise
        return False
    return True


def returns_of(flow: Flow, ledger: FlowLedger) -> dict[str, str]:
    """The topics that return by a flow, each with where to, as far as the ledger knows: the flow that brought them says so."""
    return reverse_ledger(flow, ledger).owners().returning()
