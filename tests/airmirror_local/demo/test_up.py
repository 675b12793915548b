"""``airmirror up`` and ``down``: what runs on, and that nothing does when ``up`` crashes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import psutil
import pytest
from rich.console import Console
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from airmirror.cli import running
from airmirror_local.airflow_stack import AirflowStack
from airmirror_local.brokers import start_broker
from airmirror_local.demo import up
from airmirror_local.processes import Process
from airmirror_local.spark_connect import ConnectServer
from airmirror_local.stack import Stack, Step
from support import ROOT

pytestmark = [pytest.mark.timeout(900), pytest.mark.servers]  # those of `airmirror up`
AIRMIRROR = Path(sys.executable).with_name("airmirror")


def place(home: Path) -> dict[str, str]:
    return {**os.environ, "AIRMIRROR_UP": str(home)}


def command(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=place(home), cwd=ROOT, capture_output=True, text=True, timeout=400)


def of(home: Path) -> list[psutil.Process]:
    """The processes that have the directory in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            texts = [*process.cmdline(), *process.environ().values()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(home) in text for text in texts):
            found.append(process)
    return found


def wait(look, seconds: float) -> None:  # type: ignore[no-untyped-def]
    Retrying(
        retry=retry_if_result(lambda found: not found),
        wait=wait_fixed(0.1),
        stop=stop_after_delay(seconds),
        reraise=True,
    )(look)


def one_broker(directory: Path, *, schedule: str, step: Step, started: Callable[[Process], None]) -> Stack:
    """A stack of which there is one broker only."""
    with step("starting cluster east"):
        east = start_broker(directory, "east")
    started(east.process)
    spark = ConnectServer(port=1, token="planted", token_file=directory / "token", process=east.process)
    airflow = AirflowStack(directory, "http://127.0.0.1:1", "planted", {}, {})
    configuration = directory / "mirror.properties"
    return Stack(
        east=east, west=east, spark=spark, airflow=airflow, configuration=configuration, ledger=schedule, loaded={}
    )


def test_up_remembers_what_it_has_started_and_down_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, printed = tmp_path / "up", StringIO()
    console = Console(file=printed, width=1000)
    monkeypatch.setattr(running, "HOME", home)
    monkeypatch.setattr(up, "start_stack", one_broker)
    try:
        assert up.start(console) == 0
        (broker,) = of(home)
        assert json.loads((home / "processes.json").read_text())[0]["pid"] == broker.pid
        assert running.spark_file().read_text() == "sc://localhost:1/;token=planted"
        assert running.spark_file().stat().st_mode & 0o777 == 0o600
        assert "http://127.0.0.1:1" in printed.getvalue() and "✓ starting cluster east" in printed.getvalue()
        tried = [line.split()[-1] for line in printed.getvalue().splitlines() if line.startswith("  ")]
        assert [each for each in tried if each in up.TO_TRY] == list(up.TO_TRY)
        assert up.start(console) == 1 and "It is running already" in printed.getvalue()
        assert of(home) == [broker]
    finally:
        assert up.stop(console) == 0
    assert "✓ stopping broker east" in printed.getvalue() and "1 processes stopped" in printed.getvalue()
    assert not of(home) and not home.exists()
    assert up.stop(console) == 0 and "Nothing was running" in printed.getvalue()


@pytest.mark.long
def test_up_leaves_the_stack_running_and_down_ends_all_of_it(tmp_path: Path) -> None:
    home = tmp_path / "up"
    try:
        started = command(home, str(AIRMIRROR), "up")
        assert started.returncode == 0 and started.stderr == "", started.stdout + started.stderr
        assert "http://127.0.0.1:" in started.stdout and "password" in started.stdout
        for step in ("starting cluster east", "loading real records", "starting Spark Connect", "starting Airflow"):
            assert f"✓ {step}" in started.stdout, started.stdout
        assert "It is running already" in command(home, str(AIRMIRROR), "up").stdout
        assert len(of(home)) >= 7
        # What it says to try runs as it is printed, and talks to what was started.
        tried = [line.split() for line in started.stdout.splitlines() if line.startswith("  ") and "airmirror" in line]
        assert [words[-1] for words in tried] == ["status", "run-window", "verify"]
        for words in tried:
            done = command(home, *words)
            assert done.returncode == 0, done.stdout + done.stderr
        now = command(home, *tried[0])
        (row,) = [line.split() for line in now.stdout.splitlines() if line.startswith("east->west")]
        assert row[3:] == ["0", "0", "0", "0"], "everything is mirrored and judged, nothing is held"
    finally:
        down = command(home, str(AIRMIRROR), "down")
    assert "✓ stopping Airflow scheduler" in down.stdout and "7 processes stopped" in down.stdout
    wait(lambda: not of(home), 10)
    assert "Nothing was running" in command(home, str(AIRMIRROR), "down").stdout


def test_when_up_is_killed_nothing_is_left(tmp_path: Path) -> None:
    home = tmp_path / "up"
    process = subprocess.Popen([str(AIRMIRROR), "up"], env=place(home), stdout=subprocess.DEVNULL)
    try:
        wait(lambda: (home / "processes.json").exists(), 300)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait(lambda: not of(home), 120)
