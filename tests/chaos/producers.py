"""Producers that write numbered records while everything fails: idempotent, transactional (some aborted) and plain ones.

A record's key names its producer, its value begins with the number that the producer counts in that partition, so order
and completeness can be told from the target alone.
"""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from support.topics import Cluster, Record, bootstrap

Partition = tuple[str, int]
KINDS = ("idempotent", "transactional", "plain")
BULK = "bulk"  # transactions of some hundred kilobytes, all of them aborted; the last one is the log's end
BULK_RECORDS = 300
SECONDS = 60.0


@dataclass
class Written:
    """What one producer knows to be in the log: the numbers acknowledged (or committed), by partition."""

    name: str
    kind: str
    acknowledged: dict[Partition, list[int]] = field(default_factory=dict)


@dataclass
class Writer:
    """A producer in a thread of its own; ``stop`` ends it and waits until all it wrote is decided."""

    written: Written
    cluster: Cluster
    partitions: list[Partition]
    seed: str
    pause: float = 0.05  # seconds between what it sends at once
    _ended: threading.Event = field(default_factory=threading.Event)
    _numbers: dict[Partition, int] = field(default_factory=dict)
    _error: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._guarded, name=self.written.name, daemon=True)
        self._thread.start()

    def stop(self) -> Written:
        self._ended.set()
        self._thread.join(2 * SECONDS)
        if self._thread.is_alive() or self._error:
            raise AssertionError(f"{self.written.name} did not end: {self._error or 'still at work'}")
        return self.written

    def _guarded(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._error.append(error)

    def _run(self) -> None:
        chance = random.Random(self.seed)
        producer = self._producer(chance)
        if self.written.kind == BULK:
            self._abort_bulks(producer, chance)
            return
        while not self._ended.wait(self.pause):
            batch = [(chance.choice(self.partitions), chance.randint(0, 400)) for _ in range(chance.randint(5, 40))]
            if self.written.kind != "transactional":
                self._send(producer, batch, self.written.acknowledged)
                continue
            done: dict[Partition, list[int]] = {}
            try:
                producer.begin_transaction()
                self._send(producer, batch, done)
                if chance.random() < 0.3:
                    producer.flush(SECONDS)
                    producer.abort_transaction(SECONDS)
                    continue
                producer.commit_transaction(SECONDS)
            except KafkaException:
                producer = self._producer(chance)  # its transaction is ended by the new one's beginning
                continue
            for partition, numbers in done.items():
                self.written.acknowledged.setdefault(partition, []).extend(numbers)
        left = producer.flush(SECONDS)
        assert not left, f"{left} records were not taken"

    def _abort_bulks(self, producer: Producer, chance: random.Random) -> None:
        ended = False
        while not ended:
            ended = self._ended.wait(0.5)  # one more after the end
            try:
                producer.begin_transaction()
                self._send(producer, [(chance.choice(self.partitions), 1_000) for _ in range(BULK_RECORDS)], {})
                producer.flush(SECONDS)
                producer.abort_transaction(SECONDS)
            except KafkaException:
                producer = self._producer(chance)

    def _producer(self, chance: random.Random) -> Producer:
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap(self.cluster),
            "compression.type": chance.choice(["none", "lz4", "zstd", "gzip", "snappy"]),
            "linger.ms": chance.choice([0, 5, 50]),
            "acks": "all",
            "enable.idempotence": self.written.kind != "plain",
            "message.timeout.ms": int(SECONDS * 1000),
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        if self.written.kind in ("transactional", BULK):
            settings |= {"transactional.id": self.written.name, "transaction.timeout.ms": 10_000}
            settings["message.timeout.ms"] = 10_000
        producer = Producer(settings)
        if self.written.kind in ("transactional", BULK):
            while True:
                try:
                    producer.init_transactions(SECONDS)
                    break
                except KafkaException as error:
                    if self._ended.is_set() and not error.args[0].retriable():
                        raise
        return producer

    def _send(
        self, producer: Producer, batch: list[tuple[Partition, int]], acknowledged: dict[Partition, list[int]]
    ) -> None:
        for (topic, partition), size in batch:
            number = self._numbers.get((topic, partition), 0)
            self._numbers[(topic, partition)] = number + 1

            def delivered(error: KafkaError | None, _: Message, where: Partition, number: int) -> None:
                if error is None:
                    acknowledged.setdefault(where, []).append(number)

            def on_delivery(
                error: KafkaError | None, message: Message, where: Partition = (topic, partition), number: int = number
            ) -> None:
                delivered(error, message, where, number)

            value = b"%d " % number + b"x" * size
            headers = [("producer", self.written.name.encode())] if number % 5 == 0 else []
            while True:
                try:
                    producer.produce(
                        topic, value, self.written.name.encode(), partition, on_delivery=on_delivery, headers=headers
                    )
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)


def number_of(record: Record) -> int:
    """The number that its producer gave a record."""
    return int((record.value or b"").split(b" ", 1)[0])
