"""The work of the tasks that ask for decisions and carry them out. Loaded in tasks only."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from airmirror.errors import AirmirrorError, counted
from airmirror.flows.decisions import JUDGED, carry_out_reset, held_by_gate, waived
from airmirror.flows.holds import record
from airmirror.flows.prepare import Opened
from airmirror.flows.reset import reset_in_name
from airmirror.flows.selection import Selection
from airmirror.on_airflow.deployment import Deployment
from airmirror.on_airflow.question import (
    ACCEPT_LOSS,
    AGAIN,
    KEEP,
    LET_PASS,
    NEW_TOPIC,
    VERIFY_AGAIN,
    Question,
    question,
    runs_about,
)
from airmirror.on_airflow.tasks.approvals import Approval
from airmirror.on_airflow.tasks.telling import NotVerified, phase
from airmirror.on_airflow.tasks.window import Received, opened_flow, verify, when_free
from airmirror.partitions import TopicPartition
from airmirror.wire.mappings import Action

log = logging.getLogger(__name__)

ACTIONS = {
    VERIFY_AGAIN: Action.VERIFY_AGAIN,
    LET_PASS: Action.LET_PASS,
    ACCEPT_LOSS: Action.ACCEPT_LOSS,
    AGAIN: Action.START_AGAIN,
    NEW_TOPIC: Action.NEW_TOPIC,
}


def ask(deployment: Deployment, flow: str, narrowed: Sequence[Sequence[Any]] | None, *, most: int) -> Question | None:
    """Return the question: what the gate holds now, and of that only what ``narrowed`` names, if it names anything; it is about
    topics, partitions and last offsets.

    None: nothing of it is held. Raises a cluster's error.
    """
    with opened_flow(deployment, flow, Selection()) as opened:
        held = held_by_gate(opened, None if narrowed is None else _incidents(narrowed))[:most]
    log.info("Held: %s.", ", ".join(str(item.key) for item in held) or "nothing of it")
    if not held:
        return None
    verb = "was" if len(held) == 1 else "were"
    subject = f"{flow}: {counted(len(held), 'partition')} {verb} not let through by the gate: what is to be done?"
    return Question(subject, question(held, flow), [list(item.incident) for item in held])


def rest(
    deployment: Deployment, flow: str, conf: Mapping[str, Any], asked: Sequence[Sequence[Any]]
) -> tuple[list[list[str | int]], tuple[str, ...]]:
    """What the gate holds of that which a run is about, as ``conf`` names it, and its question, which was about ``asked``, had
    no place for; and the runs about that (``runs_about``). Raises a cluster's error.
    """
    narrowed, shown = conf.get("held"), _incidents(asked)
    with opened_flow(deployment, flow, Selection()) as opened:
        held = held_by_gate(opened, None if narrowed is None else _incidents(narrowed))
        left: list[list[str | int]] = [list(item.incident) for item in held if item.incident not in shown]
        return left, runs_about(left, opened.ledger.decisions(), opened.flow.settings.decide_users)


def _incidents(given: Sequence[Sequence[Any]]) -> set[tuple[str, int, int]]:
    try:
        return {(str(topic), int(number), int(last)) for topic, number, last in given}
    except (TypeError, ValueError) as error:
        raise NoPartitionsNamed(str(given)[:200]) from error


class NoPartitionsNamed(AirmirrorError):
    """A run that an operator has started with a configuration that names no partitions."""

    given: str
    says = "`held` of this run's configuration is to be a list of [topic, partition, last offset], not {0.given}"


def _not_written(
    opened: Opened, keys: Sequence[TopicPartition], answer: Approval, action: Action
) -> list[TopicPartition]:
    """The partitions of which an earlier attempt has not written down what the answer decides."""
    since_ms, said = int(answer.at.timestamp() * 1000), (action, answer.reason, answer.by)
    mine = [each for each in opened.ledger.decisions() if each.time_ms >= since_ms]
    written = {each.key for each in mine if (each.action, each.reason, each.by) == said}
    return [key for key in keys if key not in written]


def carry_out(
    deployment: Deployment, flow: str, window: str, answer: Approval, name: str, selection: Selection
) -> Sequence[Received]:
    """Write the decision down, do it and judge again; return the topics that received records by that. Shown were topics,
    partitions and last offsets.

    ``name`` tells the answer from every other one. What the gate does not hold any more at that offset is left alone. Raises
    DecisionIncomplete without a reason, ResetNotPossible, NotVerified where what was decided does not pass.
    """
    if answer.option == KEEP:
        log.info("Nothing changes.")
        return ()
    action, by, reason = ACTIONS[answer.option], answer.by, answer.reason
    with opened_flow(deployment, flow, selection) as opened:
        held = held_by_gate(opened, _incidents(answer.shown))
        if len(held) < len(answer.shown):
            log.warning("%d of them are not held any more, and are left alone.", len(answer.shown) - len(held))
        keys = [item.key for item in held]
        # What an earlier attempt has reset is held no more, and may not be finished.
        shown = {TopicPartition(topic, number) for topic, number, _ in _incidents(answer.shown)}
        begun = sorted((shown & reset_in_name(opened, name)) - set(keys))
        if not (keys or begun):
            return ()
        if new := _not_written(opened, keys, answer, action):
            record(opened, new, action, reason=reason, by=by)
        keys += begun
        log.info("%s: %s, as %s wants it: %s", answer.option, ", ".join(map(str, keys)), by, reason)
        why = {"reason": reason, "by": by, "name": name}
        resets = when_free(opened.flow, lambda: carry_out_reset(opened, keys, action, **why, tell=phase))
        for reset in resets:
            lost = f", {reset.lost:,} offsets from {reset.lost_first:,} on are lost" if reset.lost else ""
            log.info("%s to %s continues at %s%s.", reset.facts.key, reset.facts.remote_topic, f"{reset.start:,}", lost)
        passing = waived(opened, keys, [item.last for item in held], action)
    if action not in JUDGED:
        log.info("The next window copies it all, and its gate judges it.")
        return ()
    received = list[Received]()
    try:
        verify(deployment, flow, window, "", selection, waived=passing, passed=received.extend)
    except NotVerified as error:
        if any(TopicPartition(topic, number) in keys for topic, number, _ in error.held):
            raise
        log.warning("The decided partitions passed. Others did not, and are incidents of their own: %s", error)
    return received
