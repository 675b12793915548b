"""``airmirror demo``: the stack on this machine, real records, scheduled runs while more arrive, the proof."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.filesize import decimal

from airmirror.cli import show
from airmirror.cli.tables import Cell, line, print_all, table
from airmirror.flows.prepare import Opened, dry_run, open_flow
from airmirror.flows.verification import ComparedPartition, compare_all
from airmirror.local import LOCAL
from airmirror.windows.following import Followed, Latencies
from airmirror.windows.results import Row, WindowResult, rows_of
from airmirror_local.airflow_client import ENDED, AirflowClient
from airmirror_local.demo.frame import steps
from airmirror_local.demo.report import Reported, report_demo
from airmirror_local.processes import ProcessFailed
from airmirror_local.records import keep_producing
from airmirror_local.stack import DAG_ID, FLOW, Stack, running_stack

SCHEDULE = "10 s"
FOLLOW_MS = 20_000
RUN_SECONDS = 300
MARKERS = "Target ranges are longer: on the target the marker of each transaction takes an offset too."


def run_demo(console: Console, seconds: int) -> int:
    """The exit status: 0 when every run has succeeded and both logs are equal. Leaves nothing running."""
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="demo-", dir=LOCAL))
    try:
        step = steps(console)
        with running_stack(directory, schedule=SCHEDULE, share=0.9, step=step, follow_ms=FOLLOW_MS) as stack:
            results, compared, arrived, failed, reported, late = _mirror(stack, step, seconds)
            produced = {topic: count + arrived.get(topic, 0) for topic, count in stack.loaded.items()}
    except (ProcessFailed, TimeoutError) as error:
        console.print(f"[red]failed[/] {error}", highlight=False)
        return 1
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print_all(console, show.window(replace(_together(results), followed=late)), MARKERS, runs(results))
    for text in failed:
        console.print(text, highlight=False)
    equal = sum(row.records for row in compared)
    different = [row for row in compared if row.error]
    doubts = [*_doubts(results, compared, produced), *reported.doubts]
    console.print(
        f"{sum(produced.values()):,} records were produced, {sum(arrived.values()):,} of them while runs were scheduled. Both "
        f"logs were read again and compared, record by record: {equal:,} equal, {len(different)} partitions with a "
        "difference. Everything is stopped."
    )
    if late is not None:
        console.print(str(late), highlight=False, soft_wrap=True)
    for text in reported.lines():
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    print_all(console, *(line("not proven", doubt) for doubt in doubts))
    return 0 if not doubts and not failed else 1


def runs(results: Sequence[WindowResult]) -> RenderableType:
    """One row a window, by the name of the run that it belongs to."""
    columns = ("run", ">partitions", ">records", ">bytes", ">seconds", "verified")
    rows: list[list[Cell]] = [
        [
            result.window,
            len(result.rows),
            result.copied,
            decimal(result.bytes),
            result.seconds,
            show.verified(result.is_verified, result.is_read_back),
        ]
        for result in results
    ]
    return table("Airflow's runs that replicated something", columns, rows)


def _doubts(
    results: Sequence[WindowResult], compared: Sequence[ComparedPartition], produced: Mapping[str, int]
) -> Iterator[str]:
    """Yield the reasons why the copy is not proven: every record produced must be equal on both sides, and nothing else there."""
    for topic, count in produced.items():
        equal = sum(row.records for row in compared if row.topic == topic)
        if equal != count:
            yield f"{topic}: {count:,} records were produced, {equal:,} are equal on both sides"
    for row in compared:
        yield from map(str, row.errors)
    if (equal := sum(row.records for row in compared)) != (copied := sum(result.copied for result in results)):
        yield f"windows copied {copied:,} records, {equal:,} are equal on both sides"
    yield from (f"{result.window} is not verified" for result in results if not result.is_verified)


def _mirror(
    stack: Stack, step: Any, seconds: int
) -> tuple[list[WindowResult], list[ComparedPartition], dict[str, int], list[str], Reported, Followed | None]:
    """The windows that copied something, both logs compared, how many of each topic arrived, logs of failed tasks, a report,
    and how late windows were that followed the log."""
    with stack.client() as client, open_flow(stack.configuration, FLOW, stack.ledger) as opened:
        with keep_producing(stack.east.bootstrap, share=0.9) as arrivals:
            client.unpause(DAG_ID)
            with step("Airflow runs the first window"):
                client.wait(lambda: _ended(client), RUN_SECONDS)
            with step("more records arrive"):
                arrivals.wait(seconds)
        with step("Airflow runs windows until everything is mirrored and verified"):
            client.wait(lambda: _everything_verified(opened), RUN_SECONDS)
            seen = len(_ended(client))  # the run that has done it ends too; later ones find nothing new
            client.wait(lambda: len(_ended(client)) > seen, RUN_SECONDS)
        with step("comparing both logs, record by record"):
            compared = compare_all(opened, [])
        with step("writing a signed report, and checking it"):
            reported = report_demo(opened)
        late = _lateness(opened)
        return _windows(opened, client), compared, dict(arrivals.sent), list(_failures(client)), reported, late


def _ended(client: AirflowClient) -> list[dict[str, Any]]:
    return [run for run in reversed(client.runs(DAG_ID)) if run["state"] in ENDED]


def _everything_verified(opened: Opened) -> bool:
    _, planned = dry_run(opened)
    return not any(item.has_work for item in planned) and not opened.ledger.unverified()


def _windows(opened: Opened, client: AirflowClient) -> list[WindowResult]:
    """The windows that copied something, as Airflow's runs have named and timed them."""
    _, planned = dry_run(opened)
    windows = [row.window for row in opened.ledger.windows(limit=1000)]
    found = []
    for run in _ended(client):
        seconds = _seconds(client.tasks(DAG_ID, run["dag_run_id"])["replicate_window"])
        for window in windows:
            if window.startswith(f"{run['dag_run_id']}#"):
                rows = rows_of(opened.flow, window, opened.ledger, planned)
                found.append(
                    WindowResult(
                        flow=FLOW,
                        window=run["dag_run_id"],
                        rows=rows,
                        partitions=len(planned),
                        seconds=seconds,
                        phases={"copy": seconds},
                        is_cut=False,
                    )
                )
    return found


