"""The source's last records before a place, by their marks: whose further copies a target may hold."""

from __future__ import annotations

from airmirror.evidence.logs import Log, marks_of
from airmirror.evidence.marked import Marked

REMEMBERED = 1_000_000  # offsets of the source


class RecordMarks:
    """Marks of the source's records, and of aborted ones, up to the offset that was asked for last; read when needed."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._end = log.since
        self.written, self.aborted = Marked(), Marked()

    def extend(self, end: int) -> None:
        """Read on to ``end``; what lies more than a million offsets before it is forgotten, a run at a time."""
        if end <= self._end:
            return
        first = end - REMEMBERED
        for records, gone in self._log.records_and_aborted(max(self._end, first), end):
            for marked, its in ((self.written, records), (self.aborted, gone)):
                marked.forget(first)
                marked.add(marks_of(its), its.offsets)
        self._end = end
