"""A rule for the proxy: fetches are answered without the records that are there, as a broker does whose remote store is slow.

Internal topics are compacted, have no remote store (KIP-405), and are answered as ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Event
from uuid import UUID

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster
from airmirror.wire.primitives import unsigned_varint
from airmirror.wire.requests import FETCH, FETCH_VERSIONS, decode_fetch
from airmirror_local.brokers import Broker
from airmirror_local.proxy import Exchange

SECONDS = 60.0  # for a broker that starts again


class _Names(dict[UUID, str]):
    """Every topic's id is its name here."""

    def __missing__(self, key: UUID) -> str:
        return str(key)


def of_data(broker: Broker) -> frozenset[str]:
    """The names and the ids of the topics that a broker may keep in a remote store. Another fault may have killed it just now."""
    patiently = Retrying(
        retry=retry_if_exception_type(BrokerUnreachable),
        stop=stop_after_delay(SECONDS),
        wait=wait_fixed(0.2),
        reraise=True,
    )
    with Routes(Cluster("one", (broker.bootstrap,), {}), "withheld") as routes:
        patiently(routes.refresh, None)
        ids = routes.topic_ids
    data = {name: id_ for name, id_ in ids.items() if not name.endswith(".internal") and not name.startswith("__")}
    return frozenset(data) | {str(id_) for id_ in data.values()}


@dataclass
class Withheld:
    """``topics``: whose records are withheld; ``happened``: how many answers came without them (KIP-405)."""

    topics: frozenset[str]
    happened: int = 0
    begun: Event = field(default_factory=Event)

    def __call__(self, exchange: Exchange, frame: bytes) -> bytes:
        if exchange.api_key != FETCH or not FETCH_VERSIONS[0] <= exchange.api_version <= FETCH_VERSIONS[1]:
            return frame
        _, partitions = decode_fetch(exchange.api_version, memoryview(frame), _Names())
        withheld = (part for key, part in partitions.items() if key.topic in self.topics and part.start < part.end)
        found = sorted(withheld, key=lambda part: -part.start)
        for part in found:
            length = len(unsigned_varint(part.end - part.start + 1))
            frame = frame[: part.start - length] + b"\1" + frame[part.end :]
        if found:
            self.happened += 1
            self.begun.set()
        return frame
