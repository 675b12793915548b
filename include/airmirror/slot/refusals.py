"""What the next attempt of a slot does differently for a partition: refusals of the target, and what the source left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from airmirror.config import Flow
from airmirror.slot.errors import AbortLeftOut, CopyError, PartitionError
from airmirror.wire.markers import Ended

UNEXPLAINED, CORRUPT_MESSAGE, MESSAGE_TOO_LARGE, INVALID_TIMESTAMP, INVALID_RECORD = -1, 2, 10, 32, 87
# UNEXPLAINED: the broker has failed over a batch, and of its records it is seen why.
UNSOUND = frozenset({UNEXPLAINED, CORRUPT_MESSAGE, INVALID_RECORD})  # what a damaged batch may be answered with

# By Kafka's error code of records that are refused themselves, in any batch: what of the remote topic lets them in.
_LET_IN = {
    MESSAGE_TOO_LARGE: "raise its max.message.bytes, or set its compression.type to producer",
    INVALID_TIMESTAMP: "raise its message.timestamp.before.max.ms and message.timestamp.after.max.ms",
    INVALID_RECORD: "a compacted topic takes no records without a key: correct its cleanup.policy",
}


class RecordTooLarge(CopyError):
    """A single record larger than the target topic takes."""

    says = (
        "{0.where}: the record at offset {0.offset} is {0.size} bytes, {0.remote_topic!r} on cluster "
        "{0.target!r} takes {0.limit}; raise its max.message.bytes"
    )
    offset: int
    size: int
    limit: int

    bad_from = "offset"


class BatchOverLimit(PartitionError):
    """A batch that must be taken apart, and is too large for that without its compression (window.largest.batch.bytes)."""

    says = (
        "{0.where}: the batch at offset {0.offset} holds more than {0.limit} bytes without its compression, and "
        "can't be copied whole; raise {0.cluster}->{0.target}.window.largest.batch.bytes (and the memory of the "
        "slots), or copy around it with {0.cluster}->{0.target}.errors.tolerance = all"
    )
    offset: int
    limit: int
    target: str

    bad_from = "offset"


class WriteRefused(CopyError):
    """The target refuses a batch for good, unless it gives no reason; ``code`` is Kafka's error code."""

    first: int
    last: int
    code: int
    error: str
    offsets: tuple[int, ...] = ()  # those of the records that it is about, where that is known

    @property
    def transient(self) -> bool:  # type: ignore[override]
        return self.code == UNEXPLAINED

    @property
    def first_bad(self) -> int:
        return min(self.offsets, default=self.first)

    def __str__(self) -> str:
        way_out = "the log of its broker says why" if self.transient else "change its configuration"
        return (
            f"{self.where}: cluster {self.target!r} refuses offsets {self.first} to {self.last} for "
            f"{self.remote_topic!r}: {self.error}; {_LET_IN.get(self.code, way_out)}, or leave the topic out"
        )


class DeadLetterRefused(PartitionError):
    """The dead letter topic does not take a record either; it is lost without a copy."""

    says = (
        "{0.where}: {0.dead_letter_topic!r} on cluster {0.target!r} does not take the record at offset "
        "{0.offset} either: {0.error}"
    )
    offset: int
    target: str
    dead_letter_topic: str
    code: int
    error: str

    bad_from = "offset"


@dataclass
class Refusals:
    """The target's refusals for a partition in the attempts of a slot so far, and their consequences: it writes differently, or
    counts records as lost. And what the source's lists of aborted transactions left out."""

    rewritten: bool = False  # no batch goes whole: as the target compresses them, one was too large
    lost: dict[int, str] = field(default_factory=dict)  # source offsets that are declared lost, with the reason
    unfit: set[int] = field(default_factory=set)  # those that the dead letter topic does not take either
    left_out: list[Ended] = field(default_factory=list)
    proven: int = -1  # what comes before this offset was taken: it is committed first, or a refusal would undo it again

    def allow(self, bad: PartitionError, flow: Flow) -> bool:
        """Take note of what was refused; whether the next attempt can get along with it."""
        if isinstance(bad, WriteRefused) and bad.code == MESSAGE_TOO_LARGE and not self.rewritten:
            self.rewritten = True
        elif isinstance(bad, WriteRefused) and bad.code in _LET_IN and bad.offsets and is_tolerant(flow):
            self.lost.update(dict.fromkeys(bad.offsets, str(bad)))
        elif isinstance(bad, DeadLetterRefused) and bad.code in _LET_IN:
            self.unfit.add(bad.offset)
        elif isinstance(bad, AbortLeftOut) and not bad.is_copied and {*bad.transactions} - {*self.left_out}:
            self.left_out += [Ended(*each) for each in bad.transactions if each not in self.left_out]
            self.proven = bad.first
        else:
            return False
        if bad.first_bad is not None:
            self.proven = bad.first_bad
        return True


def is_tolerant(flow: Flow) -> bool:
    """Return whether records that the target does not take are skipped (errors.tolerance=all)."""
    return flow.settings.errors_tolerance == "all"
