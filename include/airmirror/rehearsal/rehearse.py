"""A failover rehearsed: its steps as they would be now, timed, but for the claim and the closing record; then the proofs.

Production is only read. Everything that is written goes to shadows, which are removed in the end, whatever has happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from airmirror.errors import AirmirrorError, command
from airmirror.failover.alone import NotJudged, judged
from airmirror.failover.plan import FailoverPlan, failover_plan, unreachable
from airmirror.flows.audit import Audited
from airmirror.flows.closing import owners_now
from airmirror.flows.prepare import Opened, caught_up
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.rehearsal.clock import Clock, Step
from airmirror.rehearsal.positions import Proof, commit_shadows, prove
from airmirror.rehearsal.records import compare_newest
from airmirror.rehearsal.shadows import Shadowed, remove_shadows, shadow_topic, write_and_read
from airmirror.windows.fence import flow_closed
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

    ``slots``: the transactional ids that each claim of a failover fences; ``quiet_ms``: how long a planned one waits at least.
    """

    ended_ms: int
    steps: tuple[Step, ...]
    plan: FailoverPlan
    not_judged: tuple[NotJudged, ...]
    compared: tuple[Audited, ...]
    proofs: tuple[Proof, ...]
    shadowed: tuple[Shadowed, ...]
    slots: int
    quiet_ms: int


def rehearse(opened: Opened, tell: Tell = lambda phase: None) -> Rehearsal:
    """Rehearse a failover of the flow. What is not as it must be is in the answer.

    Raises FlowClosed, RehearsalNeedsSource, or a cluster's error; one rehearsal of a flow at a time.
    """
    opened = caught_up(opened, soon=True)
    flow = opened.flow
    if shut := owners_now(opened).whole:
        raise flow_closed(flow, shut)
    if error := unreachable(opened):
        raise RehearsalNeedsSource(flow.name, error)
    remotes = {last.remote_topic for last in opened.ledger.last_segments().values()}
    shadows, scope = set(map(shadow_topic, remotes)), flow.source.alias
    step = Clock(tell)
    with step("removing what an earlier rehearsal has left"):
        remove_shadows(flow, shadows, scope)
    try:
        with step("looking at both clusters", is_failover=True):
            plan = failover_plan(opened)
        with Mirror.open(flow, opened.ledger, "rehearsal") as mirror:
            with step("judging what is committed", is_failover=True):
                not_judged = _judged(mirror) if remotes else []
            with step("moving groups, under shadow names", is_failover=True):
                places, refused = commit_shadows(mirror, plan.groups, scope)
            with step("reading the next record of each group on both sides"):
                proofs = prove(mirror, plan.groups, places, refused)
            with step("writing to shadow topics, and reading there"):
                shadowed = write_and_read(flow, mirror.target, _verified_ends(mirror, opened.ledger.state()))
        with step("comparing records with the source"):
            compared = compare_newest(opened, plan.partitions, tell)
    finally:
        with step("removing shadows"):
            remove_shadows(flow, shadows, scope)
    return Rehearsal(
        ended_ms=int(time.time() * 1000),
        steps=tuple(step.steps),
        plan=plan,
        not_judged=tuple(not_judged),
        compared=tuple(compared),
        proofs=tuple(proofs),
        shadowed=tuple(shadowed),
        slots=max([1, *(claim.slots for _, _, claim in opened.ledger.claims())]),
        quiet_ms=flow.settings.failover_quiet_ms,
    )


def _judged(journal: Journal) -> Sequence[NotJudged]:
    """Return what is committed and would not be proven after a disaster, by the target alone; nothing is written."""
    return judged(journal, journal.catch_up(), "rehearsal")[1]


def _verified_ends(mirror: Mirror, state: State) -> dict[TopicPartition, int]:
    """Return where what is verified ends, in each partition of the target that is there and has a leader."""
    ends = {
        TopicPartition(last.remote_topic, last.partition): state.verified[key].target_end
        for key, last in state.segments.items()
        if key in state.verified
    }
    missing = mirror.target.refresh_existing({key.topic for key in ends})
    there = [key for key in ends if key.topic not in missing]
    return {key: ends[key] for key in there if mirror.target.has(key) and mirror.target.is_led(key)}
