"""Merging begins where it pays."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest

from airmirror.wire.batch import Batch
from airmirror.wire.merging import (
    FAR_FROM,
    FAR_SECONDS,
    LINE_BYTES,
    MERGED_BELOW,
    MERGED_FROM,
    MERGED_SIZE,
    RUN_BYTES,
    Merging,
    filling,
)
from airmirror.wire.requests import IN_FLIGHT


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


def fetched(sizes: Iterable[int], codec: int = 0) -> memoryview:
    """Headers of batches of these sizes, which is all that is looked at."""
    log = bytearray()
    for size in sizes:
        log += struct.pack(">qiibIH", 0, size - 12, 0, 2, 0, codec) + bytes(size - 23)
    return memoryview(log)


def looked(*answers: memoryview, filling: int = 0) -> Merging:
    merging = Merging(filling=filling)
    for buffer in answers:
        merging.look(buffer, 0, len(buffer))
    return merging


def test_large_batches_are_never_merged() -> None:
    merging = looked(*[fetched([MERGED_BELOW[0]] * 64)] * (2 * MERGED_FROM // 64))
    assert not merging.wanted(batch(MERGED_BELOW[0])) and not merging.wanted(batch(100))


def test_small_batches_are_merged_once_there_are_many() -> None:
    assert not looked(fetched([100] * MERGED_FROM)).wanted(batch(100))
    merging = looked(fetched([100] * (MERGED_FROM - 1)), fetched([20_000, 100, 100]))
    assert merging.wanted(batch(100))
    assert not merging.wanted(batch(MERGED_BELOW[3], 3))
    assert merging.wanted(batch(MERGED_BELOW[3] - 1, 3))


def test_a_backlog_of_small_batches_is_merged_from_the_first_on() -> None:
    assert looked(fetched([100] * (MERGED_FROM + 1))).wanted(batch(100))
    assert not looked(fetched([1000] * 1000, codec=1)).wanted(batch(1000, 1))


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 10, 2**31 - 1])
def test_lengths_that_can_not_be_end_the_look(length: int) -> None:
    log = bytearray(fetched([100] * 1000))
    struct.pack_into(">i", log, 8 + 100 * 3, length)
    assert not looked(memoryview(log)).wanted(batch(100))
    assert not looked(memoryview(bytes(30))).wanted(batch(100))


def test_five_batches_of_every_partition_fill_the_line_to_a_far_target() -> None:
    assert filling(0.1, 1) * IN_FLIGHT / 0.1 == LINE_BYTES
    assert filling(0.1, 8) == filling(0.1, 1) // 8
    assert filling(FAR_SECONDS / 2, 1) == 0, "a near target is left alone"


def test_batches_that_do_not_fill_the_line_are_merged_up_to_the_largest_run() -> None:
    merging = looked(fetched([131_000] * (FAR_FROM + 1)), filling=750_000)
    assert merging.wanted(batch(749_999)) and not merging.wanted(batch(750_000))
    assert not merging.wanted(batch(100_000, 3)), "what is compressed would have to be compressed again"
    assert merging.size == RUN_BYTES
    assert not looked(fetched([131_000] * FAR_FROM), filling=750_000).wanted(batch(131_000)), (
        "it loads the compiled loops"
    )
    near = looked(fetched([131_000] * 64))
    assert not near.wanted(batch(131_000)) and near.size == MERGED_SIZE
