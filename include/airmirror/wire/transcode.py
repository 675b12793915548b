"""The slow path: records of batches that cannot be copied whole, written as dense batches again (invariant D).

Small batches take this way too: the broker takes one batch a partition and request, so consecutive small ones are
merged into one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from airmirror.wire.batch import Compression
from airmirror.wire.batches import HEADER_SIZE
from airmirror.wire.codecs import compress
from airmirror.wire.merging import MERGED_SIZE
from airmirror.wire.records import Array, Records, write


@dataclass(frozen=True)
class DenseBatch:
    """Records ready to be produced as one batch: what its header needs, its compressed bytes, and where they came from."""

    payload: bytes | memoryview
    codec: int
    base_timestamp: int
    max_timestamp: int
    offsets: Array  # the source offset of each record
    records: Records

    def runs(self) -> list[tuple[int, int]]:
        """The runs of consecutive source offsets: (first offset, count)."""
        breaks = np.flatnonzero(np.diff(self.offsets) != 1) + 1
        starts = np.concatenate(([0], breaks))
        counts = np.diff(np.concatenate((starts, [len(self.offsets)])))
        return list(zip(self.offsets[starts].tolist(), counts.tolist(), strict=True))


def dense_batches(
    records: Records, compression: Compression, max_bytes: int, size: int = MERGED_SIZE
) -> Iterator[DenseBatch]:
    """``records`` as dense batches of some ``size`` bytes, and of at most ``max_bytes`` on the wire; a larger one that comes out
    holds a single record."""
    limit = min(size, max_bytes) - HEADER_SIZE
    number = 0
    while number < len(records):
        payload, count = write(records, number, limit)
        compressed = compress(compression.codec, payload, compression.level)
        del payload  # or it is the compressed one
        if len(compressed) + HEADER_SIZE > max_bytes and count > 1:
            limit //= 2  # it did not compress well enough
            continue
        part = records.slice(number, number + count)
        yield DenseBatch(
            payload=compressed,
            codec=compression.codec,
            base_timestamp=int(part.timestamps[0]),
            max_timestamp=int(part.timestamps.max()),
            offsets=part.offsets,
            records=part,
        )
        number += count
