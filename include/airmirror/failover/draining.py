"""A source that answers, drained before a planned failover: still, copied to its end by last windows, and verified."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

from airmirror.clusters.protocol.connection import UnsupportedBroker
from airmirror.clusters.protocol.log import EARLIEST, offsets_with_patience
from airmirror.clusters.protocol.producers import ActiveProducer, active_producers
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError, command, listed
from airmirror.evidence.reports import when
from airmirror.flows.measure import measure_window
from airmirror.flows.prepare import Opened, catch_up_soon, plan_topics, prepare
from airmirror.flows.stillness import await_still, ends_of
from airmirror.partitions import TopicPartition
from airmirror.slot.attempts import run_slot
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.errors import FlowBusy
from airmirror.windows.fence import end_window
from airmirror.windows.window import run_window

SLOTS = 4
MOST_WINDOWS = 100  # each of at most window.max.ms

Tell = Callable[[str], None]


@dataclass(eq=False)
class SourceNotQuiet(AirmirrorError):
    """A source that is still written to; where, and by which producers, as far as its brokers tell."""

    transient: ClassVar[bool] = True

    flow: str
    seconds: float
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"flow {self.flow!r}: the source is still written to after {self.seconds:.0f} s; nothing was closed. Stop these "
            f"producers, and run the failover again\n{listed(self.reasons)}"
        )


@dataclass(eq=False)
class NotDrained(AirmirrorError):
    """Partitions of which not everything is verified on the target; nothing was closed."""

    transient: ClassVar[bool] = True

    flow: str
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        plan = command("failover", "plan", flow=self.flow)
        return (
            f"flow {self.flow!r}: not everything is verified on the target, so that nothing was closed; {plan} says more\n"
            f"{listed(self.reasons)}"
        )


def await_quiet(opened: Opened, seconds: float, tell: Tell = lambda phase: None) -> None:
    """Return when for ``failover.quiet.ms`` no end offset has moved and no transaction was open. Raises SourceNotQuiet."""
    flow = opened.flow
    with Routes(flow.source, f"airmirror|{flow.name}|failover") as source:
        left = await_still(
            source,
            _topics(opened),
            still=flow.settings.failover_quiet_ms / 1000,
            seconds=seconds,
            reasons=lambda moving: _with_writers(source, moving),
            tell=tell,
        )
    if left:
        raise SourceNotQuiet(flow.name, seconds, tuple(left))


def drain(opened: Opened, tell: Tell = lambda phase: None) -> None:
    """Run last windows, in this process, until everything on the source is verified. A window that is at work is ended.

    Judged by the engine's own checks; what a gate or a person holds stays held. Raises NotDrained, or a cluster's error.
    """
    for number in range(MOST_WINDOWS):
        left = undrained(opened)
        if not left:
            return
        tell(f"last window {number + 1}: {left[0]}")
        prepared = prepare(opened)
        try:
            result = run_window(
                prepared.opened.flow,
                prepared.opened.ledger,
                prepared.topics,
                _in_threads,
                window=f"failover-{uuid.uuid4().hex[:12]}",
                slots=lambda: opened.flow.tasks_max or SLOTS,
                tell=tell,
            )
        except FlowBusy as busy:
            tell(f"ending window {busy.window} of {busy.owner}")
            end_window(opened.flow, opened.ledger, busy.window)
            continue
        measure_window(prepared.opened, result, lambda key: True)
        errors = [str(row.error) for row in result.rows if row.error is not None]
        if errors or prepared.refused:
            raise NotDrained(opened.flow.name, (*errors, *prepared.refused))
    raise NotDrained(opened.flow.name, tuple(undrained(opened)))


def undrained(opened: Opened) -> list[str]:
    """Return the partitions of the source that have more than what is verified on the target, in words, one each."""
    catch_up_soon(opened)
    state, flow = opened.ledger.state(), opened.flow
    with Routes(flow.source, f"airmirror|{flow.name}|failover") as source:
        topics = _topics(opened) | {topic for topic, _ in state.known}
        ends = ends_of(source, topics)
        starts = offsets_with_patience(source, ends, EARLIEST)
    found = []
    for key, end in sorted(ends.items()):
        mark = state.verified.get(key)
        verified = starts[key] if mark is None else mark.offset + 1
        if verified < end:
            found.append(f"{key}: verified up to {verified}, the source ends at {end}")
    return found


def _topics(opened: Opened) -> set[str]:
    """The source's topics that the flow replicates, also where it is closed."""
    planned = plan_topics(opened, closed_too=True)
    return set(planned.topics) | {topic for topic, _ in opened.ledger.state().known}


def _with_writers(source: Routes, moving: Mapping[TopicPartition, str]) -> list[str]:
    """Return what moves, in words, with the last producer of each partition as far as brokers tell."""
    writers = _writers(source, moving) if moving else {}
    return [what + (f", by {writers[key]}" if key in writers else "") for key, what in moving.items()]


def _writers(source: Routes, keys: Collection[TopicPartition]) -> dict[TopicPartition, str]:
    """Return the last producer of each partition in words; nothing where brokers can't tell, or it has no id."""
    try:
        told = active_producers(source, keys)
    except UnsupportedBroker:
        return {}
    last: dict[TopicPartition, ActiveProducer] = {}
    for each in sorted(told.found, key=lambda one: (one.open_from >= 0, one.last_ms)):
        last[each.partition] = each
    return {
        key: f"producer {each.producer_id} (epoch {each.epoch}, last sequence {each.last_sequence}, last at "
        f"{when(each.last_ms)}{', with an open transaction' if each.open_from >= 0 else ''})"
        for key, each in last.items()
    }


def _in_threads(slots: Sequence[Slot]) -> list[SlotResult]:
    """Run slots in this process: a failover does not wait for Spark."""
    with ThreadPoolExecutor(len(slots), "slot") as pool:
        return [result for results in pool.map(run_slot, slots) for result in results]
