"""The account of mapping records by themselves: whether they add up, what they cover, what of it is still there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from airmirror.errors import AirmirrorError
from airmirror.slot.account import NO_DIGEST
from airmirror.windows.errors import Unaccounted
from airmirror.wire.mappings import MappedRange, MappingRecord
from airmirror.wire.moves import FAILBACK

ALL = (0, 2**63 - 1)
COUNTS = ("copied", "control", "aborted", "holes", "lost")  # of source offsets, of a mapping record
NOT_COVERED = "no mapping record covers them, though progress is past them"


def account_error(
    source: str, mappings: Sequence[MappingRecord], compacted: bool, start: int | None
) -> AirmirrorError | None:
    """Return the first error in consecutive mapping records of one partition, from ``start`` on (invariants C, E, G)."""
    expected = start
    for record in mappings:
        where = (source, record.topic, record.partition, record.source_start, record.source_end - 1)
        if expected is not None and record.source_start != expected:
            return Unaccounted(*where, f"the mapping record before ends at {expected}")
        total = record.copied + record.control + record.aborted + record.holes + record.lost
        if total != record.source_end - record.source_start:
            return Unaccounted(*where, f"{total} of {record.source_end - record.source_start} offsets are counted")
        if record.copied != sum(run.count for run in record.ranges):
            return Unaccounted(*where, f"{record.copied} records copied, but its ranges hold another number")
        if record.holes and not compacted:
            return Unaccounted(*where, f"{record.holes} holes in a topic that is not compacted")
        expected = record.source_end
    return None


def is_declared(record: MappingRecord) -> bool:
    """Return whether a loss was accepted in it (windows/losses): offsets counted as lost may still lie on the target.

    Such a record has the digest of nothing; one that lost records to ``errors.tolerance`` has that of what was written.
    """
    return bool(record.lost) and record.digest == NO_DIGEST


def is_taken_over(record: MappingRecord) -> bool:
    """Return whether another writer copied its records before the flow began: the digest of nothing, though it has records.

    That writer may have left more than the source's committed records among them, or before the next record.
    """
    return bool(record.copied) and not record.lost and record.digest == NO_DIGEST


def has_returned(record: MappingRecord) -> bool:
    """Return whether its records came the other way: written on the target, brought back, and compared (runbooks/failback)."""
    return record.window.startswith(FAILBACK)


def still_held(
    record: MappingRecord, source_first: int, target_first: int, within: tuple[int, int] = ALL
) -> MappingRecord:
    """The part of a mapping record above both logs' starts (its offsets are given) and ``within`` source offsets."""
    begin, end = max(record.source_start, source_first, within[0]), min(record.source_end, within[1])
    for run in record.ranges:
        if run.target_first < target_first:
            begin = max(begin, min(run.source_end, run.source_first + target_first - run.target_first))
    if begin == record.source_start and end == record.source_end:
        return record
    kept = runs_within(record.ranges, begin, end)
    return replace(
        record,
        source_start=min(begin, end),
        source_end=end,
        target_start=kept[0].target_first if kept else record.target_end,
        target_end=record.target_end if end == record.source_end or not kept else kept[-1].target_end,
        copied=sum(run.count for run in kept),
        ranges=tuple(kept),
    )


def runs_within(runs: Iterable[MappedRange], begin: int, end: int) -> list[MappedRange]:
    """The parts of runs that lie within the source offsets ``[begin, end)``."""
    found = []
    for run in runs:
        first, last = max(run.source_first, begin), min(run.source_end, end)
        if first < last:
            found.append(MappedRange(first, run.target_first + first - run.source_first, last - first))
    return found


def uncovered(mappings: Sequence[MappingRecord], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """The ranges of the source offsets ``[begin, end)`` that none of the mapping records, in order, covers."""
    for mapping in mappings:
        if begin < min(mapping.source_start, end):
            yield begin, min(mapping.source_start, end)
        begin = max(begin, mapping.source_end)
    if begin < end:
        yield begin, end
