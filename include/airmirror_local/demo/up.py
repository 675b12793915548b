"""``airmirror up`` and ``airmirror down``: the embedded stack, left running until it is stopped."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console

from airmirror.cli import running
from airmirror_local.demo.frame import steps
from airmirror_local.processes import Process, attach
from airmirror_local.stack import DAG_ID, FLOW, Stack, start_stack

SCHEDULE = "1 minute"
TO_TRY = ("status", "run-window", "verify")


def start(console: Console) -> int:
    """Start two clusters with the demo's records, Spark Connect and Airflow; the exit status."""
    if _running():
        console.print("It is running already; `airmirror down` stops it.")
        return 1
    shutil.rmtree(running.HOME, ignore_errors=True)
    running.HOME.mkdir(mode=0o700, parents=True)
    started: list[Process] = []
    # Until everything runs and is remembered, all of it ends with this command, however that ends.
    stack = start_stack(
        running.HOME, schedule=SCHEDULE, step=steps(console), started=lambda process: _remember(started, process)
    )
    with os.fdopen(os.open(running.spark_file(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(stack.spark.url)
    for process in started:
        process.release()
    for line in _told(stack):
        console.print(line, highlight=False, soft_wrap=True)
    return 0


def _told(stack: Stack) -> Iterator[str]:
    """Yield the addresses of the stack and commands to try next, each of which runs as printed."""
    yield f"Airflow     {stack.airflow.url}/dags/{DAG_ID}"
    yield f"            log in as {stack.airflow.user}, password {stack.airflow.password}"
    yield f"Clusters    east {stack.east.bootstrap}, west {stack.west.bootstrap}"
    yield f"Spark       {stack.spark.address}, token in {stack.spark.token_file}"
    yield f"The flow {FLOW} is paused: switch {DAG_ID} on in Airflow. Or try, while all of it runs:"
    for name in TO_TRY:
        yield f"  {shlex.quote(_program())} {name}"
    yield f"They talk to this stack because they name no other --config. `{_program()} down` stops all of it."


def _program() -> str:
    """This command, as it can be typed in the current directory."""
    program = Path(sys.executable).with_name("airmirror")
    return str(program.relative_to(Path.cwd())) if program.is_relative_to(Path.cwd()) else str(program)


def stop(console: Console) -> int:
    """Stop what ``up`` has started, and nothing else; the exit status."""
    left, step = _running(), steps(console)
    for process in reversed(left):
        with step(f"stopping {process.name}"):
            process.stop()
    shutil.rmtree(running.HOME, ignore_errors=True)
    console.print(f"{len(left)} processes stopped." if left else "Nothing was running.")
    return 0


def _state() -> Path:
    return running.HOME / "processes.json"


def _remember(started: list[Process], process: Process) -> None:
    started.append(process)
    entries = [
        {"name": each.name, "pid": each.pid, "started": each.handle.create_time(), "log": str(each.log)}
        for each in started
    ]
    _state().write_text(json.dumps(entries))


def _running() -> list[Process]:
    if not _state().exists():
        return []
    found = (
        attach(entry["name"], entry["pid"], entry["started"], Path(entry["log"]))
        for entry in json.loads(_state().read_text())
    )
    return [process for process in found if process is not None]
