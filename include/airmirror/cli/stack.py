"""``airmirror up`` and ``airmirror down``: the embedded stack, left running until it is stopped."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from rich.console import Console

from airmirror.cli.demo import CONFIGURATION, FLOW
from airmirror_local.brokers import start_broker
from airmirror_local.jars import LOCAL
from airmirror_local.processes import Process, attach
from airmirror_local.records import create_topics, load
from airmirror_local.spark_connect import start_connect_server

HOME = LOCAL / "up"
STATE = HOME / "processes.json"


def up(console: Console) -> int:
    """Start two clusters with the demo's records and Spark Connect; the exit status."""
    if _running():
        console.print(
            f"It is running already; its configuration is {HOME / 'mirror.properties'}. `airmirror down` stops it."
        )
        return 1
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    started: list[Process] = []
    try:
        with console.status("starting cluster east"):
            east = start_broker(HOME, "east", outlive=True)
        _remember(started, east.process)
        with console.status("starting cluster west"):
            west = start_broker(HOME, "west", outlive=True)
        _remember(started, west.process)
        with console.status("starting Spark Connect"):
            spark = start_connect_server(HOME / "spark", outlive=True)
        _remember(started, spark.process)
        with console.status("loading real records into east"):
            create_topics(east.bootstrap)
            load(east.bootstrap)
    except BaseException:
        for process in started:
            process.kill()
        raise
    configuration = HOME / "mirror.properties"
    configuration.write_text(CONFIGURATION.format(east=east.bootstrap, west=west.bootstrap))
    console.print(f"east {east.bootstrap}, west {west.bootstrap}, Spark Connect {spark.url}. Next:", highlight=False)
    console.print(
        f"  airmirror run-window --config {configuration} --flow '{FLOW}' --spark {spark.url}", soft_wrap=True
    )
    console.print("  airmirror down")
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
    """Written after each start, so that ``down`` also works after ``up`` has crashed."""
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
