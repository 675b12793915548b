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


@dataclass(eq=False)
class BadKey(AirmirrorError):
    """A file without the Ed25519 key that is needed."""

    file: str
    reason: str

    def __str__(self) -> str:
        return (
            f"key file {self.file}: {self.reason}; `openssl genpkey -algorithm ed25519 -out key.pem` makes a private key, "
            "`openssl pkey -in key.pem -pubout -out public.pem` writes its public key"
        )


@dataclass(eq=False)
class NoReport(AirmirrorError):
    """A file that can't be read, or is no report."""

    file: str
    reason: str

    def __str__(self) -> str:
        return f"{self.file} is no report: {self.reason}; give the .json file of a report"
