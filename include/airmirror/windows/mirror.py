"""One session at a flow's clusters: its journal (its internal topics on the target, and what is known of them) and its source.

The internal topics of the reverse flow lie on this flow's source, and the same ledger knows them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.ledger.state import State
from airmirror.windows.errors import EqualClusterIds, SameCluster
from airmirror.windows.index import InternalTopics, catch_up, current_state


@dataclass(frozen=True)
class Journal:
    """A flow's internal topics, on its target. ``index``: the flow's part of the ledger, which mirrors them."""

    flow: Flow
    target: Routes
    topics: InternalTopics
    index: FlowLedger

    @classmethod
    @contextmanager
    def open(cls, flow: Flow, index: FlowLedger, purpose: str) -> Iterator[Journal]:
        """Connect to nothing yet. ``purpose``: a part of the client id."""
        with Routes(flow.target, _client(flow, purpose)) as target:
            yield Journal(flow, target, InternalTopics.of(flow.source.alias), index)

    def catch_up(self, patience: float = 60.0) -> None:
        """Read what is new into the index. Raises what ``index.catch_up`` raises."""
        catch_up(self.target, self.index, self.flow.source.alias, patience)

    def current_state(self, patience: float = 60.0) -> State:
        """The same; what the index knows then."""
        return current_state(self.target, self.index, self.flow.source.alias, patience)

    def seen(self) -> int:
        """The end of the mapping topic as the index has read it."""
        mappings = self.topics.mappings
        return self.index.scanned(mappings, self.target.topic_ids[mappings]).get(0, 0)


@dataclass(frozen=True)
class Mirror(Journal):
    """Both clusters of a flow."""

    source: Routes

    @classmethod
    @contextmanager
    def open(cls, flow: Flow, index: FlowLedger, purpose: str = "") -> Iterator[Mirror]:
        """Connect to nothing yet. ``purpose``: a part of the client id; windows have none."""
        client = _client(flow, purpose)
        with Routes(flow.source, client) as source, Routes(flow.target, client) as target:
            yield Mirror(flow, target, InternalTopics.of(flow.source.alias), index, source)

    def refresh(self) -> None:
        """Read the ids and brokers of both clusters. Raises BrokerUnreachable."""
        self.source.refresh([])
        self.target.refresh([])


def _client(flow: Flow, purpose: str) -> str:
    return "|".join(["airmirror", flow.name, *filter(None, [purpose])])


@contextmanager
def two_clusters(flow: Flow, index: FlowLedger, purpose: str = "") -> Iterator[Mirror]:
    """A session at both clusters. Raises SameCluster, or EqualClusterIds where only the ids are equal; BrokerUnreachable.

    Equal ids with different brokers are one cluster behind two listeners, or two clusters formatted with one id, as
    copied quick starts do: only the user can tell.
    """
    with Mirror.open(flow, index, purpose) as mirror:
        mirror.refresh()
        source, target = mirror.source, mirror.target
        if source.cluster_id == target.cluster_id:
            ends = (flow.name, source.cluster_id, source.alias, target.alias)
            if common := source.endpoints & target.endpoints:
                raise SameCluster(*ends, ", ".join(sorted(common)))
            if not flow.settings.equal_cluster_ids_allowed:
                raise EqualClusterIds(*ends, ", ".join(sorted(source.endpoints)), ", ".join(sorted(target.endpoints)))
        yield mirror


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
