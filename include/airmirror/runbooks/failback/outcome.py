"""The outcome of a failback that was carried out: what returned, where groups went, what stays behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airmirror.ledger import GroupOffset
from airmirror.report.document import now_ms
from airmirror.runbooks.failback.account import Returned, returned
from airmirror.runbooks.failback.differing import accepted
from airmirror.runbooks.failback.order import FailbackOrder
from airmirror.runbooks.failback.pair import LEASES, Pair
from airmirror.runbooks.failback.plan import FailbackPlan, failback_plan
from airmirror.wire.mappings import ResetRecord
from airmirror.wire.moves import GroupMove
from airmirror.wire.owners import OrderScope


@dataclass(frozen=True)
class FailbackOutcome:
    """The outcome of a failback. ``plan``: how things are after it; ``moves``: where groups stood on the source and went;
    ``left``: positions of groups that were not moved, with their reasons; ``accepted``: records that differ on both sides, which
    a person has accepted; ``seconds``: how long this run of it took.
    """

    order: FailbackOrder
    ended_ms: int
    seconds: float
    plan: FailbackPlan
    returned: tuple[Returned, ...]
    moves: tuple[GroupMove, ...]
    left: tuple[tuple[str, str, int, str], ...]
    accepted: tuple[ResetRecord, ...] = ()

    @property
    def is_good(self) -> bool:
        """Return whether every group was moved, nothing stays behind, and nothing differs."""
        return not self.left and not self.accepted and not any(each.behind for each in self.returned)


def outcome_of(pair: Pair, order: FailbackOrder, groups: Sequence[GroupOffset], seconds: float) -> FailbackOutcome:
    """Look at both clusters after the last step. ``groups``: what became of each position."""
    now = pair.now()
    owners = now.forward.ledger.owners()

    def ordered(each: Returned | GroupMove | ResetRecord) -> bool:
        if order.topics:
            return each.topic in order.topics
        record = owners.record(each.topic)
        # What another order has named came back by that one.
        return record is None or record.scope is OrderScope.FLOW

    moves = now.reverse.ledger.of_kind(GroupMove)
    return FailbackOutcome(
        order=order,
        ended_ms=now_ms(),
        seconds=seconds,
        plan=failback_plan(now.forward),
        returned=tuple(filter(ordered, returned(now.forward))),
        moves=tuple(each for each in moves if each.window.startswith(LEASES) and ordered(each)),
        left=tuple((row.group, row.topic, row.partition, row.reason) for row in groups if row.reason),
        accepted=tuple(filter(ordered, accepted(now.forward))),
    )
