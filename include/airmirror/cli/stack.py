"""``airmirror up`` and ``airmirror down``: the embedded stack, left running until it is stopped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from rich.console import Console

from airmirror_local.jars import LOCAL
from airmirror_local.processes import Process, attach
from airmirror_local.spark_connect import TOKEN
from airmirror_local.stack import DAG_ID, FLOW, start_stack

HOME = LOCAL / "up"
STATE = HOME / "processes.json"
SCHEDULE = "1 minute"


def up(console: Console) -> int:
    """Start two clusters with the demo's records, Spark Connect and Airflow; the exit status."""
    if _running():
        console.print(
            f"It is running already; its configuration is {HOME / 'mirror.properties'}. `airmirror down` stops it."
        )
        return 1
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(mode=0o700, parents=True)
    started: list[Process] = []
    # Until everything runs and is remembered, all of it ends with this command, however that ends.
    stack = start_stack(
        HOME, schedule=SCHEDULE, step=console.status, started=lambda process: _remember(started, process)
    )
    for process in started:
        process.release()
    console.print(f"Airflow     {stack.airflow.url}/dags/{DAG_ID}", highlight=False, soft_wrap=True)
    console.print(f"            log in as {stack.airflow.user}, password {stack.airflow.password}", highlight=False)
    console.print(f"Clusters    east {stack.east.bootstrap}, west {stack.west.bootstrap}", highlight=False)
    console.print(
        f"Spark       {stack.spark.address}, token in {stack.spark.token_file}", highlight=False, soft_wrap=True
    )
    console.print(f"The flow {FLOW} is paused: switch {DAG_ID} on, or run a window by hand:", highlight=False)
    token = f'{TOKEN}="$(cat {stack.spark.token_file})"'
    command = (
        f"{token} airmirror run-window --config {stack.configuration} --flow '{FLOW}' --spark {stack.spark.address}"
    )
    console.print(f"  {command} --ledger {stack.ledger}", highlight=False, soft_wrap=True)
    console.print("`airmirror down` stops all of it.")
    return 0


def down(console: Console) -> int:
    """Stop what ``up`` has started, and nothing else; the exit status."""
    running = _running()
    for process in reversed(running):
        with console.status(f"stopping {process.name}"):
            process.stop()
    shutil.rmtree(HOME, ignore_errors=True)
    console.print(f"{len(running)} processes stopped." if running else "Nothing was running.")
    return 0


def _remember(started: list[Process], process: Process) -> None:
    started.append(process)
    entries = [
        {"name": each.name, "pid": each.pid, "started": each.handle.create_time(), "log": str(each.log)}
        for each in started
    ]
    STATE.write_text(json.dumps(entries))


def _running() -> list[Process]:
    if not STATE.exists():
        return []
    found = (
        attach(entry["name"], entry["pid"], entry["started"], Path(entry["log"]))
        for entry in json.loads(STATE.read_text())
    )
    return [process for process in found if process is not None]
