"""Closing a flow, or topics of it, by records in the segment topic: no window of anybody writes there until it is opened.

A closure is written under a claim of its own, which ends whatever window is at work, as a later window would, and after a
fence (invariant B). So each window either came before, and commits nothing after the closure; or it claims later, and finds
it: with the claim where the whole flow is closed, in its plan where topics are. Segments stay as they are.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from airmirror.clusters.protocol.connection import BrokerUnreachable
from airmirror.clusters.protocol.errors import LastStableOffsetStuck
from airmirror.clusters.protocol.routes import Routes
from airmirror.errors import AirmirrorError, command
from airmirror.flows.holds import check_decision
from airmirror.flows.opening import go_on_after_rescues
from airmirror.flows.prepare import Opened, catch_up_ledger, catch_up_soon
from airmirror.flows.returned import check_none_uncounted
from airmirror.ledger import FlowLedger
from airmirror.topics.internal import ensure_internal_topics
from airmirror.windows.errors import FlowBusy, open_command
from airmirror.windows.fence import Granted, claimed, end_window, fence_around
from airmirror.windows.mirror import Journal
from airmirror.windows.opposite import caught_up_opposite, opposite_of, returning
from airmirror.wire.closures import WHOLE, Closure, ClosureEvent, closed

ENDING_SECONDS = 60.0  # for windows that come in between, again and again

Tell = Callable[[str], None]


@dataclass(eq=False)
class NotClosed(AirmirrorError):
    """Topics to open that nobody has closed, or that only the whole flow keeps closed."""

    flow: str
    topics: tuple[str, ...]
    closed: tuple[str, ...]

    def __str__(self) -> str:
        if WHOLE in self.closed:
            return f"flow {self.flow!r}: the whole flow is closed; open it: {open_command(self.flow)}"
        which = ", ".join(self.topics) or "the flow"
        return f"flow {self.flow!r}: not closed: {which}; closed are: {', '.join(self.closed) or 'none'}"


@dataclass(eq=False)
class NoSuchTopic(AirmirrorError):
    """Topics to close of which the flow has replicated nothing."""

    flow: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f"flow {self.flow!r} has replicated nothing of {', '.join(self.topics)}: nothing was closed"


@dataclass(eq=False)
class StillReturning(AirmirrorError):
    """Topics to open that return by the flow in the opposite direction: their records would go round for ever."""

    flow: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        finish = command("failback", "run", "--reason", "…", "--yes", flow=self.flow)
        return f"flow {self.flow!r}: {', '.join(self.topics)} return to its source; finish that first: {finish}"


def closures_now(opened: Opened) -> dict[str, Closure]:
    """Return what is closed now, by topic (``WHOLE``: the flow), read from the segment topic."""
    catch_up_soon(opened)
    return closed(opened.ledger.closures())


def to_close(opened: Opened, topics: Collection[str], *, empty_too: bool = False) -> list[str]:
    """Return what ``close`` would close of ``topics`` (empty: the flow) and is not closed yet. Raises NoSuchTopic."""
    there = closures_now(opened)
    known = {topic for topic, _ in opened.ledger.state().known}
    strangers = [] if empty_too else sorted(set(topics) - known)
    if strangers:
        raise NoSuchTopic(opened.flow.name, tuple(strangers))
    return [topic for topic in sorted(topics) or [WHOLE] if topic not in there and WHOLE not in there]


def close(
    opened: Opened,
    topics: Collection[str],
    *,
    reason: str,
    by: str,
    window: str = "",
    last: Callable[[], None] = lambda: None,
    empty_too: bool = False,
    tell: Tell = lambda phase: None,
) -> list[Closure]:
    """Close a flow (no ``topics``), or some of its source's topics; what was closed, nothing where it was before.

    Whatever window is at work ends as fenced; in any case nobody writes for the flow when this returns. Only the target is
    asked. ``window``: the name of the claim; ``last``: asked when nobody writes any more, what it raises keeps the flow open;
    ``empty_too``: topics of which the flow has replicated nothing yet too, else they are taken for a mistake.
    Raises DecisionIncomplete, NoSuchTopic, FlowBusy, FenceStuck.
    """
    check_decision(opened.flow.name, reason, by)
    ensure_internal_topics(opened.flow)
    to_close(opened, topics, empty_too=empty_too)
    with overtaking(opened, window or _window("close"), tell) as granted:
        last()
        found = [
            closure(granted, topic, ClosureEvent.CLOSED, reason=reason, by=by)
            for topic in to_close(opened, topics, empty_too=empty_too)
        ]
        append(granted, found)
    catch_up_ledger(opened)
    return found


def reopen(
    opened: Opened,
    topics: Collection[str],
    *,
    reason: str,
    by: str,
    last: Callable[[], None] = lambda: None,
    tell: Tell = lambda phase: None,
) -> list[Closure]:
    """Open again what was closed: all of it (no ``topics``), or some topics. Segments are as they were: nothing is lost or
    copied twice, what was rescued neither. ``last``: asked under the claim, what it raises keeps the flow closed.
    Raises DecisionIncomplete, NotClosed, StillReturning, ReturnNotFinished, WrittenBeforeRescued, FlowBusy.
    """
    check_decision(opened.flow.name, reason, by)
    to_open(opened, topics)
    check_nothing_returns(opened, topics)
    with overtaking(opened, _window("open"), tell) as granted:
        check_nothing_returns(opened, topics)  # a return may have begun since
        last()
        go_on_after_rescues(opened, granted, by=by, reason=reason, topics=topics, tell=tell)
        found = [
            closure(granted, topic, ClosureEvent.OPENED, reason=reason, by=by) for topic in to_open(opened, topics)
        ]
        append(granted, found)
    catch_up_ledger(opened)
    return found


def check_nothing_returns(opened: Opened, topics: Collection[str] = (), *, opens: bool = True) -> None:
    """Raise StillReturning where ``topics`` (none: any) return by the flow in the opposite direction.

    ``opens``: of whoever opens the flow; ReturnNotFinished where some have returned that it has no account of. While the source
    can't be reached nothing returns: that flow's windows look for themselves before they do so again.
    """
    flow = opened.flow
    try:
        with Routes(flow.source, f"airmirror|{flow.name}|open") as source:
            opposite = caught_up_opposite(source, flow, opened.ledger)
            _check_returned(opened, opposite, source, topics, opens=opens)
    except (BrokerUnreachable, LastStableOffsetStuck):
        _check_returned(opened, opposite_of(flow, opened.ledger), None, topics, opens=opens)


def _check_returned(
    opened: Opened, opposite: FlowLedger | None, source: Routes | None, topics: Collection[str], *, opens: bool
) -> None:
    brought = set(returning(opposite).values()) if opposite else set()
    found = sorted(brought & set(topics) if topics else brought)
    if found:
        raise StillReturning(opened.flow.name, tuple(found))
    if opens and opposite:
        check_none_uncounted(opened.flow, opened.ledger, opposite, source, topics)


def to_open(opened: Opened, topics: Collection[str]) -> list[str]:
    """Return what ``reopen`` would open. Raises NotClosed."""
    there = closures_now(opened)
    strangers = sorted(set(topics) - there.keys())
    if strangers or not there:
        raise NotClosed(opened.flow.name, tuple(strangers), tuple(sorted(there)))
    return sorted(topics) or sorted(there)


@contextmanager
def overtaking(opened: Opened, window: str, tell: Tell = lambda phase: None) -> Iterator[Granted]:
    """Hold the flow's claim, whoever has it now: his window is ended from outside. Every id is fenced, the index caught up.

    Raises FlowBusy where others claim it again and again, FenceStuck, or a cluster's error.
    """
    flow, index = opened.flow, opened.ledger
    with Journal.open(flow, index, "close") as journal, ExitStack() as stack:
        ends = time.monotonic() + ENDING_SECONDS
        while True:
            try:
                granted = stack.enter_context(claimed(journal, window, slots=1, closed_too=True))
                break
            except FlowBusy as busy:
                if time.monotonic() > ends:
                    raise
                tell(f"ending window {busy.window} of {busy.owner}")
                end_window(flow, index, busy.window)
        tell("fencing what earlier windows may have left")
        fence_around(granted, 1)
        journal.catch_up()
        yield granted


def append(granted: Granted, records: Sequence[Closure]) -> None:
    """Write closures while the claim is held. Raises SlotFenced where it is another's by now."""
    if records:
        granted.check()
        granted.appender.append([(each.encode_key(), each.encode_value()) for each in records])


def closure(granted: Granted, topic: str, event: ClosureEvent, *, reason: str, by: str) -> Closure:
    """A closure record of now, of whoever holds the claim."""
    return Closure(
        topic=topic,
        time_ms=int(time.time() * 1000),
        event=event,
        window=granted.claim.window,
        reason=reason.strip(),
        by=by.strip(),
    )


def _window(what: str) -> str:
    return f"{what}-{uuid.uuid4().hex[:12]}"
