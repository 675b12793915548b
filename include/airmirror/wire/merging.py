"""The rule for merging batches: from which small one of a slot on, below which size, and how large they become.

A target that is far away takes five requests a round trip. Where batches are so small that these do not fill the line, those
without compression are merged too.
"""

from __future__ import annotations

import struct

from airmirror.wire.batch import CODEC_MASK, Batch, Compression
from airmirror.wire.requests import IN_FLIGHT

# The size in bytes, by codec, below which a batch is merged with its neighbours. What merging saves is one request of the
# target's (about 80 µs); what it costs is to compress again, which gzip makes dear.
MERGED_BELOW = {0: 16_384, 1: 512, 2: 4_096, 3: 4_096, 4: 4_096}
ANY_SIZE = 1 << 40
MERGED_SIZE = 262_144
RUN_BYTES = 1 << 20  # at most, of batches as they were fetched, which are merged at once
RUN_RECORDS = 1 << 16
FAR_RUN_BYTES = RUN_BYTES // 8 * 7  # so that a run comes out as one batch of RUN_BYTES, not as one and a small rest

LINE_BYTES = 300e6  # a second: what a line is taken to carry
FAR_SECONDS = 0.01  # of a round trip: nearer targets are left alone

# Merging loads the compiled loops: 50 MB of LLVM, and seconds where they are not compiled yet. A few requests more cost less.
MERGED_FROM = 512
FAR_FROM = 4

_AHEAD = 23  # bytes of a batch up to its attributes, these included
_length = struct.Struct(">i")


def filling(round_trip: float, partitions: int) -> int:
    """The bytes of a batch of which five of each partition fill the line to a broker for a round trip, in seconds; 0 where it is
    near."""
    return int(LINE_BYTES * round_trip / IN_FLIGHT / max(1, partitions)) if round_trip >= FAR_SECONDS else 0


class Merging:
    """The decision to merge batches: a slot has been given enough small ones. With a ``compression`` all batches without one
    are written again from the first on, whatever their size. ``filling``: a batch without compression below that is small."""

    def __init__(self, compression: Compression | None = None, filling: int = 0) -> None:
        self._small = 0
        self.compression = compression
        self.below = MERGED_BELOW | {0: max(MERGED_BELOW[0], filling) if compression is None else ANY_SIZE}
        self.is_far = filling > MERGED_BELOW[0]
        self._least = self.below if self.is_far else MERGED_BELOW
        self.size = RUN_BYTES if self.is_far else MERGED_SIZE
        self.run = FAR_RUN_BYTES if self.is_far else RUN_BYTES
        self._from = FAR_FROM if self.is_far else MERGED_FROM

    def look(self, buffer: memoryview, start: int, end: int) -> None:
        """Count the small batches in what was fetched, before they are sent: a backlog of them is merged from the first on."""
        while self._small <= self._from and start + _AHEAD <= end:
            size = _length.unpack_from(buffer, start + 8)[0] + 12
            if size < _AHEAD:
                return  # damaged: who takes it apart says so
            self._small += size < self._least.get(buffer[start + 22] & CODEC_MASK, 0)
            start += size

    def wanted(self, batch: Batch) -> bool:
        """Return whether a batch is to be written again, with its neighbours."""
        is_asked_for = self._small > self._from or self.compression_of(batch.codec).codec != batch.codec
        return is_asked_for and batch.size < self.below.get(batch.codec, 0)

    def compression_of(self, codec: int) -> Compression:
        """Return the compression of a batch of that codec when it is written again."""
        return self.compression if self.compression and not codec else Compression(codec)
