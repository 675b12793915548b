"""The steps of a migration, and an order to take them: for whoever only names them, nothing else is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from airmirror.runbooks.runbook import Order, option
from airmirror.wire.moves import MIGRATION

if TYPE_CHECKING:
    from airmirror.config import Flow

MoveStep = Literal["mirror", "check_groups", "cut_over_consumers", "reverse", "cut_over_producers", "finish"]


@dataclass(frozen=True, kw_only=True)
class MoveOrder(Order):
    """Who moves which move group, and why."""

    move: str = option(
        "The move group: <flow>.move.<name>.… in the configuration.",
        "",
        "Move group",
        verbs=("run", "undo", "rehearse"),
        is_required=True,
    )
    takes: float = option(
        "Days that the migration takes, with the time to undo it.", 7.0, "Days", verbs=("plan",), within=(0.0, 3650.0)
    )
    wait: float = option(
        "How many seconds a step waits: for windows, for applications to stop, to start.",
        300.0,
        is_asked=False,
        within=(0.0, None),
    )
    reverse: bool | None = option(
        "From the cut-over of producers on, copy what is written on the target back to the source. Default: move.reverse.",
        None,
        "Reverse flow",
        setting="move_reverse",
    )
    unblock: bool = option(
        "Only unblock its producers: before a failback, after which applications write there again.",
        False,
        "Only unblock producers",
        verbs=("undo",),
    )

    @property
    def window(self) -> str:
        """The name under which its groups are moved: the same in every attempt."""
        return f"{MIGRATION}{self.move}"

    def goes_back(self, flow: Flow) -> bool:
        return flow.settings.move_reverse if self.reverse is None else self.reverse
