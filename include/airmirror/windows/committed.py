"""The commits of a window, summed up as they are read one by one: a window that follows the log for hours has millions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airmirror.partitions import TopicPartition
from airmirror.windows.findings import key_of
from airmirror.wire.mappings import MappingRecord


@dataclass
class PartitionCommits:
    """One partition's commits in a window. Ends are exclusive; target offsets of -1: no record was copied."""

    source_start: int
    source_end: int = -1
    target_start: int = -1
    target_end: int = -1
    copied: int = 0
    control: int = 0
    aborted: int = 0
    holes: int = 0
    lost: int = 0
    bytes: int = 0
    read_back: bool = True

    def add(self, record: MappingRecord) -> None:
        """Add the next commit."""
        self.source_end = record.source_end
        if record.copied:
            self.target_start = record.target_start if self.target_start < 0 else self.target_start
            self.target_end = record.target_end
        self.copied += record.copied
        self.control += record.control
        self.aborted += record.aborted
        self.holes += record.holes
        self.lost += record.lost
        self.bytes += record.size
        self.read_back = self.read_back and record.was_read_back


def committed(records: Iterable[MappingRecord]) -> dict[TopicPartition, PartitionCommits]:
    """Sum up the mapping records of a window, which come in the order of each partition's source offsets."""
    found: dict[TopicPartition, PartitionCommits] = {}
    for record in records:
        found.setdefault(key_of(record), PartitionCommits(record.source_start)).add(record)
    return found
