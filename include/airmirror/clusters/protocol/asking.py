"""Questions to the nodes of a cluster. A connection that fails is closed: who asks again opens another one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.errors import PartitionMoved
from airmirror.clusters.protocol.routes import LeaderNotAvailable, Routes, patiently
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition

PATIENCE_SECONDS = 30.0

Versions = tuple[int, int, int, str]  # of a request: number, lowest and highest version, name
Answer = TypeVar("Answer")


def ask_node(routes: Routes, node: int, requests: Iterable[Any], versions: Versions, most: int = 64) -> list[Any]:
    """The answers of a node in their order, ``most`` requests under way. Raises BrokerUnreachable, UnsupportedBroker."""
    try:
        connection = routes.connection(node)
        return list(connection.pipelined(requests, connection.version(*versions), most))
    except BrokerUnreachable:
        routes.drop(node)
        raise


def ask(routes: Routes, request: Any, versions: Versions, node: int | None = None) -> Any:
    """The answer of a node (None: of any). Raises BrokerUnreachable, UnsupportedBroker."""
    for attempt in patiently(PATIENCE_SECONDS, BrokerUnreachable):
        with attempt:
            if attempt.retry_state.attempt_number > 1 or not routes.nodes:
                routes.refresh([])
            [answer] = ask_node(routes, routes.nodes[0] if node is None else node, [request], versions)
            return answer
    raise AssertionError("unreachable")  # pragma: no cover


def ask_each(routes: Routes, question: Callable[[int], Answer], *errors: type[AirmirrorError]) -> list[Answer]:
    """The answers of all nodes to a question. All are asked again where one can't be reached, or after transient ``errors``."""
    for attempt in patiently(PATIENCE_SECONDS, BrokerUnreachable, *errors):
        with attempt:
            routes.refresh([])
            return [question(node) for node in routes.nodes]
    raise AssertionError("unreachable")  # pragma: no cover


def ask_leaders(
    routes: Routes, partitions: Collection[TopicPartition], question: Callable[[], Answer], patience: float
) -> Answer:
    """The answer of the leaders of partitions to a question, which is asked again by new metadata for ``patience`` seconds.

    Raises PartitionMoved, LeaderNotAvailable or BrokerUnreachable after that.
    """
    for attempt in patiently(patience, PartitionMoved, LeaderNotAvailable, BrokerUnreachable):
        with attempt:
            if attempt.retry_state.attempt_number > 1 or not all(routes.is_led(each) for each in partitions):
                routes.refresh({partition.topic for partition in partitions})
            try:
                return question()
            except BrokerUnreachable:
                routes.drop_all()
                raise
    raise AssertionError("unreachable")  # pragma: no cover


def each_partition(topics: Iterable[Any]) -> Iterator[tuple[TopicPartition, Any]]:
    """Yield the partitions that an answer has below its topics."""
    for topic in topics:
        for item in topic.partitions:
            yield TopicPartition(topic.name, item.partition_index), item
