"""A partition of a topic, and a record read from it, as every room names them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def grouped(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Values by key, both in the order of ``pairs``: of partitions, which are such pairs, the numbers by topic."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


class _Placed(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...


class _Copied(_Placed, Protocol):
    @property
    def remote_topic(self) -> str: ...


class OfPartition:
    """The mixin of what is of one partition: by its ``topic`` and ``partition``."""

    @property
    def key(self: _Placed) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


class OfCopy(OfPartition):
    """The mixin of what is of one partition and its copy: by its ``remote_topic``, too."""

    @property
    def remote(self: _Copied) -> TopicPartition:
        return TopicPartition(self.remote_topic, self.partition)


@dataclass(frozen=True)
class PartitionFacts(OfPartition):
    """The base of facts of one partition."""

    topic: str
    partition: int


@dataclass(frozen=True)
class CopyFacts(PartitionFacts, OfCopy):
    """The base of facts of one partition and its copy."""

    remote_topic: str


@dataclass(frozen=True)
class GroupPartition(OfPartition):
    """The base of facts of one partition as a consumer group has it."""

    group: str
    topic: str
    partition: int


@dataclass(frozen=True)
class Entry:
    """A record of an internal topic as it was read.

    ``timestamp`` is the broker's append time (epoch milliseconds), ``epoch`` of the leader that took it, -1 unknown.
    """

    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    epoch: int = -1
