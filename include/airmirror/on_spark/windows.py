"""Running a window with its slots on Spark, which is started or joined only when there is work."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from airmirror.errors import AirmirrorError
from airmirror.flows.following import following_of
from airmirror.flows.gates import Expectations, judge_flow
from airmirror.flows.measure import measure_failure, measure_latency, measure_window
from airmirror.flows.prepare import Opened, Prepared, prepare
from airmirror.partitions import TopicPartition
from airmirror.quality.verdict import Judgement
from airmirror.slot.contract import Slot, SlotResult
from airmirror.windows.chain import Chain, run_chain
from airmirror.windows.following import Follow
from airmirror.windows.progress import CopyProgress
from airmirror.windows.results import WindowResult, with_verdicts
from airmirror.windows.window import run_window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(
    prepared: Prepared,
    spark_url: str | None,
    window: str,
    *,
    only: Callable[[TopicPartition], bool] = lambda partition: True,
    until: Mapping[TopicPartition, int] | None = None,
    following: Follow | None = None,
    advance: bool = True,
    tell: Callable[[str], None] = lambda phase: None,
    report: Callable[[CopyProgress], None] = lambda progress: None,
) -> WindowResult:
    """``run_window`` of a prepared flow, on a Spark Connect server or (no URL) on Spark in this process."""
    opened = prepared.opened
    flow = opened.flow
    with on_spark(opened, spark_url, tell) as (slots, execute):
        try:
            result = run_window(
                flow,
                opened.ledger,
                prepared.topics,
                execute,
                window=window,
                slots=slots,
                only=only,
                until=until,
                following=following,
                advance=advance,
                tell=tell,
                report=report,
            )
        except AirmirrorError as error:
            measure_failure(opened, window, error)
            raise
        measure_window(opened, result, lambda key: only(key) and (until is None or key in until))
        if advance and result.rows:
            measure_latency(opened)
        return result


def run_following(
    prepared: Prepared,
    spark_url: str | None,
    window: str,
    following: Callable[[str], Follow],
    *,
    only: Callable[[TopicPartition], bool] = lambda partition: True,
    tell: Callable[[str], None] = lambda phase: None,
    report: Callable[[CopyProgress], None] = lambda progress: None,
    done: Callable[[WindowResult], None] = lambda result: None,
) -> WindowResult:
    """Run the windows of a command or a task that follow the log: one, or ``window.follow.windows`` in a row; the last result.

    ``following``: how a window follows, by its name; ``done`` hears of each result, in a thread where another window follows. The
    last judgement is left to ``judge_flow``. Raises what ``run_window`` does.
    """
    opened = prepared.opened
    if opened.flow.window.follow_windows == 1 or not opened.flow.window.follow_ms:
        follow = following(window)
        result = run(prepared, spark_url, window, only=only, following=follow, advance=False, tell=tell, report=report)
        done(result)
        return result

    def measured(result: WindowResult) -> None:
        measure_window(opened, result, only)
        done(result)

    with on_spark(opened, spark_url, tell) as (slots, jobs):

        def joined() -> int:
            jobs.spark()  # before the claim: the next window's job is begun a time after this one's
            return slots()

        chain = Chain(
            topics=partial(_topics, prepared),
            start=jobs.start,
            cancel=jobs.cancel,
            following=following,
            done=measured,
            windows=opened.flow.window.follow_windows,
        )
        try:
            return run_chain(
                opened.flow,
                opened.ledger,
                prepared.topics,
                jobs,
                chain,
                window=window,
                slots=joined,
                only=only,
                tell=tell,
                report=report,
            )
        except AirmirrorError as error:
            measure_failure(opened, window, error)
            raise


def _topics(before: Prepared) -> Mapping[str, str] | None:
    """Make remote topics ready for the next window of a chain; None: it ends, because there is something to tell or to decide."""
    now = prepare(before.opened)
    return now.topics if not now.refused and now.opened.flow == before.opened.flow else None


@dataclass(frozen=True)
class RunWindow:
    """A window that was judged: what it did and whether it passed, and what the gate's suites said, where they were asked.

    ``earlier``: records that the gate let pass besides the window's own, which earlier windows had committed.
    """

    result: WindowResult
    judgement: Judgement | None
    earlier: int = 0


def run_judged(
    prepared: Prepared,
    spark_url: str | None,
    window: str,
    expectations: Expectations,
    *,
    rounds: Collection[str] = (),
    only: Callable[[TopicPartition], bool] = lambda partition: True,
    tell: Callable[[str], None] = lambda phase: None,
    report: Callable[[CopyProgress], None] = lambda progress: None,
    done: Callable[[WindowResult], None] = lambda result: None,
) -> RunWindow:
    """A window and its gate, one after the other as in a DAG's run; where the window follows (``window.follow.ms``) the gate
    judges meanwhile too, and ``rounds`` are done; with ``window.follow.windows`` several in a row, of which ``done`` hears one by
    one. Raises what ``run`` and ``judge_flow`` raise.
    """
    names = [window]

    def note(result: WindowResult) -> None:
        names.append(result.window)
        done(result)

    result = run_following(
        prepared,
        spark_url,
        window,
        lambda each: following_of(prepared.opened, expectations, window=each, rounds=rounds),
        only=only,
        tell=tell,
        report=report,
        done=note,
    )
    begun = time.monotonic()
    judged, judgement = judge_flow(prepared.opened, expectations, window=result.window, trusted=set(names), tell=tell)
    taken = time.monotonic() - begun
    result = replace(result, seconds=result.seconds + taken, phases={**result.phases, "gate": taken})
    passed = sum(verdict.records for verdict in judged.verdicts if verdict.error is None)
    found = with_verdicts(result, judged.findings, judged.verdicts)
    return RunWindow(found, judgement, max(0, passed - result.copied))


@dataclass(frozen=True)
class Jobs:
    """Runs the slots of a flow's windows as Spark jobs. Called, it ends those of earlier windows first."""

    spark: Callable[[], SparkSession]
    flow: str

    def __call__(self, work: Sequence[Slot]) -> list[SlotResult]:
        from airmirror.on_spark.execute import execute

        return execute(self.spark(), work, self.flow)

    def start(self, work: Sequence[Slot]) -> list[SlotResult]:
        """Run slots next to those of the window before, which are to end by themselves."""
        from airmirror.on_spark.execute import execute

        return execute(self.spark(), work, self.flow, alone=False)

    def cancel(self) -> None:
        """End all jobs of the flow in this session."""
        from airmirror.on_spark.execute import tag

        self.spark().interruptTag(tag(self.flow))


@contextmanager
def on_spark(
    opened: Opened, spark_url: str | None, tell: Callable[[str], None]
) -> Iterator[tuple[Callable[[], int], Jobs]]:
    """Give a window's number of slots, and the function that executes them; the first use starts or joins Spark."""
    flow = opened.flow
    sessions: list[SparkSession] = []

    def spark() -> SparkSession:
        if not sessions:
            from airmirror.on_spark import sessions as make

            tell("joining Spark")
            sessions.append(make.in_process() if spark_url is None else make.connect(spark_url, flow))
        return sessions[0]

    def slots() -> int:
        from airmirror.on_spark.sessions import parallelism

        return flow.tasks_max or max(1, parallelism(spark()) // max(1, len(opened.configuration.enabled)))

    try:
        yield slots, Jobs(spark, flow.name)
    finally:
        for session in sessions:
            from airmirror.on_spark.sessions import close

            close(session)
