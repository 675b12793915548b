"""The order of a failback: for whoever only names it, nothing else is loaded."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from airmirror.runbooks.runbook import Order, option


@dataclass(frozen=True, kw_only=True)
class FailbackOrder(Order):
    """Who fails back, and why. ``groups``: those that a migration has cut over, which its undo moves and no others; None: those
    that the reverse flow moves."""

    groups: Collection[str] | None = None

    leave: bool = option(
        "Records that were neither replicated nor rescued stay on the source alone.",
        False,
        "Leave what is not replicated",
    )
    topics: tuple[str, ...] = option(
        "A topic of the source; again for more. All but what was named if not given.",
        (),
        flag="topic",
        verbs=("run", "undo"),
    )
    wait: float = option(
        "How many seconds to wait until applications have stopped, and until all has returned.", 300.0, is_asked=False
    )
    inexact: bool = option("Also where groups do not resume at the very next record.", False, "Inexact groups too")
    accept: bool = option(
        "Records that differ on both sides stay as they are, in no account; a dry run lists them.",
        False,
        "Accept what differs",
        flag="accept-loss",
    )
