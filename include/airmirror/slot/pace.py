"""The amount that a slot fetches at once: no more than the target takes in a small part of a transaction's time.

What is fetched is written before a commit is thought of. A target that is slow (far away, many small batches, few in-sync
replicas) could need longer for it than a transaction may last, which would be aborted by its coordinator, again and again.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST_BYTES = 256 << 10
LEAST_BYTES = 1 << 10
SAMPLE_BYTES = 16 << 10
PART = 8  # of the transaction's time
GROWTH = 4  # from one fetch to the next
RETREAT = 8  # after an attempt that failed


@dataclass
class Pace:
    """Of one slot, kept from attempt to attempt. ``timeout_ms`` is the transaction's."""

    timeout_ms: int
    bytes: int = FIRST_BYTES

    @property
    def commit_ms(self) -> float:
        """After how long a transaction is committed at the latest, so that its end comes in time too."""
        return self.timeout_ms / 3

    def took(self, size: int, seconds: float, most: int) -> None:
        """The target took ``size`` bytes in ``seconds``; ``most``: what is ever fetched at once."""
        full = size >= min(self.bytes, most) // 2
        if size < SAMPLE_BYTES and not full:
            return  # too little to tell anything
        possible = int(size / max(seconds, 1e-4) * self.timeout_ms / 1000 / PART)
        self.bytes = max(LEAST_BYTES, min(possible, self.bytes * GROWTH if full else self.bytes, most))

    def failed(self) -> None:
        """An attempt ended early, for whatever reason."""
        self.bytes = max(LEAST_BYTES, self.bytes // RETREAT)
