"""Producers that a cluster knows: who writes to partitions (DescribeProducers), and under which transactional ids.

A partition's leader remembers idempotent and transactional producers for ``producer.id.expiration.ms`` (a day) after their
last record; those without idempotence (``enable.idempotence=false``) are not remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from kafka.protocol.admin import DescribeProducersRequest, ListTransactionsRequest
from kafka.protocol.admin.transactions import DescribeTransactionsRequest

from airmirror.clusters.protocol.asking import PATIENCE_SECONDS, ask_each, ask_leaders, ask_node, each_partition
from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.errors import PartitionMoved, error_name
from airmirror.clusters.protocol.log import MOVED
from airmirror.clusters.protocol.routes import Routes
from airmirror.partitions import TopicPartition, grouped

DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
AT_ONCE = 1_000  # partitions, or transactional ids, of a request
_UNDER_WAY = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})


@dataclass(frozen=True)
class ActiveProducer:
    """A producer that a partition's leader remembers. ``last_ms``: its last record's timestamp, epoch milliseconds.

    ``open_from``: the first offset of its open transaction, -1 for none.
    """

    partition: TopicPartition
    producer_id: int
    epoch: int
    last_sequence: int
    last_ms: int
    open_from: int


@dataclass(frozen=True)
class KnownTransaction:
    """A transactional id, its producer, and the state of its last transaction; ``partitions`` while that is under way."""

    transactional_id: str
    producer_id: int
    state: str
    partitions: tuple[TopicPartition, ...] = ()


@dataclass
class Producers:
    """Those of many partitions; ``unknown``: Kafka's error for each partition whose producers may not be seen."""

    found: list[ActiveProducer] = field(default_factory=list)
    unknown: dict[TopicPartition, str] = field(default_factory=dict)


def active_producers(routes: Routes, partitions: Collection[TopicPartition]) -> Producers:
    """The producers of partitions (of refreshed topics) that have a leader: a thousand partitions a request.

    Raises PartitionMoved, LeaderNotAvailable, BrokerUnreachable, UnsupportedBroker.
    """
    producers = Producers()
    left = set(partitions)

    def ask() -> None:
        for node, keys in grouped((routes.leader(key).node, key) for key in sorted(left)).items():
            left.difference_update(_take(routes, node, keys, producers))

    ask_leaders(routes, left, ask, PATIENCE_SECONDS)
    return producers


def _take(routes: Routes, node: int, keys: Sequence[TopicPartition], into: Producers) -> set[TopicPartition]:
    """Ask one leader; return what it has answered for."""
    done: set[TopicPartition] = set()
    requests, versions = map(_describe, _parts(keys)), (DESCRIBE_PRODUCERS, 0, 0, "DescribeProducers")
    for answer in ask_node(routes, node, requests, versions, most=4):
        for key, item in each_partition(answer.topics):
            if item.error_code in MOVED:
                raise PartitionMoved(routes.alias, key, error_name(item.error_code))
            if item.error_code:
                into.unknown[key] = error_name(item.error_code)
            elif key not in done:
                into.found += [_producer(key, each) for each in item.active_producers]
            done.add(key)
    return done


def _producer(key: TopicPartition, each: Any) -> ActiveProducer:
    return ActiveProducer(
        partition=key,
        producer_id=each.producer_id,
        epoch=each.producer_epoch,
        last_sequence=each.last_sequence,
        last_ms=each.last_timestamp,
        open_from=each.current_txn_start_offset,
    )


def _describe(keys: Sequence[TopicPartition]) -> DescribeProducersRequest:
    of_topic = DescribeProducersRequest.TopicRequest
    return DescribeProducersRequest(
        topics=[of_topic(name=topic, partition_indexes=its) for topic, its in grouped(keys).items()]
    )


def known_transactions(routes: Routes) -> list[KnownTransaction]:
    """Every transactional id that this user may describe, by name; a coordinator that still loads its part is asked again.

    Raises BrokerUnreachable, UnsupportedBroker.
    """
    found: dict[str, KnownTransaction] = {}
    for of_node in ask_each(routes, partial(_listed, routes)):
        found |= of_node
    return sorted(found.values(), key=lambda each: each.transactional_id)


def transactions_at(routes: Routes, node: int, states: Sequence[str] = (), producers: Collection[int] = ()) -> Any:
    """A coordinator's answer with its transactions, by default of any state and producer. It has an ``error_code`` while it loads
    its part of the log, or where it is no coordinator any more. Raises BrokerUnreachable, UnsupportedBroker."""
    request = ListTransactionsRequest(
        state_filters=list(states), producer_id_filters=sorted(producers), duration_filter=-1
    )
    [answer] = ask_node(routes, node, [request], (LIST_TRANSACTIONS, 0, 1, "ListTransactions"))
    return answer


def _listed(routes: Routes, node: int) -> dict[str, KnownTransaction]:
    answer = transactions_at(routes, node)
    if answer.error_code:
        raise BrokerUnreachable(routes.alias, f"node {node}", error_name(answer.error_code))
    found = {
        each.transactional_id: KnownTransaction(each.transactional_id, each.producer_id, each.transaction_state)
        for each in answer.transaction_states
    }
    open_ = sorted(name for name, each in found.items() if each.state in _UNDER_WAY)
    requests = (DescribeTransactionsRequest(transactional_ids=list(part)) for part in _parts(open_))
    versions = (DESCRIBE_TRANSACTIONS, 0, 0, "DescribeTransactions")
    for described in ask_node(routes, node, requests, versions, most=4):
        for each in described.transaction_states:
            if each.error_code:  # it has ended meanwhile, or its coordinator has moved
                continue
            partitions = [TopicPartition(topic.topic, number) for topic in each.topics for number in topic.partitions]
            found[each.transactional_id] = KnownTransaction(
                each.transactional_id, each.producer_id, each.transaction_state, tuple(sorted(partitions))
            )
    return found


def producers_by_id(known: Collection[KnownTransaction]) -> Mapping[int, str]:
    return {each.producer_id: each.transactional_id for each in known}


def _parts(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))
