"""Merging begins where it pays."""

from __future__ import annotations

from airmirror.wire.batch import Batch
from airmirror.wire.merging import MERGED_BELOW, MERGED_FROM, Merging


def batch(size: int, codec: int = 0) -> Batch:
    return Batch(
        position=0,
        size=size,
        base_offset=0,
        leader_epoch=0,
        checksum=0,
        attributes=codec,
        last_offset_delta=0,
        base_timestamp=0,
        max_timestamp=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        count=1,
    )


def test_large_batches_are_never_merged() -> None:
    merging = Merging()
    assert not any(merging.wanted(batch(MERGED_BELOW[0])) for _ in range(2 * MERGED_FROM))


def test_small_batches_are_merged_once_there_are_many() -> None:
    merging = Merging()
    assert not any(merging.wanted(batch(100)) for _ in range(MERGED_FROM))
    assert merging.wanted(batch(100))
    assert not merging.wanted(batch(MERGED_BELOW[3], 3))
    assert merging.wanted(batch(MERGED_BELOW[3] - 1, 3))
