"""The rule for merging small batches: from which one of a slot on, and below which size."""

from __future__ import annotations

import struct

from airmirror.wire.batch import CODEC_MASK, Batch, Compression

# The size in bytes, by codec, below which a batch is merged with its neighbours. What merging saves is one request of the
# target's (about 80 µs); what it costs is to compress again, which gzip makes dear.
MERGED_BELOW = {0: 16_384, 1: 512, 2: 4_096, 3: 4_096, 4: 4_096}
ANY_SIZE = 1 << 40
MERGED_SIZE = 262_144
RUN_BYTES = 1 << 20  # of batches as they were fetched, which are merged at once
RUN_RECORDS = 1 << 16

# Merging loads the compiled loops: 50 MB of LLVM, and seconds where they are not compiled yet. A few requests more cost less.
MERGED_FROM = 512

_AHEAD = 23  # bytes of a batch up to its attributes, these included
_length = struct.Struct(">i")


class Merging:
    """The decision to merge small batches: a slot has been given enough of them. With a ``compression`` all batches without one
    are written again from the first on, whatever their size."""

    def __init__(self, compression: Compression | None = None) -> None:
        self._small = 0
        self.compression = compression
        self.below = MERGED_BELOW if compression is None else MERGED_BELOW | {0: ANY_SIZE}

    def look(self, buffer: memoryview, start: int, end: int) -> None:
        """Count the small batches in what was fetched, before they are sent: a backlog of them is merged from the first on."""
        while self._small <= MERGED_FROM and start + _AHEAD <= end:
            size = _length.unpack_from(buffer, start + 8)[0] + 12
            if size < _AHEAD:
                return  # damaged: who takes it apart says so
            self._small += size < MERGED_BELOW.get(buffer[start + 22] & CODEC_MASK, 0)
            start += size

    def wanted(self, batch: Batch) -> bool:
        """Return whether a batch is to be written again, with its neighbours."""
        is_asked_for = self._small > MERGED_FROM or self.compression_of(batch.codec).codec != batch.codec
        return is_asked_for and batch.size < self.below.get(batch.codec, 0)

    def compression_of(self, codec: int) -> Compression:
        """Return the compression of a batch of that codec when it is written again."""
        return self.compression if self.compression and not codec else Compression(codec)
