"""The source's last records before a place, by their marks: whose further copies a target may hold."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from airmirror.evidence.alignment import Marks
from airmirror.evidence.logs import Log, marks_of
from airmirror.wire.records import Array, Records

REMEMBERED = 1_000_000  # offsets of the source


@dataclass
class Remembered:
    """Marks in their order with the offset of each, 16 bytes a record, in runs: a short one is merged with the one before."""

    _runs: list[tuple[Marks, Array]] = field(default_factory=list)

    def add(self, records: Records, first: int) -> None:
        """Remember these too, and forget runs that end before offset ``first``."""
        if not len(records):
            return
        self._runs = [(marks, offsets) for marks, offsets in self._runs if int(offsets.max()) >= first]
        self._runs.append(_ordered(marks_of(records), records.offsets.copy()))
        while len(self._runs) > 1 and 2 * len(self._runs[-1][0]) > len(self._runs[-2][0]):
            runs = [self._runs.pop(), self._runs.pop()]
            marks, offsets = (np.concatenate(parts) for parts in zip(*runs, strict=True))
            self._runs.append(_ordered(marks[offsets >= first], offsets[offsets >= first]))

    def find(self, mark: int) -> int | None:
        """The offset of the last record with this mark; None: there is none."""
        for marks, offsets in reversed(self._runs):
            at = int(np.searchsorted(marks, np.uint64(mark), side="right")) - 1
            if at >= 0 and int(marks[at]) == mark:
                return int(offsets[at])
        return None

    def has_all(self, marks: Marks) -> bool:
        """Return whether each of these marks is remembered."""
        found = np.zeros(len(marks), bool)
        for run, _ in self._runs:
            found |= np.isin(marks, run)
        return bool(found.all())


def _ordered(marks: Marks, offsets: Array) -> tuple[Marks, Array]:
    order = np.lexsort((offsets, marks))
    return marks[order], offsets[order]


class History:
    """Marks of the source's records, and of aborted ones, up to the offset that was asked for last; read when needed."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._end = log.since
        self.written, self.aborted = Remembered(), Remembered()

    def extend(self, end: int) -> None:
        """Read on to ``end``; what lies more than a million offsets before it is not remembered."""
        if end <= self._end:
            return
        first = end - REMEMBERED
        for records, gone in self._log.records_and_aborted(max(self._end, first), end):
            self.written.add(records, first)
            self.aborted.add(gone, first)
        self._end = end
