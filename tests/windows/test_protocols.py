"""The first protocol of transactions (every target before Kafka 4.0): faults of one partition stay that partition's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from airmirror.clusters.protocol.transactions import TransactionalId
from airmirror.slot.contract import Slot, SlotResult
from airmirror.slot.errors import AccessLost, PartitionFailed
from airmirror_local.brokers import IMPATIENT, Broker, start_broker
from support.acls import AUTHORIZER, denied
from support.faults import filled, in_a_process_that_dies, records
from support.flows import Mirror, in_this_process
from support.topics import assert_mirrored, create_topic, delete_topic, produce


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A cluster with ACLs whose transactions are of the first protocol."""
    directory = tmp_path_factory.mktemp("first")
    broker = start_broker(directory, "first", IMPATIENT | AUTHORIZER, features={"transaction.version": 0})
    try:
        yield broker
    finally:
        broker.kill()


@pytest.fixture(autouse=True)
def protocols(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test has written was written by the first protocol."""
    seen: set[bool] = set()
    add = TransactionalId.add

    def noting(self: TransactionalId, partitions: Sequence[object]) -> None:
        seen.add(self.second_protocol)
        add(self, partitions)  # type: ignore[arg-type]

    monkeypatch.setattr(TransactionalId, "add", noting)
    yield
    assert seen == {False}


def with_another_topic(flow: Mirror) -> tuple[Mirror, str]:
    """The flow with a topic more, everything of which is to be copied."""
    other = create_topic(flow.source, f"{flow.topic}-b")
    produce(flow.source, other, records(500), records_per_batch=50)
    topics = replace(flow.flow, topics=(flow.topic, other))
    return replace(flow, opened=replace(flow.opened, flow=topics)), other


@pytest.mark.long  # test_faults.py has it by the second protocol, below are windows by the first
def test_a_slot_killed_in_its_transaction(east: Broker, first: Broker, tmp_path: Path) -> None:
    flow = filled(east, first, tmp_path, 2000)

    def killed_once(slots: Sequence[Slot]) -> list[SlotResult]:
        in_a_process_that_dies(slots, 2)
        return in_this_process(slots)

    assert flow.run(killed_once).is_verified
    assert flow.assert_equal() == 2100


def test_a_topic_that_may_not_be_written(east: Broker, first: Broker, tmp_path: Path) -> None:
    """AddPartitionsToTxn refuses all partitions where one is denied: the others are copied without it."""
    flow, other = with_another_topic(filled(east, first, tmp_path))
    remote = f"{flow.flow.source.alias}.{other}"

    def without(slots: Sequence[Slot]) -> list[SlotResult]:
        with denied(first, ResourceType.TOPIC, remote, AclOperation.WRITE):
            return in_this_process(slots)

    result = flow.run(without, slots=1)
    [row] = [row for row in result.rows if row.error is not None]
    assert row.topic == other and isinstance(row.error, AccessLost) and repr(remote) in str(row.error)
    assert all(row.verified for row in result.rows if row.topic == flow.topic)
    assert flow.assert_equal() == 900
    assert flow.run().is_verified
    assert assert_mirrored(east, other, first, remote) == 500


@pytest.mark.long  # as a topic that may not be written; test_access.py has it by the second protocol
def test_an_internal_topic_that_may_not_be_written(east: Broker, first: Broker, tmp_path: Path) -> None:
    flow = filled(east, first, tmp_path)
    progress = f"mm2-offsets.{flow.flow.source.alias}.internal"

    def without(slots: Sequence[Slot]) -> list[SlotResult]:
        with denied(first, ResourceType.TOPIC, progress, AclOperation.WRITE):
            return in_this_process(slots)

    errors = [row.error for row in flow.run(without).rows]
    assert errors and all(isinstance(error, PartitionFailed) and progress in str(error) for error in errors)
    assert flow.run().is_verified
    assert flow.assert_equal() == 900


@pytest.mark.long  # test_faults.py has a topic that vanishes, by the second protocol
def test_a_remote_topic_that_vanishes_in_mid_window(east: Broker, first: Broker, tmp_path: Path) -> None:
    flow, other = with_another_topic(filled(east, first, tmp_path))
    remote = f"{flow.flow.source.alias}.{other}"

    def vanish(slots: Sequence[Slot]) -> list[SlotResult]:
        delete_topic(first, remote)
        return in_this_process(slots)

    result = flow.run(vanish, slots=1)
    [row] = [row for row in result.rows if row.error is not None]
    assert row.topic == other and "deleted" in str(row.error)
    assert flow.assert_equal() == 900
