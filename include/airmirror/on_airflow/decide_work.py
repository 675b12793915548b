"""What the decision of a gate's incident leads to. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from airmirror.flows.choice import Choice
from airmirror.flows.holds import record
from airmirror.on_airflow.decide import KEEP, LET_PASS
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.work import opened_flow, verify
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import Action

log = logging.getLogger(__name__)


def carry_out(
    place: Deployment, name: str, window: str, held: Sequence[Sequence[Any]], option: str, reason: str, by: str,
    choice: Choice,
) -> None:  # fmt: skip
    """Write the decision down and judge again. ``held``: topic, partition and last offset of what is to be decided.

    Raises DecisionIncomplete without a reason, NotVerified where it does not pass.
    """
    if option == KEEP or not held:
        log.info("Nothing changes.")
        return
    action = Action.LET_PASS if option == LET_PASS else Action.VERIFY_AGAIN
    with opened_flow(place, name, choice) as opened:
        written = record(opened, [(str(topic), int(number)) for topic, number, _ in held], action, reason=reason, by=by)
    log.info("%s of %d partitions, as %s wants it: %s", option, len(written), by, reason)
    waived = {TopicPartition(str(topic), int(number)): int(last) for topic, number, last in held}
    verify(place, name, window, (), choice, waived if action is Action.LET_PASS else None)
