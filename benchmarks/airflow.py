"""``python -m benchmarks.airflow``: how long runs take from queued to done, with and without data, and the stack's memory.

Writes the section "Airflow" of RESULTS.md and leaves the others as they are.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console

from airmirror_local.airflow_client import AirflowClient
from airmirror_local.jars import LOCAL
from airmirror_local.records import TABLES, load
from airmirror_local.stack import DAG_ID, Stack, running_stack
from benchmarks import sections
from benchmarks.report import Grid

RUN_SECONDS = 180
GIB = 1 << 30
EMPTY_SECONDS, BEYOND_COPY_SECONDS, MEMORY_GIB = 10.0, 15.0, 6.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.airflow", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="runs of each kind")
    chosen = parser.parse_args()
    console = Console()
    LOCAL.mkdir(exist_ok=True)
    directory = Path(tempfile.mkdtemp(prefix="bench-airflow-", dir=LOCAL))
    try:
        with running_stack(directory, schedule="1 day", share=0.5, step=console.status) as stack:
            grid = measure(stack, chosen.runs, console)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    console.print(grid.on_terminal())
    sections.write(grid)


def measure(stack: Stack, runs: int, console: Console) -> Grid:
    """Runs with nothing new and with data in turns, after a first one that warms everything up."""
    empty, beyond, memory = [], [], 0
    with stack.client() as client:
        client.unpause(DAG_ID)
        client.wait(lambda: any(run["state"] == "success" for run in client.runs(DAG_ID)), RUN_SECONDS)
        for number in range(runs):
            for with_data in (False, True):
                if with_data:
                    load(stack.east.bootstrap, TABLES, share=0.2)
                seconds, copy = timed(client)
                memory = max(memory, stack_memory(stack))
                (beyond if with_data else empty).append(seconds - copy if with_data else seconds)
            console.print(f"{number + 1}: empty {empty[-1]:.1f} s, with data {beyond[-1]:.1f} s beyond the copy")
    note = (
        f"{runs} runs of each kind, triggered one after the other, on the demo's stack (two clusters, Spark Connect, Airflow "
        "on SQLite, all on this machine). A run with data is timed without the copy itself. Memory is the largest sum of all "
        "processes' proportional set sizes."
    )
    grid = Grid("Airflow", note, ("what", "median", "largest", "to reach", ""))
    for what, found, most in (
        ("run with nothing new, queued to done", empty, EMPTY_SECONDS),
        ("run with data, beyond its copy", beyond, BEYOND_COPY_SECONDS),
    ):
        verdict = "met" if max(found) <= most else "missed"
        grid.rows.append((what, f"{statistics.median(found):.1f} s", f"{max(found):.1f} s", f"≤ {most:.0f} s", verdict))
    used = memory / GIB
    verdict = "met" if used < MEMORY_GIB else "missed"
    grid.rows.append(("memory of the stack", "", f"{used:.1f} GiB", f"< {MEMORY_GIB:.0f} GiB", verdict))
    return grid


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
