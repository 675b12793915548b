"""A failover as people and programs are shown it: its plan, and its outcome."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from airmirror.errors import counted
from airmirror.flows.prepare import Opened
from airmirror.ledger import GroupOffset
from airmirror.report.document import Document, Section, nothing_stops
from airmirror.rows import rows_of
from airmirror.runbooks.failover.alone import Unproven
from airmirror.runbooks.failover.order import FailoverOrder
from airmirror.runbooks.failover.plan import FailoverPlan, failover_plan
from airmirror.runbooks.runbook import Progress, Ran
from airmirror.runbooks.shown import differences

POSITION = "group topic partition position resumes_at=translation read_again=again result"  # of a GroupPoint


@dataclass(frozen=True)
class FailoverOutcome:
    """``plan``: how things are after it; ``unproven``: what is committed and not proven; ``groups``: what became of each
    position; ``servers``: the target's, with which applications start; ``seconds``: how long it took.
    """

    order: FailoverOrder
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
        seconds=seconds,
        plan=failover_plan(opened),
        unproven=tuple(unproven),
        groups=tuple(groups),
        servers=tuple(opened.flow.target.bootstrap_servers),
    )


def planned(opened: Opened, order: FailoverOrder, progress: Progress) -> Document:
    progress.phase("looking at both clusters")
    return shown_plan(failover_plan(opened))


def ended(opened: Opened, order: FailoverOrder, ran: Ran) -> Document:
    unproven, groups = ran.gave.get("judge", []), ran.gave["move_groups"]
    return shown_outcome(outcome_of(opened, order, unproven, groups, ran.seconds))


def shown_plan(plan: FailoverPlan) -> Document:
    return Document(
        kind="failover plan",
        about=f"Failover plan of {plan.flow}",
        headline=headline(plan),
        is_good=nothing_stops(plan.findings),
        asked={"flow": plan.flow},
        numbers=_numbers(plan),
        findings=plan.findings,
        not_known=_not_known(plan),
        sections=_sections(plan),
        made_ms=plan.made_ms,
    )


def shown_outcome(done: FailoverOutcome) -> Document:
    """The document of a failover that was carried out: what was done, and then the plan as things are now."""
    unknown = "Its end is as it was last seen: what came later is not known." if done.plan.source_error else ""
    missing = rows_of(
        (point for point in done.plan.partitions if point.missing != 0),
        "topic partition from_offset=verified_end source_end seen_ms committed_end",
    )
    left = rows_of(done.left, "group topic partition position why=reason")
    unproven = [asdict(each) for each in done.unproven]
    sections = [
        Section(
            "not_known_to_be_replicated",
            missing,
            "Not known to be replicated",
            unknown,
            brief="topic partition from_offset source_end",
        ),
        Section("not_proven", unproven, "Committed, not proven", brief="*"),
        Section("left", left, "Groups that were left", brief="group topic partition why"),
        Section("moves", [asdict(each) for each in done.groups], "Positions of groups"),
    ]
    return Document(
        kind="failover",
        about=f"Failover of {done.plan.flow}",
        headline=_outcome_headline(done),
        is_good=done.is_good,
        asked={
            "flow": done.plan.flow,
            "way": done.order.way,
            "inexact": done.order.inexact,
            "anyway": done.order.anyway,
        },
        numbers=_numbers(done.plan) | {"milliseconds": round(done.seconds * 1000)},
        findings=done.plan.findings,
        not_known=_not_known(done.plan),
        sections=[*sections, *_sections(done.plan, done.servers)],
        by=done.order.by,
        reason=done.order.reason,
    )


def headline(plan: FailoverPlan) -> str:
    if plan.recovery_ms is None:
        return "The recovery point is not known: of some partitions nothing is verified, or their end was never seen."
    seconds = plan.recovery_ms / 1000
    known = f"{plan.missing:,} offsets are known not to be verified on the target"
    if plan.source_error:
        return f"Recovery point: records of the last {seconds:,.0f} s may be missing; {known}."
    return f"Recovery point: {seconds:,.0f} s; {known}."


def _outcome_headline(done: FailoverOutcome) -> str:
    moved = sum(1 for row in done.groups if not row.reason)
    unproven = f", {counted(len(done.unproven), 'partition')} not proven to the end" if done.unproven else ""
    return (
        f"{done.plan.flow} failed over ({done.order.way}) in {done.seconds:.0f} s: {counted(moved, 'position')} of groups moved, "
        f"{len(done.left):,} left{unproven}. {headline(done.plan)}"
    )


def _numbers(plan: FailoverPlan) -> dict[str, int]:
    known = {} if plan.recovery_ms is None else {"recovery point, milliseconds": plan.recovery_ms}
    return known | {"offsets known not to be verified": plan.missing}


def _not_known(plan: FailoverPlan) -> list[str]:
    if not plan.source_error:
        return []
    return [
        f"The source now: this is how it was last seen, because {plan.source_error}",
        "Whether topics, configs and ACLs differ.",
    ]


def _sections(plan: FailoverPlan, servers: Sequence[str] = ()) -> list[Section]:
    names = [{"on_the_source": topic, "on_the_target": remote} for topic, remote in sorted(plan.names.items())]
    partitions = rows_of(
        plan.partitions,
        "topic partition remote_topic verified=verified_end committed=committed_end source_end not_verified=missing "
        "complete_to_ms seen_ms held lost_on_target",
        complete_to_ms=lambda each: each.complete_ms if each.verified_end else None,
    )
    groups = rows_of(plan.groups, f"{POSITION} seen_ms remote_topic on_target state")
    kinds = [{"kind": kind, "group": name} for kind, names in sorted(plan.kinds.items()) for name in names]
    start = f"Start applications with bootstrap.servers = {','.join(servers)} and" if servers else "Names"
    partition = "topic partition remote_topic verified committed source_end not_verified complete_to_ms"
    group = "group topic partition position resumes_at read_again result"
    return [
        Section(
            "names",
            names,
            start,
            "The names of topics that producers and consumers use on each side.",
            brief="*" if servers else "",
            empty="nothing was replicated",
        ),
        Section(
            "partitions", partitions, "Partitions", brief="" if servers else partition, empty="nothing was replicated"
        ),
        Section("groups", groups, "Consumer groups", brief="" if servers else group),
        Section("kinds", kinds, "Kinds of groups"),
        differences(plan.drift or ()),
    ]
