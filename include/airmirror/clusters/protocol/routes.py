"""The leaders of partitions: a cluster's metadata for the hot path, and its connections.

One connection a broker serves all that is asked and answered in turn (a log-in costs round trips); what sends ahead of answers
has one of its own by purpose.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_exponential, wait_random

from airmirror.clusters.protocol.connection import BrokerUnreachable, Connection, Transport
from airmirror.clusters.protocol.sasl import transport
from airmirror.clusters.protocol.waiting import ready
from airmirror.config import Cluster
from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition, batches

METADATA, FIND_COORDINATOR = 3, 10
GROUP, TRANSACTION = 0, 1  # FindCoordinator's key types
KEYS_AT_ONCE = 500
KNOWN_SECONDS = 2.0  # until a node that was just started knows a new topic
OTHERS, OTHER_SECONDS = 3, 2.0  # nodes that are asked for a topic that one does not know, and for how long each
UNKNOWN_TOPIC, TOPIC_DENIED = 3, 29
# The purpose of what waits for each answer before it asks on: metadata, offsets, groups, small reads.
ASKING = "requests"
WRITING = frozenset({"produce", "transactions"})  # purposes
_BOOTSTRAP = (-1, ASKING)  # the connection to a server whose node is not known (yet)


class BootstrapNotResolved(BrokerUnreachable, transient=False, bad_input=True):
    """No address belongs to the name of any broker in bootstrap.servers."""

    says = "cluster {0.cluster!r}: bootstrap.servers: no address belongs to {0.broker} ({0.reason})"


class LeaderNotAvailable(AirmirrorError, transient=True):
    """A partition without a leader just now."""

    says = "cluster {0.cluster!r}: {0.partition} has no leader now (error {0.error})"
    cluster: str
    partition: TopicPartition
    error: int


class TopicNotFound(AirmirrorError):
    """A topic or partition that the cluster does not have (any more)."""

    says = (
        "cluster {0.cluster!r} has no {0.what}: it was deleted, or this user may not describe it; "
        "leave it out with topics.exclude, or bring it back"
    )
    cluster: str
    topic: str
    partition: int = -1

    @property
    def what(self) -> str:
        return f"topic {self.topic!r}" if self.partition < 0 else f"partition {self.topic}-{self.partition}"


class TopicNotDescribed(TopicNotFound):
    """A topic that the cluster has, but does not let this user see (any more)."""

    says = (
        "cluster {0.cluster!r} does not let this user describe topic {0.topic!r}: grant it "
        "DESCRIBE (READ and WRITE imply it); the next window continues"
    )


class CoordinatorNotAvailable(AirmirrorError, transient=True):
    """No coordinator for a transactional id or a group just now."""

    says = (
        "cluster {0.cluster!r}: no coordinator for the transactional id or group {0.name!r} now "
        "(error {0.error}: {0.message}); is a partition of its internal topic without a leader or in-sync "
        "replicas, or are there fewer brokers than transaction.state.log.replication.factor (or "
        "offsets.topic.replication.factor) asks for?"
    )
    cluster: str
    name: str
    error: int
    message: str


@dataclass(frozen=True)
class Leader:
    """A partition's leader, and the number of its replicas in sync."""

    node: int
    epoch: int
    in_sync: int = 1
    replicas: int = 1


