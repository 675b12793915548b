"""A window: lease, fence, progress, plan, slots, and what they committed, verified. Data flows one way.

The caller makes the window's id and says how slots are run (in this process, or as Spark tasks). Remote topics and the
internal ones exist already: ``airmirror.topics`` sees to that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace

from airmirror.clusters.protocol.errors import LastStableOffsetStuck
from airmirror.config import Flow
from airmirror.ledger import FlowLedger
from airmirror.ledger.state import State
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.slot.errors import PartitionUnavailable, SlotFenced
from airmirror.windows.connect_offsets import with_connect_offsets
from airmirror.windows.demand import Demand
from airmirror.windows.errors import ProgressDiffers
from airmirror.windows.fence import Fenced, GrantedLease, fence_around, leased
from airmirror.windows.following import Follow, FollowLoop, Latencies
from airmirror.windows.judging import Gate, Verdict, Verification, verify_committed, watermarks
from airmirror.windows.mirror import Mirror, two_clusters
from airmirror.windows.mirrormaker import name_writers
from airmirror.windows.plan import Planned
from airmirror.windows.planning import (
    chosen,
    demand_of,
    frozen_now,
    frozen_since,
    make_plan,
    slots_of,
    without_stuck,
)
from airmirror.windows.progress import CopyProgress, Watch
from airmirror.windows.results import WindowResult, committed, window_rows
from airmirror.windows.standing import Ends, seen_of, unfollowed
from airmirror.windows.starts import commit_starts, need_starts, not_begun
from airmirror.wire.mappings import GATE

PRECHECK_SECONDS = 2.0
MOST_FOLLOW_MS = 23 * 3_600_000  # the mapping topic keeps a lease for a day, and the last judgement reads it there

Execute = Callable[[Sequence[Slot]], Iterable[SlotResult]]


@dataclass
class Phases:
    """The seconds of each phase; ``tell`` hears of a phase when it begins."""

    tell: Callable[[str], None]
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.tell(name)
        begun = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - begun


@dataclass(frozen=True)
class WindowOrder:
    """What a window is to do under its id ``window``, and who hears of it.

    ``slots``: how many it takes for its demand, asked when there is work. ``only``: which of the source's partitions; ``until``:
    up to which offset of each, and nothing of others. ``following``: with ``window.follow.ms`` the window stays, whether anything
    is new or not, and is judged meanwhile; not with ``until``. With ``advance`` the engine's own checks judge alone, and what a
    gate holds stays held; without it the judgement is left to ``verify_window``. ``tell`` hears of phases, ``report`` of commits.
    """

    window: str
    slots: Callable[[Demand], int] = lambda demand: 1
    only: Callable[[TopicPartition], bool] = lambda partition: True
    until: Mapping[TopicPartition, int] | None = None
    following: Follow | None = None
    advance: bool = True
    tell: Callable[[str], None] = lambda phase: None
    report: Callable[[CopyProgress], None] = lambda progress: None

    def follow_ms(self, flow: Flow) -> int:
        """The milliseconds that the window stays; 0: it ends where its plan does."""
        return min(flow.window.follow_ms, MOST_FOLLOW_MS) if self.following and self.until is None else 0


def run_window(
    flow: Flow, index: FlowLedger, remote_topics: Mapping[str, str], execute: Execute, order: WindowOrder
) -> WindowResult:
    """Replicate everything that is new, in slots that ``execute`` runs, and verify it; where nothing is new no slot is asked for.

    Raises FlowBusy, FlowFrozen, FenceStuck, SameCluster, EqualClusterIds, or a cluster's error; what is wrong with single
    partitions is in the rows.
    """
    following = order.following if order.follow_ms(flow) else None
    with two_clusters(flow, index) as mirror:
        begun, phases, seen_ms = time.monotonic(), Phases(order.tell), int(time.time() * 1000)
        planned, results, verdicts = _copied(mirror, remote_topics, execute, order, phases)
        seen_ms = int(time.time() * 1000) if results else seen_ms
        ends = watermarks(mirror.source, [item.key for item in planned]) if results else {}
        others = []
        if results and following:
            mirror.source.refresh(None)
            others = unfollowed(mirror.source, planned, following.select)
        late = Latencies({item.key: item.end for item in planned})
        done = committed(late.noting(index.of_window(order.window)))
        rows = tuple(window_rows(flow, done, index, planned, results=results, verdicts=verdicts, ends=ends))
        name_writers(mirror.target, flow, [row.error for row in rows])
        seconds = time.monotonic() - begun
        there = (item for item in planned if not isinstance(item.error, PartitionUnavailable))
        known = {item.key: ends.get(item.key, item.high_watermark) for item in there}
        seen = seen_of(index.state().positions, planned, Ends(known, seen_ms, others))
        return WindowResult(
            flow=flow.name, window=order.window, rows=rows, partitions=len(planned),
            seconds=seconds,
            phases=phases.seconds, is_cut=any(result.outcome is Outcome.CUT for result in results),
            standings=seen.standings, seen_ms=seen.seen_ms,
            followed=late.followed() if following else None,
            limited=max((result.limited for result in results), default=0.0),
            throttled=max((result.throttled for result in results), default=0.0),
        )  # fmt: skip


def _copied(
    mirror: Mirror, remote_topics: Mapping[str, str], execute: Execute, order: WindowOrder, phases: Phases
) -> tuple[list[Planned], list[SlotResult], Sequence[Verdict]]:
    """The plan, what its slots have answered, and its verdicts, when the lease is released again."""
    flow, results = mirror.flow, list[SlotResult]()
    verdicts: Sequence[Verdict] = ()
    follow_ms, following = order.follow_ms(flow), order.following
    with phases("offsets and progress"):
        planned, demand = _look(mirror, remote_topics, order)
    if demand is not None:
        count = order.slots(demand)
        with leased(mirror, order.window, count) as granted:
            with phases("fence"):
                fenced = fence_around(granted, count)
            with phases("offsets and progress"):
                mirror.catch_up()
                granted.check_open()
                shut = frozen_now(mirror, remote_topics)
                still_open = {topic: remote for topic, remote in remote_topics.items() if topic not in shut}
                state, planned = _plan_with_starts(mirror, granted, fenced, still_open)
                planned += frozen_since(flow, state, remote_topics, shut)
                free = [item for item in chosen(planned, order.only, order.until) if item.key not in state.holds]
                work = slots_of(mirror, granted, fenced.numbers, free, follow_ms)
            if work:
                offsets = sum(part.end - part.start for slot in work for part in slot.partitions)
                meanwhile = (
                    FollowLoop(granted, following, planned, order.only) if following and follow_ms else nullcontext()
                )
                with phases("copy"), Watch(granted, offsets, order.report), meanwhile:
                    results = list(execute(work))
            with phases("verify"):
                mirror.catch_up()
                if order.advance:
                    with suppress(SlotFenced):  # who has the lease by now judges what is left
                        verdicts = verify_committed(mirror, granted, None, trusted={order.window}).verdicts
    return planned, results, verdicts


def _look(mirror: Mirror, remote_topics: Mapping[str, str], order: WindowOrder) -> tuple[list[Planned], Demand | None]:
    """The plan before the lease is taken, and what there is to copy; None: nothing needs the lease."""
    stuck = False
    try:
        state = mirror.current_state(PRECHECK_SECONDS)
    except LastStableOffsetStuck:
        state, stuck = mirror.index.state(), True  # a dead window left a transaction open: the fence ends it
    state = with_connect_offsets(mirror, state, remote_topics)
    planned = make_plan(mirror, state, remote_topics)
    follows, parts = order.follow_ms(mirror.flow) > 0, chosen(planned, order.only, order.until)
    wanted = [part for part in parts if part.takes_part(follows) and part.key not in state.holds]
    doubtful = any(isinstance(item.error, ProgressDiffers) for item in planned)  # seen in mid-commit, or so
    left = order.advance and bool(mirror.index.unverified())
    is_needed = stuck or wanted or doubtful or left or need_starts(mirror.flow, state, planned)
    return planned, demand_of(wanted, follows) if is_needed else None


def _plan_with_starts(
    mirror: Mirror, granted: GrantedLease, fenced: Fenced, remote_topics: Mapping[str, str]
) -> tuple[State, list[Planned]]:
    """The state and the plan after the fence; partitions that have no position yet are given one first."""
    state = with_connect_offsets(mirror, mirror.current_state(), remote_topics)
    planned = make_plan(mirror, state, remote_topics)
    if need_starts(mirror.flow, state, planned):
        errors = commit_starts(mirror, granted, fenced, state, planned)
        state = with_connect_offsets(mirror, mirror.current_state(), remote_topics)
        planned = make_plan(mirror, state, remote_topics)
        errors = not_begun(mirror.flow, state, planned) | errors
        planned = [replace(item, error=item.error or errors.get(item.key)) for item in planned]
    return state, without_stuck(planned, fenced.stuck, mirror.flow.source.alias, mirror.target)


def verify_window(
    flow: Flow,
    index: FlowLedger,
    gate: Gate | None,
    *,
    window: str,
    trusted: Container[str],
    tell: Callable[[str], None] = lambda phase: None,
) -> Verification:
    """Judge everything between verified offset and progress, and advance or hold each partition (invariant F).

    ``trusted``: the windows whose slots have read back before they committed; what others left is read from the target.
    ``window`` is who judges: a lease of that name is held meanwhile, so that no window writes. ``gate`` None: the engine's
    own checks judge alone, and what is held stays held. Raises FlowBusy, or a cluster's error.
    """
    with two_clusters(flow, index) as mirror:
        mirror.catch_up()
        held = gate is not None and any(hold.by == GATE for hold in index.holds().values())
        if not index.unverified() and not held:
            return Verification((), ())
        with leased(mirror, window, slots=0, frozen_too=True) as granted:
            tell("reading what is to be judged")
            mirror.catch_up()
            return verify_committed(mirror, granted, gate, trusted=trusted, tell=tell)
