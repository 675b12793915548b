"""A window: claim, fence, progress, plan, slots, and what they committed, verified. Data flows one way.

The caller makes the window's id and says how slots are run (in this process, or as Spark tasks). Remote topics and the
internal ones exist already: ``airmirror.topics`` sees to that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from airmirror.clusters.admin.appender import Appender
from airmirror.clusters.protocol.errors import LastStableOffsetStuck
from airmirror.clusters.protocol.log import LATEST, offsets_with_patience
from airmirror.clusters.protocol.routes import Routes, TopicNotFound
from airmirror.config import Flow
from airmirror.errors import AirmirrorError
from airmirror.ledger.state import State
from airmirror.naming import progress_topic, segment_topic
from airmirror.partitions import TopicPartition
from airmirror.slot.contract import Outcome, Slot, SlotResult
from airmirror.windows.declared import compacted_topics
from airmirror.windows.ends import check_ends
from airmirror.windows.errors import ProgressDiffers
from airmirror.windows.fence import Fenced, Granted, claimed, fence_around
from airmirror.windows.findings import Finding, examine
from airmirror.windows.index import Index, InternalTopics, catch_up
from airmirror.windows.plan import Planned
from airmirror.windows.planning import chosen, make_plan, slots_of
from airmirror.windows.progress import Progress, Watch
from airmirror.windows.results import WindowResult, standings_of, window_rows
from airmirror.windows.starts import commit_starts, need_starts
from airmirror.windows.targets import without_stuck
from airmirror.windows.verify import Gate, Verdict, judge
from airmirror.wire.segments import GATE

PRECHECK_SECONDS = 2.0

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


def internal_topics(flow: Flow) -> InternalTopics:
    """The names of the flow's internal topics on the target."""
    return InternalTopics(segment_topic(flow.source.alias), progress_topic(flow.source.alias))


