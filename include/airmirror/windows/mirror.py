"""One session at a flow's clusters: its journal (its internal topics on the target, and what is known of them) and its source."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.ledger.state import State
from airmirror.windows.index import InternalTopics, catch_up


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

    def catch_up(self, patience: float = 60.0) -> State:
        """Read what is new into the index; what it knows then. Raises what ``index.catch_up`` raises."""
        return catch_up(self.target, self.index, self.flow.source.alias, patience)

    def seen(self) -> int:
        """The end of the segment topic as the index has read it."""
        segments = self.topics.segments
        return self.index.scanned(segments, self.target.topic_ids[segments]).get(0, 0)


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
