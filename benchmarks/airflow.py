"""``python -m benchmarks.airflow``: how long runs take, how soon windows follow one another, and the stack's memory.

Runs from queued to done, with and without data, are triggered one after the other; then, on another stack, the flow runs by
itself under ``@continuous``. Writes the section "Airflow" of RESULTS.md and leaves the others as they are.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from airmirror.local import LOCAL
from airmirror_local.airflow_client import AirflowClient
from airmirror_local.records import TABLES, load
from airmirror_local.stack import DAG_ID, Stack, running_stack
from benchmarks import sections
from benchmarks.continuous import RECORD_BYTES, Continuous, measure_continuous
from benchmarks.report import Grid

RUN_SECONDS = 180
GIB = 1 << 30
EMPTY_SECONDS, BEYOND_COPY_SECONDS, MEMORY_GIB = 10.0, 15.0, 6.0
GAP_SECONDS, LATENCY_SECONDS = 10.0, 15.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.airflow", description=__doc__)
    parser.add_argument("--runs", type=int, default=10, help="runs of each kind")
    parser.add_argument("--seconds", type=int, default=180, help="how long the flow runs by itself")
    parser.add_argument("--rate", type=int, default=1000, help="records a second meanwhile")
    parser.add_argument("--results", type=Path, default=sections.RESULTS, help="the Markdown file to write")
    chosen = parser.parse_args()
    console = Console()
    note = (
        f"{chosen.runs} runs of each kind, triggered one after the other, on the demo's stack (two clusters, Spark Connect, "
        "Airflow on SQLite, all on this machine), without heartbeats. A run with data is timed without the copy itself. Memory "
        "is the largest sum of all processes' proportional set sizes. Then, on a stack of its own, windows under "
        f"`@continuous` for {chosen.seconds} s, with {chosen.rate:,} records of {RECORD_BYTES} bytes a second and a heartbeat a "
        "second: from a window's verdict to the next one's first commit, and from the time of a heartbeat or record to the "
        "commit on the target (readable) or the verdict (verified)."
    )
    grid = Grid("Airflow", note, ("what", "median", "largest", "to reach", ""))
    with _stack("1 day", console) as stack:
        grid.rows.extend(triggered(stack, chosen.runs, console))
    with _stack("@continuous", console) as stack:
        found = measure_continuous(stack, chosen.seconds, chosen.rate, console)
    for name, start, end in found.tasks:
        console.print(f"{name:20} {start:6.2f} s to {end:6.2f} s after the run was queued")
    grid.rows.extend(continuous_rows(found))
    console.print(grid.on_terminal())
    sections.write(grid, chosen.results)


@contextmanager
def _stack(schedule: str, console: Console) -> Iterator[Stack]:
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-airflow-", dir=LOCAL))
    try:
        with running_stack(directory, schedule=schedule, share=0.5, step=console.status) as stack:
            yield stack
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def triggered(stack: Stack, runs: int, console: Console) -> list[tuple[str, ...]]:
    """Runs with nothing new and with data in turns, after a first one that warms everything up."""
    empty: list[float] = []
    beyond: list[float] = []
    memory = 0
    with stack.client() as client:
        client.unpause(DAG_ID)
        client.wait(lambda: any(run["state"] == "success" for run in client.runs(DAG_ID)), RUN_SECONDS)
        for number in range(runs):
            for with_data in (False, True):
                if with_data:
                    load(stack.east.bootstrap, TABLES, share=0.2)
                seconds, copy = timed(client)
                if not with_data and copy:
                    raise RuntimeError("a run with nothing new found something: are heartbeats emitted?")
                memory = max(memory, stack_memory(stack))
                (beyond if with_data else empty).append(seconds - copy if with_data else seconds)
            console.print(f"{number + 1}: empty {empty[-1]:.1f} s, with data {beyond[-1]:.1f} s beyond the copy")
    used = memory / GIB
    verdict = "met" if used < MEMORY_GIB else "missed"
    return [
        _row("run with nothing new, queued to done", empty, EMPTY_SECONDS, max(empty)),
        _row("run with data, beyond its copy", beyond, BEYOND_COPY_SECONDS, max(beyond)),
        ("memory of the stack", "", f"{used:.1f} GiB", f"< {MEMORY_GIB:.0f} GiB", verdict),
    ]


def continuous_rows(found: Continuous) -> list[tuple[str, ...]]:
    """The windows' lines; latencies are judged by their median."""
    beats, beats_verified, records = found.heartbeats_readable, found.heartbeats_verified, found.records_readable
    return [
        _row(
            f"`@continuous`, {len(found.gaps)} times: from one window's end to the next one's first record",
            found.gaps,
            GAP_SECONDS,
            max(found.gaps),
        ),
        _row("`@continuous`: from one window's first record to the next one's", found.cycles),
        _row(
            f"end-to-end latency of {len(beats):,} heartbeats, until readable",
            beats,
            LATENCY_SECONDS,
            statistics.median(beats),
        ),
        _row("the same, until verified", beats_verified, LATENCY_SECONDS, statistics.median(beats_verified)),
        _row(
            f"end-to-end latency of {len(records):,} records, until readable",
            records,
            LATENCY_SECONDS,
            statistics.median(records),
        ),
    ]


def _row(what: str, found: Sequence[float], most: float | None = None, judged: float = 0.0) -> tuple[str, ...]:
    """A line of the table; ``judged`` is what must not be more than ``most``."""
    wanted = ("", "") if most is None else (f"≤ {most:.0f} s", "met" if judged <= most else "missed")
    return what, f"{statistics.median(found):.1f} s", f"{max(found):.1f} s", *wanted


def timed(client: AirflowClient) -> tuple[float, float]:
    """Seconds of a triggered run from queued to done, and of its copy alone."""
    run_id = client.trigger(DAG_ID)
    if client.wait_for_run(DAG_ID, run_id, RUN_SECONDS) != "success":
        raise RuntimeError(f"run {run_id} failed")
    run = client.run(DAG_ID, run_id)
    lines = client.log(DAG_ID, run_id, "replicate_window", 1).splitlines()
    copied = next((line for line in lines if line.startswith("Replicated ")), "")
    copy = float(copied.partition(" copy ")[2].partition(" s")[0] or 0)
    return _seconds(run, "queued_at", "end_date"), copy


def stack_memory(stack: Stack) -> int:
    """Bytes of all processes, shared pages counted once."""
    roots = [stack.east.process, stack.west.process, stack.spark.process, *stack.airflow.processes.values()]
    total = 0
    for root in roots:
        for process in [root.handle, *root.handle.children(recursive=True)]:
            try:
                total += process.memory_full_info().pss
            except psutil.NoSuchProcess:
                continue
    return total


def _seconds(item: dict[str, Any], start: str, end: str) -> float:
    return (datetime.fromisoformat(item[end]) - datetime.fromisoformat(item[start])).total_seconds()


if __name__ == "__main__":
    main()
