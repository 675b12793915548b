"""Batches without compression are compressed as the target's producer settings say; every record is the same on both sides."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from airmirror.clusters.protocol.log import read_batches
from airmirror.clusters.protocol.routes import Routes
from airmirror.clusters.security.model import UnsupportedClientSetting
from airmirror.flows.prepare import prepare
from airmirror.partitions import TopicPartition
from airmirror.slot.compression import compression_of
from airmirror.slot.intake import Intake
from airmirror.wire.batch import CODECS, Compression
from airmirror.wire.batches import parse
from airmirror.wire.merging import Merging
from airmirror.wire.records import first_difference, index
from airmirror_local.brokers import Broker
from support.flows import mirror
from support.hostile import batch, numbered
from support.intakes import at, intake, take
from support.topics import Record, produce

NUMBERS = {name: number for number, name in CODECS.items()}
EACH = 60


def records(first: int) -> list[Record]:
    return [
        Record(
            None if n % 7 == 0 else b"value %d " % n * 20,
            None if n % 5 == 0 else b"key %d" % (n % 9),
            (("h", b"1" * 100), ("h", None), ("größe", b"%d" % n)) if n % 2 else (),
            1_700_000_000_000 + n * 13 % 1000,
        )
        for n in range(first, first + EACH)
    ]


@pytest.mark.parametrize(
    ("codec", "times", "verify"),
    [
        ("zstd", "LogAppendTime", "readback"),
        pytest.param("zstd", "CreateTime", "acks", marks=pytest.mark.long),
        pytest.param("gzip", "CreateTime", "readback", marks=pytest.mark.long),
        pytest.param("snappy", "CreateTime", "readback", marks=pytest.mark.long),
        pytest.param("lz4", "LogAppendTime", "readback", marks=pytest.mark.long),
    ],
)
def test_transactions_and_compressed_batches_among_them(
    east: Broker, west: Broker, tmp_path: Path, codec: str, times: str, verify: str
) -> None:
    settings = {"target.producer.compression.type": codec, "window.verify": verify}
    flow = mirror(east, west, tmp_path, config={"message.timestamp.type": times}, settings=settings)
    copied = 0
    for number, (how, own, size) in enumerate(
        [(None, "none", None), ("commit", "none", 7), ("abort", "none", 7), (None, "lz4", 20), (None, "none", 1)]
    ):
        produce(
            east,
            flow.topic,
            records(1000 * number),
            codec=own,  # type: ignore[arg-type]
            records_per_batch=size,
            transactional=how,  # type: ignore[arg-type]
            partition=0,
        )
        copied += 0 if how == "abort" else EACH
    result = flow.run(slots=1)
    assert result.is_verified and result.copied == copied, [str(row.error) for row in result.rows]
    assert flow.assert_equal() == copied
    [record] = flow.opened.ledger.mappings(flow.topic, 0)
    with Routes(flow.flow.target, "test") as routes:
        routes.refresh([flow.remote_topic])
        found = read_batches(routes, TopicPartition(flow.remote_topic, 0), 0, record.target_end, read_committed=True)
        data = [each for _, batches in found for each, _ in batches if not each.is_control]
    assert {each.codec for each in data} == {NUMBERS[codec], NUMBERS["lz4"]}
    assert sum(each.count for each in data if each.codec == NUMBERS["lz4"]) >= EACH
    assert flow.run().rows == ()


@pytest.mark.parametrize("codec", [name for name in NUMBERS if name != "none"])
def test_what_is_sent(codec: str) -> None:
    """Large and small batches are written again together, those that are compressed as they are."""
    taker, sent = intake(5_020)
    context = replace(taker.context, merging=Merging(Compression(NUMBERS[codec])))
    taker = Intake(context, taker.partition, 5_020)
    large, small, own = batch(numbered(5_000, size=50)), at(5_000, batch(numbered(10))), batch(numbered(10), "gzip")
    fetched = [bytes(each) for each in (large, small, at(5_010, own))]
    take(taker, *fetched)
    log = [memoryview(b"".join(bytes(one) for one in each.buffers)) for each in sent]
    batches = [next(iter(parse(each, 0, len(each)))) for each in log]
    assert [each.codec for each in batches[:-1]] == [NUMBERS[codec]] * len(batches[:-1])
    assert batches[-1].codec == NUMBERS["gzip"] and sum(each.count for each in batches) == 5_020
    assert sum(map(len, log)) < len(b"".join(fetched)) / 2

    whole = memoryview(bytearray(b"".join(fetched)))
    wanted = index(whole, list(parse(whole, 0, len(whole))))
    place = 0
    for bytes_, each in zip(log, batches, strict=True):
        there = index(bytes_, [each])
        assert first_difference(wanted.slice(place, place + each.count), there) == -1
        place += each.count


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ({}, None),
        ({"compression.type": "none", "compression.zstd.level": "7"}, None),
        ({"compression.type": "snappy"}, Compression(2)),
        ({"compression.type": "gzip"}, Compression(1, -1)),
        ({"compression.type": " LZ4 ", "compression.lz4.level": "9"}, Compression(3, 9)),
        ({"compression.type": "zstd", "compression.zstd.level": "-5"}, Compression(4, -5)),
    ],
)
def test_settings(tmp_path: Path, lines: dict[str, str], found: Compression | None) -> None:
    settings = {f"target.producer.{key}": value for key, value in lines.items()}
    flow = mirror("east:9", "west:9", tmp_path, topic="orders", settings=settings)
    assert compression_of(flow.flow) == found


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ({"compression.type": "brotli"}, "compression.type: must be one of none, gzip, snappy, lz4, zstd"),
        ({"compression.type": "zstd", "compression.zstd.level": "23"}, "zstd.level: must be between -131072 and 22"),
        ({"compression.type": "gzip", "compression.gzip.level": "best"}, "gzip.level: must be a number"),
    ],
)
def test_settings_that_there_are_not_are_refused_before_anything_is_asked(
    tmp_path: Path, lines: dict[str, str], said: str
) -> None:
    settings = {f"target.producer.{key}": value for key, value in lines.items()}
    flow = mirror("east:9", "west:9", tmp_path, topic="orders", settings=settings)
    with pytest.raises(UnsupportedClientSetting, match=said):
        prepare(flow.opened)
