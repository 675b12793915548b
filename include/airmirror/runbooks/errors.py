"""Errors that every runbook can end with."""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.errors import AirmirrorError, listed


@dataclass(eq=False)
class NoSuchStep(AirmirrorError):
    """An order for steps that its runbook does not have."""

    runbook: str
    names: tuple[str, ...]
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.runbook}: there is no step {', '.join(self.names)}; choose --step from: {', '.join(self.known)}"


@dataclass(eq=False)
class CannotUndo(AirmirrorError):
    """A procedure that can't be undone as things are, because applications have read or written since, or it is over.
    ``way_out``: what can be done instead, with its command. Nothing was changed, but that a migration's producers may be
    unblocked."""

    flow: str
    runbook: str
    way_out: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return f"flow {self.flow!r}: its {self.runbook} can't be undone as things are; {self.way_out}\n{listed(self.reasons)}"


@dataclass(eq=False)
class Incomplete(AirmirrorError):
    """A procedure that was carried out, and after which something is missing or left. Its report is written."""

    flow: str
    headline: str

    def __str__(self) -> str:
        return f"flow {self.flow!r}: {self.headline} The report says what; applications may be started all the same."
