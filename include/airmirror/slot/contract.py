"""The input and the answer of a slot: plain values that travel to a Spark task and back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.partitions import CopyFacts, PartitionFacts

TRANSACTION_TIMEOUT_MS = 60_000  # as Kafka's own producer has it


@dataclass(frozen=True)
class SlotPartition(CopyFacts):
    """A partition's part of a window, and what must be known to continue it exactly."""

    start: int  # the first source offset that is not accounted for yet
    end: int  # exclusive
    source_topic_id: UUID
    target_topic_id: UUID
    target_end: int  # where the last mapping ends on the target (exclusive), -1: there is none yet
    leader_epoch: int  # of the last accounted batch, -1 unknown
    compacted: bool  # whether holes are allowed (invariant E)
    max_message_bytes: int  # what the remote topic takes
    known_end: int = 0  # a log of the target that ends here (exclusive) holds nothing of others
    target_epoch: int = -1  # the leader epoch of the target's batch that ends at target_end, -1 unknown
    keeps_times: bool = True  # False: the target may stamp records with its own time (topics.log.append.time)
    source_checksum: int = -1  # of the source's batch with the offset before start, -1 unknown
    purged: bool = False  # whether offsets that are gone from the log's beginning are holes (streams.applications)


@dataclass(frozen=True)
class Slot:
    """One Spark task of a window: partitions, copied under one transactional id."""

    flow: Flow
    window: str
    number: int
    lease_offset: int  # of the window's lease in the mapping topic
    max_ms: int  # from the slot's start on, by its own clock: after that nothing new is begun
    max_bytes: int | None  # the slot's share of window.max.bytes
    progress_topic: str
    progress_partitions: int
    mapping_topic: str
    partitions: tuple[SlotPartition, ...]
    slots: int = 1  # of the window
    follow_ms: int = 0  # so long it copies what comes after the planned ends; 0: it ends there

    @property
    def longest_ms(self) -> int:
        """After so long nothing new is begun, whether it follows or not."""
        return max(self.max_ms, self.follow_ms)

    @property
    def transactional_id(self) -> str:
        return transactional_id(self.flow, self.number)


def transactional_id(flow: Flow, number: int) -> str:
    """Invariant B's transactional ids."""
    return f"airmirror.{flow.source.alias}.{flow.target.alias}.{number}"


def is_own_id(flow: Flow, name: str) -> bool:
    """Return whether a transactional id is one of the flow's."""
    number = name.removeprefix(transactional_id(flow, 0).removesuffix("0"))
    return number != name and number.isdecimal()


def transaction_timeout_ms(flow: Flow) -> int:
    """Return the longest time of the flow's transactions: the target's ``producer.transaction.timeout.ms``, else a minute."""
    return int(flow.target.client("producer").get("transaction.timeout.ms", TRANSACTION_TIMEOUT_MS))


class Outcome(StrEnum):
    """The ways in which a partition's part of a window ends."""

    DONE = "done"  # up to the planned end, or further
    CUT = "cut"  # by window.max.ms, window.max.bytes or its driver: the next window continues
    FAILED = "failed"
    FENCED = "fenced"


@dataclass(frozen=True)
class SlotResult(PartitionFacts):
    """One row a partition: how it ended. The mappings say what was copied; they are committed with the records."""

    outcome: Outcome
    position: int  # the first source offset that is not accounted for
    seconds: float  # of its slot, as those below
    error: AirmirrorError | None = None
    limited: float = 0.0  # seconds in which the flow's limit kept it from fetching
    throttled: float = 0.0  # seconds for which brokers, by their quotas, wanted to be left alone
