"""The orders of a take-over and of a hand-back: for whoever only names them, nothing else is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airmirror.runbooks.runbook import Order, option

if TYPE_CHECKING:
    from airmirror.config import Flow


@dataclass(frozen=True, kw_only=True)
class TakeoverOrder(Order):
    """Who takes over, and why."""

    wait: float = option(
        "How many seconds to wait until MirrorMaker 2 is stopped, or for another window's lease.",
        300.0,
        is_asked=False,
        within=(0.0, None),
    )
    topics: tuple[str, ...] = option(
        "history: only this topic of the source; again for more.", (), flag="topic", is_asked=False
    )


@dataclass(frozen=True, kw_only=True)
class HandbackOrder(Order):
    """Who hands back, and why."""

    check: bool = option(
        "Afterwards: did MirrorMaker 2 resume at the very next record? By its first records.",
        False,
        "Check what MirrorMaker 2 copies",
        verbs=("plan",),
    )
    wait: float = option(
        "--check: how many seconds to wait for a partition's first record.",
        300.0,
        verbs=("plan",),
        is_asked=False,
        within=(0.0, None),
    )
    offsets: str = option(
        "Write the body for PATCH /connectors/<name>/offsets of Connect's REST API into this file.",
        "",
        verbs=("plan",),
        is_asked=False,
    )
    into: str = option(
        "Write progress into this topic of Connect's workers, while the connector is stopped.",
        "",
        "Topic of Connect's workers",
        flag="topic",
    )
    connector: str = option("The connector's name there; by default takeover.connector.name.", "")

    def name_of(self, flow: Flow) -> str:
        return self.connector or flow.settings.takeover_connector_name
