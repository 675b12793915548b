"""What the decision of a gate's incident leads to. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airmirror.flows.choice import Choice
from airmirror.flows.decisions import JUDGED, carry_out_reset, waived, write_down
from airmirror.on_airflow.decide_options import ACCEPT_LOSS, AGAIN, KEEP, LET_PASS, NEW_TOPIC, VERIFY_AGAIN
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.work import NotVerified, opened_flow, verify, when_free
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import Action

log = logging.getLogger(__name__)

ACTIONS = {
    VERIFY_AGAIN: Action.VERIFY_AGAIN,
    LET_PASS: Action.LET_PASS,
    ACCEPT_LOSS: Action.ACCEPT_LOSS,
    AGAIN: Action.START_AGAIN,
    NEW_TOPIC: Action.NEW_TOPIC,
}


@dataclass(frozen=True)
class Answer:
    """What was chosen, why, by whom; ``name`` tells it from every other answer."""

    option: str
    reason: str
    by: str
    name: str


def carry_out(
    place: Deployment, flow: str, window: str, held: Sequence[Sequence[Any]], answer: Answer, choice: Choice
) -> None:
    """Write the decision down, do it and judge again. ``held``: topic, partition and last offset of what is to be decided.

    Raises DecisionIncomplete without a reason, ResetNotPossible, NotVerified where what was decided does not pass.
    """
    if answer.option == KEEP or not held:
        log.info("Nothing changes.")
        return
    action, by, reason = ACTIONS[answer.option], answer.by, answer.reason
    partitions = [TopicPartition(str(topic), int(number)) for topic, number, _ in held]
    with opened_flow(place, flow, choice) as opened:
        written = write_down(opened, partitions, action, reason=reason, by=by)
        log.info("%s of %d partitions, as %s wants it: %s", answer.option, len(written), by, reason)
        resets = when_free(
            lambda: carry_out_reset(
                opened, partitions, action, reason=reason, by=by, name=answer.name,
                tell=lambda phase: log.info("Now: %s.", phase),
            )
        )  # fmt: skip
        for reset in resets:
            lost = f", {reset.lost:,} offsets from {reset.lost_first:,} on are lost" if reset.lost else ""
            log.info("%s to %s goes on at %s%s.", reset.facts.key, reset.facts.remote_topic, f"{reset.start:,}", lost)
        passing = waived(opened, partitions, [int(last) for _, _, last in held], action)
    if action not in JUDGED:
        log.info("The next window copies it all, and its gate judges it.")
        return
    try:
        verify(place, flow, window, (), choice, passing)
    except NotVerified as error:
        if any(TopicPartition(topic, number) in partitions for topic, number, _ in error.held):
            raise
        log.warning("What was decided has passed. Not so, for incidents of their own: %s", error)