def run_window(
    flow: Flow,
    index: Index,
    remote_topics: Mapping[str, str],
    execute: Execute,
    *,
    window: str,
    slots: Callable[[], int],
    only: Callable[[TopicPartition], bool] = lambda partition: True,
    until: Mapping[TopicPartition, int] | None = None,
    advance: bool = True,
    tell: Callable[[str], None] = lambda phase: None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> WindowResult:
    """Replicate everything that is new, in at most ``slots()`` slots, and verify it; neither is asked for nothing.

    ``only``: which of the source's partitions; ``until``: up to which offset of each, and nothing of others. ``tell``
    hears of every phase, ``report`` of what is committed. With ``advance`` the engine's own checks judge alone, and what
    a gate holds stays held; without it the judgement is left to ``judge_window``.
    Raises FlowBusy, FenceStuck, SameCluster, EqualClusterIds, or a cluster's error; what is wrong with single partitions
    is in the rows.
    """
    begun, phases, topics = time.monotonic(), Phases(tell), internal_topics(flow)
    with _routes(flow) as (source, target):
        with phases("offsets and progress"):
            state, stuck = _state_before(flow, index, target, topics)
            planned = make_plan(flow, state, remote_topics, source, target)
        results: list[SlotResult] = []
        verdicts: list[Verdict] = []
        new = any(item.has_work and item.key not in state.holds for item in chosen(planned, only, until))
        doubtful = any(isinstance(item.error, ProgressDiffers) for item in planned)  # seen in mid-commit, or so
        if stuck or new or doubtful or (advance and index.unverified()) or need_starts(flow, state, planned):
            most = slots()
            with (
                Appender(flow.target, topics.segments) as appender,
                claimed(
                    flow=flow, window=window, slots=most, target=target, topics=topics, index=index, appender=appender
                ) as granted,
            ):
                with phases("fence"):
                    fenced = fence_around(flow, target, granted, most, topics)
                with phases("offsets and progress"):
                    state, planned = _plan_with_starts(
                        flow=flow, index=index, remote_topics=remote_topics, source=source, target=target,
                        topics=topics, granted=granted, fenced=fenced,
                    )  # fmt: skip
                    free = [item for item in chosen(planned, only, until) if item.key not in state.holds]
                    work = slots_of(
                        flow=flow, granted=granted, numbers=fenced.numbers, planned=free, source=source,
                        target=target, topics=topics,
                    )  # fmt: skip
                if work:
                    offsets = sum(part.end - part.start for slot in work for part in slot.partitions)
                    watch = Watch(
                        flow=flow, segment_topic=topics.segments, window=window, start=granted.offset,
                        planned=offsets, report=report,
                    )  # fmt: skip
                    with phases("copy"), watch:
                        results = list(execute(work))
                with phases("verify"):
                    catch_up(target, topics, index, flow.source.alias)
                    if advance:
                        findings = _examine(flow, index, source, target, {window})
                        verdicts = judge(findings, None, index, appender, flow=flow, window=window)
                        catch_up(target, topics, index, flow.source.alias)
        ends = _watermarks(source, [item.key for item in planned]) if results else {}
        rows = window_rows(
            flow=flow, window=window, index=index, planned=planned, results=results, verdicts=verdicts, ends=ends
        )
    is_cut = any(result.outcome is Outcome.CUT for result in results)
    return WindowResult(
        flow=flow.name, window=window, rows=tuple(rows), partitions=len(planned), seconds=time.monotonic() - begun,
        phases=phases.seconds, is_cut=is_cut,
        standings=tuple(standings_of(index, planned, ends)),
    )  # fmt: skip


def _state_before(flow: Flow, index: Index, target: Routes, topics: InternalTopics) -> tuple[State, bool]:
    """The flow's state before anything is claimed, and whether an open transaction hides some of it."""
    try:
        return catch_up(target, topics, index, flow.source.alias, PRECHECK_SECONDS), False
    except LastStableOffsetStuck:
        return index.state(), True  # a dead window left a transaction open: the fence ends it


def _plan_with_starts(
    *,
    flow: Flow,
    index: Index,
    remote_topics: Mapping[str, str],
    source: Routes,
    target: Routes,
    topics: InternalTopics,
    granted: Granted,
    fenced: Fenced,
) -> tuple[State, list[Planned]]:
    """The state and the plan after the fence; partitions that have no position yet are given one first."""
    state = catch_up(target, topics, index, flow.source.alias)
    planned = make_plan(flow, state, remote_topics, source, target)
    if need_starts(flow, state, planned):
        errors = commit_starts(
            flow=flow, granted=granted, fenced=fenced, source=source, target=target, topics=topics, state=state,
            planned=planned,
        )  # fmt: skip
        state = catch_up(target, topics, index, flow.source.alias)
        planned = make_plan(flow, state, remote_topics, source, target)
        planned = [replace(item, error=item.error or errors.get(item.key)) for item in planned]
    return state, without_stuck(planned, fenced.stuck, flow.source.alias, target)


@dataclass(frozen=True)
class Judged:
    """The rows shown to a gate, and its verdict, partition by partition."""

    findings: tuple[Finding, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def errors(self) -> list[AirmirrorError]:
        return [verdict.error for verdict in self.verdicts if verdict.error is not None]


def judge_window(
    flow: Flow,
    index: Index,
    gate: Gate | None,
    *,
    window: str,
    trusted: Collection[str],
    tell: Callable[[str], None] = lambda phase: None,
) -> Judged:
    """Judge everything between verified offset and progress, and advance or hold each partition (invariant F).

    ``trusted``: the windows whose slots have read back before they committed; what others left is read from the target.
    ``window`` is who judges: a claim of that name is held meanwhile, so that nobody writes. ``gate`` None: the engine's
    own checks judge alone, and what is held stays held. Raises FlowBusy, or a cluster's error.
    """
    topics = internal_topics(flow)
    with _routes(flow) as (source, target):
        catch_up(target, topics, index, flow.source.alias)
        held = gate is not None and any(hold.by == GATE for hold in index.holds().values())
        if not index.unverified() and not held:
            return Judged((), ())
        with (
            Appender(flow.target, topics.segments) as appender,
            claimed(flow=flow, window=window, slots=0, target=target, topics=topics, index=index, appender=appender),
        ):
            tell("reading what is to be judged")
            catch_up(target, topics, index, flow.source.alias)
            findings = _examine(flow, index, source, target, trusted)
            tell(f"judging {len(findings)} partitions")
            verdicts = judge(findings, gate, index, appender, flow=flow, window=window)
            catch_up(target, topics, index, flow.source.alias)
    return Judged(tuple(findings), tuple(verdicts))


def _examine(flow: Flow, index: Index, source: Routes, target: Routes, trusted: Collection[str]) -> list[Finding]:
    unverified = {TopicPartition(record.topic, record.partition) for record in index.unverified()}
    topics = {key.topic for key in unverified}
    topics -= source.refresh_existing(topics).keys()
    watermarks = _watermarks(source, [key for key in unverified if key.topic in topics])
    compacted = compacted_topics(flow, source, topics)
    return examine(flow, index, source, target, trusted=trusted, compacted=compacted, watermarks=watermarks)


@contextmanager
def _routes(flow: Flow) -> Iterator[tuple[Routes, Routes]]:
    with (
        Routes(flow.source, f"airmirror|{flow.name}") as source,
        Routes(flow.target, f"airmirror|{flow.name}") as target,
    ):
        source.refresh([])
        target.refresh([])
        check_ends(flow, source, target)
        yield source, target


def _watermarks(source: Routes, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
    """The high watermarks after the copy, for the lag that is left; none where a topic is gone by now."""
    try:
        return offsets_with_patience(source, partitions, LATEST)
    except TopicNotFound:
        return {}
