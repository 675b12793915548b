"""The rule for merging small batches: from which one of a slot on, and below which size."""

from __future__ import annotations

from airmirror.wire.batch import Batch

# The size in bytes, by codec, below which a batch is merged with its neighbours. What merging saves is one request of the
# target's (about 80 µs); what it costs is to compress again, which gzip makes dear.
MERGED_BELOW = {0: 16_384, 1: 512, 2: 4_096, 3: 4_096, 4: 4_096}
MERGED_SIZE = 262_144

# Merging loads the compiled loops: 50 MB of LLVM, and seconds where they are not compiled yet. A few requests more cost less.
MERGED_FROM = 512


class Merging:
    """The decision to merge a batch: it is small, and enough small ones have come before it in this slot."""

    def __init__(self) -> None:
        self._small = 0

    def wanted(self, batch: Batch) -> bool:
        """To be asked once for every data batch, in order."""
        if batch.size >= MERGED_BELOW.get(batch.codec, 0):
            return False
        self._small += 1
        return self._small > MERGED_FROM
