"""Windows that follow the log, one after the other in one process, with next to no gap between them.

While a window follows, the next one looks ahead in a thread: topics, a plan, slots that wait for go. Between the two lie only
the steps that need the claim: release, claim, fence, go. What the last one has left the next one's gate judges, which trusts its
slots as it does its own; its result is made in a thread meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count

from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger import FlowLedger
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot, SlotResult
from airmirror.threads import begin
from airmirror.windows.ahead import Ahead, look_ahead
from airmirror.windows.errors import FlowBusy
from airmirror.windows.fence import Fenced, Granted
from airmirror.windows.following import Follow
from airmirror.windows.mirror import Mirror
from airmirror.windows.progress import CopyProgress
from airmirror.windows.results import WindowResult
from airmirror.windows.window import Copied, Execute, copy_window, result_of, two_clusters
from airmirror.wire.segments import GATE

log = logging.getLogger(__name__)

LOOK_SECONDS = 15.0  # before the end of a window topics are synchronised for the next one
START_SECONDS = 3.0  # before it the next one's slots are started: what Spark takes for them, and a plan
SPARE_SECONDS = 1.0  # before it no judgement and no round is begun any more, for which the next window would wait
SETTLE_SECONDS = 5.0  # after the beginning of a window its own slots have their cores
TRUSTED = 2  # windows before one whose slots are trusted as its own; what earlier ones have left is read


@dataclass(frozen=True)
class Chain:
    """The way in which windows of a flow go on after one another.

    ``topics``: makes remote topics ready for the next window and names them; None: the chain ends. ``start`` runs slots next to
    those that run already; ``cancel`` ends them all. ``following``: how a window follows, by its name. ``done`` hears of each
    result, in a thread where another window follows. ``windows``: as many at most; 0: any number.
    """

    topics: Callable[[], Mapping[str, str] | None]
    start: Callable[[Sequence[Slot]], list[SlotResult]]
    cancel: Callable[[], None]
    following: Callable[[str], Follow]
    done: Callable[[WindowResult], None]
    windows: int = 0


def run_chain(
    flow: Flow,
    index: FlowLedger,
    remote_topics: Mapping[str, str],
    execute: Execute,
    chain: Chain,
    *,
    window: str,
    slots: Callable[[], int],
    only: Callable[[TopicPartition], bool] = lambda partition: True,
    tell: Callable[[str], None] = lambda phase: None,
    report: Callable[[CopyProgress], None] = lambda progress: None,
) -> WindowResult:
    """Run windows that follow; the result of the last one, which is not judged. Their names are ``window`` and, from the second
    on, that and a number.

    It ends where a window was not copied as planned or its gate has held a partition, after which people must be told; where
    another window wants the claim; with the error of a window that fails. Raises what ``run_window`` does.
    """
    names = list[str]()
    ahead: Ahead | None = None
    result: Future[WindowResult] | None = None
    for number in count(1):
        name = name_of(window, number)
        scout = Scout(flow, index, chain, name_of(window, number + 1), only)
        follow = replace(chain.following(name), before=tuple(names[-TRUSTED:]), spare=SPARE_SECONDS)
        names.append(name)
        with ExitStack() as session:
            mirror = session.enter_context(two_clusters(flow, index)) if ahead is None else ahead.mirror
            if ahead is not None:
                session.enter_context(ahead.session)
            session.callback(scout.give_up)
            held = _held_by_gate(index)
            try:
                copied = copy_window(
                    mirror,
                    remote_topics,
                    execute,
                    window=name,
                    slots=slots,
                    only=only,
                    following=follow,
                    advance=False,
                    tell=tell,
                    report=report,
                    ahead=ahead,
                    begins=scout.begin if number != chain.windows else lambda granted, fenced: None,
                )
            except BaseException as error:
                if ahead is not None:
                    ahead.cancel()
                if result is None or not isinstance(error, FlowBusy):
                    raise
                log.info("The windows end here: %s", error)
                return result.result()
            try:
                if result is not None:
                    result.result()  # what is wrong with an earlier window ends the chain
                ahead = scout.found() if copied.is_well and _held_by_gate(index) <= held else None
            except AirmirrorError:
                _told(mirror, copied, chain)
                raise
            if ahead is None:
                return _told(mirror, copied, chain)
            remote_topics = ahead.topics
            result = _resulting(session.pop_all(), mirror, copied, chain)
    raise AssertionError("unreachable")  # pragma: no cover


def name_of(window: str, number: int) -> str:
    """The name of a window of a chain; ``fence.is_of`` knows them."""
    return window if number == 1 else f"{window}-{number}"


def _held_by_gate(index: FlowLedger) -> set[tuple[str, int]]:
    return {key for key, hold in index.holds().items() if hold.by == GATE}


def _resulting(session: ExitStack, mirror: Mirror, copied: Copied, chain: Chain) -> Future[WindowResult]:
    """Make a window's result in a thread, and tell it."""

    def work() -> WindowResult:
        with session:
            return _told(mirror, copied, chain)

    return begin(work)


