"""A window before its claim: planned while the one before it still follows the log, its slots started, which wait for go.

The plan knows nothing that is committed after ``since``; the slots read it from there on (invariant C).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, replace

from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.connect_offsets import with_connect_offsets
from airmirror.windows.fence import Fenced, Granted
from airmirror.windows.mirror import Mirror
from airmirror.windows.plan import Planned
from airmirror.windows.planning import chosen, closed_now, make_plan, slots_of
from airmirror.windows.starts import need_starts

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """The work of a window that has no claim yet. ``since``: the segment topic's end before positions were read."""

    since: int
    planned: Sequence[Planned]
    slots: Sequence[Slot]


@dataclass(frozen=True)
class Ahead:
    """A window that has everything but its claim. ``after``: the window before it; ``most``: slots; ``results``: of the slots,
    which wait for go; None: none were started. ``session`` closes ``mirror``, ``end`` ends all slots.
    """

    session: ExitStack
    mirror: Mirror
    topics: Mapping[str, str]
    after: str
    most: int
    plan: Plan
    results: Future[list[SlotResult]] | None
    end: Callable[[], None]

    def cancel(self) -> None:
        """End the slots, if they still wait or run."""
        if self.results is not None and not self.results.done():
            self.end()

    def begins(self, granted: Granted, fenced: Fenced) -> bool:
        """Tell the slots to begin; if they may not, end them: the window plans again. Raises a cluster's error."""
        reason = self.objection(granted, fenced, self.mirror.catch_up())
        if reason:
            why = self._ended() or "what was planned is left out"
            log.warning("Window %s plans again: %s (%s)", granted.claim.window, reason, why)
            self.cancel()
            return False
        granted.go()
        return True

    def _ended(self) -> str:
        """Return what the slots ended with; empty: they have not."""
        if self.results is None or not self.results.done():
            return ""
        if failed := self.results.exception():
            return str(failed)
        return "; ".join(sorted({str(each.error) for each in self.results.result() if each.error is not None}))

    def answers(self, _slots: Sequence[Slot]) -> list[SlotResult]:
        """Wait for the slots, which have been started."""
        assert self.results is not None
        return self.results.result()

    def objection(self, granted: Granted, fenced: Fenced, state: State) -> str:
        """Return why the slots may not begin under the claim, and the window plans again; empty: they may. ``state``: after the
        fence."""
        since = self.plan.since
        others = {entry.claim.window for entry in granted.before if entry.offset >= since} - {self.after}
        parts = [part for slot in self.plan.slots for part in slot.partitions]
        planned = [replace(item, last=state.segments.get(item.key)) for item in self.plan.planned]
        objections = {
            "no slots were started": self.results is None,
            "its slots have ended": self.results is not None and self.results.done(),
            "another window had the claim": bool(others),  # as a reset, which moves positions
            "the segment topic is another one": granted.offset < since,
            "a transaction can't be ended": bool(fenced.stuck),
            "ids are not free": not {slot.number for slot in self.plan.slots} <= set(fenced.numbers),
            "a topic was closed": bool(closed_now(self.mirror, {part.topic for part in parts})),
            "a partition begins": need_starts(granted.journal.flow, state, planned),
            "MirrorMaker 2's progress has moved": not all(_agrees(state, part.source) for part in parts),
        }
        return ", ".join(reason for reason, holds in objections.items() if holds)


def _agrees(state: State, key: TopicPartition) -> bool:
    """Return whether MirrorMaker 2's progress says what the newest segment record says."""
    last, recorded = state.segments.get(key), state.progress.get(key)
    return last is None or recorded is None or recorded + 1 == last.source_end


def look_ahead(
    mirror: Mirror,
    remote_topics: Mapping[str, str],
    *,
    window: str,
    numbers: Sequence[int],
    only: Callable[[TopicPartition], bool],
    follow_ms: int,
) -> Plan:
    """Plan a window while another one commits; its slots wait for go. None are planned where partitions have no position yet.

    Raises a cluster's error.
    """
    log = TopicPartition(mirror.topics.segments, 0)
    since = offsets_with_patience(mirror.target, [log], LATEST)[log]
    state = with_connect_offsets(mirror, mirror.catch_up(), remote_topics)
    # Progress is read after segment records, so what is committed in between is in one of them only: see objection.
    known = {key: offset for key, offset in state.progress.items() if key not in state.segments}
    planned = make_plan(mirror, replace(state, progress=known), remote_topics)
    if need_starts(mirror.flow, state, planned):
        return Plan(since, planned, ())
    free = [item for item in chosen(planned, only, None) if item.key not in state.holds]
    slots = slots_of(
        mirror,
        window=window,
        claim_offset=-1,
        numbers=numbers,
        planned=free,
        follow_ms=follow_ms,
        since=since,
    )
    return Plan(since, planned, slots)
