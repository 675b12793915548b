"""The report of a failback that was carried out: what returned, where groups went, what stays behind. As a page and as JSON."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from airmirror.errors import AirmirrorError, counted
from airmirror.failback.account import Returned, returned
from airmirror.failback.differing import accepted
from airmirror.failback.page import page
from airmirror.failback.pair import CLAIMS, Pair
from airmirror.failback.plan import FailbackPlan, failback_plan
from airmirror.failback.steps import Done, FailbackOrder
from airmirror.failover.page import MOST_ROWS, known_time
from airmirror.failover.report import write_files
from airmirror.quality.page import table
from airmirror.wire.owners import Scope
from airmirror.wire.segments import ResetRecord
from airmirror.wire.switches import GroupMove


@dataclass(eq=False)
class FailbackNotWritten(AirmirrorError):
    """A report's file that can't be written; the failback itself was carried out."""

    flow: str
    file: str
    reason: str

    def __str__(self) -> str:
        return f"flow {self.flow!r} was failed back, and is open again, but {self.file} can't be written: {self.reason}"


@dataclass(frozen=True)
class FailbackReport:
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

    @property
    def headline(self) -> str:
        """Return the whole failback in one sentence."""
        behind = sum(each.behind for each in self.returned)
        stay = (
            f"; {counted(behind, 'record')} of the source that never crossed stay there as they are" if behind else ""
        )
        partitions = {(each.topic, each.partition) for each in self.accepted}
        if partitions:
            stay += f"; records of {counted(len(partitions), 'partition')} differ on both sides, which was accepted"
        return (
            f"{self.plan.flow} failed back in {self.seconds:.0f} s: "
            f"{sum(each.records for each in self.returned):,} records returned to {counted(len(self.returned), 'partition')}, "
            f"{len(self.moves):,} positions of groups are moved, {len(self.left):,} are left{stay}. "
            f"{', '.join(self.order.topics) + ':' if self.order.topics else 'The flow is'} open again."
        )

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "flow": self.plan.flow,
            "order": asdict(self.order),
            "ended_ms": self.ended_ms,
            "seconds": self.seconds,
            "headline": self.headline,
            "is_good": self.is_good,
            "returned": [asdict(each) for each in self.returned],
            "groups": [asdict(each) for each in self.moves],
            "left": [list(each) for each in self.left],
            "accepted": [asdict(each) for each in self.accepted],
            "plan": self.plan.as_dict(),
        }


def report_of(pair: Pair, order: FailbackOrder, done: Done) -> FailbackReport:
    """Look at both clusters after the last step."""
    now = pair.now()
    owners = now.forward.ledger.owners()

    def ordered(each: Returned | GroupMove | ResetRecord) -> bool:
        if order.topics:
            return each.topic in order.topics
        record = owners.record(each.topic)
        return record is None or record.scope is Scope.FLOW  # else another order, which named it, has brought it back

    moves = now.reverse.ledger.of_kind(GroupMove)
    return FailbackReport(
        order=order,
        ended_ms=int(time.time() * 1000),
        seconds=done.seconds,
        plan=failback_plan(now.forward),
        returned=tuple(filter(ordered, returned(now.forward))),
        moves=tuple(each for each in moves if each.window.startswith(CLAIMS) and ordered(each)),
        left=tuple((row.group, row.topic, row.partition, row.reason) for row in done.groups if row.reason),
        accepted=tuple(filter(ordered, accepted(now.forward))),
    )


def report_page(made: FailbackReport) -> str:
    """The plan's page as things are now, and before it what was done."""
    came = [
        (each.topic, each.partition, each.remote_topic, each.records, each.behind, each.goes_on)
        for each in made.returned
    ]
    moves = [(each.group, each.topic, each.partition, _before(each), each.after) for each in made.moves]
    differ = [(each.topic, each.partition, each.by, each.reason, each.problem) for each in made.accepted]
    done = "".join(
        (
            f"<p>{known_time(made.ended_ms)}, by {escape(made.order.by)}: {escape(made.order.reason)}. "
            f"{escape(made.headline)}</p>",
            "<h2>What returned</h2>",
            table(("topic", "partition", "from", "records", "stay behind", "goes on at"), came[:MOST_ROWS]),
            "<h2>Groups</h2>",
            table(("group", "topic", "partition", "stood at", "goes on at"), moves[:MOST_ROWS]),
            "<h2>Groups that were left</h2>",
            table(("group", "topic", "partition", "why"), made.left[:MOST_ROWS]),
            "<h2>Accepted: not equal on both sides, and in no account</h2>",
            table(("topic", "partition", "by", "reason", "what"), differ[:MOST_ROWS]),
        )
    )
    return page(made.plan, done=done, title=f"Failback of {made.plan.flow}")


def write_report(made: FailbackReport, base: Path) -> Path:
    """Write ``base``.html and ``base``.json, over what is there; the page. Raises FailbackNotWritten."""
    return write_files(base, report_page(made), made.as_dict(), partial(FailbackNotWritten, made.plan.flow))


def _before(move: GroupMove) -> int | str:
    return "nowhere" if move.before < 0 else move.before