def _lateness(opened: Opened) -> Followed | None:
    """How late windows were with what was produced after their first commits."""
    windows = opened.ledger.windows(limit=1000)
    every = ((window, each) for window in windows for each in opened.ledger.of_window(window.window))
    late = Latencies({})
    for _ in late.noting(each for window, each in every if each.min_timestamp >= window.first_ms):
        pass
    return late.followed()


def _together(results: Sequence[WindowResult]) -> WindowResult:
    """All windows as one: each partition's ranges follow one another."""
    rows: dict[tuple[str, int], Row] = {}
    for row in (row for result in results for row in result.rows):
        before = rows.get((row.topic, row.partition))
        rows[row.topic, row.partition] = (
            row
            if before is None
            else replace(
                row,
                source_start=before.source_start,
                target_start=before.target_start,
                copied=before.copied + row.copied,
                bytes=before.bytes + row.bytes,
                verified=before.verified and row.verified,
            )
        )
    seconds = sum(result.seconds for result in results)
    ordered = tuple(rows[key] for key in sorted(rows))
    return WindowResult(
        flow=FLOW,
        window="",
        rows=ordered,
        partitions=len(ordered),
        seconds=seconds,
        phases={"copy": seconds},
        is_cut=False,
    )


def _seconds(task: dict[str, Any]) -> float:
    start, end = (datetime.fromisoformat(task[key]) for key in ("start_date", "end_date"))
    return max((end - start).total_seconds(), 0.001)


def _failures(client: AirflowClient) -> Iterator[str]:
    for run in _ended(client):
        for name, task in client.tasks(DAG_ID, run["dag_run_id"]).items():
            if task["state"] == "failed":
                log = client.log(DAG_ID, run["dag_run_id"], name, task["try_number"])
                yield f"{run['dag_run_id']}, {name} failed:\n" + "\n".join(_last(log.splitlines()))


def _last(lines: Sequence[str]) -> Sequence[str]:
    return lines[-30:]
