"""A transaction on the source that no coordinator knows: it is named, and what it keeps back counts as lag."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from pathlib import Path

import crc32c
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from airmirror.flows.status import flow_status
from airmirror.windows.errors import HangingTransaction
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.hostile import append, batch, numbered
from support.topics import SECONDS, admin, end_offsets, open_transaction


@pytest.fixture
def unverified(east: Broker) -> Iterator[None]:
    """Brokers before Kafka 3.6 took batches of transactions that no coordinator had heard of."""
    _set(east, AlterConfigOpType.SET)
    yield
    _set(east, AlterConfigOpType.DELETE)


def _set(cluster: Broker, operation: AlterConfigOpType) -> None:
    client = admin(cluster)
    [node] = client.list_topics(timeout=SECONDS).brokers
    entry = ConfigEntry("transaction.partition.verification.enable", "false", incremental_operation=operation)
    resource = ConfigResource(ResourceType.BROKER, str(node), incremental_configs=[entry])
    for future in client.incremental_alter_configs([resource]).values():
        future.result(SECONDS)


def hang(cluster: Broker, topic: str, producer_id: int, last_ms: int) -> None:
    """Append a batch of a transaction that will never end."""
    one = batch(numbered(3, time=last_ms), producer_id=producer_id, producer_epoch=0, base_sequence=0)
    struct.pack_into(">H", one, 21, 0x10)
    struct.pack_into(">I", one, 17, crc32c.crc32c(bytes(one[21:])))
    append(cluster, topic, [one], transactional_id=f"hanging-{producer_id}")


@pytest.mark.usefixtures("unverified")
def test_a_hanging_transaction_is_named_and_counts_as_lag(east: Broker, west: Broker, tmp_path: Path) -> None:
    flow = mirror(east, west, tmp_path)
    append(east, flow.topic, [batch(numbered(4))])
    hang(east, flow.topic, 424242, 1_700_000_000_000)
    append(east, flow.topic, [batch(numbered(5))])
    assert end_offsets(east, flow.topic, "read_committed") == {0: 4}
    for copied in (4, 0):
        result = flow.run()
        assert result.copied == copied
    [row] = result.rows
    assert row.lag == 8, "to the high watermark"
    assert isinstance(row.error, HangingTransaction) and not row.error.transient
    assert (row.error.producer_id, row.error.first, row.error.records) == (424242, 4, 8)
    assert f"find-hanging --topic {flow.topic} --partition 0" in str(row.error)
    status = flow_status(flow.opened)
    assert status.lag == 8 and "424242" in status.errors[f"{flow.topic}-0"]


@pytest.mark.usefixtures("unverified")
def test_a_transaction_that_a_coordinator_knows_or_that_is_young_does_not_hang(
    east: Broker, west: Broker, tmp_path: Path
) -> None:
    """Records of another time say nothing about how long a transaction is open."""
    young = mirror(east, west, tmp_path)
    hang(east, young.topic, 434343, int(time.time() * 1000))
    known = mirror(east, west, tmp_path)
    with open_transaction(east, known.topic, numbered(3), partition=0):
        for flow in (young, known):
            assert flow.run().is_verified
            status = flow_status(flow.opened)
            assert status.lag == 3 and not status.errors
