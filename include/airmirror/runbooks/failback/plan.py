"""The plan of a failback: how both sides have diverged since a failover. Nothing is written but the ledger."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from airmirror.errors import AirmirrorError, command, counted, named
from airmirror.flows.freezing import taken
from airmirror.flows.prepare import Opened, caught_up, plan_topics
from airmirror.report.document import Finding, Level
from airmirror.runbooks.failback.divergence import Divergence, divergences
from airmirror.runbooks.failback.returning import MIXED
from airmirror.runbooks.failover.findings import drift_finding, kinds_finding, reverse_finding
from airmirror.runbooks.failover.groups import kinds_of
from airmirror.runbooks.failover.plan import unreachable
from airmirror.runbooks.shown import judged
from airmirror.topics.drift import Drift, drifts
from airmirror.windows.mirror import Mirror
from airmirror.wire.owners import Ownership

FROZEN = "the flow is frozen"
NEW = "records of partitions that the flow has copied nothing of yet"


class SourceStillGone(AirmirrorError, transient=True):
    """A failback whose source can't be reached; ``reason``: what it was asked, and what came of it."""

    flow: str
    reason: str
    says = (
        "flow {0.flow!r}: what diverged is read on its source, which is not back: {0.reason}; until then: "
        "{airmirror:failover plan}"
    )


@dataclass(frozen=True)
class FailbackPlan:
    """Both sides of a flow at ``made_ms`` (epoch milliseconds), a partition at a time.

    ``freeze``: who froze the flow, None: it is not frozen. ``apart``: topics that orders for the whole
    flow leave as they are. ``drift``: what the target's topics, configs and ACLs have otherwise.
    """

    flow: str
    made_ms: int
    freeze: Ownership | None
    apart: tuple[str, ...]
    partitions: tuple[Divergence, ...]
    drift: tuple[Drift, ...]
    findings: tuple[Finding, ...]

    @property
    def never(self) -> int:
        return sum(each.never.records for each in self.partitions)

    @property
    def rescued(self) -> int:
        return sum(each.rescued for each in self.partitions)

    @property
    def since(self) -> int:
        return sum(each.since.records for each in self.partitions)

    @property
    def headline(self) -> str:
        lost = sum(each.lost for each in self.partitions)
        shorter = f", {lost:,} replicated offsets are not on the source any more" if lost else ""
        return (
            f"{self.flow}: {counted(self.never, 'record')} of the source not replicated, {self.rescued:,} rescued, "
            f"{self.since:,} written on the target since{shorter}."
        )


def failback_plan(opened: Opened, topics: Collection[str] = ()) -> FailbackPlan:
    """Read both clusters: all that the flow replicates, that is frozen by its name, or that an order names (``topics``), but not
    what windows copy while the rest is frozen. Raises SourceStillGone, what guards the clusters, and what reading a log does."""
    opened = caught_up(opened, soon=True)
    if error := unreachable(opened):
        raise SourceStillGone(opened.flow.name, error)
    planned, owners = plan_topics(opened, frozen_too=True), opened.ledger.owners()
    last = opened.ledger.last_mappings().values()
    names = {**planned.topics, **{record.topic: record.remote_topic for record in last}}
    ours = {each for each in taken(opened.flow, owners, names) if not owners.whole or owners.why_frozen(each)}
    ours |= {each for each in names if each in topics or owners.is_apart(each)}
    names = {topic: remote for topic, remote in names.items() if topic in ours}
    with Mirror.open(opened.flow, opened.ledger, "failback") as mirror:
        mirror.refresh()
        rows = divergences(mirror, names)
        kinds = kinds_of(mirror.target, opened.flow.settings)
    apart = tuple(sorted(filter(owners.is_apart, names)))
    freeze, drift = owners.whole, tuple(drifts(planned))
    refused = [str(each) for each in planned.refused]
    found = [
        *_findings(opened.flow.name, freeze, rows, topics or (() if freeze else apart), apart),
        kinds_finding(kinds),
        drift_finding(opened.flow.name, drift, refused),
        reverse_finding(opened.flow.name, opened.configuration.has_reverse(opened.flow), "stop"),
    ]
    for each in filter(None, (opened.flow, opened.configuration.flows.get(opened.flow.reverse_name))):
        if each.is_aggregate:
            found.append(Finding("stop", "its records can return", f"{each.name} {MIXED}"))
    return FailbackPlan(
        flow=opened.flow.name,
        made_ms=int(time.time() * 1000),
        freeze=freeze,
        apart=apart,
        partitions=tuple(rows),
        drift=drift,
        findings=tuple(each for each in found if not topics or each.what != FROZEN),  # it is about the flow
    )


def _findings(
    flow: str,
    freeze: Ownership | None,
    rows: Sequence[Divergence],
    topics: Collection[str],
    apart: Collection[str],
) -> list[Finding]:
    left = {each.topic for each in rows if each.never.records}
    wanted = topics or (sorted(left) if left.issubset(apart) else ())  # an order for the flow leaves what is apart
    rescue = command("failback", "run", "--step", "rescue", "--reason", "…", "--yes", flow=flow, topics=wanted)
    problems = [f"{each.key}: {each.problem}" for each in rows if each.problem]
    never = [f"{each.key} ({each.never.records:,})" for each in rows if each.never.records]
    waits = [f"{each.key} ({each.waits.records:,})" for each in rows if each.waits.records]
    since = [f"{each.remote_topic}-{each.partition} ({each.since.records:,})" for each in rows if each.since.records]
    unread = [
        f"{each.key} has an open transaction from offset {each.open_from} on" for each in rows if each.open_from >= 0
    ]
    unverified = [f"{each.key} ({each.unverified:,} offsets)" for each in rows if each.unverified]
    refused: Level = "stop" if freeze or topics else "warn"  # else windows copy it, and there is nothing to fail back
    ends = "it ends when its producer comes back, or when its time is over; then ask again"
    return [
        Finding("ok", FROZEN, f"by {freeze.by}: {freeze.reason}")
        if freeze
        else Finding("ok", FROZEN, f"not as a whole, but by name: {named(sorted(topics))}")
        if topics
        else Finding(
            "warn",
            FROZEN,
            "it is not frozen: its next window copies the rest, where no application has written to the remote topic",
            command("flow", "freeze", "--reason", "…", "--yes", flow=flow),
        ),
        judged("warn", "the source's logs are those that were copied", problems, "yes"),
        judged(refused, "all of the source can be read", unread, "yes", way_out=ends),
        judged(refused, "all records of the source are replicated or rescued", never, "yes", way_out=rescue),
        Finding("ok", NEW, named(waits) + ": the flow copies them when it is unfrozen" if waits else "none"),
        judged("warn", "no application has written on the target since", since, "yes"),
        judged("warn", "all that was replicated is verified", unverified, "yes", way_out=command("verify", flow=flow)),
    ]
