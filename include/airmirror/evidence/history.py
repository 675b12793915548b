"""The source's last records before a place, by their marks: whose further copies a target may hold."""

from __future__ import annotations

from airmirror.evidence.logs import Log, marks_of

REMEMBERED = 1_000_000  # offsets of the source


class History:
    """Marks of the source's records, and of aborted ones, up to the offset that was asked for last; read when needed."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._end = log.start
        self.marks: dict[int, int] = {}
        self.aborted: dict[int, int] = {}

    def extend(self, end: int) -> None:
        """Read on to ``end``; what lies more than a million offsets before it is not remembered."""
        if end <= self._end:
            return
        first = max(self._end, end - REMEMBERED)
        for records, gone in self._log.records_and_aborted(first, end):
            self.marks.update(zip(marks_of(records).tolist(), records.offsets.tolist(), strict=True))
            self.aborted.update(zip(marks_of(gone).tolist(), gone.offsets.tolist(), strict=True))
        self._end = end
        if len(self.marks) > 2 * REMEMBERED:
            self.marks = {mark: offset for mark, offset in self.marks.items() if offset >= end - REMEMBERED}
