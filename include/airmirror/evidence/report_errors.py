"""The errors of a report's files, of its key, and of its options."""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.errors import AirmirrorError, command


@dataclass(eq=False)
class NothingToReport(AirmirrorError):
    """A flow without a segment topic: it has not run yet."""

    flow: str
    cluster: str
    topic: str

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r} has not run yet, or this user may not see it: cluster {self.cluster!r} shows no topic "
            f"{self.topic!r}; {command('run-window', flow=self.flow)} runs a first window"
        )


@dataclass(eq=False)
class EmptyTimeRange(AirmirrorError):
    """A range of time without a moment in it."""

    first: str
    end: str

    def __str__(self) -> str:
        return f"--from {self.first} is not before --to {self.end}: no moment lies between them"


@dataclass(eq=False)
class ReportNotWritten(AirmirrorError):
    """A file of a report that could not be written. What was there before is still there."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"the report can't be written to {self.file}: {self.reason}; give another place with --write"
