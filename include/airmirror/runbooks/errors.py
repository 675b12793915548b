"""Errors that every runbook can end with, and what those of its steps have in common."""

from __future__ import annotations

from airmirror.errors import AirmirrorError, listed


class NoSuchStep(AirmirrorError, bad_input=True):
    """An order for steps that its runbook does not have."""

    runbook: str
    names: tuple[str, ...]
    known: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.runbook}: there is no step {', '.join(self.names)}; choose --step from: {', '.join(self.known)}"


class RunbookError(AirmirrorError):
    """A step of a runbook that is not taken as things are; ``reasons``: why, one each."""

    flow: str
    reasons: tuple[str, ...]
    says = "a step was not taken"

    def what(self) -> str:
        """The event and the way out, in a sentence."""
        return super().__str__()

    def __str__(self) -> str:
        return f"flow {self.flow!r}: {self.what()}\n{listed(self.reasons)}"


class CannotUndo(RunbookError):
    """A procedure that can't be undone as things are, because applications have read or written since, or it is over.
    ``way_out``: what can be done instead, with its command. Nothing was changed, but that a migration's producers may be
    unblocked."""

    runbook: str
    way_out: str
    says = "its {0.runbook} can't be undone as things are; {0.way_out}"


class Incomplete(AirmirrorError):
    """A procedure, or a step of one, that was carried out, and after which something is missing or left."""

    flow: str
    headline: str
    says = "flow {0.flow!r}: {0.headline}"
