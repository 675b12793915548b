"""The ``heartbeats`` topic of a cluster, which only one test at a time may have: flows of other tests would replicate it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airmirror_local.brokers import Broker
from support.topics import admin, delete_topic


@contextmanager
def heartbeats_deleted(*clusters: Broker) -> Iterator[None]:
    """Deletes, at the end, the heartbeats topics of these clusters, their own and the replicated ones."""
    try:
        yield
    finally:
        for cluster in clusters:
            for name in list(admin(cluster).list_topics(timeout=30).topics):
                if name.rpartition(".")[2] == "heartbeats":
                    delete_topic(cluster, name)
