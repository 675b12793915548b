"""The report of a failover that was carried out: what is not known to have crossed, groups, names. As a page and as JSON."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

from airmirror.errors import AirmirrorError, command, counted
from airmirror.failover.alone import NotJudged
from airmirror.failover.page import MOST_ROWS, headline, known_time, page
from airmirror.failover.plan import FailoverPlan, failover_plan
from airmirror.failover.steps import Order
from airmirror.flows.prepare import Opened
from airmirror.ledger import GroupOffset
from airmirror.quality.page import table

UNKNOWN = (
    "<p>Records of the source from these offsets on. Its end is as it was last seen: what came later is not known.</p>"
)


@dataclass(eq=False)
class FailoverNotWritten(AirmirrorError):
    """A report's file that can't be written; the failover itself was carried out."""

    flow: str
    file: str
    reason: str

    def __str__(self) -> str:
        shown = command("failover", "plan", "--write", "PATH", flow=self.flow)
        return f"flow {self.flow!r} was failed over, but {self.file} can't be written: {self.reason}; {shown} tells the same"


@dataclass(frozen=True)
class FailoverReport:
    """The outcome of a failover. ``plan``: how things are after it; ``not_judged``: what is committed and not proven;
    ``groups``: what became of each position; ``seconds``: how long it took.
    """

    order: Order
    ended_ms: int
    seconds: float
    plan: FailoverPlan
    not_judged: tuple[NotJudged, ...]
    groups: tuple[GroupOffset, ...]

    @property
    def is_good(self) -> bool:
        """Return whether nothing is known to be missing, unproven or left: with the source gone, as far as it was seen."""
        return not (self.plan.missing or self.not_judged or self.left)

    @property
    def left(self) -> list[GroupOffset]:
        """The positions of groups that were not moved, each with its reason."""
        return [row for row in self.groups if row.reason]

    @property
    def headline(self) -> str:
        """The whole failover in two sentences."""
        moved = sum(1 for row in self.groups if not row.reason)
        unproven = f", {counted(len(self.not_judged), 'partition')} not proven to the end" if self.not_judged else ""
        return (
            f"{self.plan.flow} failed over ({self.order.way}) in {self.seconds:.0f} s: {moved:,} positions of groups are moved, "
            f"{len(self.left):,} are left{unproven}. {headline(self.plan)}"
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
            "names": self.plan.names,
            "not_known_to_have_crossed": [
                {
                    "topic": point.topic,
                    "partition": point.partition,
                    "from": point.verified_end,
                    "source_end": point.source_end,
                    "seen_ms": point.seen_ms,
                    "committed_end": point.committed_end,
                }
                for point in self.plan.partitions
            ],
            "not_judged": [asdict(each) for each in self.not_judged],
            "groups": [asdict(each) for each in self.groups],
            "plan": self.plan.as_dict(),
        }


def report_of(
    opened: Opened, order: Order, not_judged: Sequence[NotJudged], groups: Sequence[GroupOffset], seconds: float
) -> FailoverReport:
    """Look at both clusters, or one, after the last step."""
    plan = failover_plan(opened)
    return FailoverReport(order, int(time.time() * 1000), seconds, plan, tuple(not_judged), tuple(groups))


def report_page(made: FailoverReport) -> str:
    """The plan's page as things are now, and before it what was done."""
    missing = [
        (point.topic, point.partition, point.verified_end, point.source_end, known_time(point.seen_ms))
        for point in made.plan.partitions
    ]
    unproven = [(each.topic, each.partition, each.first, each.last, each.reason) for each in made.not_judged]
    left = [(row.group, row.topic, row.partition, row.position, row.reason) for row in made.left]
    unknown = "" if not made.plan.source_error else UNKNOWN
    done = "".join(
        (
            f"<p>{known_time(made.ended_ms)}, by {escape(made.order.by)}: {escape(made.order.reason)}. "
            f"{escape(made.headline)}</p>",
            "<h2>Not known to have crossed</h2>",
            unknown,
            table(("topic", "partition", "from offset", "source's end", "seen"), missing[:MOST_ROWS]),
            "<h2>Committed, not proven</h2>",
            table(("topic", "partition", "first", "last", "why"), unproven[:MOST_ROWS]),
            "<h2>Groups that were left</h2>",
            table(("group", "topic", "partition", "position", "why"), left[:MOST_ROWS]),
        )
    )
    return page(made.plan, done=done, title=f"Failover of {made.plan.flow}")


def write_report(made: FailoverReport, base: Path) -> Path:
    """Write ``base``.html and ``base``.json, over what is there; the page. Raises FailoverNotWritten."""
    return write_files(base, report_page(made), made.as_dict(), partial(FailoverNotWritten, made.plan.flow))


def write_files(base: Path, page: str, told: Mapping[str, Any], failed: Callable[[str, str], AirmirrorError]) -> Path:
    """Write a report's ``base``.html and ``base``.json, over what is there; the page. Raises ``failed`` of file and reason."""
    for ending, text in {".json": json.dumps(told, indent=2), ".html": page}.items():
        file = base.with_name(base.name + ending)
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        except OSError as error:
            raise failed(str(file), error.strerror or str(error)) from error
    return base.with_name(base.name + ".html")