def _told(mirror: Mirror, copied: Copied, chain: Chain) -> WindowResult:
    result = result_of(mirror, copied)
    chain.done(result)
    return result


class Scout:
    """Looks ahead for the next window, in a thread, while one follows."""

    def __init__(
        self, flow: Flow, index: FlowLedger, chain: Chain, window: str, only: Callable[[TopicPartition], bool]
    ) -> None:
        self._flow, self._index, self._chain = flow, index, chain
        self._window, self._only = window, only
        self._over = threading.Event()
        self._is_wanted = True
        self._found: Future[Ahead | None] | None = None

    def begin(self, granted: Granted, fenced: Fenced) -> None:
        """Begin: the slots of the window before do."""
        self._found = begin(lambda: self._look(granted, fenced))

    def found(self) -> Ahead | None:
        """Wait for the next window, at the end of the one before; None: nothing is to follow it. Raises a cluster's error."""
        self._over.set()
        found, self._found = (self._found.result(), None) if self._found is not None else (None, None)
        return found

    def give_up(self) -> None:
        """Nobody wants it: what was begun is ended."""
        self._is_wanted = False
        self._over.set()
        if self._found is not None:
            self._found.add_done_callback(self._discard)

    def _look(self, granted: Granted, fenced: Fenced) -> Ahead | None:
        seconds, begun = self._flow.window.follow_ms / 1000, time.monotonic()
        if not self._is_due(seconds - LOOK_SECONDS):
            return None
        topics = self._chain.topics()
        if topics is None or not self._is_due(
            max(SETTLE_SECONDS, seconds - START_SECONDS) - (time.monotonic() - begun)
        ):
            return None
        with ExitStack() as session:
            mirror = session.enter_context(two_clusters(self._flow, self._index))
            if other := replace(granted, journal=mirror).wanted_by():
                log.info("The windows end here: window %s wants to write for flow %s.", other, self._flow.name)
                return None
            plan = look_ahead(
                mirror,
                topics,
                window=self._window,
                numbers=fenced.numbers,
                only=self._only,
                follow_ms=self._flow.window.follow_ms,
            )
            if not self._is_wanted:
                return None
            results = begin(lambda: self._chain.start(plan.slots)) if plan.slots else None
            return Ahead(
                session=session.pop_all(),
                mirror=mirror,
                topics=topics,
                after=granted.claim.window,
                most=len(fenced.numbers),
                plan=plan,
                results=results,
                end=self._chain.cancel,
            )
        raise AssertionError("unreachable")  # pragma: no cover

    def _is_due(self, seconds: float) -> bool:
        """Wait as long, or until the window before has ended; whether to go on."""
        self._over.wait(max(0.0, seconds))
        return self._is_wanted

    def _discard(self, found: Future[Ahead | None]) -> None:
        ahead = None if found.exception() else found.result()
        if ahead is None:
            return
        ahead.session.close()
        ahead.cancel()
