"""Faults of the cluster of three nodes as a whole: replicas and leaders move, a node leaves, a node is cut off from the others.

And those of what a target keeps of producers: somebody else has our transactional ids, what is known of producers is forgotten.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import psutil
from confluent_kafka import KafkaException, Producer
from kafka.structs import TopicPartition
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster as Configured
from airmirror_local.brokers import Broker
from airmirror_local.jars import KAFKA_VERSION
from chaos.clusters import Clusters
from chaos.plan import Fault, Plan
from support.moves import (
    Replicas,
    await_whole,
    forgetting,
    known_producers,
    lead,
    raise_features,
    reassign,
    replicas_of,
)
from support.topics import SECONDS, Cluster, bootstrap, leader

INTERNAL = ("__transaction_state", "__consumer_offsets")
ENDS_SECONDS = 60.0  # until a node that can't write has ended
STEP_SECONDS = 0.5  # between two takings of transactional ids
LOOK_SECONDS = 0.2  # between two looks at the producers that are known
FORGETS_SECONDS = 15.0  # in which a window has ended, and the next one has not written yet


class Missed(Exception):
    """A fault found nothing to befall."""


class NothingToMove(Exception):
    """None of the topics is there yet."""


@dataclass(frozen=True)
class Moves:
    """``topics``: the flow's on the cluster of three nodes; ``ids``, ``copies``: its transactional ids and remote topics, on the
    ``target``."""

    plan: Plan
    clusters: Clusters
    topics: Sequence[str]
    ids: Sequence[str]
    copies: Sequence[str]
    target: Cluster

    def befall(self, fault: Fault) -> str:
        """Do one of these faults, and undo it. Raises NothingToMove, Missed."""
        if fault.kind == "hijack":
            return self._hijack(fault.seconds)
        if fault.kind == "forget_producers":
            return self._forget(fault.seconds)
        with self.clusters.locks["three"]:
            if fault.kind == "transfer":
                return self._transfer(fault.seconds)
            if fault.kind == "reassign":
                return self._reassign(fault.seconds)
            if fault.kind == "decommission":
                return self._decommission(fault)
            if fault.kind == "upgrade":
                return self._upgrade()
            return self._isolate(fault)

    def _found(self) -> dict[TopicPartition, list[int]]:
        found = replicas_of(self.clusters.three, [*self.topics, *INTERNAL])
        if not any(key.topic in self.topics for key in found):
            raise NothingToMove
        return found

    def _transfer(self, seconds: float) -> str:
        """Every partition is led by another node, and then by its old one: no broker dies, no connection ends."""
        found = self._found()
        with self._moved({key: [*nodes[1:], nodes[0]] for key, nodes in found.items()}, found):
            lead(self.clusters.three, list(found))
            time.sleep(seconds)
        lead(self.clusters.three, list(found))
        return f"{len(found)} partitions were led by others"

    def _reassign(self, seconds: float) -> str:
        """Every partition loses the replica that leads it, and gets it back."""
        found = self._found()
        with self._moved({key: nodes[1:] for key, nodes in found.items()}, found):
            time.sleep(seconds)
        return f"{len(found)} partitions lay on two nodes, and on three again"

    def _decommission(self, fault: Fault) -> str:
        """A node is emptied, and leaves in order; later it is back."""
        found, number = self._found(), fault.node + 1
        node = self.clusters.three.brokers[fault.node]
        with self._moved({key: [each for each in nodes if each != number] for key, nodes in found.items()}, found):
            node.stop()
            time.sleep(fault.seconds)
            node.restart()
        return f"node {number} was emptied of {len(found)} partitions, and left"

    def _upgrade(self) -> str:
        """The nodes become those of this version, one after the other; then transactions are of the second protocol."""
        self._found()
        for node in self.clusters.three.brokers:
            await_whole(self.clusters.three)
            node.stop()
            before, node.version = node.version, KAFKA_VERSION
            node.restart()
        await_whole(self.clusters.three)
        raise_features(self.clusters.three, {"transaction.version": 2})
        return f"from {before} to {KAFKA_VERSION}"

    @contextmanager
    def _moved(self, replicas: Replicas, before: Replicas) -> Iterator[None]:
        reassign(self.clusters.three, replicas)
        try:
            yield
        finally:
            reassign(self.clusters.three, before)

    def _isolate(self, fault: Fault) -> str:
        """Clients reach the node as ever; it and the other nodes do not reach each other."""
        topic = self.topics[0]
        try:
            leads = leader(self.clusters.three, topic)
        except KeyError:
            raise NothingToMove from None
        node = leads
        if fault.kind == "isolate_follower":
            node = leads % 3 + 1
        if fault.kind == "isolate_coordinator" and self.target is self.clusters.three:
            with Routes(Configured("target", tuple(bootstrap(self.target).split(",")), {}), "chaos") as routes:
                node = routes.coordinator(self.ids[0])
        with self.clusters.isolated(node) as refused:
            time.sleep(fault.seconds)
        if not refused():
            raise Missed(f"node {node} and the others asked each other nothing")
        what = "led" if node == leads else "followed"
        return f"node {node} was alone, which {what} {topic}-0: {refused()} requests were cut off"

    def _hijack(self, seconds: float) -> str:
        """Somebody else initialises our transactional ids, again and again."""
        until, count = time.monotonic() + seconds, 0
        while True:
            for name in self.ids:
                count += hijack(self.target, name)
            if time.monotonic() >= until:
                break
            time.sleep(STEP_SECONDS)
        if not count:
            raise Missed("the target let nobody initialise them")
        return f"initialised {count} times"

    def _forget(self, seconds: float) -> str:
        """The target forgets producers for so long, or longer where none of the flow's was forgotten by then."""
        begun, count, known = time.monotonic(), 0, dict[TopicPartition, set[int]]()
        with forgetting(self.target):
            while (now := time.monotonic() - begun) < seconds or (not count and now < FORGETS_SECONDS):
                found = known_producers(self.target, self.copies)
                count += sum(len(known.get(key, set()) - its) for key, its in found.items())
                known |= found
                time.sleep(LOOK_SECONDS)
        if not count:
            raise Missed("each was in a transaction at any time, or none was known")
        return f"{count} of the flow's were forgotten within {now:.1f} s"


def hijack(cluster: Cluster, name: str) -> bool:
    """Initialise a transactional id, as somebody else; whether the cluster let us."""
    producer = Producer({"bootstrap.servers": bootstrap(cluster), "transactional.id": name, "log_level": 0})
    try:
        producer.init_transactions(SECONDS)
    except KafkaException as error:
        if not error.args[0].retriable():
            raise
        return False
    return True


def fill_disk(
    node: Broker, seconds: float, give_up: Callable[[], Exception], full: Callable[[], object] = lambda: None
) -> str:
    """No file of a node can grow: it ends by itself, as one whose disk is full. Later there is room, and it is started again.

    ``full``: called as soon as that is so."""
    process = psutil.Process(node.process.pid)
    process.rlimit(psutil.RLIMIT_FSIZE, (1, process.rlimit(psutil.RLIMIT_FSIZE)[1]))
    full()
    waiting = Retrying(retry=retry_if_result(bool), wait=wait_fixed(0.05), stop=stop_after_delay(ENDS_SECONDS))
    try:
        waiting(lambda: node.process.running)
    except RetryError:
        raise give_up() from None
    finally:
        time.sleep(seconds)
        node.restart()
    return "ended by itself, and started again"
