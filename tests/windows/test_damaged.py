"""Batches of the source that are damaged under a right checksum: their partition stops before them, the others do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from airmirror.slot.errors import SourceCorrupt
from airmirror_local.brokers import Broker
from support.disks import damage
from support.flows import mirror
from support.hostile import append, batch, numbered, sized
from support.topics import read_all

CODECS = ("snappy", *(pytest.param(codec, marks=pytest.mark.long) for codec in ("gzip", "lz4", "zstd")))


@pytest.mark.parametrize("codec", CODECS)
def test_a_damaged_batch_stops_its_partition_alone(east: Broker, west: Broker, tmp_path: Path, codec: str) -> None:
    """Nobody has looked inside when it is copied whole: the target's broker is the first who does, and has no word for it."""
    flow = mirror(east, west, tmp_path, partitions=2, settings={"window.max.ms": "5000"})
    for partition in range(2):
        batches = [batch(numbered(5), codec), sized(20_000, codec), batch(numbered(5, 6), codec)]
        append(east, flow.topic, batches, partition)
    damage(east, flow.topic, 0, 5)
    for _ in range(2):  # and so the next window finds it
        result = flow.run(slots=1)
        (error,) = (row.error for row in result.rows if row.error is not None)
        assert isinstance(error, SourceCorrupt), error
        assert (error.partition, error.first_bad) == (0, 5) and not error.transient
        assert "offset 5 on" in str(error) and "can't be decompressed" in str(error)
    found = read_all(west, flow.remote_topic)
    assert {partition: len(records) for partition, records in found.items()} == {0: 5, 1: 11}
