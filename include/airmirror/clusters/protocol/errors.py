"""The errors of reading a log, and Kafka's error codes as people read them."""

from __future__ import annotations

from kafka.errors import for_code

from airmirror.errors import AirmirrorError
from airmirror.partitions import TopicPartition

UNKNOWN_SERVER_ERROR = -1  # a failure of the broker itself, which its log tells


class FetchFailed(AirmirrorError):
    """A fetch or offset request that a broker answered with an error, or with what can't be read."""

    cluster: str
    partition: TopicPartition
    error: str
    offset: int = -1

    def __str__(self) -> str:
        where = f" from offset {self.offset}" if self.offset >= 0 else ""
        return f"cluster {self.cluster!r}: {self.partition} can't be read{where}: {self.error}"


class ReadDenied(FetchFailed):
    """A topic that this user may not read."""


class PartitionMoved(AirmirrorError, transient=True):
    """The leader of a partition has moved (or the broker is starting): ask again with new metadata."""

    says = "cluster {0.cluster!r}: the leader of {0.partition} has moved: {0.error}"
    cluster: str
    partition: TopicPartition
    error: str


class RecordsWithheld(AirmirrorError, transient=True):
    """Offsets that can be read, and yet a broker gives nothing from there on."""

    cluster: str
    partition: TopicPartition
    position: int
    end: int
    answer: str

    def __str__(self) -> str:
        return f"cluster {self.cluster!r}: {withheld(self.partition, self.position, self.end, self.answer)}"


class LastStableOffsetStuck(AirmirrorError, transient=True):
    """An open transaction keeps records from being read."""

    says = (
        "cluster {0.cluster!r}: {0.partition} can be read up to offset {0.position} only, {0.end} is needed: "
        "a transaction is open there; it ends with its producer or after its transaction.timeout.ms "
        "(`kafka-transactions.sh find-hanging` names one that does not)"
    )
    cluster: str
    partition: TopicPartition
    position: int
    end: int


def withheld(partition: TopicPartition, position: int, end: int, answer: str) -> str:
    """Return the message for a broker that gives nothing of ``[position, end)``."""
    return (
        f"the leader of {partition} gives nothing from offset {position} on, though {end} is the end ({answer}); where the "
        "topic is in tiered storage its remote store fails, or needs longer than remote.fetch.max.wait.ms: see the broker's "
        "log. What is there is fetched when it answers"
    )


def error_name(code: int) -> str:
    """Kafka's name and number of an error code, as in "REQUEST_TIMED_OUT (7)"."""
    name = "UNKNOWN_SERVER_ERROR" if code == UNKNOWN_SERVER_ERROR else for_code(code).message
    return f"{name} ({code})"
