"""Older Kafka: the suite of faults against 3.9, both sides; a window against 2.8, which knows no topic ids."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from tenacity import Retrying, retry_if_exception_type, stop_after_delay

from airmirror.clusters.protocol.routes import Routes
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.intake import Intake
from airmirror_local.brokers import IMPATIENT, Broker
from airmirror_local.zookeeper import old_broker
from support.faults import filled, in_a_process_that_dies, records
from support.flows import in_this_process
from support.topics import create_topic, delete_topic, produce

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

OLDEST, OLDER = "2.8.2", "3.9.1"
FAULTS = ("faults", "transactions", "access", "dead_letters", "leaders", "truncated", "targets")


@pytest.mark.parametrize("name", FAULTS)
def test_the_faults_on_an_older_kafka(name: str) -> None:
    tests = Path(__file__).with_name(f"test_{name}.py")
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", str(tests)],
        env=os.environ | {"KAFKA_VERSION": OLDER},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout[-5000:]


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Broker]]:
    """Two clusters of the oldest Kafka, with ZooKeeper."""
    directory = tmp_path_factory.mktemp("old")
    with ExitStack() as stack:
        yield tuple(stack.enter_context(old_broker(directory, name, OLDEST, IMPATIENT)) for name in ("a", "b"))  # type: ignore[misc]


def test_a_window_on_the_oldest_kafka(old: tuple[Broker, Broker], tmp_path: Path) -> None:
    """By names instead of topic ids (Fetch 12, Produce 9), in the first protocol; a slot is killed in its transaction."""
    flow = filled(*old, tmp_path)
    with Routes(flow.flow.source, "test") as routes:
        routes.refresh([flow.topic])
        assert routes.connection(routes.nodes[0], "test").fetch_version < 13

    def killed_once(slots: Sequence[Slot]) -> list[SlotResult]:
        in_a_process_that_dies(slots, 2)
        return in_this_process(slots)

    assert flow.run(killed_once).is_verified
    assert flow.assert_equal() == 2100


def test_a_source_topic_created_again_in_mid_window_on_the_oldest_kafka(
    old: tuple[Broker, Broker], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch by name answers from the new topic: it is noticed before the commit."""
    flow = filled(*old, tmp_path)
    take = Intake.take
    done = []

    def create_again(self: Intake, *args: object) -> None:
        take(self, *args)  # type: ignore[arg-type]
        if not done:
            done.append(True)
            delete_topic(flow.source, flow.topic)
            for attempt in Retrying(
                retry=retry_if_exception_type(KafkaException), stop=stop_after_delay(60), reraise=True
            ):
                with attempt:  # ZooKeeper's brokers delete in their own time
                    create_topic(flow.source, flow.topic, 2)
            produce(flow.source, flow.topic, records(6000))

    monkeypatch.setattr(Intake, "take", create_again)
    result = flow.run()
    assert done and {type(row.error).__name__ for row in result.rows} == {"TopicRecreated"}
