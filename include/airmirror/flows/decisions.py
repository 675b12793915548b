"""What somebody has decided of partitions that the gate holds: written down, and carried out as ``airmirror reset`` does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from airmirror.flows.holds import record
from airmirror.flows.prepare import Opened
from airmirror.flows.reset import Order, carry_out
from airmirror.windows.resets import Choice, Reset
from airmirror.wire.requests import TopicPartition
from airmirror.wire.segments import Action

RESETS = {
    Action.ACCEPT_LOSS: Choice.ACCEPT_LOSS,
    Action.START_AGAIN: Choice.START_AGAIN,
    Action.NEW_TOPIC: Choice.NEW_TOPIC,
}
JUDGED = (
    Action.VERIFY_AGAIN,
    Action.LET_PASS,
    Action.ACCEPT_LOSS,
)  # by a gate, at once: the others by the next window's


def write_down(
    opened: Opened, held: Sequence[TopicPartition], action: Action, *, reason: str, by: str
) -> list[TopicPartition]:
    """Who decided, when and why, for each partition, in the segment topic and so the ledger. Raises DecisionIncomplete."""
    return [TopicPartition(each.topic, each.partition) for each in record(opened, held, action, reason=reason, by=by)]


def carry_out_reset(
    opened: Opened,
    held: Sequence[TopicPartition],
    action: Action,
    *,
    reason: str,
    by: str,
    name: str,
    tell: Callable[[str], None] = lambda phase: None,
) -> list[Reset]:
    """What a decision changes beside the judgement; nothing for those that only have the gate judge again.

    An accepted loss and a new beginning are of the held partitions; a new topic is of all partitions of their topics.
    ``name`` is the answer's: carried out again under the same name, nothing is done twice. Raises FlowBusy,
    ResetNotPossible, or a cluster's error.
    """
    if action not in RESETS:
        return []
    choice, done = RESETS[action], []
    for topic in sorted({key.topic for key in held}):
        numbers = tuple(sorted(key.partition for key in held if key.topic == topic))
        partitions = () if choice is Choice.NEW_TOPIC else numbers
        done += carry_out(opened, Order((topic,), partitions, choice, False, by, reason, name), tell)
    return done


def waived(
    opened: Opened, held: Sequence[TopicPartition], asked: Sequence[int], action: Action
) -> dict[TopicPartition, int]:
    """The last offsets of the ranges that pass whatever the expectations say: those that were ``asked`` about, and where
    a loss was accepted what is there now."""
    if action is Action.LET_PASS:
        return dict(zip(held, asked, strict=True))
    if action is Action.ACCEPT_LOSS:
        progress = opened.ledger.progress()
        return {key: progress[key] for key in held if key in progress}
    return {}
