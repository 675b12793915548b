"""``airmirror up`` and ``down``: what runs on, and that nothing does when ``up`` crashes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

CODE = """
import sys
from pathlib import Path
from rich.console import Console
from airmirror.cli import stack
stack.HOME = Path(sys.argv[1])
stack.STATE = stack.HOME / "processes.json"
sys.exit(getattr(stack, sys.argv[2])(Console(width=200)))
"""

pytestmark = pytest.mark.timeout(900)


def command(home: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", CODE, str(home), name], capture_output=True, text=True, timeout=400)


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


def test_up_leaves_the_stack_running_and_down_ends_all_of_it(tmp_path: Path) -> None:
    home = tmp_path / "up"
    try:
        up = command(home, "up")
        assert up.returncode == 0, up.stdout + up.stderr
        assert "http://127.0.0.1:" in up.stdout and "password" in up.stdout
        assert "It is running already" in command(home, "up").stdout
        assert len(of(home)) >= 7
    finally:
        down = command(home, "down")
    assert "7 processes stopped" in down.stdout
    wait(lambda: not of(home), 10)
    assert "Nothing was running" in command(home, "down").stdout


def test_when_up_is_killed_nothing_is_left(tmp_path: Path) -> None:
    home = tmp_path / "up"
    up = subprocess.Popen([sys.executable, "-c", CODE, str(home), "up"], stdout=subprocess.DEVNULL)
    try:
        wait(lambda: (home / "processes.json").exists(), 60)
    finally:
        up.send_signal(signal.SIGKILL)
        up.wait()
    wait(lambda: not of(home), 30)
