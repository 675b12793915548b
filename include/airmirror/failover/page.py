"""A failover's plan as one HTML page: escaped, no script, no other host."""

from __future__ import annotations

from airmirror.evidence.reports import when
from airmirror.failover.plan import FailoverPlan
from airmirror.quality.page import document, table

MOST_ROWS = 2_000  # of a section; the JSON has all


def page(plan: FailoverPlan, done: str = "", title: str = "") -> str:
    """The whole page: first what matters. ``done``: HTML of a failover that was carried out, with its ``title``."""
    marks = {"ok": "", "warn": "warned", "stop": "bad"}
    rules = [(each.level, each.what, each.evidence, each.way_out) for each in plan.findings]
    parts = [
        done or f"<p>{known_time(plan.made_ms)}. {headline(plan)}</p>",
        "<h2>What was asked</h2>",
        table(("", "", "found", "way out"), rules, [marks[each.level] for each in plan.findings]),
        "<h2>Names</h2><p>What producers and consumers of the source use on the target.</p>",
        table(("on the source", "on the target"), sorted(plan.names.items())[:MOST_ROWS]),
        "<h2>Partitions</h2>",
        table(
            (
                "topic",
                "partition",
                "verified",
                "committed",
                "source's end",
                "read",
                "not verified",
                "complete to",
                "held",
            ),
            [
                (
                    each.topic,
                    each.partition,
                    each.verified_end,
                    each.committed_end,
                    each.source_end,
                    known_time(each.seen_ms),
                    each.missing,
                    known_time(each.complete_ms),
                    each.held,
                )
                for each in plan.partitions[:MOST_ROWS]
            ],
        ),
        "<h2>Consumer groups</h2>",
        table(
            (
                "group",
                "topic",
                "partition",
                "position",
                "read",
                "on the target",
                "goes on at",
                "exact",
                "again",
                "why not",
            ),
            [
                (
                    each.group,
                    each.topic,
                    each.partition,
                    each.position,
                    known_time(each.seen_ms),
                    each.on_target,
                    each.translation,
                    each.exact,
                    each.again,
                    each.reason,
                )
                for each in plan.groups[:MOST_ROWS]
            ],
        ),
    ]
    if plan.drift:
        rows = [(each.remote, each.what, each.source, each.target, each.outcome) for each in plan.drift[:MOST_ROWS]]
        parts += ["<h2>Differences</h2>", table(("topic", "what", "source", "target", "next window"), rows)]
    return document(title or f"Failover plan of {plan.flow}", "".join(parts), "good" if plan.is_ready else "bad")


def headline(plan: FailoverPlan) -> str:
    """The recovery point in one sentence."""
    if plan.recovery_ms is None:
        return "The recovery point is not known: of some partitions nothing is verified, or nobody has seen where they end."
    seconds = plan.recovery_ms / 1000
    known = f"{plan.missing:,} offsets are known not to be verified on the target"
    if plan.source_error:
        return f"Recovery point: records of the last {seconds:,.0f} s may be missing; {known}."
    return f"Recovery point: {seconds:,.0f} s; {known}."


def known_time(time_ms: int | None) -> str:
    """A time in UTC; "not known" where there is none."""
    return "not known" if time_ms is None or time_ms < 0 else when(time_ms)
