"""The state of a flow that its pages have in common, read once an answer; and what people have decided since a run failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airmirror.flows.status import without_held
from airmirror.ledger import Failure, FlowLedger, WindowEnd
from airmirror.rows import rows_of
from airmirror.wire.mappings import GATE, Action, Decision, Hold, ResetRecord
from airmirror.wire.owners import Owners

MOST_TEXT = 500  # characters of a reason in a list; the partition's page has all of it
MOST_DECIDED = 100  # of a flow

Place = tuple[str, int]  # topic and partition


@dataclass(frozen=True)
class KnownFlow:
    """A flow in its ledger. ``failing``: what has no decision since; ``decided``: what a person has, by place.

    ``is_held``: the gate holds anything; what people hold is as they want it. ``stopped``: its last run failed, and nothing of
    this says why.
    """

    numbers: Mapping[tuple[str, str], float]
    holds: Mapping[Place, Hold]
    failing: list[Failure]
    owners: Owners
    decisions: list[Decision]
    resets: list[ResetRecord]
    ends: Mapping[str, WindowEnd]
    decided: Mapping[Place, Decision | ResetRecord]
    is_held: bool
    stopped: bool


def known(ledger: FlowLedger, red_run: str) -> KnownFlow:
    """Read a flow's state; ``red_run``: its last finished run where that failed, else empty."""
    holds, ends, decisions, resets = ledger.holds(), ledger.window_ends(), ledger.decisions(), ledger.resets()
    failing = without_held(ledger.failures(), holds)
    latest = _latest(decisions, resets)
    since = {failure.key: failure.last_ms for failure in failing}
    run_ms = _ended(ends, red_run)
    decided = {
        place: each
        for place, each in latest.items()
        if place not in holds
        and (each.time_ms > since[place] if place in since else run_ms is not None and each.time_ms >= run_ms)
    }
    left = [failure for failure in failing if failure.key not in decided]
    is_held = any(hold.by == GATE for hold in holds.values())
    return KnownFlow(
        numbers=ledger.numbers(),
        holds=holds,
        failing=left,
        owners=ledger.owners(),
        decisions=decisions,
        resets=resets,
        ends=ends,
        decided=decided,
        is_held=is_held,
        # A run that ends before its window does leaves nothing in the ledger: bad expectations, a cluster that is away.
        stopped=bool(red_run) and not (is_held or left) and (run_ms is None or not decided),
    )


def shown_decided(decided: Mapping[Place, Decision | ResetRecord]) -> list[dict[str, Any]]:
    """The decisions, the newest first, bounded."""
    ordered = sorted(decided.values(), key=lambda each: (-each.time_ms, each.topic, each.partition))
    return rows_of(
        ordered[:MOST_DECIDED],
        "topic partition action by time_ms reason",
        action=lambda each: each.action.name.lower() if isinstance(each, Decision) else f"reset: {each.choice}",
        reason=lambda each: each.reason[:MOST_TEXT],
    )


def _latest(decisions: Iterable[Decision], resets: Iterable[ResetRecord]) -> dict[Place, Decision | ResetRecord]:
    """The last answer of a place: a reset that a decision wanted is found by that."""
    answers = [each for each in decisions if each.action is not Action.HOLD]
    found: dict[Place, Decision | ResetRecord] = {(each.topic, each.partition): each for each in resets}
    return found | {(each.topic, each.partition): each for each in answers}


def _ended(ends: Mapping[str, WindowEnd], run: str) -> int | None:
    """When the last window of a run ended, in epoch ms; None: the ledger knows of none, so there can be no decision about it."""
    return max((end.time_ms for end in ends.values() if run and end.window.startswith(f"{run}#")), default=None)
