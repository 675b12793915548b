"""Writing to MirrorMaker 2's internal topics: what is not written yet, once, by one writer at a time (invariant B)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from airmirror.clusters.admin.client import AccessDenied, is_denial, producer
from airmirror.clusters.admin.creation import ensure_topic
from airmirror.clusters.looking import look_again
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotDescribed
from airmirror.config import Cluster, Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger import FlowLedger
from airmirror.partitions import TopicPartition
from airmirror.tell import Tell
from airmirror.topics.internal import ensure_internal_topics
from airmirror.windows.fence import HeldLease, leased
from airmirror.windows.index import load_tail, scanned_of
from airmirror.windows.mirror import Journal
from airmirror.wire.fields import Declared

SECONDS = 30.0
# A segment of an hour: what is still written to is never compacted, and is read again by whoever has lost his ledger.
COMPACTED = {"cleanup.policy": "compact", "segment.ms": "3600000"}


class RecordsNotWritten(AirmirrorError, transient=True):
    """Offset syncs or checkpoints that a cluster did not take; the next run writes them."""

    says = "cluster {0.cluster!r}: nothing was written to {0.topic!r}: {0.reason}"
    cluster: str
    topic: str
    reason: str


def load_written(routes: Routes, topic: str, ledger: FlowLedger, kind: str, *, patience: float = 0.0) -> None:
    """Read what is new of a topic, up to its last stable offset, into the ledger: what is in the topic counts. ``kind``: as
    ``FlowLedger.load`` has it. ``patience``: the seconds that an open transaction is waited for, as that of another writer whose
    commit is answered and whose marker is not written yet."""
    routes.refresh([topic])
    log, topic_id = TopicPartition(topic, 0), routes.topic_ids[topic]
    if patience:
        look_again(lambda: _is_open(routes, log), patience)
    end = offsets_with_patience(routes, [log], LATEST, read_committed=True)[log]
    start = scanned_of(routes, ledger, {log: end}).get(log, 0)
    load_tail(routes, log, start, end, partial(ledger.load, topic, topic_id, kind=kind))


def _is_open(routes: Routes, log: TopicPartition) -> bool:
    stable, end = (offsets_with_patience(routes, [log], LATEST, read_committed=each)[log] for each in (True, False))
    return stable < end


@dataclass(frozen=True)
class Destination:
    """A topic of MirrorMaker 2's that a flow writes to. ``purpose``: a part of the client id, of the transactional id
    and of the topic's keys."""

    flow: Flow
    cluster: Cluster
    topic: str
    purpose: str

    @property
    def transactional_id(self) -> str:
        return f"airmirror.{self.flow.source.alias}.{self.flow.target.alias}.{self.purpose}"

    def ensure(self, routes: Routes, replicas: int) -> None:
        """Make the topic where it is missing. Raises TopicCreationRefused, or TopicNotDescribed: it may be there, for others."""
        for missing in routes.refresh_existing([self.topic]).values():
            if isinstance(missing, TopicNotDescribed):
                raise missing
            ensure_topic(self.cluster, self.topic, replicas, COMPACTED, f"{self.purpose}.topic.replication.factor")


Records = Callable[[], Sequence[Declared]]


def write_anew(
    into: Destination, ledger: FlowLedger, records: Records, *, window: str, tell: Tell, under: HeldLease | None
) -> int:
    """Write what ``records`` finds to be new, in one transaction; how many. Nothing new takes no lease.

    The lease is of the name ``window``; the destination's transactional id is initialised before ``records`` is asked
    again, so that no other writer can have written in between; what others did before, a reset too, is in the ledger then.
    ``under``: a lease that is held already, and no other is taken. Raises FlowBusy, RecordsNotWritten, SlotFenced.
    """
    if not records():
        return 0
    if under is not None:
        return write(into, records, held=under.check, tell=tell)
    ensure_internal_topics(into.flow)  # a reverse flow may never have had anything to replicate
    with Journal.open(into.flow, ledger, into.purpose) as journal, leased(journal, window, slots=0) as granted:
        journal.catch_up()
        return write(into, records, held=granted.check, tell=tell)


def write(into: Destination, records: Records, *, held: Callable[[], None], tell: Tell) -> int:
    """The same under a lease that is held already: ``held`` raises where it is another's by now (invariant B).

    Raises RecordsNotWritten, AccessDenied, and what ``held`` does.
    """
    cluster, topic = into.cluster, into.topic
    demanded = {"transactional.id": into.transactional_id, "acks": "all", "enable.idempotence": True}
    writer = producer(cluster, demanded)
    failed: list[KafkaError] = []
    arguments: dict[str, Any] = {
        "partition": 0,
        "on_delivery": lambda error, _message: failed.append(error) if error else None,
    }
    try:
        writer.init_transactions(SECONDS)
        held()
        new = [(each.encode_key(), each.encode_value()) for each in records()]
        tell(f"writing {len(new)} records to {topic} on {cluster.alias}")
        writer.begin_transaction()
        for key, value in new:
            writer.produce(topic, key=key, value=value, **arguments)
            writer.poll(0)
        writer.commit_transaction(SECONDS)
    except BufferError as error:
        raise RecordsNotWritten(cluster.alias, topic, str(error)) from error
    except KafkaException as error:
        raise _not_written(into, [*failed, error.args[0]]) from error
    if failed:
        raise _not_written(into, failed)
    return len(new)


def _not_written(into: Destination, failed: Sequence[KafkaError]) -> AirmirrorError:
    """The error of a transaction in which these went wrong: what is denied is so at the next try."""
    cluster, topic = into.cluster, into.topic
    if denied := next(filter(is_denial, failed), None):
        servers = ",".join(cluster.bootstrap_servers)
        return AccessDenied(cluster.alias, servers, f"{denied.str()}: records for {topic!r}")
    return RecordsNotWritten(cluster.alias, topic, str(failed[0]))
