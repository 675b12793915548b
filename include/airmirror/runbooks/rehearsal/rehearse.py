"""A failover rehearsed: its steps as they would be now, timed, but for what writes; then the proofs. Production is only read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from airmirror.errors import AirmirrorError, command
from airmirror.flows.audit import Audited
from airmirror.flows.freezing import owners_now
from airmirror.flows.prepare import Opened, caught_up
from airmirror.partitions import TopicPartition
from airmirror.runbooks.failover.alone import NotJudged, judged
from airmirror.runbooks.failover.plan import FailoverPlan, failover_plan, unreachable
from airmirror.runbooks.rehearsal.clock import Clock, TimedStep
from airmirror.runbooks.rehearsal.positions import Proof, prove
from airmirror.runbooks.rehearsal.records import compare_newest
from airmirror.windows.fence import flow_frozen
from airmirror.windows.mirror import Journal, Mirror

Tell = Callable[[str], None]


@dataclass(eq=False)
class RehearsalNeedsSource(AirmirrorError):
    """A rehearsal whose source can't be reached: nothing can be compared. ``reason``: what came of asking it."""

    transient: ClassVar[bool] = True

    flow: str
    reason: str

    def __str__(self) -> str:
        known = command("failover", "plan", flow=self.flow)
        return (
            f"flow {self.flow!r}: a rehearsal compares with the source, which can't be reached; {known} needs only the target: "
            f"{self.reason}"
        )


@dataclass(frozen=True)
class Rehearsal:
    """The outcome of a rehearsal that ended at ``ended_ms`` (epoch milliseconds).

    ``slots``: the transactional ids that each lease of a failover fences; ``quiet_ms``: how long a planned one waits at least.
    """

    ended_ms: int
    steps: tuple[TimedStep, ...]
    plan: FailoverPlan
    not_judged: tuple[NotJudged, ...]
    compared: tuple[Audited, ...]
    proofs: tuple[Proof, ...]
    slots: int
    quiet_ms: int


def rehearse(opened: Opened, tell: Tell = lambda phase: None) -> Rehearsal:
    """Rehearse a failover of the flow. What is not as it must be is in the answer.

    Raises FlowFrozen, RehearsalNeedsSource, or a cluster's error.
    """
    opened = caught_up(opened, soon=True)
    flow = opened.flow
    if shut := owners_now(opened).whole:
        raise flow_frozen(flow, shut)
    if error := unreachable(opened):
        raise RehearsalNeedsSource(flow.name, error)
    step = Clock(tell)
    with step("looking at both clusters", is_failover=True):
        plan = failover_plan(opened)
    with Mirror.open(flow, opened.ledger, "rehearsal") as mirror:
        with step("judging what is committed", is_failover=True):
            not_judged = _judged(mirror) if opened.ledger.last_mappings() else []
        with step("reading the next record of each group on both sides"):
            proofs = prove(mirror, plan.groups)
    ends = {
        TopicPartition(each.topic, each.partition): each.verified_end for each in plan.partitions if each.remote_topic
    }
    with step("comparing records with the source"):
        compared = compare_newest(opened, ends, flow.settings.failover_rehearsal_records, tell)
    return Rehearsal(
        ended_ms=int(time.time() * 1000),
        steps=tuple(step.steps),
        plan=plan,
        not_judged=tuple(not_judged),
        compared=tuple(compared),
        proofs=tuple(proofs),
        slots=max([1, *(lease.slots for _, _, lease in opened.ledger.leases())]),
        quiet_ms=flow.settings.failover_quiet_ms,
    )


def _judged(journal: Journal) -> Sequence[NotJudged]:
    """Return what is committed and would not be proven after a disaster, by the target alone; nothing is written."""
    return judged(journal, journal.catch_up(), "rehearsal")[1]
