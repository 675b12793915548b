"""The outcome of a failover that was carried out: what is not known to have been replicated, what is not proven, who was left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airmirror.flows.prepare import Opened
from airmirror.ledger import GroupOffset
from airmirror.report.document import now_ms
from airmirror.runbooks.failover.alone import Unproven
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.plan import FailoverPlan, failover_plan


@dataclass(frozen=True)
class FailoverOutcome:
    """``plan``: how things are after it; ``unproven``: what is committed and not proven; ``groups``: what became of each
    position; ``servers``: the target's, with which applications start; ``seconds``: how long it took.
    """

    order: FailoverOrder
    ended_ms: int
    seconds: float
    plan: FailoverPlan
    unproven: tuple[Unproven, ...]
    groups: tuple[GroupOffset, ...]
    servers: tuple[str, ...]

    @property
    def is_good(self) -> bool:
        """Return whether nothing is known to be missing, unproven or left: with the source gone, as far as it was seen."""
        return not (self.plan.missing or self.unproven or self.left)

    @property
    def left(self) -> list[GroupOffset]:
        return [row for row in self.groups if row.reason]


def outcome_of(
    opened: Opened, order: FailoverOrder, unproven: Sequence[Unproven], groups: Sequence[GroupOffset], seconds: float
) -> FailoverOutcome:
    """Look at both clusters, or one, after the last step."""
    return FailoverOutcome(
        order=order,
        ended_ms=now_ms(),
        seconds=seconds,
        plan=failover_plan(opened),
        unproven=tuple(unproven),
        groups=tuple(groups),
        servers=tuple(opened.flow.target.bootstrap_servers),
    )