class Routes(AbstractContextManager["Routes"]):
    """A cluster's leaders, topic ids and connections. Not thread-safe; close it (or use it as a context manager).

    What writes is a producer to the cluster's settings, everything else a consumer. Raises UnsupportedClientSetting for a
    security.protocol, a log-in or a store that can't be had. ``was_reached``: by others before, so that names without an address
    are a fault that passes, not a wrong bootstrap.servers.
    """

    def __init__(self, cluster: Cluster, client_id: str, timeout: float = 30.0, *, was_reached: bool = False) -> None:
        self._transports: dict[str, Transport] = {role: transport(cluster, role) for role in ("consumer", "producer")}
        self.cluster = cluster
        self.alias = cluster.alias
        self.topic_ids: dict[str, UUID] = {}
        self.topic_names: dict[UUID, str] = {}
        self.cluster_id = ""
        self._was_reached = was_reached
        self._client_id = client_id
        self._timeout = timeout
        self._nodes: dict[int, tuple[str, int]] = {}
        self._leaders: dict[TopicPartition, Leader] = {}
        self._partitions: dict[str, int] = {}
        self._errors: dict[TopicPartition, int] = {}
        self._connections: dict[tuple[int, str], Connection] = {}
        self.throttled = 0.0  # seconds for which brokers wanted to be left alone, in all

    def refresh(self, topics: Iterable[str] | None) -> None:
        """Read the metadata of ``topics`` again (None: of all that this user may describe; others count as gone then).

        A node that was just started, or hears of news late, answers that there are no such topics: what it does not know is
        asked of others. Raises BrokerUnreachable when no broker answers, TopicNotFound of one when the others were read.
        """
        for missing in self._read(topics).values():
            raise missing

    def refresh_existing(self, topics: Iterable[str]) -> dict[str, TopicNotFound]:
        """``refresh`` those of ``topics`` that are there; what is wrong with each of the others."""
        names = set(topics)
        return self._read(names) if names else {}

    def _read(self, topics: Iterable[str] | None) -> dict[str, TopicNotFound]:
        connection = self._any()
        answer = _metadata(connection, topics)
        if not answer.brokers and any(topic.error_code == UNKNOWN_TOPIC for topic in answer.topics):
            raise BrokerUnreachable(self.alias, connection.broker, "it has just been started, and knows nothing yet")
        self.cluster_id = answer.cluster_id or ""
        nodes = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
        for key in [key for key in self._connections if key[0] >= 0 and nodes.get(key[0]) != self._nodes.get(key[0])]:
            self.drop(*key)
        self._nodes = nodes
        self._name_bootstrap()
        if topics is None:
            self._partitions.clear()
            self._leaders.clear()
        missing: dict[str, TopicNotFound] = {}
        self._note(answer, missing)
        for host, port in [each for each in nodes.values() if "{}:{}".format(*each) != connection.broker][:OTHERS]:
            unknown = [name for name, error in missing.items() if not isinstance(error, TopicNotDescribed)]
            if not unknown:
                break
            with suppress(AirmirrorError), self._connect(host, port, ASKING, OTHER_SECONDS) as other:
                self._note(_metadata(other, unknown), missing)
        return missing

    def _name_bootstrap(self) -> None:
        """Give the connection to a bootstrap server to the node that has this address, if there is one."""
        if (first := self._connections.get(_BOOTSTRAP)) is None:
            return
        for node, (host, port) in self._nodes.items():
            if f"{host}:{port}" == first.broker and (node, ASKING) not in self._connections:
                self._connections[node, ASKING] = self._connections.pop(_BOOTSTRAP)
                return

    def _note(self, answer: Any, missing: dict[str, TopicNotFound]) -> None:
        """Keep what a node says of topics; ``missing``: of those that it, and whoever was asked before, does not describe."""
        for topic in answer.topics:
            if topic.error_code in (UNKNOWN_TOPIC, TOPIC_DENIED):
                error = TopicNotFound if topic.error_code == UNKNOWN_TOPIC else TopicNotDescribed
                missing[topic.name] = error(self.alias, topic.name)
                self._partitions.pop(topic.name, None)
                continue
            missing.pop(topic.name, None)
            self.topic_ids[topic.name] = topic.topic_id
            self.topic_names[topic.topic_id] = topic.name
            self._partitions[topic.name] = len(topic.partitions)
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                self._errors[key] = partition.error_code
                replicas = len(partition.isr_nodes), len(partition.replica_nodes)
                self._leaders[key] = Leader(partition.leader_id, partition.leader_epoch, *replicas)

    def leader(self, partition: TopicPartition) -> Leader:
        """Raises LeaderNotAvailable or TopicNotFound."""
        leader = self._leaders.get(partition)
        if leader is None:
            raise TopicNotFound(self.alias, partition.topic, partition.partition)
        if leader.node not in self._nodes:
            raise LeaderNotAvailable(self.alias, partition, self._errors[partition])
        return leader

    def is_led(self, partition: TopicPartition) -> bool:
        """Return whether its leader is known, as of the last refresh of its topic."""
        leader = self._leaders.get(partition)
        return leader is not None and leader.node in self._nodes

    def with_leader(self, partitions: Sequence[TopicPartition], seconds: float) -> list[TopicPartition]:
        """Those of ``partitions`` (of refreshed topics) that have a leader; an election is awaited for ``seconds``."""

        with suppress(LeaderNotAvailable):
            for attempt in patiently(seconds, LeaderNotAvailable):
                with attempt:
                    if attempt.retry_state.attempt_number > 1:
                        self.refresh({key.topic for key in partitions})
                    for key in partitions:
                        self.leader(key)
        return [key for key in partitions if self.is_led(key)]

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that were there at the last refresh, in order of their names."""
        return tuple(sorted(self._partitions))

    def partitions(self, topic: str) -> int:
        """Return the topic's number of partitions, as of the last refresh."""
        return self._partitions.get(topic, 0)

    def keys(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of ``topics``, as of the last refresh."""
        return [TopicPartition(topic, number) for topic in topics for number in range(self.partitions(topic))]

    def keys_now(self, topics: Collection[str]) -> list[TopicPartition]:
        """All partitions of those of ``topics`` that are there now, by name."""
        self.refresh_existing(topics)
        return self.keys(sorted(set(topics)))

    def has(self, partition: TopicPartition) -> bool:
        """Return whether the partition exists, as of the last refresh of its topic."""
        return partition.partition < self.partitions(partition.topic)

    @property
    def nodes(self) -> tuple[int, ...]:
        return tuple(self._nodes)

    @property
    def endpoints(self) -> frozenset[str]:
        """The addresses that the cluster's brokers tell their clients, as of the last refresh: ``host:port``."""
        return frozenset(f"{host}:{port}" for host, port in self._nodes.values())

    def connection(self, node: int, purpose: str = ASKING) -> Connection:
        """The connection to a broker for one purpose, opened when it is first asked for. Raises BrokerUnreachable."""
        key = (node, purpose)
        connection = self._open(key) if purpose == ASKING or purpose in WRITING else self._connections.get(key)
        if connection is None:
            if node not in self._nodes:
                raise BrokerUnreachable(self.alias, f"node {node}", "the cluster does not name it any more")
            host, port = self._nodes[node]
            connection = self._connections[key] = self._connect(host, port, purpose)
        return connection

    def _open(self, key: tuple[int, str]) -> Connection | None:
        """A connection that may be used: not one that has ended while idle, nor one for asking whose last answer nobody took."""
        connection = self._connections.get(key)
        if connection is not None and (key[1] == ASKING if connection.waiting else ready([connection], 0.0)):
            self.drop(*key)
            return None
        return connection

    def _connect(self, host: str, port: int, purpose: str, timeout: float = math.inf) -> Connection:
        secured = self._transports["producer" if purpose in WRITING else "consumer"]
        return Connection(
            cluster=self.alias,
            host=host,
            port=port,
            client_id=f"{self._client_id}|{purpose}",
            timeout=min(timeout, self._timeout),
            transport=secured,
            throttled=self._throttle,
        )

    def _throttle(self, seconds: float) -> None:
        self.throttled += seconds

    def rest(self, purpose: str) -> float:
        """The longest time for which a broker wants nothing to be sent on its connection of one purpose, in seconds."""
        waits = [found.throttle.seconds for key, found in self._connections.items() if key[1] == purpose]
        return max(waits, default=0.0)

    def round_trip(self, node: int) -> float:
        """The seconds that a broker's quickest answer took, on whichever connection; 0: none was awaited yet."""
        found = min((each.round_trip for key, each in self._connections.items() if key[0] == node), default=math.inf)
        return found if found < math.inf else 0.0

    def drop(self, node: int, purpose: str = ASKING) -> None:
        """Close a connection that failed; the next call for it opens a new one."""
        if (connection := self._connections.pop((node, purpose), None)) is not None:
            connection.close()

    def drop_all(self) -> None:
        """Close every broker's connection for asking."""
        for node, purpose in list(self._connections):
            if purpose == ASKING:
                self.drop(node)

    def coordinator(self, transactional_id: str) -> int:
        """The broker that coordinates a transactional id. Raises CoordinatorNotAvailable."""
        return self.coordinators([transactional_id], TRANSACTION)[transactional_id]

    def coordinators(self, keys: Sequence[str], key_type: int) -> dict[str, int]:
        """The brokers that coordinate groups or transactional ids. Raises CoordinatorNotAvailable."""
        connection = self._any()
        version = connection.version(FIND_COORDINATOR, 3, 4, "FindCoordinator")
        if version >= 4:
            parts = batches(keys, KEYS_AT_ONCE)
            asked = [FindCoordinatorRequest(key_type=key_type, coordinator_keys=part) for part in parts]
            answers = [
                (found.key, found) for answer in connection.pipelined(asked, version) for found in answer.coordinators
            ]
        else:
            single = [FindCoordinatorRequest(key=key, key_type=key_type) for key in keys]
            answers = list(zip(keys, connection.pipelined(single, version), strict=True))
        nodes: dict[str, int] = {}
        for key, found in answers:
            if found.error_code:
                message = found.error_message or "its topic is being made"
                raise CoordinatorNotAvailable(self.alias, key, found.error_code, message)
            self._nodes[found.node_id] = (found.host, found.port)
            nodes[key] = int(found.node_id)
        if missing := set(keys) - nodes.keys():
            raise connection.nonsense(f"its answer to FindCoordinator leaves {min(missing)!r} out")
        return nodes

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def was_reached(self) -> bool:
        """Return whether the cluster has answered, here or before."""
        return self._was_reached or bool(self.cluster_id)

    def _any(self) -> Connection:
        """A connection for metadata: one that is open, else the first bootstrap server that answers."""
        for key in [key for key in self._connections if key[1] == ASKING]:
            if (connection := self._open(key)) is not None:
                return connection
        failed: dict[str, BrokerUnreachable] = {}
        for address in self.cluster.bootstrap_servers:
            host, _, port = address.rpartition(":")
            try:
                connection = self._connect(host.strip("[]"), int(port), ASKING)
            except BrokerUnreachable as error:
                failed[address] = error
                continue
            self._connections[_BOOTSTRAP] = connection
            return connection
        # A resolver that is down is not a wrong name, nor is one that was right before (a headless service without ready pods).
        unknown = [each.__cause__ for each in failed.values() if isinstance(each.__cause__, socket.gaierror)]
        is_known = (
            self.was_reached or len(unknown) < len(failed) or any(each.errno == socket.EAI_AGAIN for each in unknown)
        )
        said = [each.reason if len(failed) == 1 else f"{address}: {each.reason}" for address, each in failed.items()]
        raise (BrokerUnreachable if is_known else BootstrapNotResolved)(self.alias, ", ".join(failed), "; ".join(said))


def _metadata(connection: Connection, topics: Iterable[str] | None) -> Any:
    wanted = MetadataRequest.MetadataRequestTopic
    named = None if topics is None else [wanted(name=each, topic_id=UUID(int=0)) for each in sorted(set(topics))]
    request = MetadataRequest(
        topics=named,
        allow_auto_topic_creation=False,  # kafka-python's default would bring a deleted topic back
        include_topic_authorized_operations=False,
        include_cluster_authorized_operations=False,
    )
    return connection.request(request, connection.version(METADATA, 10, 12, "Metadata"))


def patiently(seconds: float, *errors: type[AirmirrorError]) -> Retrying:
    """Try again on transient ``errors`` for at most ``seconds``, with exponential backoff; the last one is raised."""
    return Retrying(
        retry=retry_if_exception_type(errors),
        stop=stop_after_delay(seconds),
        wait=wait_exponential(multiplier=0.02, max=2.0) + wait_random(0, 0.02),
        reraise=True,
    )
