"""An operator's decision on partitions that the gate holds: check what is held, carry out what was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.flows.reset import ResetOrder, carry_out
from airmirror.ledger import FlowLedger
from airmirror.partitions import PartitionFacts, TopicPartition
from airmirror.tell import Tell, silent
from airmirror.windows.resets import Choice, Reset
from airmirror.wire.mappings import GATE, Action

RESETS = {
    Action.ACCEPT_LOSS: Choice.ACCEPT_LOSS,
    Action.START_AGAIN: Choice.START_AGAIN,
    Action.NEW_TOPIC: Choice.NEW_TOPIC,
}
# By a gate, at once: the others by the next window's.
JUDGED = (Action.VERIFY_AGAIN, Action.LET_PASS, Action.ACCEPT_LOSS)


@dataclass(frozen=True)
class HeldRange(PartitionFacts):
    """Source offsets ``first`` to ``last`` of a partition, which the gate holds; ``records`` of them were copied.

    ``window``: whose gate held it first; ``since_ms``: when.
    """

    first: int
    last: int
    records: int
    reason: str
    window: str
    since_ms: int

    @property
    def incident(self) -> tuple[str, int, int]:
        """The subject of a decision: another range of the same partition is another decision."""
        return self.topic, self.partition, self.last


def held_by_gate(opened: Opened, only: Collection[tuple[str, int, int]] | None = None) -> list[HeldRange]:
    """Return what the gate holds now, read from the mapping topic; ``only``: of these incidents, None for all."""
    catch_up_ledger(opened)
    return [item for item in held_ranges(opened.ledger) if only is None or item.incident in only]


def held_ranges(ledger: FlowLedger) -> list[HeldRange]:
    """Return what the gate holds, as a ledger has it."""
    holds = {key: hold for key, hold in sorted(ledger.holds().items()) if hold.by == GATE}
    if not holds:
        return []
    progress, copied = ledger.progress(), Counter[tuple[str, int]]()
    for mapping in ledger.unverified():
        copied[mapping.topic, mapping.partition] += mapping.copied
    return [
        HeldRange(
            *key,
            first=hold.offset,
            last=progress.get(key, hold.offset - 1),
            records=copied[key],
            reason=hold.reason,
            window=hold.window,
            since_ms=hold.time_ms,
        )
        for key, hold in holds.items()
    ]


def carry_out_reset(
    opened: Opened,
    held: Sequence[TopicPartition],
    action: Action,
    *,
    reason: str,
    by: str,
    name: str,
    tell: Tell = silent,
) -> list[Reset]:
    """Carry out what a decision changes beyond the judgement; nothing if the gate only judges again.

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
        order = ResetOrder(topics=(topic,), partitions=partitions, choice=choice, by=by, reason=reason, name=name)
        done += carry_out(opened, order, tell)
    return done


def waived(
    opened: Opened, held: Sequence[TopicPartition], asked: Sequence[int], action: Action
) -> dict[TopicPartition, int]:
    """The last offsets of the ranges that pass whatever the expectations say: those that were ``asked`` about, and where
    a loss was accepted what is there now."""
    if action is Action.LET_PASS:
        return dict(zip(held, asked, strict=True))
    if action is Action.ACCEPT_LOSS:
        positions = opened.ledger.state().positions
        return {key: positions[key] - 1 for key in held if key in positions}
    return {}
