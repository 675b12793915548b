"""The steps of a migration, and an order to take them: for whoever only names them, nothing else is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Step = Literal["mirror", "check_groups", "switch_consumers", "reverse", "switch_producers", "finish"]
STEPS: tuple[Step, ...] = get_args(Step)
WITH_REVERSE: tuple[Step, ...] = ("reverse", "switch_producers")  # steps that the flow back takes part in


def usual(*, reverse: bool) -> tuple[Step, ...]:
    """The steps that one after the other move a move group, with or without a flow back; ``finish`` comes days later."""
    return tuple(step for step in STEPS[:-1] if step != "reverse" or reverse)


@dataclass(frozen=True)
class MoveOrder:
    """Who moves which move group, and why. ``wait``: seconds for windows to catch up, applications to stop and to start.
    ``reverse``: the flow back begins with the switch of producers, as with ``move.reverse``."""

    move: str
    reason: str
    by: str
    wait: float = 300.0
    reverse: bool = False

    @property
    def window(self) -> str:
        """The name under which its groups are moved: the same in every attempt."""
        return f"move-{self.move}"
