"""A file of positions, whatever its format: what it says of Kafka, and its text for other positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from airmirror.errors import AirmirrorError
from airmirror.partitions import OfPartition, TopicPartition

MOST_BYTES = 64 << 20  # of one file
MOST_POSITIONS = 200_000
LARGEST = 2**63 - 1
_MOST_PARTITIONS = 2**31 - 1


@dataclass(frozen=True)
class Position(OfPartition):
    """The next offset to read of a partition. ``place``: the part of the file that says so (a batch, a group), or ""."""

    place: str
    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition} at {self.offset}"
        return f"{where} ({self.place})" if self.place else where


@dataclass(frozen=True)
class PositionThere:
    """A position on the other cluster: its topic's name there, the next offset to read, and whether that is exact."""

    topic: str
    offset: int
    exact: bool = True


Answers = Mapping[Position, PositionThere]


@dataclass(frozen=True)
class PositionFile:
    """A file, or a directory, that was read.

    ``kept``: what of it is no position of Kafka, and stays as it is. ``texts``: the files with other positions, by their path
    below what is written; a document of one file has it at "". ``copied`` is the directory whose other files go along, but
    for those below ``left_out``.
    """

    format: str
    positions: tuple[Position, ...]
    texts: Callable[[Answers], dict[str, str]]
    kept: tuple[str, ...] = ()
    copied: Path | None = None
    left_out: tuple[str, ...] = ()


class BadPositions(AirmirrorError, bad_input=True):
    """A file that does not hold positions in any format that is known, or that holds nonsense."""

    says = "{0.path}: {0.reason}; nothing was written (docs/migration.md names the formats)"
    path: str
    reason: str


def position(path: str, place: str, topic: object, partition: object, offset: object) -> Position:
    """A position made of what a file says. Raises BadPositions where it is none."""
    if not isinstance(topic, str) or not 0 < len(topic) <= 249:
        raise BadPositions(path, f"{topic!r:.100} is no name of a topic")
    number, at = whole(partition), whole(offset)
    if number is None or not 0 <= number <= _MOST_PARTITIONS:
        raise BadPositions(path, f"topic {topic!r}: {partition!r:.100} is no number of a partition")
    if at is None or not 0 <= at <= LARGEST:
        known = {-1: " (the latest)", -2: " (the earliest)"}.get(at if at is not None else 0, "")
        raise BadPositions(path, f"{topic}-{number}: {offset!r:.100}{known} is no offset of a record")
    return Position(place, topic, number, at)


def whole(value: object) -> int | None:
    """The value as a whole number, written out or not; None if it is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.removeprefix("-").isdecimal() and value.isascii() and len(value) < 20:
        return int(value)
    return None


def checked(path: str, positions: list[Position]) -> tuple[Position, ...]:
    """The positions, if there are any, not too many, and no two of one partition in one place. Raises BadPositions."""
    if len(positions) > MOST_POSITIONS:
        raise BadPositions(path, f"it holds more than {MOST_POSITIONS:,} positions")
    seen = set[tuple[str, TopicPartition]]()
    for each in positions:
        if (each.place, each.key) in seen:
            where = f" ({each.place})" if each.place else ""
            raise BadPositions(path, f"{each.key} is in it more than once{where}")
        seen.add((each.place, each.key))
    return tuple(positions)
