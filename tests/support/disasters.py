"""Disasters of a test: producers that write until their cluster is gone, what was acknowledged, and a cluster that returns."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from airmirror_local.brokers import BrokerCluster, launch, wait_until_answering
from support.topics import Cluster, bootstrap

AT_ONCE = 20  # records of a transaction, or between two looks
STEP_SECONDS = 0.5
ENDING_SECONDS = 60.0
FOREVER_MS = 600_000

Place = tuple[int, int]  # partition and offset


@dataclass
class Writer:
    """A producer of numbered records. ``acknowledged``: values by their places, of transactions when they are committed.

    ``in_transaction`` is set while records are in the log and their transaction is open.
    """

    name: str
    acknowledged: dict[Place, bytes] = field(default_factory=dict)
    in_transaction: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)

    def write(self, producer: Producer, topic: str, transactional: bool) -> None:
        """Write until ``stopping``; what has no answer then is given up, and is not acknowledged."""
        numbers = itertools.count()
        while not self.stopping.is_set():
            done = self.acknowledged if not transactional else {}
            if transactional:
                producer.begin_transaction()
            for number in itertools.islice(numbers, AT_ONCE):
                self._send(producer, topic, b"%s-%d" % (self.name.encode(), number), done)
            if transactional:
                self._commit(producer, done)
            else:
                producer.poll(0.02)
        producer.purge()
        producer.flush(STEP_SECONDS)

    def _send(self, producer: Producer, topic: str, value: bytes, done: dict[Place, bytes]) -> None:
        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                done[int(message.partition() or 0), int(message.offset() or 0)] = value

        while not self.stopping.is_set():
            try:
                return producer.produce(topic, value, value, on_delivery=delivered)
            except BufferError:
                producer.poll(STEP_SECONDS)

    def _commit(self, producer: Producer, done: dict[Place, bytes]) -> None:
        while producer.flush(STEP_SECONDS) and not self.stopping.is_set():
            pass
        self.in_transaction.set()
        self.stopping.wait(STEP_SECONDS)  # most of the time a transaction is open
        self.in_transaction.clear()
        end = producer.commit_transaction
        while not self.stopping.is_set():
            try:
                end(STEP_SECONDS)
            except KafkaException as error:
                if error.args[0].txn_requires_abort():  # a record was not taken in its time
                    end = producer.abort_transaction
                elif not error.args[0].retriable():
                    raise
            else:
                if end == producer.commit_transaction:
                    self.acknowledged.update(done)
                return


@contextmanager
def writing(cluster: Cluster, topic: str, name: str, *, transactional: bool = False) -> Iterator[Writer]:
    """A producer at work for the time of the block, in a thread, whatever becomes of the cluster."""
    settings: dict[str, str | int | bool] = {
        "bootstrap.servers": bootstrap(cluster),
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 5,
        "message.timeout.ms": FOREVER_MS,
        "log_level": 0,
    }
    if transactional:
        settings |= {"transactional.id": name, "transaction.timeout.ms": 10_000, "message.timeout.ms": 10_000}
    producer, writer = Producer(settings), Writer(name)
    if transactional:
        producer.init_transactions(ENDING_SECONDS)
    thread = threading.Thread(target=writer.write, args=(producer, topic, transactional), name=name, daemon=True)
    thread.start()
    try:
        yield writer
    finally:
        writer.stopping.set()
        thread.join(ENDING_SECONDS)
        assert not thread.is_alive(), f"{name} is still at work"


def kill_all(cluster: BrokerCluster) -> None:
    """SIGKILL for every node, one right after the other."""
    for broker in cluster.brokers:
        broker.kill()


def bring_back(cluster: BrokerCluster) -> None:
    """Start every node again with its data, all at once: one alone has no quorum."""
    for broker in cluster.brokers:
        broker.process = launch(broker.directory, broker.java_options, broker.version)
    for broker in cluster.brokers:
        wait_until_answering(broker, len(cluster.brokers))
