"""What ends a window that follows the log before its time: new work for the next one, others who want its lease, what fails."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from airmirror.errors import AirmirrorError
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.threads import begin
from airmirror.windows.fence import GrantedLease
from airmirror.windows.plan import Planned
from airmirror.windows.standing import Ends
from airmirror.wire.mappings import GATE

log = logging.getLogger(__name__)

FAILING_SECONDS = 300.0  # so long a window follows though something fails, which the next one tries again
AGAIN_SECONDS = 60.0  # between two looks at topics of which the first one has failed


@dataclass(frozen=True)
class Topics:
    """The look at topics of a window that follows. ``sync`` makes remote topics ready, as before a window, and names the topics
    of the source that the next one would copy: every ``seconds``, and where one is new. None: that is left to the next window."""

    sync: Callable[[], Collection[str]] | None = None
    seconds: float = math.inf


@dataclass
class Ending:
    """Of one window that follows: it is asked again and again whether it is to end, in one thread.

    ``planned``: what it copies by its plan; ``held``: what was held when it began. Topics are looked at in a thread, because
    judgements don't wait.
    """

    topics: Topics
    planned: Sequence[Planned]
    held: Collection[tuple[str, int]]
    _begun: float = field(init=False)
    _due: float = field(init=False)  # when topics are to be looked at again
    _asked: frozenset[TopicPartition] = frozenset()  # what was not followed when topics were looked at last
    _looking: Future[Collection[str]] | None = None
    _behind: dict[TopicPartition, tuple[int, float]] = field(default_factory=dict)  # where, and since when

    def __post_init__(self) -> None:
        self._begun = time.monotonic()
        self._due = self._begun + self.topics.seconds

    def close(self) -> None:
        """Wait for a look at topics that is under way: it uses the window's ledger."""
        if self._looking is not None:
            self._looking.exception()

    def why(self, granted: GrantedLease, state: State, ends: Ends) -> str:
        """Return why the window is to end, empty: it is not. ``ends``: seen before ``state``. Raises a cluster's error."""
        if other := granted.wanted_by():
            return f"window {other} wants to write for the flow"
        if new := self._new(frozenset(each.key for each in ends.others)):
            return f"{min(new)} is new on the source"
        if freed := [key for key in self.held if key not in state.holds]:
            return f"{TopicPartition(*min(freed))} is held no more"
        return self._failing(state, ends)

    def _new(self, others: frozenset[TopicPartition]) -> list[TopicPartition]:
        """The partitions that the next window would copy and this one does not."""
        if self.topics.sync is None:
            return []
        now, looked = time.monotonic(), self._looking
        if looked is None:
            if not others <= self._asked or now >= self._due:
                self._asked, self._looking = others, begin(self.topics.sync)
            return []
        if not looked.done():
            return []
        self._looking = None
        try:
            found = looked.result()
        except AirmirrorError as error:
            log.warning("Meanwhile, topics were not synchronised: %s", error)
            self._due = now + AGAIN_SECONDS
            return []
        self._due = now + self.topics.seconds
        return [key for key in self._asked if key.topic in found]

    def _failing(self, state: State, ends: Ends) -> str:
        """What people are to know of; the gate's holds that there were before they know already."""
        now, behind = time.monotonic(), dict[TopicPartition, tuple[int, float]]()
        for item in self.planned:
            position = state.positions.get(item.key, item.start)
            # One without an end has no leader.
            if position != ends.watermarks.get(item.key) and item.key not in state.holds:
                before = self._behind.get(item.key)
                behind[item.key] = before if before and before[0] == position else (position, now)
        self._behind = behind
        last = now - FAILING_SECONDS
        if self._begun > last:
            return ""
        for item in self.planned:
            if item.error is not None and item.key not in state.holds:
                return str(item.error)
        for key, hold in state.holds.items():
            if hold.by == GATE and key not in self.held:
                return f"{TopicPartition(*key)} is held: {hold.reason}"
        still = [key for key, (_, since) in behind.items() if since <= last]
        return f"{min(still)} was not copied for {FAILING_SECONDS:.0f} s" if still else ""
