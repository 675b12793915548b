"""Small batches merged whatever lies between them: markers, aborted ones, append times, records without key or value, headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.clusters.protocol.log import read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.config import Cluster as ClusterConfig
from airmirror.partitions import TopicPartition
from airmirror.wire import merging
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.topics import Codec, Record, produce

ROUNDS, EACH = 4, 25


def small(first: int) -> list[Record]:
    """Records with every kind of key, value and headers; each becomes a batch of its own.

    Compression makes each smaller: librdkafka sends it as it is otherwise.
    """
    return [
        Record(
            None if number % 3 == 0 else b"" if number % 3 == 1 else b"v%d" % number * 30,
            None if number % 4 == 0 else b"k%d" % (number % 5),
            (("long", b"h" * 200),)
            if number % 2
            else (("h", b"1" * 200), ("h", None), ("größe", str(number).encode())),
            1_700_000_000_000 + number * 13 % 1000,
        )
        for number in range(first, first + EACH)
    ]


def data_batches(cluster: ClusterConfig, topic: str, end: int, codec: int) -> int:
    """How many batches with committed records lie in a topic's only partition, all of them of a codec."""
    with Routes(cluster, "test") as routes:
        routes.refresh([topic])
        found = read_batches(routes, TopicPartition(topic, 0), 0, end, read_committed=True)
        data = [batch for _, batches in found for batch, aborted in batches if not aborted and not batch.is_control]
        assert {batch.codec for batch in data} == {codec}
        return len(data)


@pytest.mark.parametrize(
    ("times", "codec"),
    [
        ("CreateTime", "lz4"),
        pytest.param("LogAppendTime", "none", marks=pytest.mark.long),
        pytest.param("CreateTime", "none", marks=pytest.mark.long),
        pytest.param("LogAppendTime", "lz4", marks=pytest.mark.long),
    ],
)
def test_transactions_and_aborted_batches_between(
    east: Broker, west: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: Codec, times: str
) -> None:
    monkeypatch.setattr(merging, "MERGED_FROM", 0)
    flow = mirror(east, west, tmp_path, config={"message.timestamp.type": times})
    copied = 0
    for each in range(ROUNDS):
        for how in ("commit", "abort", None):
            produce(
                east, flow.topic, small(1000 * each), codec=codec, records_per_batch=1, transactional=how, partition=0
            )  # type: ignore[arg-type]
            copied += 0 if how == "abort" else EACH
    result = flow.run(slots=1)
    [row] = result.rows
    assert result.is_verified and (row.copied, row.aborted, row.control) == (copied, ROUNDS * EACH, 2 * ROUNDS)
    assert flow.assert_equal() == copied
    [record] = flow.opened.ledger.mappings(flow.topic, 0)
    number = {"none": 0, "lz4": 3}[codec]
    assert data_batches(flow.flow.source, flow.topic, record.source_end, number) == copied
    assert data_batches(flow.flow.target, flow.remote_topic, record.target_end, number) < copied / 10, (
        "they were merged"
    )
    # the mapping is exact across the gaps that markers and aborted batches leave
    sources = [offset for run in record.ranges for offset in range(run.source_first, run.source_end)]
    targets = [offset for run in record.ranges for offset in range(run.target_first, run.target_end)]
    assert len(sources) == copied and targets == list(range(copied))
    aborted = range(EACH + 1, 2 * EACH + 1)  # of the first round, after its committed ones and their marker
    assert sources[:EACH] == list(range(EACH)) and not set(aborted) & set(sources)
