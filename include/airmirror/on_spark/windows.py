"""Running a window with its slots on Spark, which is started or joined only when there is work."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airmirror.errors import AirmirrorError
from airmirror.flows.following import following_of
from airmirror.flows.gates import Expectations, verify_flow
from airmirror.flows.measure import measure_failure, measure_latency, measure_window
from airmirror.flows.prepare import Opened, Prepared
from airmirror.quality.verdict import Validation
from airmirror.slot.contract import Slot, SlotResult
from airmirror.tell import Tell
from airmirror.windows.demand import Demand, at_most, slots_for
from airmirror.windows.results import WindowResult, with_verdicts
from airmirror.windows.window import Execute, WindowOrder, run_window

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)


def run(prepared: Prepared, spark_url: str | None, order: WindowOrder) -> WindowResult:
    """``run_window`` of a prepared flow, on a Spark Connect server or (no URL) on Spark in this process."""
    opened = prepared.opened
    with on_spark(opened, spark_url, order.tell) as (slots, execute):
        try:
            result = run_window(opened.flow, opened.ledger, prepared.topics, execute, replace(order, slots=slots))
        except AirmirrorError as error:
            measure_failure(opened, order.window, error)
            raise
        measure_window(opened, result, lambda key: order.only(key) and (order.until is None or key in order.until))
        if order.advance and result.rows:
            measure_latency(opened)
        return result


@dataclass(frozen=True)
class RunWindow:
    """A window that was judged: what it did and whether it passed, and what the gate's suites said, where they were asked.

    ``earlier``: records that the gate let pass besides the window's own, which earlier windows had committed.
    """

    result: WindowResult
    validation: Validation | None
    earlier: int = 0


def run_judged(
    prepared: Prepared,
    spark_url: str | None,
    order: WindowOrder,
    expectations: Expectations,
    tasks: Collection[str] = (),
) -> RunWindow:
    """A window and its gate, one after the other as in a DAG's run; where the window follows (``window.follow.ms``) the gate
    judges meanwhile too, and ``tasks`` are done. Raises what ``run`` and ``verify_flow`` raise.
    """
    window, tell = order.window, order.tell
    following = following_of(prepared.opened, expectations, window=window, tasks=tasks)
    result = run(prepared, spark_url, replace(order, following=following, advance=False))
    begun = time.monotonic()
    verification, validation = verify_flow(prepared.opened, expectations, window=window, trusted={window}, tell=tell)
    taken = time.monotonic() - begun
    result = replace(result, seconds=result.seconds + taken, phases={**result.phases, "gate": taken})
    passed = sum(verdict.records for verdict in verification.verdicts if verdict.error is None)
    found = with_verdicts(result, verification.findings, verification.verdicts)
    return RunWindow(found, validation, max(0, passed - result.copied))


@contextmanager
def on_spark(opened: Opened, spark_url: str | None, tell: Tell) -> Iterator[tuple[Callable[[Demand], int], Execute]]:
    """Give the function that says how many slots a window takes, and the one that executes them; the first use starts or joins
    Spark."""
    flow = opened.flow
    sessions: list[SparkSession] = []

    def spark() -> SparkSession:
        if not sessions:
            from airmirror.on_spark import sessions as make
            from airmirror.on_spark.execute import check_executors

            tell("joining Spark")
            sessions.append(make.in_process() if spark_url is None else make.connect(spark_url, flow))
            check_executors(sessions[0], flow.name)
        return sessions[0]

    def slots(demand: Demand) -> int:
        from airmirror.on_spark.sessions import capacity

        joined = spark()  # now, before the window takes its lease: where Spark can run nothing, it takes none
        flows = 1 if flow.tasks_max else max(1, len(opened.configuration.enabled))
        room = at_most(flow.tasks_max) if flow.tasks_max else capacity(joined)
        count = slots_for(demand, flow.window, room, flows)
        log.info(
            "%d slots for %.1f MB; the newest record copied there is %.0f s old; %d tasks run at once, %d could, flows: %d.",
            *(count, sum(demand.sizes) / 1e6, demand.waited_ms / 1000, room.now, room.most, flows),
        )
        return count

    def work(given: Sequence[Slot]) -> list[SlotResult]:
        from airmirror.on_spark.execute import execute

        return execute(spark(), given, flow.name)

    try:
        yield slots, work
    finally:
        for session in sessions:
            from airmirror.on_spark.sessions import close

            close(session)
