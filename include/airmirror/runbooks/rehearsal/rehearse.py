"""A failover rehearsed: its steps as they would be now, timed, but for what writes; then the proofs. Production is only read."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

from airmirror.errors import AirmirrorError, counted
from airmirror.flows.freezing import check_open
from airmirror.flows.prepare import Opened, caught_up
from airmirror.report.document import Document, Section
from airmirror.runbooks.failover.alone import Unproven, verified_alone
from airmirror.runbooks.failover.plan import FailoverPlan, failover_plan, unreachable
from airmirror.runbooks.failover.shown import headline
from airmirror.runbooks.rehearsal.positions import prove
from airmirror.runbooks.rehearsal.report import Clock, Rehearsal, compare_newest, found_wrong
from airmirror.runbooks.runbook import Order, Progress
from airmirror.tell import Tell, silent
from airmirror.windows.mirror import Mirror


class RehearsalNeedsSource(AirmirrorError, transient=True):
    """A rehearsal whose source can't be reached: nothing can be compared. ``reason``: what came of asking it."""

    flow: str
    reason: str
    says = (
        "flow {flow!r}: a rehearsal compares with the source, which can't be reached; {airmirror:failover plan} needs only the "
        "target: {reason}"
    )


@dataclass(frozen=True, kw_only=True)
class FailoverRehearsal(Rehearsal):
    """A failover rehearsed. ``slots``: the transactional ids that each lease of a failover fences; ``quiet_ms``: how long a
    planned one waits at least."""

    plan: FailoverPlan
    unproven: tuple[Unproven, ...]
    slots: int
    quiet_ms: int

    @property
    def seconds(self) -> float:
        return sum(step.seconds for step in self.steps if step.is_failover)

    @property
    def holds(self) -> str:
        """The steps that this time is of, and what a failover does besides."""
        names = ", ".join(step.name for step in self.steps if step.is_failover)
        return (
            f"Failed over in: {names}. Not in it, since they write: three leases, of which each fences "
            f"{counted(self.slots, 'transactional id')}, the freezing record, and the positions of groups; and that a planned "
            f"failover waits until no application has written for {self.quiet_ms / 1000:g} s (failover.quiet.ms), and copies the "
            "rest."
        )

    @property
    def headline(self) -> str:
        differing = sum(1 for each in self.compared if each.error)
        whole = f"0 of {self.records:,} records missing"
        if differing:
            whole = f"{counted(differing, 'partition')} not whole ({self.records:,} records are)"
        return (
            f"{self.flow} rehearsed: failed over in {self.seconds:.0f} s, {whole}, {self.exact} {headline(self.plan)}"
        )


def rehearsed(opened: Opened, order: Order, progress: Progress) -> Document:
    """Rehearse a failover; the document of it. Raises what ``rehearse`` does."""
    return shown(rehearse(opened, progress.phase))


def shown(made: FailoverRehearsal) -> Document:
    not_proven = Section("not_proven", [asdict(each) for each in made.unproven], "Committed, not proven")
    about, asked = f"Rehearsal of a failover of {made.flow}", {"seconds_are_of": made.holds}
    return made.document("failover rehearsal", about, asked, made.plan.findings, [not_proven])


def rehearse(opened: Opened, tell: Tell = silent) -> FailoverRehearsal:
    """Rehearse a failover of the flow. What is not as it must be is in the answer.

    Raises FlowFrozen, RehearsalNeedsSource, or a cluster's error.
    """
    opened = caught_up(opened, soon=True)
    flow = opened.flow
    check_open(opened)
    if error := unreachable(opened):
        raise RehearsalNeedsSource(flow.name, error)
    step = Clock(tell)
    with step("looking at both clusters", is_failover=True):
        plan = failover_plan(opened)
    with Mirror.open(flow, opened.ledger, "rehearsal") as mirror:
        with step("judging what is committed", is_failover=True):
            unproven = (
                verified_alone(mirror, mirror.catch_up(), "rehearsal")[1] if opened.ledger.last_mappings() else []
            )
        with step("reading the next record of each group on both sides"):
            proofs = prove(mirror, plan.groups)
    ends = {each.key: each.verified_end for each in plan.partitions if each.remote_topic}
    with step("comparing records with the source"):
        compared = compare_newest(opened, ends, flow.settings.failover_rehearsal_records, tell)
    return FailoverRehearsal(
        flow=flow.name,
        ended_ms=int(time.time() * 1000),
        steps=tuple(step.steps),
        problems=(*_problems(plan, unproven), *found_wrong(compared, proofs)),
        plan=plan,
        unproven=tuple(unproven),
        compared=tuple(compared),
        proofs=tuple(proofs),
        slots=max([1, *(lease.slots for _, _, lease in opened.ledger.leases())]),
        quiet_ms=flow.settings.failover_quiet_ms,
    )


def _problems(plan: FailoverPlan, unproven: Sequence[Unproven]) -> Iterator[str]:
    """Yield what would go wrong on the day, by the plan."""
    for finding in plan.findings:
        if finding.level == "stop":
            yield f"{finding.what}: {finding.evidence}"
    for each in unproven:
        yield f"{each.topic}-{each.partition} from offset {each.first} on is not proven: {each.reason}"
