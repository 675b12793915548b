"""``airmirror hold``: who holds and releases partitions, when and why, written to the mapping topic and so to the ledger.

A hold counts from the next window on, which reads it when it begins, and in a window that follows the log at once. No lease is
taken, so it can be written while a window runs; the gate's own holds are other records, which neither side writes over.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError, named
from airmirror.flows.prepare import Opened, catch_up_ledger
from airmirror.ledger import FlowLedger
from airmirror.naming import mapping_topic
from airmirror.topics.internal import ensure_internal_topics
from airmirror.wire.mappings import GATE, Action, Decision, Hold


class NoSuchPartition(AirmirrorError, bad_input=True):
    """A partition that the source's topic does not have."""

    cluster: str
    topic: str
    partitions: tuple[int, ...]
    count: int

    def __str__(self) -> str:
        missing = ", ".join(map(str, self.partitions))
        return f"cluster {self.cluster!r}: topic {self.topic!r} has partitions 0 to {self.count - 1}, not {missing}"


class NotHeld(AirmirrorError, bad_input=True):
    """Partitions to release that are not held."""

    flow: str
    topic: str
    partitions: tuple[int, ...]
    held: tuple[str, ...]

    def __str__(self) -> str:
        which = ", ".join(f"{self.topic}-{number}" for number in self.partitions) or f"no partition of {self.topic}"
        return f"flow {self.flow!r}: not held: {which}; held are: {named(self.held) or 'none'}"


class DecisionIncomplete(AirmirrorError, bad_input=True):
    """A decision without a reason, or without a person who makes it."""

    flow: str
    missing: str
    says = "flow {0.flow!r}: a decision needs {0.missing}: nothing was written"


def add_holds(
    opened: Opened, topic: str, partitions: Collection[int], *, reason: str, by: str, write: bool = True
) -> list[Decision]:
    """Hold ``partitions`` of a source topic (all, when empty); without ``write`` return what would be written.

    Raises DecisionIncomplete, TopicNotFound, NoSuchPartition.
    """
    flow = opened.flow
    check_decision(flow.name, reason, by)
    with Routes(flow.source, f"airmirror|{flow.name}|hold") as source:
        source.refresh([topic])
        count = source.partitions(topic)
    missing = tuple(sorted(number for number in partitions if not 0 <= number < count))
    if missing:
        raise NoSuchPartition(flow.source.alias, topic, missing, count)
    if write:
        ensure_internal_topics(flow)
    catch_up_ledger(opened)
    keys = [(topic, number) for number in sorted(partitions) or range(count)]
    return _decide(opened, keys, Action.HOLD, reason=reason, by=by, write=write)


def release_holds(
    opened: Opened, topic: str, partitions: Collection[int], *, reason: str, by: str, write: bool = True
) -> list[Decision]:
    """Release held ``partitions`` of a topic (all that are held, when empty); without ``write`` return what would be written.

    Raises DecisionIncomplete, NotHeld.
    """
    check_decision(opened.flow.name, reason, by)
    held = list_holds(opened)
    of_topic = {hold.partition for hold in held if hold.topic == topic}
    chosen = sorted(partitions) or sorted(of_topic)
    strangers = tuple(number for number in chosen if number not in of_topic)
    if strangers or not chosen:
        raise NotHeld(opened.flow.name, topic, strangers, tuple(f"{hold.topic}-{hold.partition}" for hold in held))
    return _decide(opened, [(topic, each) for each in chosen], Action.RELEASE, reason=reason, by=by, write=write)


def list_holds(opened: Opened) -> list[Hold]:
    """Return the holds, by topic and partition."""
    catch_up_ledger(opened)
    return sorted_holds(opened.ledger)


def sorted_holds(ledger: FlowLedger) -> list[Hold]:
    """Return the holds that a ledger knows of, by topic and partition."""
    return [hold for _, hold in sorted(ledger.holds().items())]


def list_decisions(opened: Opened) -> list[Decision]:
    """Return the decisions of operators, the oldest first."""
    catch_up_ledger(opened)
    return opened.ledger.decisions()


def record(
    opened: Opened, partitions: Collection[tuple[str, int]], action: Action, *, reason: str, by: str
) -> list[Decision]:
    """Write down an operator's decision about partitions; nothing else. Raises DecisionIncomplete."""
    check_decision(opened.flow.name, reason, by)
    catch_up_ledger(opened)
    return _decide(opened, sorted(partitions), action, reason=reason, by=by)


def check_decision(flow: str, reason: str, by: str) -> None:
    """Raise DecisionIncomplete where it is not said who decides, or why."""
    if not reason.strip():
        raise DecisionIncomplete(flow, "a reason")
    if not by.strip() or by == GATE:
        raise DecisionIncomplete(flow, f"a person's name (not {by!r})")


def _decide(
    opened: Opened, partitions: Iterable[tuple[str, int]], action: Action, *, reason: str, by: str, write: bool = True
) -> list[Decision]:
    """Write a decision about each partition; a release deletes the gate's hold too. Without ``write``: what would be written."""
    positions, now = opened.ledger.state().positions, int(time.time() * 1000)
    decisions = [Decision(*key, now, action, positions.get(key, 0), reason.strip(), by.strip()) for key in partitions]
    if not write:
        return decisions
    held = opened.ledger.holds()
    records: list[tuple[bytes, bytes | None]] = []
    for decision in decisions:
        records.append((decision.encode_key(), decision.encode_value()))
        hold = held.get((decision.topic, decision.partition))
        if decision.action is Action.RELEASE and hold is not None:
            records.append((hold.encode_key(), None))
    with Appender(opened.flow.target, mapping_topic(opened.flow.source.alias)) as appender:
        appender.append(records)
    catch_up_ledger(opened)
    return decisions
