"""Writing to MirrorMaker 2's internal topics: what is not written yet, once, by one writer at a time (invariant B)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from confluent_kafka import KafkaException, Producer

from airmirror.clusters.admin import connect, describe, producer_config
from airmirror.clusters.appender import Appender
from airmirror.clusters.creation import create_topics
from airmirror.clusters.description import NewTopic
from airmirror.clusters.routes import Routes
from airmirror.config import Cluster, Flow
from airmirror.errors import AirmirrorError
from airmirror.windows.fence import claimed
from airmirror.windows.index import Index
from airmirror.windows.window import internal_topics

SECONDS = 30.0
# A segment of an hour: what is still written to is never compacted, and is read again by whoever has lost his ledger.
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "3600000"}


@dataclass(eq=False)
class RecordsNotWritten(AirmirrorError):
    """Offset syncs or checkpoints that a cluster did not take; the next run writes them."""

    transient: ClassVar[bool] = True

    cluster: str
    topic: str
    reason: str

    def __str__(self) -> str:
        return f"cluster {self.cluster!r}: nothing was written to {self.topic!r}: {self.reason}"


def ensure_topic(cluster: Cluster, topic: str, replicas: int) -> None:
    """Make a compacted topic of one partition where it is missing. Raises TopicCreationRefused."""
    admin = connect(cluster)
    if topic not in describe(admin).topics:
        for refused in create_topics(admin, [NewTopic(topic, 1, replicas, COMPACTED)], SECONDS).refused:
            raise refused


def write_anew(
    flow: Flow,
    index: Index,
    cluster: Cluster,
    topic: str,
    purpose: str,
    records: Callable[[], Sequence[tuple[bytes, bytes]]],
    *,
    window: str,
    tell: Callable[[str], None],
) -> int:
    """Write what ``records`` finds to be new, in one transaction; how many. Nothing new takes no claim.

    The claim is of the name ``window``, and the transactional id one of ``purpose``; it is initialised before ``records``
    is asked again, so that nobody else can have written in between. Raises FlowBusy, RecordsNotWritten.
    """
    if not records():
        return 0
    topics = internal_topics(flow)
    with (
        Routes(flow.target, f"airmirror|{flow.name}|{purpose}") as target,
        Appender(flow.target, topics.segments) as appender,
    ):
        target.refresh([topics.segments, topics.progress])
        with claimed(flow, window, 0, target, topics, index, appender):
            return write(flow, cluster, topic, purpose, records, tell)


def write(
    flow: Flow,
    cluster: Cluster,
    topic: str,
    purpose: str,
    records: Callable[[], Sequence[tuple[bytes, bytes]]],
    tell: Callable[[str], None],
) -> int:
    """The same under a claim that is held already. Raises RecordsNotWritten."""
    transactional_id = f"airmirror.{flow.source.alias}.{flow.target.alias}.{purpose}"
    producer = Producer(producer_config(cluster) | {"transactional.id": transactional_id})
    failed: list[str] = []
    arguments: dict[str, Any] = {
        "partition": 0,
        "on_delivery": lambda error, _message: failed.append(str(error)) if error else None,
    }
    try:
        producer.init_transactions(SECONDS)
        new = records()
        tell(f"writing {len(new)} records to {topic} on {cluster.alias}")
        producer.begin_transaction()
        for key, value in new:
            producer.produce(topic, key=key, value=value, **arguments)
            producer.poll(0)
        producer.commit_transaction(SECONDS)
    except (KafkaException, BufferError) as error:
        raise RecordsNotWritten(cluster.alias, topic, str(error)) from error
    if failed:
        raise RecordsNotWritten(cluster.alias, topic, failed[0])
    return len(new)
