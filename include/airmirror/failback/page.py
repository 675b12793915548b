"""A failback's plan as one HTML page: escaped, no script, no other host."""

from __future__ import annotations

from airmirror.failback.divergence import Divergence, Written
from airmirror.failback.plan import FailbackPlan
from airmirror.failover.page import MOST_ROWS, known_time
from airmirror.quality.page import document, table

RUNS = ("topic", "partition", "first", "last")
SIDES = (
    (
        "Never crossed",
        "Records of the source, by their offsets there. `airmirror failback rescue` copies them to the target.",
    ),
    (
        "Copied when the flow is open",
        "Of partitions that it has copied nothing of yet, by their offsets on the source.",
    ),
    ("Written on the target since", "Records of others after the flow's last one, by their offsets on the target."),
)


def page(plan: FailbackPlan, done: str = "", title: str = "") -> str:
    """The whole page: first what matters. ``done``: HTML of a failback that was carried out, with its ``title``."""
    marks = {"ok": "", "warn": "warned", "stop": "bad"}
    rules = [(each.level, each.what, each.evidence, each.way_out) for each in plan.findings]
    parts = [
        done or f"<p>{known_time(plan.made_ms)}.</p>{table(('',), [(plan.headline,)])}",
        "<h2>What was asked</h2>",
        table(("", "", "found", "way out"), rules, [marks[each.level] for each in plan.findings]),
        "<h2>Partitions</h2>",
        table(
            ("topic", "partition", "crossed", "source still has", "never crossed", "rescued", "since", "what happened"),
            [
                (
                    each.topic,
                    each.partition,
                    each.crossed_end,
                    max(each.kept_end, 0),
                    each.never.records,
                    each.rescued,
                    each.since.records,
                    each.problem,
                )
                for each in plan.partitions[:MOST_ROWS]
            ],
        ),
    ]
    sides = (
        [(each.topic, each, each.never) for each in plan.partitions],
        [(each.topic, each, each.waits) for each in plan.partitions if each.waits.records],
        [(each.remote_topic, each, each.since) for each in plan.partitions],
    )
    for (title, said), rows in zip(SIDES, sides, strict=True):
        parts += [f"<h2>{title}</h2><p>{said}</p>", _times(rows), _runs(rows)]
    if plan.drift:
        drifts = [(each.remote, each.what, each.source, each.target, each.outcome) for each in plan.drift[:MOST_ROWS]]
        parts += ["<h2>Differences</h2>", table(("topic", "what", "source", "target", "next window"), drifts)]
    return document(
        title or f"Failback plan of {plan.flow}", "".join(parts), "good" if done or plan.is_equal else "bad"
    )


def _times(rows: list[tuple[str, Divergence, Written]]) -> str:
    found = [
        (topic, row.partition, it.records, it.size, known_time(it.earliest_ms), known_time(it.latest_ms))
        for topic, row, it in rows
        if it.records
    ]
    return table(("topic", "partition", "records", "bytes", "earliest", "latest"), found[:MOST_ROWS])


def _runs(rows: list[tuple[str, Divergence, Written]]) -> str:
    runs = [(topic, row.partition, *run) for topic, row, it in rows for run in it.runs]
    more = f"<p>{len(runs) - MOST_ROWS:,} more runs: the JSON has all.</p>" if len(runs) > MOST_ROWS else ""
    return table(RUNS, runs[:MOST_ROWS]) + more
