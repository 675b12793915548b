"""Applications of a small shop, each a process of its own: producers that note what was acknowledged, consumers what they read.

They know Kafka by its public client library alone. A file has a line for each record: of a producer once its cluster has it for
good, of a consumer once it was read and before its position is committed. SIGTERM ends them as applications end: what was begun
is acknowledged, or committed.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TextIO
from uuid import uuid4

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from airmirror_local.processes import Process, start_process

Kind = Literal["transactional", "idempotent", "plain"]
Protocol = Literal["classic", "consumer"]
KEYS = 20
AT_ONCE = 10  # records of a transaction, or between two pauses
ABORTED = 7  # every seventh transaction is given up
PAUSE_SECONDS = 0.05
COMMIT_SECONDS = 0.2
DELIVERY_SECONDS = 10
STOP_SECONDS = 30.0


@dataclass(frozen=True)
class App:
    """An application that runs, and the file that it writes."""

    process: Process
    file: Path

    def lines(self) -> list[str]:
        """The lines that are complete."""
        text = self.file.read_text() if self.file.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()

    def stop(self) -> None:
        """End it as applications end. It may be gone."""
        self.process.stop(STOP_SECONDS)


def start_producer(directory: Path, name: str, kind: Kind, bootstrap: str, topics: Sequence[str]) -> App:
    """Start a producer; its records' values begin with its name. A line: the record's value."""
    return _start(directory, name, {"kind": kind, "name": name, "bootstrap": bootstrap, "topics": list(topics)})


def start_consumer(directory: Path, group: str, protocol: Protocol, bootstrap: str, topics: Sequence[str]) -> App:
    """Start a member of a group. A line: the value of a record that it has read."""
    asked = {"kind": "group", "group": group, "protocol": protocol, "bootstrap": bootstrap, "topics": list(topics)}
    return _start(directory, group, asked)


def start_transformer(directory: Path, name: str, bootstrap: str, source: str, into: str) -> App:
    """Start a group's member that writes what it reads into another topic, with its positions, in transactions. A line: the value
    of a record that it has written, which is that of the record that it has read."""
    return _start(
        directory, name, {"kind": "transform", "name": name, "bootstrap": bootstrap, "topics": [source, into]}
    )


def _start(directory: Path, name: str, asked: Mapping[str, object]) -> App:
    file = directory / f"{name}-{uuid4().hex[:8]}.txt"
    command = [sys.executable, "-m", "airmirror_local.shop", json.dumps({**asked, "file": str(file)})]
    return App(start_process(name, command, file.with_suffix(".log")), file)


def produce(asked: dict[str, str], topics: Sequence[str], out: TextIO, goes_on: Callable[[], bool]) -> None:
    """Write numbered records in turn to all topics, until told to end."""
    is_transactional = asked["kind"] == "transactional"
    settings: dict[str, str | int | bool | float] = {
        "bootstrap.servers": asked["bootstrap"],
        "enable.idempotence": asked["kind"] != "plain",
        "acks": 1 if asked["kind"] == "plain" else "all",
        "max.in.flight.requests.per.connection": 1 if asked["kind"] == "plain" else 5,
        "delivery.timeout.ms": DELIVERY_SECONDS * 1000,
        "linger.ms": 5,
        "log_level": 3,
    }
    producer = Producer(settings | ({"transactional.id": asked["name"]} if is_transactional else {}))
    if is_transactional:
        producer.init_transactions(STOP_SECONDS)
    number, rounds, taken = 0, 0, list[str]()

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is None:
            taken.append((message.value() or b"").decode())

    while goes_on():
        rounds += 1
        if is_transactional:
            producer.begin_transaction()
        for _ in range(AT_ONCE):
            number += 1
            value, key = f"{asked['name']}-{number}", f"k{number % KEYS}"
            with nullcontext() if is_transactional else suppress(KafkaException):  # whoever is refused writes on
                producer.produce(topics[number % len(topics)], value.encode(), key.encode(), on_delivery=delivered)
            producer.poll(0)
        producer.flush(DELIVERY_SECONDS + 1)
        if is_transactional and rounds % ABORTED == 0:
            producer.abort_transaction(STOP_SECONDS)
            taken.clear()
        elif is_transactional:
            producer.commit_transaction(STOP_SECONDS)
        _write(out, taken)
        taken.clear()
        time.sleep(PAUSE_SECONDS)


def consume(asked: dict[str, str], topics: Sequence[str], out: TextIO, goes_on: Callable[[], bool]) -> None:
    """Read as a member of a group, until told to end."""
    settings: dict[str, str | int | bool | float] = {
        "bootstrap.servers": asked["bootstrap"],
        "group.id": asked["group"],
        "group.protocol": asked["protocol"],
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "client.id": f"{asked['group']}-app",
        "log_level": 3,
    }
    consumer = Consumer(settings)
    consumer.subscribe(list(topics))
    committed = time.monotonic()
    try:
        while goes_on():
            messages = consumer.consume(500, timeout=0.1)
            _write(out, [(each.value() or b"").decode() for each in messages if each.error() is None])
            if time.monotonic() - committed > COMMIT_SECONDS:
                _commit(consumer)
                committed = time.monotonic()
        _commit(consumer)
    finally:
        consumer.close()


def transform(asked: dict[str, str], topics: Sequence[str], out: TextIO, goes_on: Callable[[], bool]) -> None:
    """Read the first topic and write the second, until told to end: a record is written and its position committed, or none."""
    source, into = topics
    common: dict[str, str | int | bool | float] = {"bootstrap.servers": asked["bootstrap"], "log_level": 3}
    producer = Producer(common | {"transactional.id": asked["name"]})
    producer.init_transactions(STOP_SECONDS)
    consumer = Consumer(
        common
        | {
            "group.id": asked["name"],
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    consumer.subscribe([source])
    try:
        while goes_on():
            read = [each for each in consumer.consume(200, timeout=0.1) if each.error() is None]
            if not read:
                continue
            producer.begin_transaction()
            for each in read:
                producer.produce(into, each.value(), each.key())
            positions = [each for each in consumer.position(consumer.assignment()) if each.offset >= 0]
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), STOP_SECONDS)
            producer.commit_transaction(STOP_SECONDS)
            _write(out, [(each.value() or b"").decode() for each in read])
    finally:
        consumer.close()


def _commit(consumer: Consumer) -> None:
    try:
        consumer.commit(asynchronous=False)
    except KafkaException as error:
        if error.args[0].code() != KafkaError._NO_OFFSET:  # nothing was read yet
            raise


def _write(out: TextIO, lines: Sequence[str]) -> None:
    out.write("".join(f"{line}\n" for line in lines))
    out.flush()


def main() -> None:
    """Be the application that the argument names, as JSON."""
    asked, told = json.loads(sys.argv[1]), list[int]()
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    work = {"group": consume, "transform": transform}.get(asked["kind"], produce)
    with Path(asked["file"]).open("a") as out:
        work(asked, asked["topics"], out, lambda: not told)


if __name__ == "__main__":
    main()
