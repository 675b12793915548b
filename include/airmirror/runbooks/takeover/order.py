"""The order of a take-over: for whoever only names it, nothing else is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from airmirror.runbooks.runbook import Order, option


@dataclass(frozen=True, kw_only=True)
class TakeoverOrder(Order):
    """Who takes over, and why. ``wait``: seconds until MirrorMaker 2 is stopped, and for another window's lease; ``topics``: of
    the step *history*, none: all."""

    wait: float = option(
        "How many seconds to wait until MirrorMaker 2 is stopped, or for another window's lease.",
        300.0,
        is_asked=False,
        within=(0.0, None),
    )
    topics: tuple[str, ...] = option(
        "history: only this topic of the source; again for more.", (), flag="topic", is_asked=False
    )
